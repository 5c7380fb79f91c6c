"""Plays TextArena's games by our adapter and by TextArena itself, with the same moves and draws.

Standard input is JSON: `games` (None: all that can be started with one player or two), `episodes`
of each, `seed`. Standard output has the moves compared, the differences, and the episodes' keys.
"""

import contextlib
import io
import json
import random
import re
import sys
from collections import Counter

import textarena
from textarena.envs.registration import ENV_REGISTRY
from textarena.wrappers import LLMObservationWrapper

import agentgyms.adapters.textarena as adapter
from agentgyms.adapters import textarena_table
from agentgyms.core.errors import BadOption

MOVES = 40


def all_games():
    """Return one id of each game of TextArena."""
    named = [key for key in ENV_REGISTRY if not key.endswith(("-train", "-raw"))]
    return list({ENV_REGISTRY[key].entry_point: key for key in reversed(named)}.values())[::-1]


class Original:
    """TextArena's environment as its own agents see it."""

    def __init__(self, game, players, number):
        env, formats = textarena.make(game), []
        while isinstance(env, textarena.Wrapper):
            if isinstance(env, textarena.ActionWrapper):
                formats.append(type(env))
            env = env.env
        self.env = LLMObservationWrapper(env)  # some games show agents less
        for wrapper in reversed(formats):
            self.env = wrapper(self.env)
        with textarena_table._chance(f"{number}"):
            self.env.reset(num_players=players, seed=number)
        self.done = False

    def observe(self):
        return self.env.get_observation()

    def step(self, text, number):
        with textarena_table._chance(repr(number)):
            self.done, _ = self.env.step(action=text)


def move(rng, text):
    """Return a move: one of those that the text has in brackets, a number, or nonsense."""
    shown = re.findall(r"\[[^\[\]\n]{1,24}\]", text)
    kind = rng.random()
    if kind < 0.6 and shown:
        return rng.choice(shown[-40:])
    if kind < 0.8:
        return f"[{rng.randint(0, 9)}]"
    if kind < 0.95:
        return f"[{rng.randint(0, 8)} {rng.randint(0, 8)}]"
    return rng.choice(["", "hello", "[]", "[reveal 1 1", "[a b c]"])


def play(game, seed, said):
    """Play an episode; return its keys."""
    env = adapter.TextArenaEnv(game=game)
    text, info = env.reset(seed=seed)
    rng, heard = random.Random(f"{game}{seed}"), {}
    name, _, own = info["task_id"].partition("/")
    own = int(own or 0)
    original = Original(game, env._players, int(name.rpartition("-")[2]))
    reads, over, keys = True, False, [info["state_key"]]
    for _ in range(MOVES):
        seat = own ^ int(info["metrics"]["partner_turn"])
        if reads:
            heard[seat] = heard.get(seat, "") + (f"\n{text}" if text else "")
            expected = original.observe()
            if expected[0] != seat or (expected[1] != heard[seat] and isinstance(expected[1], str)):
                said["differences"].append(
                    [game, "text", heard[seat][-300:], str(expected[1])[-300:]]
                )
        action = move(rng, heard[seat])
        text, reward, over, _, info = env.step(action)
        reads = info["feedback"] != "failed"
        if not reads:
            said["failed"][game] += 1
            text = ""
            continue
        original.step(action, env.chance())
        said["moves"] += 1
        said["feedback"][info["feedback"]] += 1
        keys.append(info["state_key"])
        if over != original.done:
            said["differences"].append([game, "over", over, original.done])
        if over or original.done:
            break
    if over:
        rewards, _ = original.env.close()
        expected = rewards.get(own, 0.0) if rewards else 0.0
        said["ended"] += 1
        if isinstance(expected, str):  # the reason of an invalid move, in the reward's place
            said["misplaced"][game] += 1
            expected = -1.0
        if float(expected) != reward:
            said["differences"].append([game, "reward", reward, expected])
    return keys


def main(asked):
    said = {"moves": 0, "ended": 0, "feedback": Counter(), "failed": Counter(), "differences": []}
    said["misplaced"] = Counter()
    said |= {"games": {1: [], 2: []}, "refused": {}, "keys": {}}
    for game in asked["games"] or all_games():
        try:
            players = textarena_table.Table(game, 0).players
        except BadOption as e:
            said["refused"][game] = str(e)
            continue
        said["games"][players].append(game)
        said["keys"][game] = [play(game, asked["seed"] + n, said) for n in range(asked["episodes"])]
    return said


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):  # some games print
        told = main(json.load(sys.stdin))
    print(json.dumps(told))  # noqa: T201
