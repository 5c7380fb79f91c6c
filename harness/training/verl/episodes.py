"""Plays our episodes in verl's workers: the agent loop `agentgyms`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import numpy as np
from transformers import GenerationConfig
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register

from harness.config import Config
from harness.inference.completers import Sampling
from harness.inference.completers.local_answers import GeneratedTokens, check_length, completion_of
from harness.model.packing import Sample, samples
from harness.model.tokenizer import ChatTokenizer
from harness.rollouts import codec
from harness.rollouts.build import make_agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.training.verl.recipe import pool_of, recipe_of
from harness.training.verl.settings import NAME
from harness.types.errors import ConfigError, TrainingError
from harness.types.messages import Message, images_of
from harness.types.rollout import Completion, Rollout
from harness.types.task_draws import TaskDraw, seed_of

ROLLOUT: Final = "agentgyms_rollout"
"""Where an episode's last row has the rollout, as JSON."""
TURNS: Final = "agentgyms_turns"
"""Where each row has the turns of its response's tokens, -1 for those that were not sampled."""
_EVALUATION: Final = 3
"""Stream of random numbers of evaluations, as in this harness's trainer."""


class ServedCompleter:
    """Answers with verl's servers, tokens in and tokens out; one object for each episode.

    `versions` has the first and the last step whose weights answered.
    """

    def __init__(
        self,
        servers: Any,
        chat_tokenizer: ChatTokenizer,
        parameters: Mapping[str, Any],
        max_length: int,
    ) -> None:
        self._servers, self.chat_tokenizer = servers, chat_tokenizer
        self._parameters, self._max_length = dict(parameters), max_length
        self._id = uuid4().hex  # one server answers a whole episode, and keeps its prefix
        self.versions = (0, 0)

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the response; raise `ContextOverflow` if too long, `ConfigError` for an image."""
        if images_of(messages):
            raise ConfigError("the prompt shows an image, which verl's engine is not given here")
        prompt_ids = self.chat_tokenizer.encode_chat(messages)
        check_length(prompt_ids, sampling, self._max_length)
        own = {
            "max_tokens": sampling.max_tokens,
            "seed": seed % 2**31,
            "stop_token_ids": sorted(self.chat_tokenizer.stop_ids),
        }
        made = await self._servers.generate(
            request_id=self._id,
            prompt_ids=list(prompt_ids),
            sampling_params={**self._parameters, **own},
        )
        self._note(made.extra_fields)
        ids = tuple(made.token_ids)
        tokens = GeneratedTokens(
            ids, tuple(made.log_probs), bool(ids) and ids[-1] in self.chat_tokenizer.stop_ids
        )
        return completion_of(self.chat_tokenizer, prompt_ids, tokens)

    def _note(self, extra_fields: Mapping[str, Any]) -> None:
        last = int(extra_fields.get("global_steps") or 0)
        first = self.versions[0] if self.versions != (0, 0) else last
        self.versions = (min(first, last), last)


class Worker:
    """The recipe, tokenizer and environments that the episodes of one of verl's processes share."""

    def __init__(self, settings: Any, tokenizer: Any) -> None:
        self.config = recipe_of(settings)
        # verl's servers end answers there
        ends = GenerationConfig(eos_token_id=tokenizer.eos_token_id)  # type: ignore[no-untyped-call]
        self.chat_tokenizer = ChatTokenizer(tokenizer, ends)
        self.chat_tokenizer.chat_encoder.template_arguments = (
            self.config.policy.chat_template_kwargs
        )
        lengths = settings.actor_rollout_ref.rollout
        both = lengths.prompt_length + lengths.response_length
        self.max_length = int(lengths.max_model_len or both)
        self.last_loss: Exception | None = None
        self._pools: dict[str, EnvPool] = {}
        self._places = asyncio.Semaphore(self.config.rollout.max_live)

    async def play(
        self, completer: ServedCompleter, row: Mapping[str, Any], step: int, member: int
    ) -> Rollout:
        """Return a task's rollout or raise `TrainingError`; a group starts in one state."""
        task, config = row["extra_info"], self.config
        index, seed = int(task["index"]), config.run.seed
        if task["is_evaluated"]:
            draw = TaskDraw(str(task["task"]), seed_of(seed_of(seed, _EVALUATION), index))
        else:
            draw = TaskDraw(str(task["task"]), seed_of(seed, step, index))
        tokens = completer.chat_tokenizer
        agent = make_agent(config, completer, config.agent.temperature, tokens)
        pool = self._pool(str(row["data_source"]), is_evaluated=bool(task["is_evaluated"]))
        async with self._places:
            (played,) = await collect(pool, [draw], agent, seed=seed_of(draw.seed, member))
        if played.error or not played.turns:
            why = played.error or "it ended before the agent's first turn"
            raise TrainingError(f"an episode of {draw.task_id} was lost: {why}")
        return played

    def _pool(self, split: str, *, is_evaluated: bool) -> EnvPool:
        if split not in self._pools:
            self._pools[split] = pool_of(self.config, split, is_evaluated=is_evaluated)
        return self._pools[split]


@register(NAME)
class AgentGymsLoop(AgentLoopBase):  # type: ignore[misc]
    """An episode: a row for each turn, or one for a transcript. Its last row has the rollout."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """Play the task of a row; raise `TrainingError` if it was lost: verl drops its group."""
        worker = _shared(self.config, self.tokenizer)
        completer = ServedCompleter(
            self.server_manager, worker.chat_tokenizer, sampling_params, worker.max_length
        )
        step, member = int(row.get("global_steps") or 0), int(row.get("session_id") or 0)
        try:
            rollout = await worker.play(completer, row, step, member)
        except Exception as e:
            worker.last_loss = e
            raise
        rows = outputs_of(rollout, worker.config, completer.versions)
        if not row["extra_info"]["is_evaluated"]:
            return rows
        rows[-1].extra_fields["reward_extra_info"] = {ROLLOUT: rows[-1].extra_fields[ROLLOUT]}
        return rows[-1:]


_SHARED: dict[str, Worker] = {}


def _shared(settings: Any, tokenizer: Any) -> Worker:
    """Return this process's worker; a process works for one run."""
    if not _SHARED:
        _SHARED[NAME] = Worker(settings, tokenizer)
    return _SHARED[NAME]


def last_loss() -> Exception | None:
    """Return why the last episode was lost of those that this process lost; None without one."""
    return _SHARED[NAME].last_loss if _SHARED else None


def outputs_of(
    rollout: Rollout, config: Config, versions: tuple[int, int] = (0, 0)
) -> list[AgentLoopOutput]:
    """Return the rows of an episode; the last one has the rollout."""
    numbers = np.arange(len(rollout.turns), dtype=np.float64)
    rows = samples([rollout], numbers, config.agent.context)
    found = [_output(row, len(rollout.turns), versions) for row in rows]
    found[-1].reward_score = float(rollout.score)
    found[-1].extra_fields[ROLLOUT] = packed(rollout)
    return found


def packed(rollout: Rollout) -> str:
    """Return a rollout, with tokens and images, as a row carries it."""
    return json.dumps(codec.encode(rollout, {}, tokens=True, images=True))


def unpacked(text: str) -> Rollout:
    """Return the rollout of a row."""
    return codec.decode(json.loads(text), 0, codec.GroupNumbers(), ())[0]


def _output(sample: Sample, turns: int, versions: tuple[int, int]) -> AgentLoopOutput:
    """Return a training sequence; its advantages are the numbers of its turns."""
    size = len(sample.response_ids)
    of_tokens = np.array(sample.turn or [0] * size, dtype=np.int64)
    is_sampled = of_tokens >= 0
    numbers = np.full(size, -1, dtype=np.int64)
    numbers[is_sampled] = np.asarray(sample.advantage, dtype=np.int64)
    logprobs = np.zeros(size)
    logprobs[is_sampled] = sample.old_logprobs
    return AgentLoopOutput(
        prompt_ids=list(sample.prompt_ids),
        response_ids=list(sample.response_ids),
        response_mask=is_sampled.astype(int).tolist(),
        response_logprobs=logprobs.tolist(),
        num_turns=turns,
        metrics={},
        extra_fields={
            TURNS: numbers.tolist(),
            "min_global_steps": versions[0],
            "max_global_steps": versions[1],
            "reward_extra_info": {},
        },
    )
