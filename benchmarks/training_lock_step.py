"""Collecting episodes beside loops in lock step."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from training_rates import SEED, Clock, Rate, Setting, afresh, warm_policy

from harness.config import Config
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.rollouts.agent import Agent
from harness.rollouts.build import make_agent, make_pool, make_prompt_agent
from harness.rollouts.collect import collect
from harness.rollouts.demonstrations import Demonstrator
from harness.rollouts.views import Actor, Decision, EpisodeView
from harness.types.messages import Message
from harness.types.rollout import Completion
from harness.types.task_draws import TaskSampler


class LockStep:
    """Answers when every episode has asked, and all at once when the longest answer is there.

    Args:
        completer: Generates.
        drop_finished: Generate for episodes that go on alone; verl-agent generates for all until
            the last one has ended.
    """

    def __init__(self, completer: HFCompleter, *, drop_finished: bool) -> None:
        """Nobody has asked yet."""
        self._completer, self._drop = completer, drop_finished
        self._waiting: dict[Any, tuple[Any, asyncio.Future[Completion]]] = {}
        self._last: dict[Any, Any] = {}
        self._worker: asyncio.Task[None] | None = None

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response when all have theirs."""
        episode, done = asyncio.current_task(), asyncio.get_running_loop().create_future()
        self._waiting[episode] = ((messages, sampling, seed), done)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._rounds())
        return await done

    async def _rounds(self) -> None:
        while True:
            for _ in range(10):
                await asyncio.sleep(0)  # every episode asks first
            if not self._waiting:
                return
            asked, self._waiting = self._waiting, {}
            self._last.update({episode: request for episode, (request, _) in asked.items()})
            finished = () if self._drop else [e for e in self._last if e not in asked]
            requests = [request for request, _ in asked.values()]
            requests += [self._last[episode] for episode in finished]
            answers = await asyncio.gather(*(self._completer.complete(*r) for r in requests))
            for (_, done), answer in zip(asked.values(), answers, strict=False):
                done.set_result(answer)


class Guided:
    """Asks the model at every turn, and plays what an expert does, or now and then anything legal.

    So each turn costs what it costs, and episodes end when those of ALFWorld's experts do, however
    much the model has learned. Expert and share of other actions are those of the warm start.

    Args:
        config: The run.
        agent: Who is asked.
    """

    def __init__(self, config: Config, agent: Agent) -> None:
        """Let nobody play yet."""
        self._agent, self._noise = agent, config.warmstart.noise
        self._expert = Demonstrator(make_prompt_agent(config), config.warmstart.expert, 0.0)

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action with the model's answer."""
        asked = await self._agent.act(view, seed)
        action = (await self._expert.act(view, seed)).action
        rng = random.Random(seed)
        if rng.random() < self._noise:
            action = rng.choice(view.info["admissible_actions"])
        return replace(asked, action=action)


def lock_step(
    setting: Setting, rounds: int, more: Sequence[str], *, guided: bool
) -> dict[str, Any]:
    """Return the rates, in episodes, of collecting freely and in both kinds of lock step."""
    group, tasks = 8, 16
    config = setting.config("env.max_turns=50", *more)
    policy = warm_policy(setting.config(*more))
    oracle = {"oracle": True} if guided else {}
    pool = make_pool(config, config.env.train_split, group, **oracle)
    sampler = TaskSampler(pool.tasks(), 0)
    makers: dict[str, Callable[[HFCompleter], Any]] = {
        "free": lambda completer: completer,
        "until the last ends": lambda completer: LockStep(completer, drop_finished=False),
        "finished ones dropped": lambda completer: LockStep(completer, drop_finished=True),
    }
    rates: dict[str, list[Rate]] = {name: [] for name in makers}
    turns: list[int] = []
    same = total = 0
    for number in range(rounds):
        actions = {}
        for name, make in makers.items():
            agent = make_agent(
                config, make(HFCompleter(afresh(policy))), config.agent.temperature, None
            )
            actor: Actor = Guided(config, agent) if guided else agent
            clock = Clock()
            played = asyncio.run(collect(pool, sampler.draw(number, tasks), actor, seed=SEED))
            rates[name].append(clock.rate(len(played)))
            actions[name] = [[turn.action for turn in rollout.turns] for rollout in played]
        turns += [len(one) for one in actions["free"]]
        pairs = zip(actions["free"], actions["until the last ends"], strict=True)
        same, total = same + sum(a == b for a, b in pairs), total + len(actions["free"])
    pool.close()
    return {"rates": rates, "turns": turns, "same": same / total}
