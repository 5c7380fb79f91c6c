"""Brings requests of agents, which come in threads, to a policy, which answers in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final

from harness.inference.completers import Completer, Sampling
from harness.model.tokenizer import ChatTokenizer
from harness.training.gateway.answers import Answer, AnswerMaker
from harness.training.gateway.chat_requests import ChatRequest, Refused
from harness.training.gateway.env_sessions import EnvSessions, Position
from harness.training.gateway.name_ledger import NameLedger
from harness.training.gateway.rollout_book import OpenRollout, RolloutBook
from harness.training.gateway.token_memory import TokenMemory
from harness.training.gateway.turns_of_calls import Call, from_report, from_session
from harness.types.errors import ConfigError, ContextOverflow, ModelUnavailable
from harness.types.messages import Message, texts_of
from harness.types.rollout import Completion, Rollout
from harness.types.task_draws import seed_of

MOST_CHARACTERS: Final = 16
"""Most characters for a token of the context: no text has as many on average."""


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """The constants of a gateway.

    Each answer's seed derives from `seed`, the rollout's id and the request's number. With
    `strip_thoughts`, later prompts show answers without their thoughts.
    """

    model: str  # the policy's name; agents may send any
    group_size: int
    sampling: Sampling  # an agent may ask for fewer tokens
    seed: int = 0
    tool_format: str = "auto"  # see `agent.tool_format`
    strip_thoughts: bool = False
    max_length: int = 2**20  # tokens of the policy's context


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    messages: list[Message]
    sampling: Sampling
    seed: int
    done: Future[tuple[Completion, int]]


class Gateway:
    """The calls, rollouts and groups of agents, and the policy that answers them.

    The event loop of `serve` alone calls the completer. `weights` is the number of the step whose
    weights the policy has.
    """

    def __init__(
        self,
        completer: Completer,
        chat_tokenizer: ChatTokenizer,
        options: GatewayOptions,
        sessions: EnvSessions,
        ledger: NameLedger | None = None,
    ) -> None:
        self.options, self.weights = options, 0
        self._completer, self._sessions = completer, sessions
        self._answers = AnswerMaker(chat_tokenizer, options.tool_format)
        make_memory = partial(
            TokenMemory, self._answers.write_calls, strip_thoughts=options.strip_thoughts
        )
        self.book = RolloutBook(options.group_size, make_memory, ledger=ledger)
        self._lock = threading.Lock()
        self._jobs: deque[_Job] = deque()
        self._wake: Callable[[], object] | None = None
        self._closed = False

    def answer(
        self, rollout: OpenRollout, request: ChatRequest, has_left: Callable[[], bool]
    ) -> Answer:
        """Return the policy's answer, or raise `Refused`; wait while the policy learns.

        If the client `has_left`, the answer does not join the rollout.
        """
        position = self._sessions.position(rollout.session) if rollout.session else None
        if position:
            self.book.check_episode(rollout.session, position.episode)
        self._check_length(request)
        with rollout.lock:
            _check_same_episode(rollout, position)
            prompt = rollout.memory.prompt(request)
            shown = "\n".join(texts_of(prompt.messages[-1:]))
            call = Call(shown, position, has_tools=bool(request.tools))
            rollout.calls.append(call)
            # Failed requests count, so that a repeated one has another seed.
            number, rollout.num_requests = rollout.num_requests, rollout.num_requests + 1
        try:
            name = int.from_bytes(sha256(rollout.name.encode()).digest()[:7])
            seed = seed_of(self.options.seed, name, number)
            completion, weights = self._ask(prompt.messages, self._sampling(request), seed)
            answer = self._answers.answer(request, completion)
            if has_left():
                raise Refused("the client has left before the answer", 499)
        except BaseException:  # no turn without an answer, whatever ends the request
            with rollout.lock:
                rollout.calls.remove(call)
            raise
        with rollout.lock:
            call.answer, call.weights = answer.completion, weights
            call.has_called = bool(answer.message.calls)
            rollout.memory.remember(prompt, answer.message, answer.completion)
        self.book.touch(rollout)
        return answer

    def _sampling(self, request: ChatRequest) -> Sampling:
        own = self.options.sampling
        most = min(own.max_tokens, request.max_tokens or own.max_tokens)
        thought = own.max_thought_tokens
        thought = None if thought is None or thought >= most else thought
        return replace(own, max_tokens=most, max_thought_tokens=thought)

    def _ask(
        self, messages: list[Message], sampling: Sampling, seed: int
    ) -> tuple[Completion, int]:
        job = _Job(messages, sampling, seed, Future())
        with self._lock:
            if self._closed:
                raise _stopping()
            self._jobs.append(job)
        self.wake()
        try:
            return job.done.result()
        except ContextOverflow as e:
            raise Refused(str(e), 400, "context_length_exceeded", "messages") from e
        except ConfigError as e:
            raise Refused(str(e), 400, param="messages") from e
        except ModelUnavailable as e:
            raise Refused(str(e), 503, "model_unavailable") from e

    def reward(self, name: str, report: Mapping[str, Any]) -> dict[str, Any]:
        """End a rollout with the reward of its session or of a report, and return its description.

        Raises `Refused` if it is not open, waits for an answer, or the report is wrong.
        """
        if self.book.has_finished(name):  # a repeated request
            return {"rollout_id": name, "ended": True}
        rollout = self.book.find(name)
        with rollout.lock:
            calls = list(rollout.calls)
            if not calls or any(call.answer is None for call in calls):
                raise Refused(f"rollout {name:.60} has no answer yet, or waits for one", 409)
            made = self._reported(rollout, report, calls)
            self.book.finish(rollout, made)
        self.wake()
        total = sum(turn.reward for turn in made.turns)
        figures = {"turns": len(made.turns), "reward": total, "success": made.success}
        return {"rollout_id": name, "ended": True, **figures}

    def _reported(
        self, rollout: OpenRollout, report: Mapping[str, Any], calls: Sequence[Call]
    ) -> Rollout:
        if not rollout.session:
            return from_report(rollout.task or rollout.group, report, calls, rollout.number)
        if report:
            raise Refused(
                f"rollout {rollout.name:.60} plays a session, which knows its rewards: send {{}}"
            )
        recording = self._sessions.recording(rollout.session)
        # Episodes only count up: if this one goes on now, it was the one that was read.
        position = self._sessions.position(rollout.session)
        _check_same_episode(rollout, position)
        self.book.check_episode(rollout.session, position.episode)
        return from_session(recording, calls)

    def _check_length(self, request: ChatRequest) -> None:
        most = MOST_CHARACTERS * self.options.max_length
        length = request.num_characters
        if length > most:
            raise Refused(
                f"the messages and tools have {length} characters, and the context has "
                f"{self.options.max_length} tokens: shorten them",
                400,
                "context_length_exceeded",
                "messages",
            )

    def wake(self) -> None:
        """Wake `serve` to look for work."""
        with self._lock:
            if self._wake is not None:
                self._wake()

    async def serve(self, enough: Callable[[], bool]) -> None:
        """Answer requests until there is enough; those that are being answered are finished."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        running: set[asyncio.Task[None]] = set()
        with self._lock:
            self._wake = lambda: loop.call_soon_threadsafe(changed.set)
        try:
            while not enough():
                changed.clear()
                while self._jobs:
                    task = asyncio.create_task(self._do(self._jobs.popleft()))
                    running.add(task)
                    task.add_done_callback(running.discard)
                if not enough():
                    await changed.wait()
        except asyncio.CancelledError:
            for task in running:
                task.cancel()
            raise
        finally:
            with self._lock:
                self._wake = None
            await asyncio.gather(*running, return_exceptions=True)

    async def _do(self, job: _Job) -> None:
        try:
            made = await self._complete(job)
        except asyncio.CancelledError:
            job.done.set_exception(_stopping())
            raise
        except Exception as e:
            job.done.set_exception(e)
        else:
            job.done.set_result((made, self.weights))

    async def _complete(self, job: _Job) -> Completion:
        """Return the completion; a chat that cannot be extended is read as its template has it."""
        try:
            return await self._completer.complete(job.messages, job.sampling, job.seed)
        except ContextOverflow:
            raise
        except ConfigError:
            first: Message = {**job.messages[0], "as_rendered": True}
            messages = [first, *job.messages[1:]]
            return await self._completer.complete(messages, job.sampling, job.seed)

    def close(self) -> None:
        """Refuse the requests that wait, and all later ones."""
        with self._lock:
            self._closed = True
            jobs = list(self._jobs)
            self._jobs.clear()
        for job in jobs:
            job.done.set_exception(_stopping())


def _check_same_episode(rollout: OpenRollout, position: Position | None) -> None:
    before = rollout.calls[0].position if rollout.calls else None
    if before and position and before.episode != position.episode:
        raise Refused(
            "the session has begun another episode: drop this rollout and take another one", 409
        )


def _stopping() -> Refused:
    return Refused("the gateway stops", 503, "stopping")
