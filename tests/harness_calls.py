"""`harness` as a program that starts at once: calls are forks of a process that has imported it.

For tests that follow scripts and pages with many calls. What a call is given and leaves is that of
`python -m harness`: words, folder, variables, files, exit status.
"""

import gc
import json
import os
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def forking():
    """Give the words that call the program."""
    with tempfile.TemporaryDirectory() as folder:  # short: it is part of the socket's name
        address = f"{folder}/calls"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "AGENTGYMS_"))}
        with subprocess.Popen(
            [sys.executable, __file__, "serve", address],
            cwd=folder,
            env={**kept, "PYTHONPATH": str(ROOT), "TQDM_DISABLE": "1"},
            stdout=subprocess.PIPE,
        ) as server:
            assert server.stdout.readline() == b"ready\n"
            yield shlex.join([sys.executable, "-ISB", __file__, "call", address])
            server.kill()


def serve(address):
    """Answer calls until killed; returns in the processes that are to do a call's work."""
    import matplotlib.pyplot  # noqa: F401

    import harness.cli.main
    import harness.training.setup  # noqa: F401

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        gc.freeze()  # so that collections of a fork copy no page
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
        os.write(1, b"ready\n")
        while True:
            link, _ = listener.accept()
            with link:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    listener.close()
                    if (told := answer(link)) is not None:
                        return told


def answer(link):
    """Return the words of a call in the process for its work; in that which waits, end."""
    _, files, _, _ = socket.recv_fds(link, 1, 3)
    with link.makefile() as stream:
        words, folder, variables = json.loads(stream.read())
    worker = os.fork()
    if worker:
        code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        link.sendall(str(code if code >= 0 else 128 - code).encode())
        os._exit(0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    paths = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[0:1] = [folder, *paths]
    return words


def call(address, words):
    """Have a fork do the work of a call, and end as it does."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(address)
        socket.send_fds(link, [b"."], [0, 1, 2])
        link.sendall(json.dumps([words, str(Path.cwd()), dict(os.environ)]).encode())
        link.shutdown(socket.SHUT_WR)
        with link.makefile() as stream:
            sys.exit(int(stream.read()))


if __name__ == "__main__":
    kind, where, *given = sys.argv[1:]
    if kind == "call":
        call(where, given)
    sys.argv = ["harness", *serve(where)]
    runpy.run_module("harness", run_name="__main__")
