"""Workers that their launcher leaves behind, and workers that others do not join."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ports import free_port

ROOT = Path(__file__).parents[3]

LAUNCHER = """
import os, subprocess, sys
words = [sys.executable, "-c", sys.argv[1], sys.argv[2]]
worker = subprocess.Popen(words, pass_fds=[int(sys.argv[2])])
worker.wait()
"""

WORKER = """
import os, sys, time
from harness.distributed import parent
{change}
parent.end_with_parent()
os.write(int(sys.argv[1]), b"works\\n")
while True:
    {work}
"""

ASLEEP, BUSY = "time.sleep(60)", "sum(range(1000))"
WITHOUT_THE_WATCH = "parent._watch = lambda _: None"
WITHOUT_THE_KERNEL = "parent._ask_kernel = lambda: None"


@pytest.mark.parametrize(
    ("change", "work"),
    [(WITHOUT_THE_WATCH, ASLEEP), (WITHOUT_THE_KERNEL, ASLEEP), (WITHOUT_THE_KERNEL, BUSY)],
    ids=["kernel", "watch", "watch while busy"],
)
def test_a_worker_ends_with_its_killed_launcher(change, work):
    """The pipe is closed when its last writer, the worker, has ended."""
    here, there = os.pipe()
    words = [sys.executable, "-c", LAUNCHER, WORKER.format(change=change, work=work), str(there)]
    environment = {**os.environ, "TORCHELASTIC_RUN_ID": "1"}
    launcher = subprocess.Popen(words, cwd=ROOT, env=environment, pass_fds=[there])
    os.close(there)
    with os.fdopen(here, "rb") as told:
        assert told.readline() == b"works\n"
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.wait()
        assert told.read() == b""


def test_without_torchrun_a_process_may_outlive_its_parent(monkeypatch):
    from harness.distributed import parent

    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setattr(parent, "_ask_kernel", lambda: pytest.fail("asked the kernel"))
    parent.end_with_parent()


MEMBER = """
import os, signal, sys, time
from datetime import timedelta
import torch
from harness.cli import main
from harness.distributed import joining
from harness.distributed.process_group import torchrun_processes

joining.JOIN_TIMEOUT = timedelta(seconds={seconds})
{change}

def work():
    with torchrun_processes() as processes:
        group = torch.distributed.distributed_c10d._get_default_group()
        backend = group._get_backend(torch.device("cpu"))
        print(processes.gather(processes.rank), backend.options._timeout, flush=True)

main.main = lambda **_: work()
main.run()
"""

LATE = """
def never(*_, **__):
    time.sleep(1000)
if os.environ["RANK"] == "1":
    torch.distributed.all_reduce = never
"""


def members(ranks, seconds, change=""):
    """Start processes of a group of two; return how each ended, and what it said."""
    rendezvous = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    words = [sys.executable, "-c", MEMBER.format(change=change, seconds=seconds)]
    started = [
        subprocess.Popen(
            words,
            cwd=ROOT,
            env={**os.environ, **rendezvous, "RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ranks
    ]
    try:
        outputs = [process.communicate(timeout=120) for process in started[:1]]
        if not change:
            outputs += [process.communicate(timeout=120) for process in started[1:]]
    finally:
        for process in started:
            process.kill()
            process.communicate()
    return [process.returncode for process in started], outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "change"), [("0", ""), ("1", ""), ("01", LATE)], ids=["first", "other", "connected"]
)
def test_a_process_does_not_wait_long_for_one_that_never_joins(ranks, change):
    codes, [(_, said), *_] = members(ranks, 3, change)
    assert codes[0] == 2, said
    assert f"process {ranks[0]} of 2 could not join all others within 0.05 minutes" in said
    assert "Traceback" not in said


def test_processes_that_joined_wait_longer_for_each_other():
    codes, outputs = members("01", 100)
    assert codes == [0, 0], outputs
    assert outputs[0][0] == "[0, 1] 3:00:00\n"
