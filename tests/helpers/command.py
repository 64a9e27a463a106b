"""Run the command line in this process, or as the program it is."""

import io
import re
import subprocess
import sys

from kpod.cli import run


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


class Streams:
    """Standard streams that remember: text, with the bytes beneath."""

    def __init__(self, data=b""):
        self.stdin = io.TextIOWrapper(io.BytesIO(data))
        self.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        self.stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def kpod(monkeypatch, *args, stdin=b""):
    """The exit code and both outputs of a command."""
    streams = Streams(stdin)
    with monkeypatch.context() as patch:
        for name in ("stdin", "stdout", "stderr"):
            patch.setattr(sys, name, getattr(streams, name))
        code = run([str(arg) for arg in args])
    out, err = (stream.buffer.getvalue().decode() for stream in (streams.stdout, streams.stderr))
    return Result(code, out, err)


SAID_AFTER_A_WHILE = re.compile(r"^(kpod: \d+ s: |choosing the number of clusters takes about ).*\n", re.M)


def program(*args, **options):
    """The same, as a process of its own; without lines that only a busy machine shows."""
    command = [sys.executable, "-W", "error", "-m", "kpod", *map(str, args)]
    done = subprocess.run(command, capture_output=True, check=False, **options)
    return Result(done.returncode, done.stdout.decode(), SAID_AFTER_A_WHILE.sub("", done.stderr.decode()))
