"""`kpod` and `python -m kpod`: the command line, or one line on how to install it."""

from __future__ import annotations

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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # half-written files are then removed
    sys.exit(run())


if __name__ == "__main__":
    main()
