"""Checks of the adapter to TextArena; run in a Python with `textarena`.

Standard input is a JSON list of checks and their arguments; standard output has their results.
"""

import asyncio
import json
import random
import sys

import gymnasium as gym
from chat_server import ChatServer

import agentgyms
from agentgyms import testing
from agentgyms.adapters.textarena import ID, TextArenaEnv
from agentgyms.core.errors import BadOption, EnvUnavailable
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app

MADE = f"agentgyms.adapters.textarena:{ID}"


def contract(game):
    def make():
        return gym.make(MADE, game=game)

    testing.check_env(make)
    testing.check_determinism(make)
    testing.check_snapshot(make)
    testing.check_forks(make)
    testing.check_group(lambda: agentgyms.make_group(MADE, 3, game=game))
    with Server(create_app(MADE, token="", game=game)) as server:
        testing.check_remote_parity(make, lambda: RemoteEnv(ID, url=server.url, game=game))
    return "kept"


def both_seats(task, moves):
    """Return whose turn each was, and how it ended."""
    env = TextArenaEnv(game="TicTacToe-v0", split="test")
    _, info = env.reset(seed=0, options={"task_id": task})
    turns = []
    for move in moves:
        turns.append(info["metrics"]["partner_turn"] == 1)
        _, reward, over, _, info = env.step(move)
    assert over
    return {"turns": turns, "result": [reward, info["score"], info["success"]]}


def frozen_model():
    """Play against a served model, which fails once."""
    replies = iter(["<action>[0]</action>", "3", "6"])
    with ChatServer(lambda _: next(replies)) as server:
        model = {"name": server.model, "url": server.url, "retries": 0}
        env = TextArenaEnv(game="TicTacToe-v0", split="test", opponent=model)
        env.reset(seed=0, options={"task_id": "test-0000/1"})
        first = [message["role"] for message in server.requests[0].body["messages"]]
        key = env._table.key()
        env._client.complete, complete = failing, env._client.complete
        try:
            env.step("4")
        except EnvUnavailable:
            unchanged = env._table.key() == key
        env._client.complete = complete
        env.step("4")
        messages = server.requests[-1].body["messages"]
        asked = len(server.requests)
        twin = env.fork()
        restored = len(server.requests) == asked and twin._table.key() == env._table.key()
    told = " ".join(message["content"] for message in messages)
    return {
        "first": first,
        "roles": [message["role"] for message in messages],
        "secrets": "You are Player 1" in told,
        "unchanged": unchanged,
        "restored": restored,
        "private": TextArenaEnv.is_private("opponent", model)
        and not TextArenaEnv.is_private("opponent", "self"),
    }


def failing(*_):
    raise EnvUnavailable("no answer")


def rollouts():
    """Let the harness play both seats."""
    from harness.rollouts.collect import collect
    from harness.rollouts.env_pool import EnvPool
    from harness.rollouts.groups import CollectOptions
    from harness.rollouts.views import Decision
    from harness.types.rollout import Completion
    from harness.types.task_draws import TaskDraw

    class Planned:
        async def act(self, view, seed):
            seat = int(view.info["goal"][-1])
            move = (["0", "1", "2"], ["3", "4", "5"])[seat][len(view.turns)]
            return Decision(move, Completion(move), prompt=view.observation)

    pool = EnvPool(MADE, 1, 8, game="TicTacToe-v0", split="test")
    draws = [TaskDraw(f"test-0000/{seat}", 5) for seat in (0, 1)]
    options = CollectOptions(retries=0, pause_s=0)
    done = asyncio.run(collect(pool, draws, Planned(), seed=1, options=options))
    pool.close()
    return {
        "seats": {one.task_id[-1]: [int(t.action) for t in one.turns] for one in done},
        "rewards": {one.task_id[-1]: [t.reward for t in one.turns] for one in done},
    }


def refused():
    said = {}
    for game in ("Nothing-v0", "SecretMafia-v0", "TwentyQuestions-v0", "MarketEntryGame-v0"):
        try:
            TextArenaEnv(game=game)
        except BadOption as e:
            said[game] = str(e)
    try:
        TextArenaEnv(opponent="name@http://127.0.0.1:1/v1")
    except BadOption as e:
        said["opponent"] = str(e)
    return said


def draws():
    def play(redraw):
        env = TextArenaEnv(game="Blackjack-v0")
        env.reset(seed=3)
        if redraw:
            env.redraw(7)
        texts = []
        for _ in range(6):
            text, _, over, _, _ = env.step("hit")
            texts.append(text)
            if over:
                break
        return texts

    before = random.getstate()
    one, again, other = play(False), play(False), play(True)
    return {
        "repeated": one == again,
        "redrawn": one != other,
        "left_alone": random.getstate() == before,
    }


CHECKS = {
    "contract": lambda asked: contract(asked["game"]),
    "self": lambda asked: both_seats(asked["task"], asked["moves"]),
    "model": lambda _: frozen_model(),
    "rollout": lambda _: rollouts(),
    "refused": lambda _: refused(),
    "draws": lambda _: draws(),
}


if __name__ == "__main__":
    print(json.dumps([CHECKS[one["check"]](one) for one in json.load(sys.stdin)]))  # noqa: T201
