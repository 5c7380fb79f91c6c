"""Rollouts beside the bare completer, and that beside transformers' own generators."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from training_rates import (
    CONCURRENT,
    SEED,
    Call,
    Clock,
    Rate,
    Recorder,
    Setting,
    afresh,
    tokens_of,
    warm_policy,
)

from harness.inference.completers.hf import HFCompleter
from harness.model.policy import Policy
from harness.rollouts.build import make_agent, make_pool
from harness.rollouts.collect import collect
from harness.rollouts.groups import CollectOptions
from harness.types.rollout import Rollout
from harness.types.task_draws import TaskSampler

TURN_S = 0.25


class Turns:
    """Lets two threads work by turns, so that whatever else the machine does slows both alike."""

    def __init__(self) -> None:
        """Begin with number 0."""
        self._changed = threading.Condition()
        self._whose, self._since, self._has_left = 0, 0.0, False

    def enter(self, me: int) -> None:
        """Wait for the first turn."""
        with self._changed:
            self._wait(me)

    def pass_on(self, me: int) -> None:
        """Let the other one work, if this turn is over, and wait for the next."""
        if time.monotonic() - self._since > TURN_S:
            with self._changed:
                self._whose = 1 - me
                self._changed.notify_all()
                self._wait(me)

    def leave(self) -> None:
        """Let the other one work from now on."""
        with self._changed:
            self._has_left = True
            self._changed.notify_all()

    def _wait(self, me: int) -> None:
        self._changed.wait_for(lambda: self._has_left or self._whose == me)
        self._since = time.monotonic()


class Turning(HFCompleter):
    """A completer in one of two threads that take turns."""

    def __init__(self, policy: Policy, turns: Turns, me: int) -> None:
        """Do as any completer."""
        super().__init__(policy)
        self._turns, self._me = turns, me

    def _advance(self, *given: Any) -> None:
        self._turns.pass_on(self._me)
        super()._advance(*given)


def rollouts_and_bare(
    setting: Setting, rounds: int, more: Sequence[str]
) -> tuple[list[tuple[Rate, Rate]], list[Call]]:
    """Return the rates of rollouts and of the completer alone on the same prompts, and the calls.

    Both have `CONCURRENT` responses under way at any time: what comes after the last episode or
    prompt has begun is not counted. Neither knows a prompt before its round. Times are those of
    their threads.
    """
    config = setting.config("rollout.group_size=1", f"rollout.max_live={CONCURRENT}", *more)
    policy = warm_policy(config)
    policy.model.eval()
    pool = make_pool(config, config.env.train_split, 1)
    draws = TaskSampler(pool.tasks(), 0).draw(0, setting.episodes)

    def play(completer: HFCompleter) -> tuple[Rate, list[Call]]:
        recorder, ended = Recorder(completer), list[tuple[int, Rate]]()
        agent = make_agent(config, recorder, config.agent.temperature, None)
        clock = Clock(time.thread_time)

        def note(_: Rollout) -> None:
            ended.append((len(recorder.calls), clock.rate(tokens_of(recorder.calls))))

        options = CollectOptions(on_finish=note)
        asyncio.run(collect(pool, draws, agent, seed=SEED, options=options))
        until, rate = ended[-CONCURRENT]
        return rate, recorder.calls[:until]

    _, calls = play(HFCompleter(policy))
    rates: list[tuple[Rate, Rate]] = []
    for _ in range(rounds):
        turns = Turns()
        played = Turning(afresh(policy), turns, 0)
        alone = Turning(afresh(policy), turns, 1)
        works = [lambda played=played: play(played)[0], lambda alone=alone: feed(alone, calls)]
        with ThreadPoolExecutor(2) as threads:
            sides = [threads.submit(_by_turns, turns, me, work) for me, work in enumerate(works)]
        rates.append((sides[0].result(), sides[1].result()))
    pool.close()
    return rates, calls


def _by_turns(turns: Turns, me: int, work: Callable[[], Rate]) -> Rate:
    torch.set_num_threads(1)  # a setting of the thread
    turns.enter(me)
    try:
        return work()
    finally:
        turns.leave()


def feed(completer: HFCompleter, calls: Sequence[Call]) -> Rate:
    """Return the rate of a completer that always has `CONCURRENT` prompts under way."""
    queue, rates, count, ended = iter(calls), list[Rate](), 0, 0
    clock = Clock(time.thread_time)

    async def ask() -> None:
        nonlocal count, ended
        for call in queue:
            completion = await completer.complete(call.messages, call.sampling, call.seed)
            count, ended = count + len(completion.response_ids), ended + 1
            if ended == len(calls) - CONCURRENT:
                rates.append(clock.rate(count))

    async def everything() -> None:
        await asyncio.gather(*(ask() for _ in range(CONCURRENT)))

    asyncio.run(everything())
    return rates[0]


def generators(calls: Sequence[Call], policy: Policy, rounds: int) -> dict[str, list[Rate]]:
    """Return the rates of three ways to generate from the same prompts, at most 64 at once."""
    made: dict[str, list[Rate]] = {}
    for _ in range(rounds):
        for name, generate in (
            ("HFCompleter", _own),
            ("transformers' generate", _static),
            ("transformers' generate_batch", _continuous),
        ):
            policy.model.eval()
            clock = Clock()
            made.setdefault(name, []).append(clock.rate(generate(calls, policy)))
    return made


def _own(calls: Sequence[Call], policy: Policy) -> int:
    completer, queue, count = HFCompleter(afresh(policy)), iter(calls), 0

    async def ask() -> None:
        nonlocal count
        for call in queue:
            completion = await completer.complete(call.messages, call.sampling, call.seed)
            count += len(completion.response_ids)

    async def everything() -> None:
        await asyncio.gather(*(ask() for _ in range(CONCURRENT)))

    asyncio.run(everything())
    return count


def _static(calls: Sequence[Call], policy: Policy) -> int:
    """Return the number of tokens, those after the end of a response not counted."""
    count = 0
    for first in range(0, len(calls), CONCURRENT):
        part = calls[first : first + CONCURRENT]
        prompts = [call.completion.prompt_ids for call in part]
        width = max(map(len, prompts))
        ids = torch.tensor([[policy.pad_id] * (width - len(p)) + list(p) for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        out = policy.model.generate(
            ids, attention_mask=mask, do_sample=True, max_new_tokens=part[0].sampling.max_tokens
        )
        for row in out[:, width:].tolist():
            end = next((i for i, token in enumerate(row) if token in policy.stop_ids), len(row) - 1)
            count += end + 1
    return count


def _continuous(calls: Sequence[Call], policy: Policy) -> int:
    from transformers import ContinuousBatchingConfig, GenerationConfig

    settings = GenerationConfig(
        max_new_tokens=calls[0].sampling.max_tokens,
        do_sample=True,
        eos_token_id=sorted(policy.stop_ids),
        pad_token_id=policy.pad_id,
    )
    out = policy.model.generate_batch(
        [list(call.completion.prompt_ids) for call in calls],
        generation_config=settings,
        continuous_batching_config=ContinuousBatchingConfig(max_requests_per_batch=CONCURRENT),
    )
    return sum(len(one.generated_tokens) for one in out.values())
