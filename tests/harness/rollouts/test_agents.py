"""Prompts, parsing, agents and the collection of episodes."""

import asyncio
import gc
import json
import threading

import gymnasium as gym
import numpy as np
import pytest
from function_actor import FunctionActor

from agentgyms.core.errors import EnvUnavailable, ModelUnavailable
from agentgyms.envs.corridor import CorridorEnv
from harness import prompts
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.prompts import parsing
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.rollouts.views import EpisodeView
from harness.types.errors import ConfigError, ContextOverflow
from harness.types.rollout import Completion, StopReason, Turn
from harness.types.task_draws import TaskDraw, TaskSampler, seed_of

CORRIDOR = "agentgyms/Corridor-v0"


def turn(observation, action, outcome):
    return Turn(observation, "s", Completion(action), action, action, "ok", 0.0, outcome, "t", 0.0)


def view():
    info = {"goal": "put a mug on shelf.", "admissible_actions": ["go to shelf 1", "look"]}
    first = "Looking quickly around you, you see a shelf 1, and a drawer 1.\n\nYour task is to: ..."
    turns = [
        turn(first, "go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed."),
        turn(
            "The drawer 1 is closed.",
            "open drawer 1",
            "The drawer 1 is open. In it, you see a mug 1.",
        ),
    ]
    return EpisodeView(first, turns[-1].next_observation, info, 50, turns)


def render(style, window, env_id="agentgyms/ALFWorld-v0"):
    completer = ScriptedCompleter(lambda _: "")
    agent = Agent(completer, prompts.load(style, env_id), Sampling(), window)
    return agent.messages(view())[0]["content"]


def test_the_compact_prompt_to_the_letter():
    assert render("compact", 1) == (
        "put mug on shelf. | shelf1 drawer1 | > open drawer1 | drawer1 is open. mug1. >"
    )
    assert render("compact", 0) == "put mug on shelf. | shelf1 drawer1 | >"


def test_the_think_prompt_to_the_letter():
    assert render("think", 1) == (
        "You act in a household of ALFRED, told in text, one action per turn.\n"
        "Task: put a mug on shelf.\n"
        "You have taken 2 of at most 50 turns. The most recent ones:\n"
        "[turn 2] You saw: The drawer 1 is closed.\n"
        "[turn 2] You did: open drawer 1\n"
        "Now you see: The drawer 1 is open. In it, you see a mug 1.\n"
        "\n"
        "Actions that work now:\n"
        "- go to shelf 1\n"
        "- look\n"
        "\n"
        "Think step by step about what to do next, between <think> and </think>. Then give exactly "
        "one action\nbetween <action> and </action>."
    )


def test_an_agent_without_a_model_writes_prompts_and_refuses_to_act():
    agent = Agent(None, prompts.load("compact", CORRIDOR), Sampling(), 0)
    assert agent.messages(view())
    with pytest.raises(ConfigError, match="no model: make it with a completer"):
        asyncio.run(agent.act(view(), 0))


def test_styles_are_versioned_and_unknown_ones_refused():
    compact = prompts.load("compact", CORRIDOR)
    assert compact.name == "default/compact"
    assert compact.version != prompts.load("think", CORRIDOR).version
    with pytest.raises(
        ConfigError,
        match="unknown prompt style 'terse': expected one of chat, compact, direct, look, see",
    ):
        prompts.load("terse", CORRIDOR)
    with pytest.raises(ConfigError, match="window must be 0 or more"):
        Agent(ScriptedCompleter(lambda _: ""), compact, Sampling(), -1)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<think>so</think><action>go to shelf 1</action>", "go to shelf 1"),
        ("<think>try <action>look</action></think>\n<ACTION>\nopen\n</ACTION> more", "open"),
        ("<action> look </action><action>go</action>", "look"),
        ("I would look.", ""),
        ("<action></action>", ""),
        ("<think>hm</think><action>loo", ""),
        ("<think>I could try <action>look</action> but then", ""),
    ],
)
def test_tagged_answers(text, action):
    assert parsing.get("tagged").parse(text).action == action


def expert_actor(delay=None):
    def act(view, seed):
        return json.loads(view.info["oracle"])["best"]

    return FunctionActor(act)


def play(pool, task_ids, actor, **kwargs):
    draws = [TaskDraw(task_id, 100 + i) for i, task_id in enumerate(task_ids)]
    return asyncio.run(
        collect(pool, draws, actor, seed=1, options=CollectOptions(pause_s=0, **kwargs))
    )


def test_episodes_come_back_complete_and_in_order():
    pool = EnvPool(CORRIDOR, 3, 64, oracle=True)
    task_ids = ["train/free-000", "train/locked-001", "train/locked-003"]
    rollouts = play(pool, task_ids, expert_actor())
    assert [(r.task_id, r.group, r.member) for r in rollouts] == [
        (task_id, group, member) for group, task_id in enumerate(task_ids) for member in range(3)
    ]
    for rollout in rollouts:
        assert rollout.success
        assert rollout.stop_reason is StopReason.TERMINATED
        assert [t.reward for t in rollout.turns] == [0.0] * (len(rollout.turns) - 1) + [1.0]
        for before, after in zip(rollout.turns, rollout.turns[1:], strict=False):
            assert before.next_state_key == after.state_key
            assert before.next_observation == after.observation
    assert rollouts[3].turns[0].state_key == rollouts[4].turns[0].state_key
    pool.close()


def test_the_state_key_of_a_turn_is_the_one_acted_in():
    pool = EnvPool(CORRIDOR, 1, 8, oracle=True)
    (rollout,) = play(pool, ["train/free-000"], expert_actor())
    env = gym.make(CORRIDOR)
    _, info = env.reset(seed=100, options={"task_id": "train/free-000"})
    for taken in rollout.turns:
        assert taken.state_key == info["state_key"]
        *_, info = env.step(taken.action)


def test_turn_limit_and_junk_are_data():
    pool = EnvPool(CORRIDOR, 2, 8, max_turns=4)
    rollouts = play(pool, ["train/free-000"], FunctionActor(lambda view, seed: f"junk {seed}"))
    for rollout in rollouts:
        assert rollout.stop_reason is StopReason.TURN_LIMIT
        assert [t.feedback for t in rollout.turns] == ["malformed"] * 4
    assert rollouts[0].turns[0].action != rollouts[1].turns[0].action


def test_a_slow_agent_holds_nobody_up():
    """One episode waits for its model 20 times as long as the others; they all finish before it."""
    finished = []

    async def script(messages):
        await asyncio.sleep(0.2 if "slow" in messages[0]["content"] else 0.0)
        return "right"

    style = prompts.load("compact", CORRIDOR)
    agent = Agent(ScriptedCompleter(script), style, Sampling(), 0)
    original = agent.messages
    agent.messages = lambda v: (
        [{"role": "user", "content": "slow"}] if v.info["task_id"].endswith("000") else original(v)
    )
    pool = EnvPool(CORRIDOR, 1, 64, max_turns=5)
    task_ids = [f"train/free-{i:03d}" for i in range(0, 40, 2)]
    play(pool, task_ids, agent, on_finish=lambda r: finished.append(r.task_id))
    assert finished[-1] == "train/free-000"
    assert len(finished) == 20


class Far(CorridorEnv):
    """An environment that waits for something elsewhere; `url` is where."""

    blocking = True
    meeting = threading.Barrier(40, timeout=20)
    threads = set()

    def __init__(self, *, url="", **kwargs):
        super().__init__(**kwargs)
        Far.threads.add(threading.current_thread())

    def act(self, action):
        Far.threads.add(threading.current_thread())
        Far.meeting.wait()
        return super().act(action)

    def close(self):
        Far.threads.add(threading.current_thread())


def far_pool(**kwargs):
    if "test/Far-v0" not in gym.registry:
        gym.register("test/Far-v0", Far)
    Far.threads.clear()
    return EnvPool("test/Far-v0", 4, 64, url="http://far", **kwargs)


def test_environments_elsewhere_wait_side_by_side_and_off_the_event_loop():
    task_ids = [f"train/free-{i:03d}" for i in range(0, 20, 2)]
    rollouts = play(far_pool(max_turns=2), task_ids, FunctionActor(lambda v, s: "left"))
    assert len(rollouts) == 40  # all 40 were in `act` at the same moment, twice
    assert not any(rollout.error for rollout in rollouts)
    assert threading.main_thread() not in Far.threads


def test_live_environments_are_bounded():
    live, most = [0], [0]

    class Counting(FunctionActor):
        async def act(self, view, seed):
            if not view.turns:
                live[0] += 1
                most[0] = max(most[0], live[0])
            await asyncio.sleep(0)
            if len(view.turns) == 2:
                live[0] -= 1
            return await super().act(view, seed)

    pool = EnvPool(CORRIDOR, 2, 6, max_turns=3)
    task_ids = [f"train/free-{i:03d}" for i in range(0, 20, 2)]
    rollouts = play(pool, task_ids, Counting(lambda v, s: "left"))
    assert len(rollouts) == 20
    assert most[0] <= 6
    assert len(pool._free) <= 3


class Failing(CorridorEnv):
    """Its infrastructure fails at the second turn, a set number of times."""

    failures = 0

    def act(self, action):
        if Failing.failures and self._position == 1:
            Failing.failures -= 1
            raise EnvUnavailable("the server is gone")
        return super().act(action)


def failing_pool(failures):
    if "test/Failing-v0" not in gym.registry:
        gym.register("test/Failing-v0", Failing)
    Failing.failures = failures
    return EnvPool("test/Failing-v0", 3, 64, oracle=True)


def test_a_group_whose_environment_failed_is_played_again(caplog):
    rollouts = play(failing_pool(1), ["train/free-000"], expert_actor())
    assert [r.success for r in rollouts] == [True] * 3
    assert "the server is gone" in caplog.text


def test_a_group_that_keeps_failing_is_one_error_and_no_reward():
    rollouts = play(failing_pool(1000), ["train/free-000"], expert_actor(), retries=1)
    assert len(rollouts) == 1
    assert rollouts[0].error == "EnvUnavailable: the server is gone"
    assert not rollouts[0].turns


def test_an_environment_that_cannot_be_made_again_is_one_error(monkeypatch):
    pool = failing_pool(1000)
    made = []

    def make(env_id, group_size, **kwargs):
        made.append(env_id)
        raise EnvUnavailable("nobody answers")

    monkeypatch.setattr("harness.rollouts.env_pool.GroupEnv", make)
    rollouts = play(pool, ["train/free-000", "train/free-002"], expert_actor())
    assert [rollout.error for rollout in rollouts] == ["EnvUnavailable: nobody answers"] * 2
    assert len(made) == 2 * 3


def test_a_prompt_that_outgrows_the_context_ends_its_episode_alone():
    class Outgrown(FunctionActor):
        limit = 2

        async def act(self, view, seed):
            if len(view.turns) == self.limit:
                raise ContextOverflow("too long")
            return await super().act(view, seed)

    pool = EnvPool(CORRIDOR, 2, 8, max_turns=4)
    actor = Outgrown(lambda v, s: "left")
    rollouts = play(pool, ["train/free-000"], actor)
    assert [(r.stop_reason, len(r.turns)) for r in rollouts] == [("context_limit", 2)] * 2
    actor.limit = 0
    with pytest.raises(ContextOverflow):
        play(pool, ["train/free-000"], actor)


def test_the_sampler_visits_every_task_before_any_twice_and_needs_no_memory():
    tasks = [f"t{i}" for i in range(7)]
    sampler = TaskSampler(tasks, seed=3)
    drawn = [d for step in range(7) for d in sampler.draw(step, 3)]
    for epoch in range(3):
        assert sorted(d.task_id for d in drawn[7 * epoch : 7 * epoch + 7]) == tasks
    assert len({d.seed for d in drawn}) == len(drawn)
    assert TaskSampler(tasks, seed=3).draw(5, 3) == drawn[15:18]
    assert TaskSampler(tasks, seed=4).draw(0, 7) != drawn[:7]
    with pytest.raises(ValueError, match="at least one task"):
        TaskSampler([], seed=0)


def test_seeds_differ_in_every_part():
    parts = [(a, b) for a in range(30) for b in range(30)]
    parts += [(a,) for a in range(30)] + [(a, b, 0) for a in range(30) for b in range(30)]
    assert len({seed_of(*p) for p in parts}) == len(parts)
    assert all(0 <= seed_of(*p) < 2**63 for p in parts)
    for part in parts[:3]:
        low, high = map(int, np.random.SeedSequence([*part, len(part)]).generate_state(2))
        assert seed_of(*part) == (high << 31) ^ low, "as ever: runs depend on them"


def test_a_wait_for_a_model_ends_with_the_episode_that_waits(caplog):
    pool, waits, ended = EnvPool(CORRIDOR, 1, 1), threading.Event(), threading.Event()

    def work():
        waits.set()
        assert ended.wait(10)
        raise ModelUnavailable("the request was ended")

    async def cancel():
        call = asyncio.create_task(pool.call(work, blocking=True, interrupt=ended.set))
        await asyncio.to_thread(waits.wait, 10)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancel())
    pool.close()
    gc.collect()
    assert not caplog.records, "nobody minds what the thread raised"


def test_a_wait_that_is_cancelled_twice_leaves_no_error_behind(caplog):
    pool, waits, ended = EnvPool(CORRIDOR, 1, 1), threading.Event(), threading.Event()
    threads = []

    def work():
        threads.append(threading.current_thread())
        waits.set()
        assert ended.wait(10)
        raise ModelUnavailable("the request was ended")

    async def cancel():
        call = asyncio.create_task(pool.call(work, blocking=True))
        await asyncio.to_thread(waits.wait, 10)
        for _ in range(2):  # as Ctrl-C does, and then what waits for the episode
            call.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await call
        ended.set()
        pool.close()
        await asyncio.to_thread(threads[0].join, 10)
        await asyncio.sleep(0)  # what the thread raised arrives

    asyncio.run(cancel())
    gc.collect()
    assert not caplog.records, "nobody minds what the thread raised"
