"""Processes of `ranks_program` without the time to start Python and to import torch."""

import multiprocessing
import os
from pathlib import Path

from ports import free_port

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["ranks_program", "forked_saves", "matplotlib.pyplot"])


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


def torchrun(size, jobs, home):
    """Do jobs in processes that torchrun's agent starts; return its exit code, and all said."""
    told = home / "said"
    agent = CONTEXT.Process(target=_agent, args=(size, jobs, str(told)))
    agent.start()
    agent.join()
    return agent.exitcode, told.read_text()


def _agent(size, jobs, told):
    import ranks_program
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    _say_in(told)
    chosen = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "max_restarts": 0}
    config = LaunchConfig(1, 1, size, start_method="fork", **chosen)
    elastic_launch(config, ranks_program.run)(jobs)


def _say_in(told):
    os.environ["TQDM_DISABLE"] = "1"
    with Path(told).open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def _rank(rank, size, port, jobs, told):
    import ranks_program

    _say_in(told)
    named = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in named.items()})
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    ranks_program.run(jobs)
