"""Collection that stops early, and dynamic sampling."""

import asyncio
import json
import time
from dataclasses import replace
from functools import partial

import gymnasium as gym
import pytest
from function_actor import FunctionActor

from agentgyms.core.errors import EnvUnavailable
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.serving.server import Server
from env_servers import create_app
from harness import prompts
from harness.config import TinyConfig
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.scripted import ScriptedCompleter
from harness.model import tiny
from harness.model.policy import Policy
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.rollouts.task_sampling.dynamic_sampling import collect_informative, returns_differ
from harness.types.errors import ConfigError
from harness.types.rollout import StopReason
from harness.types.task_draws import TaskDraw, TaskSampler

CORRIDOR = "agentgyms/Corridor-v0"


def paced():
    """An actor that waits three times k ticks of the event loop in each turn of episode k."""
    order = {}

    class Paced(FunctionActor):
        async def act(self, view, seed):
            k, _ = order.setdefault(id(view), (len(order), view))  # kept: no other gets its id
            for _ in range(3 * k):
                await asyncio.sleep(0)
            return await super().act(view, seed)

    return Paced(lambda view, seed: "left")


def play(pool, count, actor, **kwargs):
    draws = [TaskDraw(f"train/free-{2 * i:03d}", 100 + i) for i in range(count)]
    return asyncio.run(
        collect(pool, draws, actor, seed=1, options=CollectOptions(pause_s=0, **kwargs))
    )


def test_a_group_ends_with_enough_of_its_members():
    pool = EnvPool(CORRIDOR, 8, 64, max_turns=5)
    rollouts = play(pool, 1, paced(), enough_members=6)
    assert [r.member for r in rollouts] == [0, 1, 2, 3, 4, 5]
    assert {r.stop_reason for r in rollouts} == {StopReason.TURN_LIMIT}
    assert all(len(r.turns) == 5 for r in rollouts)
    again = play(pool, 1, paced())  # with the same environments, two of which were broken off
    assert len(again) == 8
    assert len(pool._free) == 1
    pool.close()


def test_collection_ends_with_enough_of_its_groups():
    pool = EnvPool(CORRIDOR, 2, 64, max_turns=5)
    rollouts = play(pool, 10, paced(), enough_share=0.8)
    assert [r.group for r in rollouts] == [g for g in range(8) for _ in range(2)]
    assert len(pool._free) == 10


def test_what_has_ended_counts_also_in_groups_that_have_not():
    """The second episode of every group waits forever, but for the first group's."""

    class Uneven(FunctionActor):
        async def act(self, view, seed):
            k = order.setdefault(id(view), len(order))
            await asyncio.sleep(1000 if k in (3, 5) else 0.01 * (k == 1))
            return await super().act(view, seed)

    order = {}
    pool = EnvPool(CORRIDOR, 2, 64, max_turns=3)
    rollouts = play(pool, 3, Uneven(lambda v, s: "left"), enough_share=0.3)
    assert [(r.group, r.member) for r in rollouts] == [(0, 0), (0, 1), (1, 0), (2, 0)]
    assert len(pool._free) == 3


def test_groups_that_had_no_place_yet_are_not_played():
    pool = EnvPool(CORRIDOR, 2, 2, max_turns=3)
    rollouts = play(pool, 6, paced(), enough_share=0.5)
    assert [r.group for r in rollouts] == [0, 0, 1, 1, 2, 2]


def test_no_episode_is_broken_off_before_its_turn():
    """The slow ones go on to turn 4 after the fast ones have ended, and end if they can."""
    lengths = []

    class Watched(FunctionActor):
        async def act(self, view, seed):
            lengths.append(len(view.turns))
            for _ in range(50 * (view is not first(view))):
                await asyncio.sleep(0)
            return await super().act(view, seed)

    views = []

    def first(view):
        if not views:
            views.append(view)
        return views[0]

    pool = EnvPool(CORRIDOR, 3, 64, max_turns=6)
    rollouts = play(pool, 1, Watched(lambda v, s: "left"), enough_members=1, enough_turns=4)
    assert len(rollouts) == 1
    assert [lengths.count(turn) for turn in range(6)] == [3, 3, 3, 3, 1, 1]
    rollouts = play(pool, 1, Watched(lambda v, s: "left"), enough_members=1, enough_turns=6)
    assert len(rollouts) == 3


def test_what_is_enough_is_checked():
    assert CollectOptions(6, 0.9).num_members(4) == 4
    assert [
        CollectOptions(enough_share=share).num_groups(32) for share in (0.9, 0.9375, 1.0, None)
    ] == [
        29,
        30,
        32,
        32,
    ]
    assert CollectOptions(enough_share=0.7).num_groups(10) == 7, (
        "0.7 * 10 is more than 7 in floating point"
    )
    pool = EnvPool(CORRIDOR, 2, 4)
    for name, value in (("members", 0), ("share", 0.0), ("share", 1.5), ("turns", -1)):
        with pytest.raises(ConfigError, match=f"enough_{name} must be"):
            play(pool, 1, paced(), **{f"enough_{name}": value})


class Waiting(CorridorEnv):
    """An environment elsewhere, whose steps take their time and bear nobody else meanwhile."""

    blocking = True
    closed = 0

    def __init__(self, *, url="", **kwargs):
        super().__init__(**kwargs)
        self.busy = False

    def act(self, action):
        assert not self.busy, "two threads in one environment"
        self.busy = True
        time.sleep(0.05)
        self.busy = False
        return super().act(action)

    def reset(self, **kwargs):
        assert not self.busy, "reset while a thread is in it"
        return super().reset(**kwargs)

    def close(self):
        assert not self.busy, "closed while a thread is in it"
        Waiting.closed += 1


def test_threads_are_waited_for_before_an_environment_is_used_again():
    if "test/Waiting-v0" not in gym.registry:
        gym.register("test/Waiting-v0", Waiting)
    Waiting.closed = 0
    pool = EnvPool("test/Waiting-v0", 4, 64, url="http://far", max_turns=8)
    hasty = FunctionActor(lambda view, seed: "right" if seed % 2 else "left")
    for _ in range(3):
        rollouts = play(pool, 2, hasty, enough_members=1)
        assert 2 <= len(rollouts) <= 8
        assert not any(rollout.error for rollout in rollouts)
    assert not any(env.busy for group in pool._free for env in group.envs)
    assert len(pool._free) == 2
    pool.close()
    assert Waiting.closed == 8 + 1, "one was asked how many the servers hold"


def test_stopped_episodes_leave_no_session_on_a_server():
    app = create_app(CORRIDOR, token="")
    with Server(app) as server:
        pool = EnvPool(CORRIDOR, 4, 64, url=server.url, max_turns=12)
        for _ in range(2):
            rollouts = play(pool, 2, mostly_right(0.0), enough_members=2, enough_share=0.5)
            assert 2 <= len(rollouts) <= 8
            assert not any(rollout.error for rollout in rollouts)
            assert len(app.extensions["agentgyms"].sessions) == 8
        assert all(len(r.turns) == 12 for r in play(pool, 2, FunctionActor(lambda v, s: "left")))
        pool.close()
        assert len(app.extensions["agentgyms"].sessions) == 0


def test_a_failure_after_enough_had_ended_is_of_no_interest():
    class Late(CorridorEnv):
        def act(self, action):
            if action == "fail":
                raise EnvUnavailable("gone")
            return super().act(action)

    gym.register("test/Late-v0", Late)
    try:
        seen = []

        class Actor(FunctionActor):
            async def act(self, view, seed):
                if view not in seen:
                    seen.append(view)
                if view is not seen[0]:
                    for _ in range(40):
                        await asyncio.sleep(0)
                return await super().act(view, seed)

        actor = Actor(lambda v, s: "fail" if len(v.turns) == 1 and v is not seen[0] else "left")
        pool = EnvPool("test/Late-v0", 2, 8, max_turns=3)
        rollouts = play(pool, 1, actor, enough_members=1, enough_turns=3, retries=0)
        assert [(r.member, r.error) for r in rollouts] == [(0, "")]
    finally:
        del gym.registry["test/Late-v0"]


def test_a_mistake_in_an_agent_is_not_swallowed():
    def act(view, seed):
        raise ZeroDivisionError("an agent's own")

    with pytest.raises(ZeroDivisionError):
        play(EnvPool(CORRIDOR, 3, 8), 1, FunctionActor(act), enough_members=1)


@pytest.fixture(scope="module")
def talking():
    words = "left right open door go key the corridor end stand at"
    tokenizer = tiny.make_tokenizer([words, *words.split()] * 20, 400)
    size = TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32, max_length=512)
    return Policy(tiny.make_model(size, tokenizer, seed=2), tokenizer, "cpu")


def told(rollouts):
    return [
        (r.group, r.member, [(t.completion.response_ids, t.completion.logprobs) for t in r.turns])
        for r in rollouts
    ]


def test_early_stops_repeat_with_the_policy_of_this_process(talking):
    """Which episodes end first is a function of the seeds, also on environments used before."""
    style = prompts.load("compact", CORRIDOR)

    class Walker(Agent):
        async def act(self, view, seed):
            decision = await super().act(view, seed)
            walks = sum(decision.completion.response_ids) % 4
            best = json.loads(view.info["oracle"])["best"]
            return replace(decision, action=best if walks else "left")

    def once():
        agent = Walker(HFCompleter(talking), style, Sampling(1.0, 6), 1)
        pool = EnvPool(CORRIDOR, 4, 64, max_turns=16, oracle=True)
        first = play(pool, 6, agent, enough_members=2, enough_share=0.5)
        second = play(pool, 6, agent, enough_members=3, enough_share=0.9)
        return told(first), told(second)

    first, second = once()
    assert 0 < len(first) < 24
    assert 0 < len(second) < 24
    assert once() == (first, second)


def test_requests_of_stopped_episodes_are_given_up(talking):
    """Nothing is generated for nobody, and who stays says the same as alone."""
    completer = HFCompleter(talking)
    steps = []
    advance = completer._advance
    completer._advance = lambda batch, joining: (
        steps.append(len(batch.rows) + len(joining)),
        advance(batch, joining),
    )
    ask = [{"role": "user", "content": "go"}]

    async def some():
        tasks = [
            asyncio.ensure_future(completer.complete(ask, Sampling(1.0, 40), seed))
            for seed in range(6)
        ]
        await asyncio.sleep(0)
        while len(steps) < 2:
            await asyncio.sleep(0)
        for task in tasks[1:]:
            task.cancel()
        return await tasks[0]

    saved = talking.tokenizer.eos_token_id, talking.model.generation_config.eos_token_id
    talking.tokenizer.eos_token_id = talking.model.generation_config.eos_token_id = None
    try:
        said = asyncio.run(some())
        alone = asyncio.run(HFCompleter(talking).complete(ask, Sampling(1.0, 40), 0))
    finally:
        talking.tokenizer.eos_token_id, talking.model.generation_config.eos_token_id = saved
    assert said.response_ids == alone.response_ids
    assert len(steps) == 40
    assert steps[:2] == [6, 6]
    assert set(steps[4:]) == {1}


# --- dynamic sampling -----------------------------------------------------------------------------


def test_more_tasks_of_a_step_depend_on_no_other_step():
    tasks = [f"t{i}" for i in range(10)]
    sampler = TaskSampler(tasks, seed=3)
    own = [d.task_id for d in sampler.draw(4, 3)]
    more = [d for again in (1, 2, 3, 4) for d in sampler.draw(4, 3, again)]
    assert TaskSampler(tasks, seed=3).draw(4, 3, 2) == more[3:6]
    names = [d.task_id for d in more]
    assert sorted(names[:7]) == sorted(set(tasks) - set(own)), "the others first"
    assert sorted(names[7:10]) == sorted(own)
    assert names[10:] == names[:2]
    seeds = [d.seed for d in [*more, *sampler.draw(4, 3), *sampler.draw(5, 3, 1)]]
    assert len(set(seeds)) == len(seeds)
    assert names[:3] != [d.task_id for d in sampler.draw(5, 3, 1)]


def mostly_right(share):
    """An actor that does what is best with a probability, and else walks left."""

    class Walker(FunctionActor):
        async def act(self, view, seed):
            await asyncio.sleep(0)
            return await super().act(view, seed)

    def act(view, seed):
        good = seed % 100 < 100 * share
        return json.loads(view.info["oracle"])["best"] if good else "left"

    return Walker(act)


def dynamic(share, tasks=4, members=3, max_draws=10, **kwargs):
    """Play with an actor for which about half of the groups are informative if `share` is 0.8."""
    pool = EnvPool(CORRIDOR, members, 64, max_turns=12, oracle=True)
    sampler = TaskSampler(pool.take().envs[0].tasks, seed=0)
    rounds = asyncio.run(
        collect_informative(
            pool,
            partial(sampler.draw, 7, tasks),
            mostly_right(share),
            seed=5,
            informative=returns_differ,
            max_draws=max_draws,
            options=CollectOptions(**kwargs),
        )
    )
    return rounds, sampler


def groups_of(rollouts):
    groups = {}
    for rollout in rollouts:
        groups.setdefault(rollout.group, []).append(rollout)
    return groups


def test_groups_with_equal_returns_make_way_for_others():
    rounds, sampler = dynamic(0.8)
    groups = groups_of(rounds.rollouts)
    assert list(groups) == [0, 1, 2, 3]
    for members in groups.values():
        assert [r.member for r in members] == [0, 1, 2]
        assert len({r.task_id for r in members}) == 1
        assert len({sum(t.reward for t in r.turns) for r in members}) > 1
    assert rounds.rounds > 1
    figures = rounds.figures()
    assert figures["rollout/groups_played"] == 4 * rounds.rounds
    assert rounds.dropped + rounds.surplus + 4 == rounds.played
    drawn = [d.task_id for again in range(rounds.rounds) for d in sampler.draw(7, 4, again)]
    kept = [members[0].task_id for members in groups.values()]
    assert kept == [task_id for task_id in drawn if task_id in kept][:4]
    assert [r.task_id for r in dynamic(0.8)[0].rollouts] == [r.task_id for r in rounds.rollouts]


def test_the_last_round_fills_up_with_what_there_is():
    rounds, sampler = dynamic(0.0, max_draws=3)
    assert (rounds.rounds, rounds.played, rounds.dropped) == (3, 12, 8)
    last = [d.task_id for d in sampler.draw(7, 4, 2)]
    assert [m[0].task_id for m in groups_of(rounds.rollouts).values()] == last


def test_one_round_is_collection_without_dynamic_sampling():
    rounds, sampler = dynamic(0.8, max_draws=1)
    pool = EnvPool(CORRIDOR, 3, 64, max_turns=12, oracle=True)
    plain = asyncio.run(collect(pool, sampler.draw(7, 4), mostly_right(0.8), seed=5))
    by_task = {r.task_id: [] for r in plain}
    for rollout in plain:
        by_task[rollout.task_id].append([t.action for t in rollout.turns])
    got = {r.task_id: [] for r in rounds.rollouts}
    for rollout in rounds.rollouts:
        got[rollout.task_id].append([t.action for t in rollout.turns])
    assert got == by_task


def test_lost_groups_are_counted_and_stops_are_passed_on():
    rounds, _ = dynamic(0.8, members=6, enough_members=4)
    sizes = [len(members) for members in groups_of(rounds.rollouts).values()]
    assert min(sizes) >= 4
    assert sum(sizes) < 24

    class Gone(CorridorEnv):
        def act(self, action):
            raise EnvUnavailable("gone")

    gym.register("test/Gone-v0", Gone)
    try:
        pool = EnvPool("test/Gone-v0", 2, 8)
        sampler = TaskSampler(pool.take().envs[0].tasks, seed=0)
        agent = Agent(
            ScriptedCompleter(lambda _: "left"), prompts.load("compact", CORRIDOR), Sampling(), 0
        )
        rounds = asyncio.run(
            collect_informative(
                pool,
                partial(sampler.draw, 0, 2),
                agent,
                seed=0,
                informative=returns_differ,
                max_draws=2,
                options=CollectOptions(retries=0),
            )
        )
    finally:
        del gym.registry["test/Gone-v0"]
    assert not rounds.rollouts
    assert [r.error for r in rounds.lost] == ["EnvUnavailable: gone"] * 4
