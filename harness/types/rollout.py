"""Rollouts, turns and completions: the types that collection, credit and training exchange."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from agentgyms.models.types import ServedCall
from agentgyms.recording.recording_format import Recording
from harness.types.arrays import Floats, Ints
from harness.types.messages import Image


class StopReason(StrEnum):
    """Why an episode ended."""

    TERMINATED = "terminated"
    TURN_LIMIT = "turn_limit"
    CONTEXT_LIMIT = "context_limit"
    STOPPED = "stopped"
    """Stopped early because enough other episodes had ended; collection drops such rollouts."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Usage:
    """Number of tokens of prompts and responses, as servers bill them."""

    prompt: int = 0
    response: int = 0
    calls: int = 0  # number of completions

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt, self.response + other.response, self.calls + other.calls
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt - other.prompt, self.response - other.response, self.calls - other.calls
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A completer's answer."""

    # The response without special tokens; it begins with what the chat template puts into its
    # prompt, such as `<think>`.
    text: str
    # Tokens of the rendered prompt; empty where the completer does not know them.
    prompt_ids: tuple[int, ...] = ()
    # Generated tokens, the end-of-turn token included. Empty where unknown.
    response_ids: tuple[int, ...] = ()
    # Log-probability of each sampled token of the response under the sampling distribution, in
    # nats.
    logprobs: tuple[float, ...] = ()
    finished: bool = True  # the model ended its turn; False if the token limit cut it off
    images: tuple[Image, ...] = ()
    usage: Usage = Usage()  # number of tokens, also where their ids are unknown
    # The tool calls that a server parsed; the text has them too.
    calls: tuple[ServedCall, ...] | None = None
    # Start and end, in `response_ids`, of tokens that the policy did not sample: they close a
    # thought at its limit. Equal where there are none.
    inserted: tuple[int, int] = (0, 0)
    # Number of tokens of the answer's first thought, 0 without one; None where it is unknown.
    thought_tokens: int | None = None
    # Number of training steps behind the weights that sampled it; None unless rollouts are played
    # ahead.
    version: int | None = None

    @property
    def cut_thought(self) -> bool:
        """Whether a thought was closed at its limit, or has no end."""
        open_thought = "<think>" in self.text and "</think>" not in self.text
        return self.inserted[1] > 0 or open_thought

    @property
    def num_sampled(self) -> int:
        """Number of tokens of the response that the policy sampled."""
        start, end = self.inserted
        return len(self.response_ids) - (end - start)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the state before the action, the completion, the action, and its result.

    `observation`, `image` and `state_key` belong to the state before the action, `next_*` to the
    state after it. `feedback` is the environment's, or `malformed` where the answer breaks the
    prompt's format. `summary` is the model's summary of the turns before, if it wrote one in front
    of this turn: it is no environment step, and is credited as this turn is. `oracle` and
    `next_oracle` are `info["oracle"]` before and after the action, "" where the environment gives
    none; they are for annotators, never for prompts, and files do not keep them. `atoms` and
    `next_atoms` are `info["atoms"]`, the parts of the goal that hold: for credit, never for
    prompts.
    """

    observation: str
    state_key: str
    completion: Completion
    action: str
    action_key: str
    feedback: str
    reward: float
    next_observation: str
    next_state_key: str
    progress: float
    image: Image | None = None
    summary: Completion | None = None
    atoms: Mapping[str, float] = field(default_factory=dict, repr=False)
    next_atoms: Mapping[str, float] = field(default_factory=dict, repr=False)
    oracle: str = field(default="", compare=False)
    next_oracle: str = field(default="", compare=False)

    @property
    def answers(self) -> tuple[Completion, ...]:
        """The model's outputs of this turn: a summary if it wrote one, then the answer."""
        return (self.completion,) if self.summary is None else (self.summary, self.completion)

    @property
    def num_sampled(self) -> int:
        """Number of tokens that the policy sampled for this turn."""
        return sum(answer.num_sampled for answer in self.answers)


@dataclass(slots=True)
class Rollout:
    """One episode."""

    task_id: str
    family: str
    group: int  # index of the group; rollouts of one group started in the same state
    member: int
    seed: int
    goal: str = ""
    turns: list[Turn] = field(default_factory=list)
    stop_reason: StopReason = StopReason.ERROR
    success: bool = False  # whether the task is solved, by the benchmark's rule
    score: float = 0.0  # the benchmark's score at the end, in [0, 1]
    # The infrastructure error that ended the episode, else "". It makes the score invalid.
    error: str = ""
    # The recording of the episode with prompts and answers, if one was requested.
    recording: Recording | None = None
    # The environment's metrics after the last turn; files do not keep them.
    metrics: Mapping[str, float] = field(default_factory=dict, compare=False)
    # Returns of continuations from right before each turn, if they were played. Shape [T, K]; files
    # do not keep them.
    state_returns: Floats | None = field(default=None, compare=False)
    # Member of the group that this rollout branched from; None if it played from the group's first
    # state.
    parent: int | None = None
    branch_turn: int = 0  # number of turns that it shares with its parent, as the first of `turns`

    @property
    def own_turns(self) -> list[Turn]:
        """The turns that this rollout does not share with its parent."""
        return self.turns[self.branch_turn :]


OnFinish = Callable[[Rollout], object]
"""Is called with each rollout once its group has ended."""


def lengths_of(rollouts: Sequence[Rollout]) -> Ints:
    """Return the number of sampled response tokens of every turn. Shape [N]."""
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    return np.asarray([turn.num_sampled for turn in turns], dtype=np.int64)


def models_cost(rollouts: Iterable[Rollout]) -> float:
    """Return the sum of `info["metrics"]["cost"]` of rollouts played to the end; 0 if unknown."""
    costs = (rollout.metrics.get("cost", 0.0) for rollout in rollouts)
    return math.fsum(cost for cost in costs if math.isfinite(cost))
