"""What a warm start learns from does not depend on when servers reply."""

import asyncio
import random
import time
from contextlib import contextmanager
from functools import partial

import pytest
from small_training import last_checkpoint, run, small

from env_servers import Server, create_app
from harness import config as configs
from harness.model import tiny
from harness.model.policy import Policy
from harness.rollouts import demonstrations
from harness.rollouts.build import make_pool, make_prompt_agent
from harness.rollouts.collect import collect
from harness.rollouts.demonstrations import Demonstrator, demonstrate
from harness.rollouts.groups import CollectOptions
from harness.training.players.demonstration_actor import DemonstrationActor
from harness.types.errors import ModelUnavailable
from harness.types.task_draws import TaskDraw

DRAWS = [TaskDraw(f"train/free-{number:03d}", number) for number in range(0, 12, 2)]


@contextmanager
def uneven(seed):
    """A server of corridors that lets each request wait for another time; yields its address."""
    app, rng = create_app("agentgyms/Corridor-v0", token=""), random.Random(seed)
    app.before_request(lambda: time.sleep(0.008 * rng.random()))
    with Server(app) as server:
        yield f"env.kwargs.url='{server.url}'"


def recorded(tmp_path, noise, *overrides):
    """Return what an expert's episodes leave for the warm start."""
    config = small(tmp_path, "run", *overrides)
    pool = make_pool(config, "train", 1, oracle=True)
    demonstrator = Demonstrator(make_prompt_agent(config), "best", noise)
    try:
        played = demonstrate(demonstrator, pool, DRAWS, seed=3, on_finish=lambda _: None)
        rollouts = asyncio.run(played)
    finally:
        pool.close()
    assert [rollout.group for rollout in rollouts] == list(range(len(DRAWS)))
    return demonstrator.demonstrations, [*demonstrator.texts], [*demonstrator.corpus()]


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_remote_demonstrations_are_the_local_ones_in_their_order(tmp_path, noise):
    local = recorded(tmp_path, noise)
    with uneven(1) as url:
        assert recorded(tmp_path, noise, url) == local


def test_many_known_actions_are_drawn_from_while_episodes_are_played_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(demonstrations, "_MAX_ACTIONS", 3)
    local = recorded(tmp_path, 0.5)
    with uneven(2) as url:
        assert recorded(tmp_path, 0.5, url) == local


def test_an_episode_that_is_played_again_is_recorded_once(tmp_path, monkeypatch):
    monkeypatch.setattr(demonstrations, "CollectOptions", partial(CollectOptions, pause_s=0.0))
    expected = recorded(tmp_path, 0.5)
    act, failures = Demonstrator.act, [(3, 2), (9, 0), (14, 4)]
    taken = 0

    async def failing(self, view, seed):
        nonlocal taken
        taken += 1
        if failures and taken >= failures[0][0] and len(view.turns) == failures[0][1]:
            failures.pop(0)
            raise ModelUnavailable("away for a moment")
        return await act(self, view, seed)

    monkeypatch.setattr(Demonstrator, "act", failing)
    assert recorded(tmp_path, 0.5) == expected
    assert not failures


@pytest.fixture(scope="module")
def policy():
    tokenizer = tiny.make_tokenizer(["go left or right"], 300)
    size = configs.TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32)
    return Policy(tiny.make_model(size, tokenizer, 0), tokenizer, "cpu")


def imitated(tmp_path, policy, *overrides):
    config = small(tmp_path, "run", *overrides)
    pool = make_pool(config, "train", 3, oracle=True)
    try:
        actor = DemonstrationActor(config, policy, "best", 0.5)
        rollouts = asyncio.run(collect(pool, DRAWS[:3], actor, seed=3))
    finally:
        pool.close()
    return [
        (turn.action, turn.feedback, turn.state_key)
        for rollout in rollouts
        for turn in rollout.turns
    ]


def test_the_expert_in_training_plays_the_same_on_servers(tmp_path, policy):
    local = imitated(tmp_path, policy)
    assert len({action for action, *_ in local}) > 3
    for seed in (3, 4):
        with uneven(seed) as url:
            assert imitated(tmp_path, policy, url) == local


@pytest.mark.slow
def test_a_warm_start_on_servers_gives_the_weights_of_one_without(tmp_path):
    settings = ("run.steps=0", "eval.tasks=1", "eval.every=0", "warmstart.noise=0.3")
    local = run(small(tmp_path, "local", *settings))
    expected = (last_checkpoint(local).folder / "model.safetensors").read_bytes()
    for seed in (5, 6):
        with uneven(seed) as url:
            remote = run(small(tmp_path, f"remote-{seed}", *settings, url))
        assert (last_checkpoint(remote).folder / "model.safetensors").read_bytes() == expected
