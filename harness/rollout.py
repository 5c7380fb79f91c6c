"""What an episode leaves behind: the types the whole loop speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentgyms.transcript import Recording
from harness.images import Image


class StopReason(StrEnum):
    """Why an episode ended."""

    TERMINATED = "terminated"
    TURN_LIMIT = "turn_limit"
    CONTEXT_LIMIT = "context_limit"
    STOPPED = "stopped"
    """Broken off because enough others had ended; such a rollout is no result of collection."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were read and written, as they are billed.

    Attributes:
        prompt: Tokens of prompts.
        response: Tokens of responses.
        calls: Answers of the model.
    """

    prompt: int = 0
    response: int = 0
    calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum."""
        return Usage(
            self.prompt + other.prompt, self.response + other.response, self.calls + other.calls
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """What a completer returns.

    Attributes:
        text: The response without special tokens.
        prompt_ids: Tokens of the rendered prompt; empty where the completer does not know them.
        response_ids: Tokens generated, the end-of-turn token included. Empty where unknown.
        logprobs: Log-probability of each response token under the sampling distribution, in nats.
        finished: The model ended its turn itself; False if it ran into the token limit.
        images: Those the prompt showed, in order.
        usage: Tokens read and written, also where their ids are unknown.
    """

    text: str
    prompt_ids: tuple[int, ...] = ()
    response_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    finished: bool = True
    images: tuple[Image, ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Turn:
    """One decision: the state acted in, what was said and done, what came of it.

    `observation`, `image` and `state_key` are those of the state acted *in*; `next_*` belong to the
    state reached. `feedback` is the environment's, or `malformed` where the answer broke the format
    that the prompt asks for.
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


@dataclass(slots=True)
class Rollout:
    """One episode.

    Attributes:
        group: Index of the group; rollouts of one group started in the same state.
        member: Index within the group.
        success: Solved, by the benchmark's rule.
        score: The benchmark's score at the end, in [0, 1].
        error: What failed in the infrastructure, else "". Such a rollout is never scored.
        recording: Of the environment's side, with what the agent read and said, if asked for.
        metrics: The environment's own figures after the last turn; files keep none.
    """

    task_id: str
    family: str
    group: int
    member: int
    seed: int
    goal: str = ""
    turns: list[Turn] = field(default_factory=list)
    stop_reason: StopReason = StopReason.ERROR
    success: bool = False
    score: float = 0.0
    error: str = ""
    recording: Recording | None = None
    metrics: Mapping[str, float] = field(default_factory=dict, compare=False)
