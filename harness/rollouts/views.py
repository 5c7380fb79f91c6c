"""What an agent sees of an episode, what it decides, and what can decide in its place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness.types.messages import Content, Image
from harness.types.rollout import Completion, Turn


@dataclass(slots=True)
class EpisodeView:
    """Everything an agent sees when it decides.

    Attributes:
        first_observation: Text of the observation of the reset.
        observation: Text of the current observation.
        info: The `info` that came with it.
        max_turns: Turn limit of the episode.
        turns: The turns taken.
        image: Of the current observation, if it has one.
        prompts: Contents of a transcript's prompts, one for each turn taken, and one for the next
            turn after it was rendered. They are complete, even if a limit shortens the messages.
        opening: Template variables of a transcript's first prompt.
        shown: Content of the last prompt that the model got, without the preamble.
        left_out: Description of what that prompt left out.
        summary: The model's last summary.
        summarised: Number of turns that it stands for.
    """

    first_observation: str
    observation: str
    info: dict[str, Any]
    max_turns: int
    turns: list[Turn] = field(default_factory=list)
    image: Image | None = None
    prompts: list[Content] = field(default_factory=list)
    opening: dict[str, Any] = field(default_factory=dict)
    shown: Content = ""
    left_out: str = ""
    summary: str = ""
    summarised: int = 0

    def copied(self, turns: list[Turn]) -> EpisodeView:
        """Return the view of a copy of the episode, whose turns are added to `turns`."""
        return replace(self, turns=turns, prompts=[*self.prompts])


@dataclass(frozen=True, slots=True)
class Decision:
    """An action and the completion it was parsed from.

    Attributes:
        action: For the environment.
        completion: The model's answer.
        valid: Whether the answer has the format that the prompt asks for.
        prompt: Text of this turn's prompt, without the preamble of the episode.
        left_out: What a shortened prompt left out, such as `"2 turns"`; "" for nothing.
        summary: The summary that the model wrote before, if it did.
    """

    action: str
    completion: Completion
    valid: bool = True
    prompt: str = ""
    left_out: str = ""
    summary: Completion | None = None


class Actor(Protocol):
    """Anything that chooses actions."""

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the next action; `seed` seeds all randomness of this decision."""
        ...
