"""Public contract tests: any environment that passes them works everywhere in this package.

Each function takes a callable that makes a fresh environment, plays it, and raises `AssertionError`
with the reason where the contract is broken. They are what this package's own environments are
tested with; call them from your own tests.

    from agentgyms import testing
    testing.check_env(lambda: MyEnv())
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import env_checker

from agentgyms.core import Feedback, TextEnv
from agentgyms.errors import BadOption, BadSnapshot, UnknownTask
from agentgyms.group import GroupEnv

Make = Callable[[], Any]

INFO_TYPES: Final[dict[str, type]] = {
    "task_id": str,
    "split": str,
    "family": str,
    "goal": str,
    "turn": int,
    "state_key": str,
    "observation_key": str,
    "admissible_actions": list,
    "admissible_complete": bool,
    "action_key": str,
    "feedback": str,
    "feedback_text": str,
    "progress": float,
    "score": float,
    "success": bool,
    "metrics": dict,
}
"""Keys that every `info` has, with their one type."""

JUNK_ACTIONS: Final = (
    "",
    "   ",
    "xyzzy",
    "LOOK",
    "look\nlook",
    "厨房 🙂",
    "\x00\ud800",
    "a" * 9000,
    "'\"<b>{}%s",
)
"""Actions no environment may choke on."""

_EPISODES: Final = 3
_MAX_TURNS: Final = 60


def check_env(make: Make) -> None:
    """Check spaces, `info`, turns, ends, junk actions and errors, Gymnasium's own checker included.

    Raises:
        AssertionError: The contract is broken.
    """
    env = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env_checker.check_env(env.unwrapped, skip_render_check=True)
    for seed in range(_EPISODES):
        steps = list(play(env, seed))
        for turn, (_, _, info) in enumerate(steps):
            check_info(info, turn)
            _check_observation(env, steps[turn][0])
        _check_end(env, steps)
    _check_junk(env)
    _check_errors(env, make)
    env.close()


def check_info(info: dict[str, Any], turn: int) -> None:
    """Check one `info`: its keys, their types, that it is JSON-plain, and its turn.

    Raises:
        AssertionError: It does not hold what `agentgyms.core.TurnInfo` says.
    """
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
    assert 0 <= info["score"] <= 1, f"score {info['score']} not in [0, 1]"
    if turn == 0:
        assert info["action_key"] == "", "action_key must be '' after reset"
        assert (info["feedback"], info["feedback_text"]) == ("ok", ""), (
            "feedback not ok after reset"
        )


def play(
    env: Any, seed: int, *, junk: float = 0.1
) -> Iterator[tuple[Any, tuple[float, bool, bool], dict[str, Any]]]:
    """Play one episode with seeded random actions, yielding (observation, (reward, ends), info).

    Actions are drawn from the admissible ones, where they are listed, and from junk.
    """
    rng = random.Random(seed)
    observation, info = env.reset(seed=seed)
    yield observation, (0.0, False, False), info
    for _ in range(_MAX_TURNS):
        listed = info["admissible_actions"]
        action = rng.choice(listed) if listed and rng.random() > junk else rng.choice(JUNK_ACTIONS)
        observation, reward, terminated, truncated, info = env.step(action)
        yield observation, (float(reward), terminated, truncated), info
        if terminated or truncated:
            return


def _check_observation(env: Any, observation: Any) -> None:
    assert observation in env.observation_space, (
        f"observation not in {env.observation_space}: {observation!r:.200}"
    )


def _check_end(env: Any, steps: list[Any]) -> None:
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
    _raises(UnknownTask, lambda: env.reset(options={"task_id": "no such task"}))
    _raises(BadOption, lambda: env.reset(options={"no_such_option": 1}))
    fresh = make()
    _raises(ResetNeeded, lambda: fresh.unwrapped.step("look"))
    fresh.close()
    _, info = env.reset(options={"task_id": env.unwrapped.tasks[-1]})
    assert info["task_id"] == env.unwrapped.tasks[-1], "options['task_id'] was not obeyed"


def _raises(expected: type[Exception], call: Callable[[], Any]) -> None:
    try:
        call()
    except expected as e:
        if str(e):
            return
    raise AssertionError(f"{expected.__name__} with a message was not raised")


def check_determinism(make: Make) -> None:
    """Check that equal seeds and actions give equal episodes, the next unseeded one included.

    Raises:
        AssertionError: Two runs differ.
    """
    first, second = make(), make()
    for seed in range(_EPISODES):
        _assert_equal_episodes(first, second, seed)
    first.close()
    second.close()


def check_remote_parity(make_local: Make, make_remote: Make) -> None:
    """Check that a remote environment and a local one give equal episodes, tasks and errors.

    Raises:
        AssertionError: They differ.
    """
    local, remote = make_local(), make_remote()
    assert list(local.unwrapped.tasks) == list(remote.unwrapped.tasks), "the task lists differ"
    assert local.observation_space == remote.observation_space, "the observation spaces differ"
    assert local.action_space == remote.action_space, "the action spaces differ"
    for seed in range(_EPISODES):
        _assert_equal_episodes(local, remote, seed)
    here, there = local.unwrapped, remote.unwrapped
    local.reset(seed=5)
    remote.reset(seed=5)
    snapshot = here.snapshot()
    assert there.snapshot() == snapshot, "local and remote snapshots differ"
    assert _plain(there.restore(snapshot)) == _plain(here.restore(snapshot)), (
        "restored states differ"
    )
    _raises(UnknownTask, lambda: remote.reset(options={"task_id": "no such task"}))
    _raises(BadOption, lambda: remote.reset(options={"no_such_option": 1}))
    local.close()
    remote.close()


def _assert_equal_episodes(first: Any, second: Any, seed: int) -> None:
    for turn, (one, two) in enumerate(zip(play(first, seed), play(second, seed), strict=True)):
        assert _plain(one) == _plain(two), f"seed {seed}, turn {turn}: {one} differs from {two}"
    one, two = first.reset(), second.reset()
    assert _plain(one) == _plain(two), (
        f"seed {seed}: the next unseeded episodes differ: {one}, {two}"
    )


def _plain(value: Any) -> Any:
    """Return `value` in a form in which nan equals nan and arrays compare."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes())
    return "nan" if isinstance(value, float) and value != value else value


def check_snapshot(make: Make) -> None:
    """Check `snapshot`, `restore` and `fork`: the state returns, and so does its future.

    Raises:
        AssertionError: It is not.
    """
    env = make()
    world = env.unwrapped
    for seed in range(_EPISODES):
        _, info = env.reset(seed=seed)
        rng = random.Random(seed)
        for _ in range(3):
            if info["admissible_actions"]:
                _, _, terminated, truncated, info = env.step(rng.choice(info["admissible_actions"]))
                if terminated or truncated:
                    break
        _check_one_snapshot(world, make, info)
    _raises(BadSnapshot, lambda: world.restore(b"not a snapshot"))
    _raises(BadSnapshot, lambda: world.restore(b'{"format":"agentgyms-snapshot-1"}'))
    env.close()


def _check_one_snapshot(world: TextEnv, make: Make, info: dict[str, Any]) -> None:
    snapshot = world.snapshot()
    twin, other = world.fork(), make()
    other.reset(seed=99)
    _, restored = other.unwrapped.restore(snapshot)
    assert _plain(restored) == _plain(info), "restore returned another info than the one saved"
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
    """Return what the next few turns and the next unseeded reset give."""
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
    return [_plain(item) for item in seen]


def check_group(make_group: Callable[[], GroupEnv]) -> None:
    """Check that all members of a group start equal, seeded and unseeded, and play independently.

    Raises:
        AssertionError: They do not.
    """
    group = make_group()
    for options in ({"seed": 4}, {"seed": None}, {"seed": 4}):
        observations, infos = group.reset(**options)
        for observation, info in zip(observations, infos, strict=True):
            for key in ("task_id", "state_key", "admissible_actions", "goal"):
                assert info[key] == infos[0][key], f"members start with different {key}"
            assert _plain(observation) == _plain(observations[0]), (
                "members start with different observations"
            )
    actions: list[str | None] = [None] * len(group)
    actions[0] = (infos[0]["admissible_actions"] or ["look"])[-1]
    before = [env.snapshot() for env in group.envs]
    group.step(actions)
    for env, snapshot in list(zip(group.envs, before, strict=True))[1:]:
        assert env.snapshot() == snapshot, "stepping one member changed another"
    group.close()


def check_vector(env_id: str, *, num_envs: int = 4, **kwargs: Any) -> None:
    """Check the default `AsyncVectorEnv`: right texts at every step, equal to single environments.

    Raises:
        AssertionError: A text differs.
    """
    vector = gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="async", **kwargs)
    singles = [gym.make(env_id, **kwargs) for _ in range(num_envs)]
    seeds = [100 + i for i in range(num_envs)]
    observations, infos = vector.reset(seed=seeds)  # type: ignore[arg-type]
    state = [env.reset(seed=seed) for env, seed in zip(singles, seeds, strict=True)]
    rngs = [random.Random(seed) for seed in seeds]
    for _ in range(6):
        for i, (observation, info) in enumerate(state):
            assert _plain(_member(observations, i)) == _plain(observation), (
                f"environment {i} shows {_member(observations, i)!r}"
            )
            assert infos["state_key"][i] == info["state_key"], (
                f"environment {i} is in another state"
            )
        actions = [
            rng.choice(info["admissible_actions"] or JUNK_ACTIONS)
            for rng, (_, info) in zip(rngs, state, strict=True)
        ]
        results = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        if any(terminated or truncated for _, _, terminated, truncated, _ in results):
            break
        observations, _, _, _, infos = vector.step(actions)
        state = [(observation, info) for observation, _, _, _, info in results]
    vector.close()
    for env in singles:
        env.close()


def _member(observations: Any, index: int) -> Any:
    if isinstance(observations, dict):
        return {key: value[index] for key, value in observations.items()}
    return observations[index]
