"""A program that waits for its standard input ends at its first signal, and cleans up."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from agentgyms.processes.signals import run_until_signal
def work():
    print("begun", flush=True)
    line = sys.stdin.readline()
    if line == "fail\\n":
        raise SystemExit("failed")
run_until_signal(work, lambda: print("cleaned", flush=True))
print("after", flush=True)
"""


@pytest.fixture
def program():
    command = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        yield process
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_what_waits_for_input(program, number):
    program.send_signal(number)
    assert program.wait(60) == 0
    assert program.stdout.read() == "cleaned\n"
    assert program.stderr.read() == ""


@pytest.mark.parametrize(("line", "status", "shown"), [("", 0, "after\n"), ("fail\n", 1, "")])
def test_the_end_of_input_ends_it_too(program, line, status, shown):
    said, errors = program.communicate(line, 60)
    assert (program.returncode, said) == (status, f"cleaned\n{shown}")
    assert errors == ("failed\n" if status else "")


AT_ANY_LINE = """
import random, signal, sys, threading
from agentgyms.processes import signals
signals._LOOK_S = 3600  # a signal that does not end the wait itself would never end it
sys.setswitchinterval(1e-6)
def interrupt(ready):
    ready.wait()
    for _ in range(random.randrange(60)):
        pass
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
for _ in range(1000):
    stop, ready = signals.stop_at_signal(), threading.Event()
    threading.Thread(target=interrupt, args=[ready]).start()
    ready.set()
    stop.wait()
"""


def test_a_signal_ends_the_wait_at_whatever_line_it_comes():
    subprocess.run([sys.executable, "-c", AT_ANY_LINE], check=True, timeout=600)
