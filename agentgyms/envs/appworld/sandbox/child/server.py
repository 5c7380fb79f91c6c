"""The fork server: loads the modules of a role once, and forks a child for each episode.

It has one thread and never runs an agent's code. As the parent of its children it alone knows how
one ended and whether a process id is still that child's, so it stops, continues and kills children
on request.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress
from os import _exit  # bound here, because an agent's code may replace it in its module
from typing import Any, Final, NoReturn, Protocol

from .line import Connection

_PR_SET_PDEATHSIG: Final = 1
_PARENT_CHECK_S: Final = 5.0
_SIGNALS: Final = {"pause": signal.SIGSTOP, "resume": signal.SIGCONT}


class Role(Protocol):
    """The role of the children: a module of this package."""

    def warm(self, options: dict[str, Any]) -> None:
        """Load, in the server, the modules that every child needs."""

    def serve(self, connection: Connection, options: dict[str, Any]) -> None:
        """Respond, in a child, to the messages on the connection until it closes."""


class _Server:
    def __init__(self, control: socket.socket, role: Role, options: dict[str, Any]) -> None:
        self.control = control
        self.role = role
        self.options = options
        self.running: dict[int, int] = {}  # process id of each child
        self.ended: dict[int, int] = {}  # wait status of each child that ended
        self.parent = os.getppid()
        self.libc = ctypes.CDLL(None) if sys.platform == "linux" else None
        self.wakeup_read, self.wakeup_write = os.pipe()
        for end in (self.wakeup_read, self.wakeup_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> NoReturn:
        self.respond({"ready": os.getpid()})
        poll = select.poll()  # `select.select` fails on the numbers that a large server has
        for end in (self.control.fileno(), self.wakeup_read):
            poll.register(end, select.POLLIN)
        while os.getppid() == self.parent:
            readable = [end for end, _ in poll.poll(_PARENT_CHECK_S * 1000)]
            if self.wakeup_read in readable:
                with suppress(BlockingIOError):
                    os.read(self.wakeup_read, 4096)
            self.reap()
            if self.control.fileno() in readable and not self.handle():
                break
        for pid in self.running.values():
            os.kill(pid, signal.SIGKILL)
        os._exit(0)

    def handle(self) -> bool:
        """Handle one request; return False if the other side has closed the connection."""
        try:
            text, ends, _, _ = socket.recv_fds(self.control, 4096, 1)
        except ConnectionError:
            return False
        if not text:
            return False
        request = json.loads(text)
        child = request["child"]
        if request["do"] == "fork":
            self.respond({"pid": self.fork(child, ends[0])})
        elif request["do"] == "look":
            self.respond({"running": child in self.running})
        elif request["do"] in _SIGNALS:
            if child in self.running:
                os.kill(self.running[child], _SIGNALS[request["do"]])
            self.respond({"running": child in self.running})
        else:
            self.respond({"status": self.end(child)})
        return True

    def respond(self, message: dict[str, Any]) -> None:
        with suppress(ConnectionError):
            self.control.sendall(json.dumps(message).encode() + b"\n")

    def reap(self) -> None:
        with suppress(ChildProcessError):  # there is no child
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = found
                child = next(child for child, its in self.running.items() if its == pid)
                del self.running[child]
                self.ended[child] = status

    def end(self, child: int) -> int | None:
        """Forget a child, and return its wait status; kill it and return None if it still runs."""
        pid = self.running.pop(child, None)
        if pid is None:
            return self.ended.pop(child, None)
        reaped, status = os.waitpid(pid, os.WNOHANG)
        if reaped:
            return status
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None

    def fork(self, child: int, end: int) -> int:
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self.run_child(server, end)
        os.close(end)
        self.running[child] = pid
        return pid

    def run_child(self, server: int, end: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if self.libc is not None:
                self.libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() == server:  # the server may have ended before the line above
                os.dup2(1, 2)  # stderr is for errors of the server
                self.control.close()
                os.close(self.wakeup_read)
                os.close(self.wakeup_write)
                serve(self.role, Connection(socket.socket(fileno=end)), self.options)
                code = 0
        finally:
            _exit(code)


def serve(role: Role, connection: Connection, options: dict[str, Any]) -> None:
    """Run a role on a connection; send an exception as its last message."""
    try:
        role.serve(connection, options)
    except Exception as e:
        last = traceback.extract_tb(e.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno}"  # noqa: PTH119 (it is a string)
        with suppress(OSError):
            connection.send({"error": f"{type(e).__name__} at {where}: {e}"})
        raise


def serve_forks(control: int, role: Role, options: dict[str, Any]) -> NoReturn:
    """Load a role, then handle the requests on the control socket until it closes.

    `control` is the descriptor of a stream socket. A request is a JSON object: `do` is `fork`
    (with the child's end of its connection), `look`, `pause`, `resume` or `end`; `child` is a
    number.
    """
    role.warm(options)
    gc.collect()
    gc.freeze()  # a child's garbage collection must not write to, and so copy, shared pages
    # The parent chose its number, which may be too large for select.
    low = os.dup(control)
    os.close(control)
    _Server(socket.socket(fileno=low), role, options).run()
