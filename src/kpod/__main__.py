"""`kpod` and `python -m kpod`: the command line, or one line on how to install it."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        from kpod.cli import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("kpod: the command line needs more packages: pip install 'scikit-kpod[cli]'.")
    open_streams()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as with nohup
            signal.signal(number, lambda *_: sys.exit(1))  # half-written files are then removed
    sys.exit(written_out(run()))


def open_streams() -> None:
    """Put nothing in the place of streams that the shell closed (2>&-).

    Otherwise the next files to be opened would be taken for them. Standard output stays None,
    which the commands that need one look for.
    """
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115


def written_out(code: int) -> int:
    """Write out what standard output still holds; the exit code, 1 if that fails.

    What cannot be written is dropped: the interpreter would try again, and leave with 120.
    """
    if sys.stdout is None:
        return code
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if code == 0 and not isinstance(error, BrokenPipeError):
            print(f"kpod: {error.strerror}.", file=sys.stderr)
        return code or 1
    return code


if __name__ == "__main__":
    main()
