"""Make what the docs take from the program: python -m docs.generate (or make docs)."""

from pathlib import Path

from docs.measured import with_figures
from kpod.cli import cli

HERE = Path(__file__).parent
WIDTH = 90


def context_of(command, name, parent=None):
    return command.make_context(name, [], parent, resilient_parsing=True, terminal_width=WIDTH)


def cli_reference():
    """docs/cli.md: the help of every command, as it is printed."""
    parts = [
        "# Command line reference\n\n"
        "Generated from `kpod --help` by `make docs`, and checked by a test. "
        "The [guide](command-line.md) explains how to use it.\n"
    ]
    top = context_of(cli, "kpod")
    names = sorted(cli.list_commands(top))
    contexts = [top, *(context_of(cli.get_command(top, name), name, top) for name in names)]
    for context in contexts:
        text = context.command.get_help(context)
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        parts.append(f"## {context.command_path}\n\n```text\n{lines}\n```\n")
    return "\n".join(parts)


def make_pictures(folder):
    """The pictures of docs/pictures-and-report.md."""
    import matplotlib as mpl
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import kpod
    from kpod.datasets import load_incomplete_wine

    mpl.use("Agg")
    wine = load_incomplete_wine()
    model = make_pipeline(StandardScaler(), kpod.KPOD(3, random_state=0)).fit(wine.data)
    for name in kpod.plot.__all__:
        display = getattr(kpod.plot, name).from_estimator(model, wine.data, column_names=wine.feature_names)
        file = folder / f"{name.removesuffix('Display').lower()}.png"
        display.figure_.savefig(file, dpi=90, metadata={"Software": None})


def make_report_picture(file):
    """The top of the report on the wines, as Chromium shows it; nothing without Chromium."""
    import shutil
    import subprocess
    from contextlib import chdir
    from tempfile import TemporaryDirectory

    from PIL import Image

    import kpod
    from kpod.datasets import load_incomplete_wine

    chromium = shutil.which("chromium")
    if not chromium:
        return
    with TemporaryDirectory() as folder, chdir(folder):
        shutil.copy(load_incomplete_wine().filename, "wine.csv")
        kpod.analyze("wine.csv", random_state=0).report(title="Clusters of 178 wines").save("report.html")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = ["--window-size=920,1780", "--force-device-scale-factor=0.7"]
        shot = [f"--screenshot={file}", f"file://{folder}/report.html"]
        subprocess.run([chromium, *options, *size, *shot], check=True, capture_output=True)
    with Image.open(file) as picture:
        few_colours = picture.convert("RGB").quantize(64)
    few_colours.save(file, optimize=True)


def pages():
    """Every page that may hold measured figures, by its path."""
    return {path: path.read_text() for path in [HERE.parent / "README.md", *sorted(HERE.rglob("*.md"))]}


def paper_pages():
    """What the full run of the paper's experiments came to: the tables, and the verdicts on its claims."""
    from paper import claims, results, tables
    from paper.__main__ import RESULTS
    from paper.datasets import designs
    from paper.summary import Summary

    summary = Summary(results.read(RESULTS / "full.csv")[1])
    sheets = tables.make_sheets(summary, list(designs()), ["rand", "ari", "seconds"])
    note = "Generated from `paper/results/full.csv` by `make docs`, and checked by a test. "
    note += "[What was run](paper.md).\n\n"
    verdicts = claims.as_text(claims.check_claims(summary), claims.rankings(summary), markdown=True)
    return {
        "paper-tables.md": f"# The paper's tables\n\n{note}{tables.as_markdown(summary, sheets)}",
        "paper-claims.md": f"# The paper's claims\n\n{note}{verdicts}",
    }


def make_paper_pictures(folder):
    """The pictures of docs/paper.md."""
    from paper.__main__ import main

    main(["plot", "--output", str(folder)])


if __name__ == "__main__":
    (HERE / "cli.md").write_text(cli_reference())
    for path, text in pages().items():
        path.write_text(with_figures(text))
    make_pictures(HERE / "images")
    make_report_picture(HERE / "images" / "report.png")
    for name, text in paper_pages().items():
        (HERE / name).write_text(text)
    make_paper_pictures(HERE / "images")
