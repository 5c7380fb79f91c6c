"""`RemoteVectorEnv` is a `SyncVectorEnv` over local environments, in one call per server."""

from __future__ import annotations

import time
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from server_faults import CORRIDOR, FAULTY, HURRIED, TOKEN, importable_environments
from vector_comparison import MODES, Counting, assert_equal, compare, local, remote

from agentgyms.core import errors
from agentgyms.remote import InProcessTransport, RemoteVectorEnv
from agentgyms.serving.server import Server
from env_servers import create_app


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", importable_environments(slow="AppWorld"))
def test_equal_to_the_synchronous_one(env_id, mode):
    kwargs = {"max_turns": 6}
    here, there = local(env_id, 3, mode, **kwargs), remote(env_id, 3, mode, **kwargs)
    seeds = (7, [5, None, 3], None)
    ends = sum(compare(here, there, seed, 15) for seed in seeds)
    assert ends > 10, "episodes must end for the modes to differ"
    here.close()
    there.close()


@pytest.mark.parametrize("mode", MODES)
def test_many_seeds(mode):
    here, there = local(CORRIDOR, 4, mode), remote(CORRIDOR, 4, mode)
    for seed in range(10):
        compare(here, there, seed * 10, 12)


def test_oracle_and_splits():
    kwargs = {"oracle": True, "split": "valid_seen", "render_mode": "ansi"}
    here = local(CORRIDOR, 3, AutoresetMode.SAME_STEP, **kwargs)
    there = remote(CORRIDOR, 3, AutoresetMode.SAME_STEP, **kwargs)
    compare(here, there, 1, 10)
    assert here.render() == there.render()
    assert here.call("snapshot") == there.call("snapshot")
    assert here.get_attr("max_turns") == there.get_attr("max_turns")


def test_the_same_attributes():
    here = local(CORRIDOR, 3, AutoresetMode.NEXT_STEP)
    there = remote(CORRIDOR, 3, AutoresetMode.NEXT_STEP)
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
        compare(here, there, 4, 12)
        there.close()


def test_one_call_per_reset_and_step():
    there = remote(CORRIDOR, 16, AutoresetMode.NEXT_STEP)
    paths = there._connection.endpoints[0].transport.paths
    assert paths == ["v1/info", "v1/batch/create"]
    paths.clear()
    there.reset(seed=0)
    there.step(["right"] * 16)
    there.step(["right"] * 16)
    there.close()
    assert paths == ["v1/batch/reset", "v1/batch/step", "v1/batch/step", "v1/batch/close"]


def test_a_mask_resets_only_those():
    there = remote(CORRIDOR, 3, AutoresetMode.DISABLED)
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
    there = remote(CORRIDOR, 3, AutoresetMode.DISABLED)
    with pytest.raises(error, match="reset_mask"):
        there.reset(options={"reset_mask": mask})


def test_wrong_calls_change_nothing():
    there = remote(CORRIDOR, 2, AutoresetMode.DISABLED, max_turns=2)
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
    compare(local(CORRIDOR, 8, AutoresetMode.NEXT_STEP), there, 3, 15)


def test_a_dead_server_gets_none():
    patience = replace(HURRIED, lost_s=2.0)  # much more than anything else here takes
    apps = {"http://alive": create_app(CORRIDOR)}
    there = RemoteVectorEnv(
        CORRIDOR,
        4,
        url=["http://alive", "http://dead"],
        transport=InProcessTransport(apps),
        patience=patience,
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
    assert time.monotonic() - started < 3 * patience.lost_s, "every member waited in its turn"


def test_lost_sessions_are_rebuilt():
    apps = {f"http://{n}": create_app(CORRIDOR) for n in range(2)}
    running = dict(apps)
    there = RemoteVectorEnv(
        CORRIDOR, 5, url=list(apps), transport=InProcessTransport(running), patience=HURRIED
    )
    here = local(CORRIDOR, 5, AutoresetMode.NEXT_STEP)
    assert_equal(here.reset(seed=2), there.reset(seed=2), "reset")
    for turn in range(14):
        if turn == 3:
            sessions = apps["http://0"].extensions["agentgyms"].sessions
            sessions.close(next(iter(sessions._open)))
        if turn == 6:
            del running["http://0"]
        actions = ["right", "left", "right", "take key", "right"]
        assert_equal(here.step(actions), there.step(actions), f"step {turn}")
    assert len(apps["http://1"].extensions["agentgyms"].sessions) == 5


def test_one_failed_member_leaves_the_others_where_they_are():
    there = remote(FAULTY, 3, AutoresetMode.DISABLED)
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
