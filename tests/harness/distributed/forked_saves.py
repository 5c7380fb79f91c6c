"""Two processes that save a checkpoint together; one of them is killed, or fails, at each change.

They are forked from a clean process that has imported the harness and loaded the model.
"""

import json
import os
import shutil
import signal
import sys
from datetime import timedelta

import forked_ranks
import torch

from harness.distributed.process_group import ProcessGroup, ReportedElsewhere
from harness.model.policy import Policy
from harness.runs import checkpoints
from harness.training import saving
from harness.types.errors import TrainingError

SIZE = 2
ERRORS, OTHER = {TrainingError: 3, ReportedElsewhere: 4}, 5
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink"}


def run(model, home, every):
    """Save at every moment in a process of its own; return what came of each."""
    home.mkdir()
    process = forked_ranks.CONTEXT.Process(target=_at_every_moment, args=(model, home, every))
    process.start()
    process.join()
    return json.loads((home / "report.json").read_text())


def _at_every_moment(model, home, every):
    torch.set_num_threads(1)
    policy, origin, found = Policy.load(model, "cpu"), home / "origin", []
    assert _save_in_both(policy, origin, 1, home) == [0, 0]
    for rank in range(SIZE):
        for act in ("kill", "fail"):
            moment = 1
            while _reached(found, policy, origin, home, rank, act, moment):
                moment += 1 if act == "kill" else every
    (home / "report.json").write_text(json.dumps(found))


def _reached(found, policy, origin, home, rank, act, moment):
    folder, mark = home / f"{rank}-{act}-{moment}", home / "reached"
    shutil.copytree(origin, folder, symlinks=True)
    mark.unlink(missing_ok=True)

    def disturb(own):
        if own == rank:
            _at(moment, folder, act, mark)

    codes = _save_in_both(policy, folder, 2, home, disturb)
    newest = checkpoints.newest(folder)
    Policy.load(str(newest.folder), "cpu")
    left = [path.name for path in (folder / "checkpoints").glob(".*")]
    taken = checkpoints.finish_save(folder, keep=1).folder
    names = sorted(path.name for path in taken.parent.glob("step-*"))
    found.append([act, codes, newest.step, taken.name, names, left])
    shutil.rmtree(folder)
    return mark.exists()


def _at(moment, folder, act, mark):
    """Kill this process at its n-th change in a folder, or let the change fail."""
    seen = 0

    def watch(event, arguments):
        nonlocal seen
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
        if (event in CHANGES or writes) and str(arguments[0]).startswith(str(folder)):
            seen += 1
            if seen == moment:
                mark.touch()
                if act == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise OSError(28, "No space left on device")

    sys.addaudithook(watch)


def _save_in_both(policy, folder, step, home, disturb=lambda rank: None):
    """Save in processes that share a model; return their exit codes."""
    store = home / "store"
    store.unlink(missing_ok=True)
    children = []
    for rank in range(SIZE):
        child = os.fork()
        if not child:
            try:
                _save(policy, folder, step, store, rank, disturb)
            except Exception as e:
                os._exit(ERRORS.get(type(e), OTHER))
            os._exit(0)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def _save(policy, folder, step, store, rank, disturb):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    torch.distributed.init_process_group(
        "gloo", f"file://{store}", timedelta(seconds=120), rank=rank, world_size=SIZE
    )
    policy.shard(ProcessGroup(rank, SIZE))
    optimizer = torch.optim.AdamW(policy.model.parameters(), 0.1)
    for weight in policy.model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    disturb(rank)
    saving.begin(folder, step, policy, optimizer, keep=1).finish()
