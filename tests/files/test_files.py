"""Files appear whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kpod._common.errors import printable
from kpod._files.atomic import written_whole


def test_an_interrupted_write_leaves_what_was_there(tmp_path):
    target = tmp_path / "out"
    target.write_text("before")

    def interrupted():
        with written_whole(target) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_killed_write_leaves_what_was_there(tmp_path, sent):
    target = tmp_path / "out"
    target.write_text("before")
    code = f"""
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and the suite may run under that
import kpod.cli, kpod.__main__
from kpod._files.atomic import written_whole
def write():
    with written_whole({str(target)!r}) as file:
        file.write(b"half"); file.flush()
        print("half way", flush=True)
        time.sleep(60)
kpod.cli.run = write
kpod.__main__.main()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "half way\n"
        process.send_signal(sent)
        process.wait()
    assert target.read_text() == "before"
    left = [path.name for path in tmp_path.iterdir() if path != target]
    assert len(left) == (1 if sent == signal.SIGKILL else 0)  # nobody can tidy up after SIGKILL
    assert all(name.startswith(".out.") and name.endswith(".part") for name in left)


def test_nohup_is_left_alone():
    """A run that was started to outlive its terminal does."""
    code = """
import signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
import kpod.cli, kpod.__main__
def run():
    signal.raise_signal(signal.SIGHUP)
    print("still there")
    return 0
kpod.cli.run = run
kpod.__main__.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "still there\n"


def test_whoever_reads_the_old_file_reads_it_to_the_end(tmp_path):
    target = tmp_path / "out"
    target.write_text("before")
    with target.open() as reader:
        with written_whole(target) as file:
            file.write(b"after")
        assert reader.read() == "before"
    assert target.read_text() == "after"


def test_links_are_followed_and_permissions_kept(tmp_path):
    real, link, new = tmp_path / "real", tmp_path / "link", tmp_path / "new"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)
    for path in (link, new):
        with written_whole(path) as file:
            file.write(b"after")
    assert link.is_symlink()
    assert real.read_text() == "after"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o666 & ~mask


def test_a_device_is_written_to_and_not_replaced():
    """A terminal of our own: root could replace /dev/null, and would where this fails."""
    ours, theirs = os.openpty()
    with written_whole(os.ttyname(theirs)) as file:
        file.write(b"seen")
    assert os.read(ours, 4) == b"seen"
    assert stat.S_ISCHR(Path(os.ttyname(theirs)).stat().st_mode)
    os.close(ours)
    os.close(theirs)


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with written_whole(tmp_path / "pipe") as file:
        file.write(b"seen")
    assert os.read(reader, 4) == b"seen"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    os.close(reader)


def test_control_characters_are_made_visible():
    assert printable("a\x1b[31m\nß") == r"a\x1b[31m\nß"
