"""Training runs in processes of their own that may be killed, without the time to start Python.

They are forked from a clean process that has imported the harness and done nothing else.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import sys

from harness import config as configs

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["forked_runs", "harness.training.setup", "matplotlib.pyplot"])


def process(target, *arguments):
    """Return the process, started, of a function of this module."""
    child = CONTEXT.Process(target=target, args=arguments)
    child.start()
    return child


def finished(target, *arguments):
    """Run a function of this module to its end, and return the exit code."""
    child = process(target, *arguments)
    child.join()
    return child.exitcode


def _quiet():
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ["TQDM_DISABLE"] = "1"


def start(overrides):
    """Train `corridor-tiny` with these settings."""
    from harness.training import setup

    _quiet()
    setup.start(configs.load("corridor-tiny", overrides)).run()


def resume(folder):
    """Go on with a run."""
    from harness.training import setup

    _quiet()
    setup.resume(folder).run()


def sleep_on(told):
    """Play for a minute, whatever signal comes; a file tells that signals are listened to."""
    from harness.distributed.signals import StopSignal

    stop = StopSignal(grace_s=None)
    with stop.listening():
        told.touch()
        stop.run(asyncio.sleep(60))


def save_at_every_moment(origin, step, report):
    """Save what a run's checkpoint holds as that of a step, again and again, with a kill each time.

    The n-th process that saves dies at the n-th change in a copy of the run's folder. The report
    has, for each, the signal that ended it, the step of the newest checkpoint that is whole, and
    the checkpoints and the link to the best one after that one was taken up.
    """
    from harness.runs import checkpoints
    from harness.training import saving, setup

    _quiet()
    trainer, found = setup.resume(origin), []
    while not found or found[-1][0]:
        folder = origin.parent / f"moment{len(found)}"
        shutil.copytree(origin, folder, symlinks=True)
        child = os.fork()
        if not child:
            _die_at(len(found) + 1, folder)
            policy, optimizer = trainer.policy, trainer.learner.optimizer
            validation = {"success": 0.9}
            saving.begin(folder, step, policy, optimizer, keep=1, validation=validation).finish()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        newest = checkpoints.newest(folder).step
        taken = checkpoints.finish_save(folder, keep=1)
        names = [whole.folder.name for whole in checkpoints.find_all(folder)]
        best = taken.folder.with_name(checkpoints.BEST).readlink().name
        found.append((os.WTERMSIG(status), newest, [taken.folder.name, *names, best]))
        shutil.rmtree(folder)
    report.write_text(json.dumps(found))


def _die_at(moment, folder):
    """Kill this process at its n-th change in a folder, before the change is made."""
    changes = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "open"}
    seen = 0

    def watch(event, arguments):
        nonlocal seen
        if event in changes and str(arguments[0]).startswith(str(folder)):
            seen += 1
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
