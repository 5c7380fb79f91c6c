"""Pairs of processes that shard a model, exchange, and end at once: prints how each one ended.

    python leaving_program.py PORT...

A pair for each port, where nothing listens. The processes are forks, so that torch, and what it
imports for sharded models, is imported once.
"""

import gc
import json
import os
import sys

import torch
import torch._dynamo  # the forks need it
import torch.distributed.fsdp

from harness.distributed.fsdp import shard
from harness.distributed.process_group import torchrun_processes

KEPT: list[object] = []
"""What lives until the interpreter ends, and the processes' group with it."""


def leave() -> None:
    """Train a sharded model, exchange, and leave before another thread had its turn."""
    with torchrun_processes() as processes:
        model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(3)))
        run = shard(model, processes.device)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            run(model, torch.ones(4, 32)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        KEPT.extend((run, optimizer))
        sys.setswitchinterval(10)  # no thread that asks for the interpreter's lock is given it
        processes.gather(processes.rank)


def start(rank: int, port: str) -> int:
    """Return the process that leaves; this function never ends in that one."""
    process = os.fork()
    if process:
        return process
    os.environ.update(
        WORLD_SIZE="2",
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=port,
    )
    leave()
    sys.exit()


if __name__ == "__main__":
    torch.set_num_threads(1)
    gc.freeze()  # the forks share what is imported, and need not take it apart
    codes = []
    for port in sys.argv[1:]:
        processes = [start(rank, port) for rank in range(2)]
        codes += [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in processes]
    sys.stdout.write(json.dumps(codes))
