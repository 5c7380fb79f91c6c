"""An environment server dies by SIGKILL while 64 episodes run on it, and nobody can tell."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from function_actor import FunctionActor
from ports import free_port

from agentgyms.remote import Patience
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.types.task_draws import TaskSampler

ALFWORLD = "agentgyms/ALFWorld-v0"
TOKEN = "chaos"


class Servers:
    """One server at a time, at one address; its place is taken again after a kill."""

    def __init__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.processes, self.restarts = [], []

    def start(self):
        process = subprocess.Popen(
            [sys.executable, "-m", "env_servers", ALFWORLD, "--port", str(self.port)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "AGENTGYMS_TOKEN": TOKEN},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.processes.append(process)
        process.stdout.readline()  # its address: it answers

    def kill(self):
        for restart in self.restarts:
            restart.join()
        self.processes[-1].kill()
        self.processes[-1].wait()
        self.restarts.append(threading.Timer(0.1, self.start))
        self.restarts[-1].start()

    def close(self):
        for restart in self.restarts:
            restart.join()
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def servers():
    started = Servers()
    started.start()
    yield started
    started.close()


class Wanderer(FunctionActor):
    """Does what the expert would, or anything, as the seed says; and at some turns calls `befall`.

    Some of its episodes are won, and some run into the turn limit.
    """

    def __init__(self, befalls=(), befall=None):
        super().__init__(self.choose)
        self.befalls, self.befall, self.taken = set(befalls), befall, 0

    def choose(self, view, seed):
        self.taken += 1
        if self.taken in self.befalls:
            self.befall()
        admissible = view.info["admissible_actions"]
        if seed % 100 < 15:
            return json.loads(view.info["oracle"])["best"]
        return admissible[seed % len(admissible)]


def play(groups, actor, **kwargs):
    pool = EnvPool(ALFWORLD, 8, 8 * groups, oracle=True, **kwargs)
    draws = TaskSampler(pool.tasks(), seed=5).draw(0, groups)
    rollouts = asyncio.run(collect(pool, draws, actor, seed=7, options=CollectOptions(retries=6)))
    pool.close()
    return rollouts


def told(rollouts):
    return [
        (r.task_id, r.group, r.member, r.error, r.success, r.score, r.stop_reason, turn)
        for r in rollouts
        for turn in r.turns
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "lost_s"), [(8, 30.0), (1, 0.1)], ids=["patient", "hurried"])
def test_a_server_killed_three_times_costs_no_episode_and_no_reward(servers, groups, lost_s):
    """Patient clients rebuild their sessions; hurried ones lose episodes, which begin again."""
    undisturbed = play(groups, Wanderer())
    assert len(undisturbed) == 8 * groups
    assert 0 < sum(rollout.success for rollout in undisturbed) < 8 * groups
    turns = sum(len(rollout.turns) for rollout in undisturbed)
    moments = np.random.default_rng(11).integers(0, turns // 3, 3) + np.arange(3) * turns // 3
    actor = Wanderer(moments.tolist(), servers.kill)
    patience = Patience(attempts=2, lost_s=lost_s)
    disturbed = play(groups, actor, url=servers.url, token=TOKEN, patience=patience)
    assert len(servers.restarts) == 3
    assert all(process.poll() == -9 for process in servers.processes[:3])
    assert told(disturbed) == told(undisturbed)
    assert (actor.taken == turns) == (lost_s == 30), "what was lost was decided again"
    assert actor.taken < 2 * turns, "and what was not lost was not"
