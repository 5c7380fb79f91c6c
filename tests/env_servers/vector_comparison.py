"""Vectors of environments here and on a server, played with the same actions and compared."""

from __future__ import annotations

import random
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from agentgyms.remote import InProcessTransport, RemoteVectorEnv
from env_servers import create_app

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


class Counting(InProcessTransport):
    """Notes the paths of the requests."""

    def __init__(self, apps: dict[str, Any]) -> None:
        super().__init__(apps)
        self.paths: list[str] = []

    def send(self, method: str, url: str, **kwargs: Any) -> Any:
        self.paths.append(url.partition("://")[2].partition("/")[2])
        return super().send(method, url, **kwargs)


def local(env_id: str, n: int, mode: AutoresetMode, **kwargs: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gym.make(env_id, **kwargs)] * n, autoreset_mode=mode)


def remote(env_id: str, n: int, mode: AutoresetMode, **kwargs: Any) -> RemoteVectorEnv:
    transport = Counting({"http://server": create_app(env_id)})
    return RemoteVectorEnv(
        env_id, n, url="http://server", transport=transport, autoreset_mode=mode, **kwargs
    )


def assert_equal(here: Any, there: Any, where: str) -> None:
    """Compare nested observations and infos, dtypes and masks included."""
    assert type(here) is type(there), where
    if isinstance(here, dict):
        # The order of keys depends on which member had a figure first.
        assert here.keys() == there.keys(), where
        for key, value in here.items():
            assert_equal(value, there[key], f"{where}[{key!r}]")
    elif isinstance(here, np.ndarray):
        assert here.dtype == there.dtype, where
        if here.dtype == object:
            assert_equal(list(here), list(there), where)
        else:
            assert np.array_equal(here, there, equal_nan=here.dtype.kind == "f"), where
    elif isinstance(here, list | tuple):
        assert len(here) == len(there), where
        for i, (one, two) in enumerate(zip(here, there, strict=True)):
            assert_equal(one, two, f"{where}[{i}]")
    else:
        assert here == there or (here != here and there != there), where


def _actions(rng: random.Random, infos: dict[str, Any], n: int) -> list[str]:
    listed = infos.get("admissible_actions", [None] * n)
    return [
        rng.choice(one) if one and rng.random() < 0.9 else rng.choice(["", "jump", "look"])
        for one in listed
    ]


def compare(here: Any, there: Any, seed: Any, steps: int) -> int:
    """Play both with the same actions; return how many episodes ended."""
    rng = random.Random(str(seed))
    n, ends = here.num_envs, 0
    one, two = here.reset(seed=seed), there.reset(seed=seed)
    assert_equal(one, two, f"seed {seed}, reset")
    infos = one[1]
    for turn in range(steps):
        actions = _actions(rng, infos, n)
        one, two = here.step(actions), there.step(actions)
        assert_equal(one, two, f"seed {seed}, step {turn}")
        infos, over = one[4], one[2] | one[3]
        ends += int(over.sum())
        if here.metadata["autoreset_mode"] == AutoresetMode.DISABLED and over.any():
            again = [env.reset(options={"reset_mask": over.copy()}) for env in (here, there)]
            assert_equal(*again, f"seed {seed}, masked reset {turn}")
            listed = infos["admissible_actions"].copy()
            listed[over] = again[0][1]["admissible_actions"][over]
            infos = {"admissible_actions": listed}
    return ends
