"""Processes of `ranks_program` without the time to start Python and to import torch."""

import multiprocessing
import os
from pathlib import Path

from ports import free_port

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["ranks_program"])


def run(size, jobs, home):
    """Do jobs of `ranks_program` in several processes; return their exit codes, and all said."""
    told = [home / f"said-{rank}" for rank in range(size)]
    port = free_port()
    started = [
        CONTEXT.Process(target=_rank, args=(rank, size, port, jobs, str(told[rank])))
        for rank in range(size)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    return [process.exitcode for process in started], "\n".join(path.read_text() for path in told)


def _rank(rank, size, port, jobs, told):
    import ranks_program

    with Path(told).open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    named = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in named.items()})
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "TQDM_DISABLE": "1"})
    ranks_program.run(jobs)
