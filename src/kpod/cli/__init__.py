"""The command line. Commands parse, call and show; the work is done elsewhere.

Only click is imported before a command runs, so that `kpod --help` and completion are quick.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module

import click

from kpod._common.errors import printable
from kpod._common.options import read_in_the_shell


def run(args: Sequence[str] | None = None) -> int:  # noqa: PLR0911
    """Run a command; the exit code is 0, 1 for bad input or a failure, 2 for a usage error."""
    try:
        with read_in_the_shell():
            return int(cli.main(args, prog_name="kpod", standalone_mode=False) or 0)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "kpod"
        return fail(f"{error.format_message().rstrip('.')}; see {command} --help.", 2)
    except click.ClickException as error:
        return fail(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        return fail("interrupted; no file was left half-written.")
    except OSError as error:
        where = f"{printable(error.filename)}: " if error.filename else ""
        return fail(f"{where}{error.strerror or printable(error)}.")
    except ModuleNotFoundError as error:
        return fail(f"the package {error.name} is missing: pip install 'scikit-kpod[cli]'.")
    except MemoryError:
        return fail("not enough memory for this table.")
    except Exception as error:
        if "KPOD_TRACEBACK" in os.environ:
            raise
        kind = "" if isinstance(error, ValueError) else f"unexpected {type(error).__name__}: "
        return fail(kind + " ".join(printable(line) for line in str(error).splitlines()))


def fail(message: str, code: int = 1) -> int:
    click.echo(f"kpod: {message}", err=True)
    return code


COMMANDS = {
    "fit": "Cluster a table.",
    "choose-k": "Choose the number of clusters.",
    "predict": "Assign new rows to the clusters of a model.",
    "impute": "Fill the gaps of a table from the clusters of a model.",
    "compare": "Show what has changed in a new table since a model was fitted.",
    "describe": "Show the columns of a table, their roles and what is missing.",
    "demo": "Try it: a whole analysis of a bundled table.",
}


class Commands(click.Group):
    """Commands that are imported when they are called, each from the module of its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"kpod.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 bad input or failure, 2 usage error.",
)
@click.version_option(package_name="scikit-kpod", prog_name="kpod")
def cli() -> None:
    """Cluster the rows of a table with missing values, without imputing them or dropping rows.

    \b
    From a CSV file to a report:
      kpod fit data.csv -o clusters.csv --report report.html

    \b
    Try it on a bundled table:
      kpod demo

    \b
    Shell completion (bash; zsh and fish likewise), in ~/.bashrc:
      eval "$(_KPOD_COMPLETE=bash_source kpod)"
    """
