"""`RemoteVectorEnv` is a `SyncVectorEnv` over local environments, in one call per server."""

from __future__ import annotations

import random
import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from server_faults import CORRIDOR, FAULTY, HURRIED, TOKEN, importable_environments

from agentgyms import errors
from agentgyms.remote import InProcessTransport, RemoteVectorEnv
from env_servers import create_app
from env_servers.serving import Server

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


class Counting(InProcessTransport):
    """Notes the paths of the requests."""

    def __init__(self, apps: dict[str, Any]) -> None:
        super().__init__(apps)
        self.paths: list[str] = []

    def send(self, method: str, url: str, **kwargs: Any) -> Any:
        self.paths.append(url.partition("://")[2].partition("/")[2])
        return super().send(method, url, **kwargs)


def _local(env_id: str, n: int, mode: AutoresetMode, **kwargs: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda: gym.make(env_id, **kwargs)] * n, autoreset_mode=mode)


def _remote(env_id: str, n: int, mode: AutoresetMode, **kwargs: Any) -> RemoteVectorEnv:
    transport = Counting({"http://server": create_app(env_id)})
    return RemoteVectorEnv(
        env_id, n, url="http://server", transport=transport, autoreset_mode=mode, **kwargs
    )


def _assert_equal(here: Any, there: Any, where: str) -> None:
    """Compare nested observations and infos, dtypes and masks included."""
    assert type(here) is type(there), where
    if isinstance(here, dict):
        assert list(here) == list(there), where
        for key, value in here.items():
            _assert_equal(value, there[key], f"{where}[{key!r}]")
    elif isinstance(here, np.ndarray):
        assert here.dtype == there.dtype, where
        if here.dtype == object:
            _assert_equal(list(here), list(there), where)
        else:
            assert np.array_equal(here, there, equal_nan=here.dtype.kind == "f"), where
    elif isinstance(here, list | tuple):
        assert len(here) == len(there), where
        for i, (one, two) in enumerate(zip(here, there, strict=True)):
            _assert_equal(one, two, f"{where}[{i}]")
    else:
        assert here == there or (here != here and there != there), where


def _actions(rng: random.Random, infos: dict[str, Any], n: int) -> list[str]:
    listed = infos.get("admissible_actions", [None] * n)
    return [
        rng.choice(one) if one and rng.random() < 0.9 else rng.choice(["", "jump", "look"])
        for one in listed
    ]


def _compare(here: Any, there: Any, seed: Any, steps: int) -> int:
    """Play both with the same actions; return how many episodes ended."""
    rng = random.Random(str(seed))
    n, ends = here.num_envs, 0
    one, two = here.reset(seed=seed), there.reset(seed=seed)
    _assert_equal(one, two, f"seed {seed}, reset")
    infos = one[1]
    for turn in range(steps):
        actions = _actions(rng, infos, n)
        one, two = here.step(actions), there.step(actions)
        _assert_equal(one, two, f"seed {seed}, step {turn}")
        infos, over = one[4], one[2] | one[3]
        ends += int(over.sum())
        if here.metadata["autoreset_mode"] == AutoresetMode.DISABLED and over.any():
            again = [env.reset(options={"reset_mask": over.copy()}) for env in (here, there)]
            _assert_equal(*again, f"seed {seed}, masked reset {turn}")
            listed = infos["admissible_actions"].copy()
            listed[over] = again[0][1]["admissible_actions"][over]
            infos = {"admissible_actions": listed}
    return ends


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", importable_environments())
def test_equal_to_the_synchronous_one(env_id, mode):
    kwargs = {"max_turns": 6}
    here, there = _local(env_id, 3, mode, **kwargs), _remote(env_id, 3, mode, **kwargs)
    seeds = (7, [5, None, 3], None)
    ends = sum(_compare(here, there, seed, 15) for seed in seeds)
    assert ends > 10, "episodes must end for the modes to differ"
    here.close()
    there.close()


@pytest.mark.parametrize("mode", MODES)
def test_many_seeds(mode):
    here, there = _local(CORRIDOR, 4, mode), _remote(CORRIDOR, 4, mode)
    for seed in range(10):
        _compare(here, there, seed * 10, 12)


def test_oracle_and_splits():
    kwargs = {"oracle": True, "split": "valid_seen", "render_mode": "ansi"}
    here = _local(CORRIDOR, 3, AutoresetMode.SAME_STEP, **kwargs)
    there = _remote(CORRIDOR, 3, AutoresetMode.SAME_STEP, **kwargs)
    _compare(here, there, 1, 10)
    assert here.render() == there.render()
    assert here.call("snapshot") == there.call("snapshot")
    assert here.get_attr("max_turns") == there.get_attr("max_turns")


def test_the_same_attributes():
    here = _local(CORRIDOR, 3, AutoresetMode.NEXT_STEP)
    there = _remote(CORRIDOR, 3, AutoresetMode.NEXT_STEP)
    here.reset(seed=3)
    there.reset(seed=3)
    for name in (
        *("single_observation_space", "single_action_space", "observation_space", "action_space"),
        *("num_envs", "metadata", "render_mode", "np_random_seed"),
    ):
        assert getattr(here, name) == getattr(there, name), name
    states = [[one.bit_generator.state for one in env.np_random] for env in (here, there)]
    assert states[0] == states[1]
    there.set_attr("spec", [1, 2, 3])
    assert there.get_attr("spec") == (1, 2, 3)


@pytest.mark.parametrize("vectorized", ["train", "valid_seen"])
def test_made_by_gymnasium(vectorized):
    with Server(create_app(CORRIDOR, token=TOKEN)) as server:
        there = gym.make_vec(
            CORRIDOR,
            num_envs=3,
            url=server.url,
            token=TOKEN,
            split=vectorized,
            autoreset_mode="SameStep",
        )
        here = gym.make_vec(CORRIDOR, num_envs=3, split=vectorized, autoreset_mode="SameStep")
        assert isinstance(here, SyncVectorEnv)
        assert isinstance(there, RemoteVectorEnv)
        _compare(here, there, 4, 12)
        there.close()


def test_one_call_per_reset_and_step():
    there = _remote(CORRIDOR, 16, AutoresetMode.NEXT_STEP)
    paths = there._connection.endpoints[0].transport.paths
    assert paths == ["v1/info", "v1/batch/create"]
    paths.clear()
    there.reset(seed=0)
    there.step(["right"] * 16)
    there.step(["right"] * 16)
    there.close()
    assert paths == ["v1/batch/reset", "v1/batch/step", "v1/batch/step", "v1/batch/close"]


def test_a_mask_resets_only_those():
    there = _remote(CORRIDOR, 3, AutoresetMode.DISABLED)
    there.reset(seed=0)
    there.step(["right"] * 3)
    mask = np.array([True, False, False])
    options = {"reset_mask": mask}
    _, infos = there.reset(options=options)
    assert options == {"reset_mask": mask}, "the caller's options were changed"
    assert infos["_turn"].tolist() == [True, False, False]
    assert there.step(["right"] * 3)[4]["turn"].tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False, False], TypeError),
        (np.array([1, 0, 0]), TypeError),
        (np.array([True, False]), ValueError),
        (np.zeros(3, dtype=bool), ValueError),
    ],
    ids=str,
)
def test_wrong_masks(mask, error):
    there = _remote(CORRIDOR, 3, AutoresetMode.DISABLED)
    with pytest.raises(error, match="reset_mask"):
        there.reset(options={"reset_mask": mask})


def test_wrong_calls_change_nothing():
    there = _remote(CORRIDOR, 2, AutoresetMode.DISABLED, max_turns=2)
    with pytest.raises(ResetNeeded):
        there.step(["left", "left"])
    there.reset(seed=0)
    with pytest.raises(ValueError, match="2"):
        there.step(["left"])
    with pytest.raises(TypeError, match="an action is a string"):
        there.step(["left", 4])
    with pytest.raises(ValueError, match="2"):
        there.reset(seed=[1, 2, 3])
    with pytest.raises(errors.BadOption):
        there.reset(options={"no": 1})
    with pytest.raises(errors.UnknownTask):
        there.reset(options={"task_id": "no"})
    there.reset(seed=0)
    there.step(["left", "left"])
    assert there.step(["left", "left"])[3].all()
    with pytest.raises(ResetNeeded):
        there.step(["left", "left"])


def test_sessions_are_spread_and_work_at_once():
    apps = {f"http://{n}": create_app(CORRIDOR) for n in range(3)}
    there = RemoteVectorEnv(CORRIDOR, 8, url=list(apps), transport=InProcessTransport(apps))
    counts = [len(app.extensions["agentgyms"].sessions) for app in apps.values()]
    assert sorted(counts) == [2, 3, 3]
    _compare(_local(CORRIDOR, 8, AutoresetMode.NEXT_STEP), there, 3, 15)


def test_a_dead_server_gets_none():
    apps = {"http://alive": create_app(CORRIDOR)}
    there = RemoteVectorEnv(
        CORRIDOR,
        4,
        url=["http://alive", "http://dead"],
        transport=InProcessTransport(apps),
        patience=HURRIED,
    )
    assert len(apps["http://alive"].extensions["agentgyms"].sessions) == 4
    there.envs[2].forget()
    there.reset(seed=0)
    assert there.step(["right"] * 4)[4]["turn"].tolist() == [1] * 4
    with pytest.raises(ValueError, match="4"):
        there.set_attr("spec", [1, 2])
    apps.clear()
    started = time.monotonic()
    with pytest.raises(errors.ServerUnavailable):
        there.step(["right"] * 4)
    assert time.monotonic() - started < 2 * HURRIED.lost_s, "every member waited in its turn"


def test_lost_sessions_are_rebuilt():
    apps = {f"http://{n}": create_app(CORRIDOR) for n in range(2)}
    running = dict(apps)
    there = RemoteVectorEnv(
        CORRIDOR, 5, url=list(apps), transport=InProcessTransport(running), patience=HURRIED
    )
    here = _local(CORRIDOR, 5, AutoresetMode.NEXT_STEP)
    _assert_equal(here.reset(seed=2), there.reset(seed=2), "reset")
    for turn in range(14):
        if turn == 3:
            sessions = apps["http://0"].extensions["agentgyms"].sessions
            sessions.close(next(iter(sessions._open)))
        if turn == 6:
            del running["http://0"]
        actions = ["right", "left", "right", "take key", "right"]
        _assert_equal(here.step(actions), there.step(actions), f"step {turn}")
    assert len(apps["http://1"].extensions["agentgyms"].sessions) == 5


def test_one_failed_member_leaves_the_others_where_they_are():
    there = _remote(FAULTY, 3, AutoresetMode.DISABLED)
    there.reset(seed=0)
    with pytest.raises(errors.EnvUnavailable):
        there.step(["right", "lose engine", "right"])
    alone = [env.step("right")[4]["turn"] for env in (there.envs[0], there.envs[2])]
    assert alone == [2, 2], "the turn that was taken is counted"


def test_messages_longer_than_the_limit_are_split():
    app = create_app(CORRIDOR, max_body_bytes=20_000)
    transport = Counting({"http://server": app})
    there = RemoteVectorEnv(CORRIDOR, 6, url="http://server", transport=transport)
    there.reset(seed=0)
    transport.paths.clear()
    there.step(["厨" * 1000] * 6)
    assert transport.paths == ["v1/batch/step"] * 2
    assert there.envs[0].step("right")[4]["turn"] == 2


def test_wrong_arguments_open_nothing():
    app = create_app(CORRIDOR, max_sessions=3)
    make = lambda n, **kwargs: RemoteVectorEnv(
        CORRIDOR,
        n,
        url="http://server",
        transport=InProcessTransport({"http://server": app}),
        patience=HURRIED,
        **kwargs,
    )
    with pytest.raises(errors.UnknownSplit):
        make(2, split="no")
    with pytest.raises(errors.ServerFull):
        make(4)
    assert len(app.extensions["agentgyms"].sessions) == 0
    make(3).close()
