"""Agents of others play with the policy in training through its gateway."""

import asyncio
import itertools
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import gateway_peer
import numpy as np
import pytest
from function_actor import FunctionActor
from gateway_peer import ask, trained
from small_training import small

from env_servers import Server, create_app
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.training import setup
from harness.types.task_draws import TaskDraw

TASKS = ("train/free-000", "train/free-002")
SIZE = 3


def episodes(clients):
    return [
        {"client": clients[number % len(clients)], "group": task, "name": f"{task[-3:]}-{i}"}
        | {"task": task, "turns": 8 if i == 0 else 3, "solves": i == 0}
        for number, (task, i) in enumerate(itertools.product(TASKS, range(SIZE)))
    ]


@pytest.fixture
def trainer(tmp_path):
    """A run of one step behind a gateway, before it, with a server of its environment."""
    with Server(create_app("agentgyms/Corridor-v0", token="", split="train")) as server:
        config = small(
            tmp_path,
            "gateway",
            "run.steps=1",
            "run.keep_rollouts=1",
            "eval.tasks=1",
            "agent.context=transcript",
            "rollout.gateway='127.0.0.1:0'",
            f"rollout.tasks_per_step={len(TASKS)}",
            f"rollout.group_size={SIZE}",
            "rollout.max_batch=4",
            "warmstart.episodes=8",
            "warmstart.steps=4",
        )
        made = setup.start(config)
        sessions = made._player.gateway._sessions
        sessions._urls = [server.url]  # that of env.kwargs, which evaluations would use too
        made.environments = server.url
        yield made
        made.close()


def played_by_the_harness(rollouts):
    """Play the actions of rollouts with the harness's own collection."""
    actions = {(r.group, r.member): [t.action for t in r.turns] for r in rollouts}
    pool = EnvPool("agentgyms/Corridor-v0", 1, 8, split="train")
    try:
        return [
            asyncio.run(_replayed(pool, rollout, actions[rollout.group, rollout.member]))
            for rollout in rollouts
        ]
    finally:
        pool.close()


async def _replayed(pool, rollout, actions):
    def choose(view, seed):
        taken = len(view.turns)
        return actions[taken] if taken < len(actions) else "left"

    (own,) = await collect(pool, [TaskDraw(rollout.task_id, 0)], FunctionActor(choose), seed=0)
    own.turns = own.turns[: len(actions)]
    own.group, own.member = rollout.group, rollout.member
    return own


@pytest.mark.slow
def test_a_step_is_trained_on_what_agents_of_others_played(trainer):
    gateway, server = trainer._player.server.url, trainer.environments
    told = []

    def play():
        begun = {"X-Rollout-Id": "lost", "X-Group-Id": "lost"}
        chat = f"{gateway}/v1/chat/completions"
        for body in (b"{", [], {}, {"messages": []}, {"messages": [{"role": "user"}]}):
            status, error = ask(chat, body, begun)
            assert status == 400
            assert set(error["error"]) == {"message", "type", "code", "param"}
        assert ask(chat, b" " * (2**24 + 1), begun)[0] == 413
        asked = {"messages": [{"role": "user", "content": "Where am I?"}]}
        assert ask(chat, asked)[0] == 400  # of no rollout
        assert ask(f"{gateway}/v1/rollouts/none/reward", {})[0] == 404
        assert ask(chat, {**asked, "max_tokens": 2}, begun)[0] == 200
        assert ask(f"{gateway}/v1/rollouts/lost", method="DELETE")[0] == 204
        told.extend(gateway_peer.play(gateway, server, one) for one in episodes(["http"]))

    figures, rollouts, advantage = trained(trainer, play)
    assert [status for status, _ in told] == [200] * len(TASKS) * SIZE
    assert figures["rollout/stale_share"] == 0
    assert figures["rollout/success"] == pytest.approx(1 / SIZE)
    assert figures["update/grad_norm"] > 0
    assert [(r.task_id, r.group, r.member) for r in rollouts] == [
        (task, group, member) for group, task in enumerate(TASKS) for member in range(SIZE)
    ]
    for rollout in rollouts:
        for before, after in zip(rollout.turns, rollout.turns[1:], strict=False):
            context = before.completion.prompt_ids + before.completion.response_ids
            assert after.completion.prompt_ids[: len(context)] == context
        for turn in rollout.turns:
            decoded = trainer.policy.chat_tokenizer.decode_answer(turn.completion.response_ids)
            assert decoded == turn.completion.text
            assert len(turn.completion.logprobs) == len(turn.completion.response_ids)
    kept = trainer.folder.rollouts(1)
    assert kept.is_file()
    own = played_by_the_harness(rollouts)
    for one, other in zip(own, rollouts, strict=True):
        for turn, theirs in zip(one.turns, other.turns, strict=True):
            assert (turn.state_key, turn.reward) == (theirs.state_key, theirs.reward)
    assert len(set(advantage.round(6))) > 2
    np.testing.assert_allclose(advantage, _credit_of(trainer, rollouts, own))


def _credit_of(trainer, rollouts, own):
    """Return the advantages of the harness's rollouts, which have the agents' answers."""
    for one, other in zip(own, rollouts, strict=True):
        one.turns = [
            replace(turn, completion=theirs.completion)
            for turn, theirs in zip(one.turns, other.turns, strict=True)
        ]
    return type(trainer.credit).assign(trainer.credit, own).advantage


@pytest.mark.slow
@pytest.mark.adapters
def test_clients_of_others_play(trainer, tmp_path):
    python = os.environ["AGENTGYMS_ADAPTERS_PYTHON"]
    asked = {"gateway": trainer._player.server.url, "server": trainer.environments}
    asked["episodes"] = episodes(["openai", "anthropic", "pydantic_ai", "langgraph"])

    def play():
        done = subprocess.run(
            [python, str(Path(gateway_peer.__file__))],
            input=json.dumps(asked),
            env={**os.environ, "PYTHONPATH": str(Path(gateway_peer.__file__).parents[3])},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert [status for status, _ in json.loads(done.stdout)] == [200] * len(asked["episodes"])

    figures, rollouts, _ = trained(trainer, play)
    assert figures["update/tokens"] > 0
    assert len(rollouts) == len(asked["episodes"])
    for rollout in rollouts:  # each client's chat goes on from its earlier answers' tokens
        for before, after in zip(rollout.turns, rollout.turns[1:], strict=False):
            context = before.completion.prompt_ids + before.completion.response_ids
            assert after.completion.prompt_ids[: len(context)] == context
