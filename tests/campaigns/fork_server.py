"""A process that has imported the parsers, and forks a child for each file: what a new one does, quickly."""

import json
import os
import socket
import sys

FORKED = ("python_calamine", "pyreadstat", "pyarrow.json", "kpod._files.sandbox.sheets")


class ForkServer:
    """Stands in for `parent.exit_code`, and records what the children took."""

    def __init__(self):
        self.peak = self.seconds = 0
        self.ours, theirs = socket.socketpair()
        if os.fork() == 0:
            self.ours.close()
            try:
                serve(theirs)
            finally:
                os._exit(0)
        theirs.close()

    def close(self):
        self.ours.close()

    def exit_code(self, command, given, found, most_seconds):
        """How a child ended that parsed one file into another."""
        fds = [given.fileno(), found.fileno()]
        socket.send_fds(self.ours, [command[-1].encode()], fds)
        code, peak, seconds = json.loads(self.ours.recv(1000))
        self.peak = max(self.peak, peak)
        self.seconds += seconds
        return code


def serve(requests):
    """Fork a child for each request, and report how it ended, its peak of memory and its seconds."""
    sys.modules["pandas"] = None
    for name in FORKED:
        __import__(name)
    while True:
        message, fds, _, _ = socket.recv_fds(requests, 1 << 16, 2)
        if not message:
            return
        child = os.fork()
        if child == 0:
            parse(message, fds)
        for fd in fds:
            os.close(fd)
        _, status, used = os.wait4(child, 0)
        answer = [os.waitstatus_to_exitcode(status), 1024 * used.ru_maxrss, used.ru_utime + used.ru_stime]
        requests.send(json.dumps(answer).encode())


def parse(message, fds):
    """What `parsers.main` does, in a process that has done all its imports."""
    from kpod._files.sandbox import parsers

    for fd, at in zip(fds, (0, 1), strict=True):
        os.dup2(fd, at)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.argv = ["", "", message.decode()]
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    parsers.main()
    os._exit(0)
