"""What torchrun starts for the tests of several processes: trains, goes on, fails or dies.

    torchrun ... ranks_program.py JOBS

JOBS is a JSON file with a list of [name of a function here, its arguments...].
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import torch

from harness import config as configs
from harness import starting
from harness.packing import Sample
from harness.ranks import joined
from harness.scoring import score


def start(ranks, overrides):
    """Train `corridor-tiny` with these settings."""
    starting.start(configs.load("corridor-tiny", overrides), ranks).run()


def go_on(ranks, source, folder, step):
    """Go on from one checkpoint of a run, in a copy of it."""
    ranks.of_first(lambda: copy(source, folder, step))
    starting.resume(folder, ranks).run()


def copy(source, folder, step):
    """Copy a run as it was after a step."""
    shutil.copytree(source, folder, symlinks=True)
    for checkpoint in Path(folder, "checkpoints").glob("step-*"):
        if checkpoint.name > f"step-{step:06d}":
            shutil.rmtree(checkpoint)


def fail(ranks, overrides):
    """Meet an error in the last process while it plays."""
    trainer = starting.start(configs.load("corridor-tiny", overrides), ranks)
    if ranks.rank == ranks.size - 1:

        async def complete(*_):
            raise ValueError("the model has left")

        trainer.generator.completer.complete = complete
    trainer.run()


def die(ranks, overrides):
    """Kill the last process between two steps."""
    trainer = starting.start(configs.load("corridor-tiny", overrides), ranks)
    take = trainer.train_step

    def train_step():
        if trainer.step == 1 and ranks.rank == ranks.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return take()

    trainer.train_step = train_step
    trainer.run()


def score_one(ranks, folder, told):
    """Score fewer sequences than there are processes, and write what comes of it."""
    policy = starting.Policy.load(folder, "cpu")
    rows = [Sample((1, 2, 3), (4, 5), (0.0, 0.0), 0.0)]
    alone = score(policy, rows)
    policy.shard(ranks)
    shared = score(policy, rows)
    gap = abs(alone[0].logprob - shared[0].logprob).max()
    parts = sum(weight.to_local().numel() for weight in policy.model.parameters())
    whole = sum(weight.numel() for weight in policy.model.parameters())
    found = ranks.gather([len(shared), float(gap), parts / whole])
    if ranks.is_first:
        Path(told).write_text(json.dumps(found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with joined() as joint:
        for name, *arguments in json.loads(Path(sys.argv[1]).read_text()):
            globals()[name](joint, *arguments)
