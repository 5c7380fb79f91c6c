"""Views of episodes, decisions, and the interface of an actor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.types.messages import Content, Image
from harness.types.rollout import Completion, Turn


@dataclass(slots=True)
class EpisodeView:
    """Everything an agent sees when it decides."""

    first_observation: str
    observation: str
    info: dict[str, Any]
    max_turns: int
    turns: list[Turn] = field(default_factory=list)
    image: Image | None = None
    # Prompts of a transcript: one for each turn taken, and the next one once it was rendered.
    # They are complete, even if a limit shortens the messages.
    prompts: list[Content] = field(default_factory=list)
    opening: dict[str, Any] = field(default_factory=dict)  # variables of its first prompt
    shown: Content = ""  # the last prompt that the model got, without the preamble
    left_out: str = ""  # a description of the parts that this prompt left out
    summary: str = ""  # the model's last summary, of the first `summarised` turns
    summarised: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """An action and the completion it was parsed from."""

    action: str
    completion: Completion
    valid: bool = True  # the answer has the format that the prompt asks for
    prompt: str = ""  # without the preamble of the episode
    left_out: str = ""  # the parts that a shortened prompt left out, such as "2 turns"
    summary: Completion | None = None  # written before this turn


class Actor(Protocol):
    """Anything that chooses actions."""

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the next action; `seed` seeds all randomness of this decision."""
        ...
