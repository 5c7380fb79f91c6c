"""Contract tests of a single environment."""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import env_checker

from agentgyms.core import keys
from agentgyms.core.env import Feedback, TextEnv
from agentgyms.core.errors import BadOption, BadSnapshot, Mismatch, UnknownTask
from agentgyms.core.outcome import INFO_TYPES, shown
from agentgyms.testing.playing import (
    EPISODES,
    JUNK_ACTIONS,
    Make,
    assert_equal_episodes,
    assert_raises,
    plain,
    play,
)


def check_env(make: Make) -> None:
    """Check spaces, `info`, turns, ends, junk actions and errors, also by Gymnasium's checker."""
    env = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env_checker.check_env(_Comparable(env.unwrapped), skip_render_check=True)
    for seed in range(EPISODES):
        steps = list(play(env, seed))
        for turn, (observation, _, info) in enumerate(steps):
            check_info(info, turn)
            check_atoms(info, steps[turn - 1][2] if turn else info)
            assert observation in env.observation_space, (
                f"observation not in {env.observation_space}: {shown(observation):.200}"
            )
            assert keys.observation_key(observation) == info["observation_key"], (
                f"after the episode, the observation of turn {turn} is another than when it was "
                "returned: each turn needs arrays of its own"
            )
        _check_end(env, steps)
    _check_junk(env)
    _check_errors(env, make)
    env.close()


class _Comparable(gym.Env[Any, str]):
    """A wrapper with -1 for nan as `progress` or `score`: Gymnasium's checker finds nan unequal."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self.spec, self.metadata, self.render_mode = world.spec, world.metadata, world.render_mode
        self.observation_space, self.action_space = world.observation_space, world.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = self._world.reset(seed=seed, options=options)
        self._np_random = self._world._np_random
        return observation, self._compare(info)

    def step(self, action: str) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        *result, info = self._world.step(action)
        return *result, self._compare(info)

    @staticmethod
    def _compare(info: dict[str, Any]) -> dict[str, Any]:
        return {k: -1.0 if isinstance(v, float) and v != v else v for k, v in info.items()}


def check_info(info: dict[str, Any], turn: int) -> None:
    """Check one `info` against `TurnInfo`: keys, types, JSON-plain values and turn."""
    difference = (set(info) - {"oracle"}) ^ set(INFO_TYPES)
    assert not difference, f"info keys missing or unknown: {sorted(difference)}"
    for key, expected in INFO_TYPES.items():
        assert type(info[key]) is expected, (
            f"info[{key!r}] is {type(info[key]).__name__}, expected {expected.__name__}"
        )
    json.dumps(info)
    assert info["turn"] == turn, f"info['turn'] is {info['turn']} after {turn} turns"
    assert info["feedback"] in set(Feedback), f"unknown feedback {info['feedback']!r}"
    assert all(type(a) is str for a in info["admissible_actions"]), (
        "an admissible action is not a str"
    )
    assert all(type(v) is float for v in info["metrics"].values()), "a metric is not a float"
    assert info["state_key"], "state_key is empty"
    assert np.isnan(info["progress"]) or 0 <= info["progress"] <= 1, (
        f"progress {info['progress']} not in [0, 1]"
    )
    assert np.isnan(info["score"]) or 0 <= info["score"] <= 1, (
        f"score {info['score']} not in [0, 1]"
    )
    if turn == 0:
        assert info["action_key"] == "", "action_key must be '' after reset"
        assert (info["feedback"], info["feedback_text"]) == ("ok", ""), (
            "feedback not ok after reset"
        )


def check_atoms(info: dict[str, Any], before: dict[str, Any]) -> None:
    """Check the atoms of one `info` against those of another one of the episode.

    Raises `AssertionError` if a name or a value is none, if known atoms have other names in another
    turn, or if one is false though the task is solved.
    """
    atoms = info["atoms"]
    for name, value in atoms.items():
        assert isinstance(name, str), f"an atom's name is {name!r}, expected a string"
        assert name.strip(), "an atom's name is blank"
        plain = type(value) in (bool, float)
        share = plain and 0 <= value <= 1
        assert share, f"atom {name!r} is {value!r}, expected True, False or a float in [0, 1]"
        assert value is not False or not info["success"], (
            f"atom {name!r} is False although the task is solved"
        )
    known = before["atoms"]
    assert not atoms or not known or list(atoms) == list(known), (
        f"the atoms are {list(atoms)}, and were {list(known)} in another turn of the episode"
    )


def _check_end(env: Any, steps: list[Any]) -> None:
    for *_, before in steps[:-1]:
        assert not np.isnan(before["score"]), "score is nan before the end of the episode"
    _, (_, terminated, truncated), info = steps[-1]
    assert not (terminated and truncated), "terminated and truncated must not be mixed"
    limit = getattr(env.unwrapped, "max_turns", None)
    if truncated and limit:
        assert info["turn"] <= limit, f"truncated after {info['turn']} turns, the limit is {limit}"
    if not (terminated or truncated):
        assert not limit or len(steps) - 1 < limit, (
            f"no end after {len(steps) - 1} turns, the limit is {limit}"
        )
        return
    try:
        env.step("look")
    except ResetNeeded:
        return
    raise AssertionError("a step after the end must raise gymnasium.error.ResetNeeded")


def _check_junk(env: Any) -> None:
    for junk in JUNK_ACTIONS:
        _, before = env.reset(seed=1)
        _, _, _, _, info = env.step(junk)
        check_info(info, 1)
        if junk.strip() not in before["admissible_actions"] and before["admissible_complete"]:
            assert info["action_key"] == "<invalid>", (
                f"{junk!r:.40} has action_key {info['action_key']!r}"
            )
            assert info["feedback"] in ("inadmissible", "malformed"), (
                f"{junk!r:.40} gave {info['feedback']}"
            )
            assert info["state_key"] == before["state_key"], f"{junk!r:.40} changed the state"
    try:
        env.step(3)
    except TypeError:
        return
    raise AssertionError("an action that is not a string must raise TypeError")


def _check_errors(env: Any, make: Make) -> None:
    assert_raises(UnknownTask, lambda: env.reset(options={"task_id": "no such task"}))
    assert_raises(BadOption, lambda: env.reset(options={"no_such_option": 1}))
    fresh = make()
    assert_raises(ResetNeeded, lambda: fresh.unwrapped.step("look"))
    fresh.close()
    _, info = env.reset(options={"task_id": env.unwrapped.tasks[-1]})
    assert info["task_id"] == env.unwrapped.tasks[-1], "options['task_id'] was not obeyed"


def check_determinism(make: Make) -> None:
    """Check that equal seeds and actions give equal episodes, and equal unseeded ones after it."""
    first, second = make(), make()
    for seed in range(EPISODES):
        assert_equal_episodes(first, second, seed)
    first.close()
    second.close()


def check_snapshot(make: Make) -> None:
    """Check that `snapshot`, `restore` and `fork` reproduce a state and what follows it."""
    env = make()
    world = env.unwrapped
    for seed in range(EPISODES):
        _, info = env.reset(seed=seed)
        rng = random.Random(seed)
        for _ in range(3):
            if info["admissible_actions"]:
                _, _, terminated, truncated, info = env.step(rng.choice(info["admissible_actions"]))
                if terminated or truncated:
                    break
        _check_one_snapshot(world, make, info)
    assert_raises(BadSnapshot, lambda: world.restore(b"not a snapshot"))
    assert_raises(BadSnapshot, lambda: world.restore(b'{"format":"agentgyms-snapshot-1"}'))
    env.close()


def _check_one_snapshot(world: TextEnv, make: Make, info: dict[str, Any]) -> None:
    snapshot = world.snapshot()
    try:
        twin, other = world.fork(), make()
    except Mismatch as e:
        raise AssertionError(f"a fork is not in the state of the snapshot: {e}") from e
    other.reset(seed=99)
    _, restored = other.unwrapped.restore(snapshot)
    assert plain(restored) == plain(info), "restore returned another info than the one saved"
    assert twin.snapshot() == other.unwrapped.snapshot() == snapshot, (
        "a snapshot is not reproduced by its restore"
    )
    futures = [_future(env) for env in (world, twin, other.unwrapped)]
    assert futures[0] == futures[1], "a fork's future differs from the original's"
    assert futures[0] == futures[2], "a restored environment's future differs from the original's"
    _, back = world.restore(snapshot)
    assert back["state_key"] == info["state_key"], "restore did not return to the state"
    twin.close()
    other.close()


def _future(env: TextEnv) -> list[Any]:
    rng = random.Random(0)
    seen: list[Any] = []
    try:
        for _ in range(4):
            *_, info = result = env.step(rng.choice(JUNK_ACTIONS[:4]))
            seen.append(result)
            if info["admissible_actions"]:
                seen.append(env.step(rng.choice(info["admissible_actions"])))
    except ResetNeeded:
        pass
    seen.append(env.reset())
    return [plain(item) for item in seen]
