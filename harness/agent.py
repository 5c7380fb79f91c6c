"""Agents: they turn an episode so far into the next action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness import parsing, prompts
from harness.completers import Completer, Message, Sampling
from harness.errors import ConfigError
from harness.images import Image
from harness.rollout import Completion, Turn


@dataclass(slots=True)
class EpisodeView:
    """What an agent knows when it decides.

    Attributes:
        first_observation: Of the reset.
        observation: The one to act on, its text.
        info: `info` that came with it.
        max_turns: Turn limit of the episode.
        turns: The turns taken.
        image: Of the observation to act on, if it has one.
    """

    first_observation: str
    observation: str
    info: dict[str, Any]
    max_turns: int
    turns: list[Turn] = field(default_factory=list)
    image: Image | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """An action and the completion it was parsed from.

    Attributes:
        action: For the environment.
        completion: What the model said.
        valid: The completion keeps the format that the prompt asks for.
    """

    action: str
    completion: Completion
    valid: bool = True


class Actor(Protocol):
    """Anything that decides."""

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the next action; `seed` is the randomness of this decision."""
        ...


class Agent:
    """A language model behind a prompt style.

    The context is a window: every turn has its own prompt, rendered from the last `window` turns.
    Past turns are text; the image shown, if any, is that of the observation to act on.

    Args:
        completer: The model.
        style: Prompt template and parser.
        sampling: Temperature and token limit.
        window: Number of past turns shown, K in the papers.
    """

    def __init__(
        self, completer: Completer, style: prompts.PromptStyle, sampling: Sampling, window: int
    ) -> None:
        """Raise `ConfigError` if `window` is negative."""
        if window < 0:
            raise ConfigError(f"window must be 0 or more turns, got {window}")
        self.completer, self.style, self.sampling = completer, style, sampling
        self.window = window

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Ask the model for the next action."""
        completion = await self.completer.complete(self.messages(view), self.sampling, seed)
        action, valid = self.style.parse(completion.text, choices_of(view))
        return Decision(action, completion, valid)

    def messages(self, view: EpisodeView) -> list[Message]:
        """Return the prompt of the next decision.

        Raises:
            ConfigError: The style shows an image and the environment has none.
        """
        taken = len(view.turns)
        shown = view.turns[max(0, taken - self.window) :] if self.window else []
        history = [
            {
                "number": taken - len(shown) + i + 1,
                "observation": turn.observation,
                "action": turn.action,
                "outcome": turn.next_observation,
            }
            for i, turn in enumerate(shown)
        ]
        content = self.style.render(
            image=view.image,
            goal=view.info["goal"],
            first_observation=view.first_observation,
            observation=view.observation,
            history=history,
            actions=view.info["admissible_actions"],
            choices=choices_of(view),
            turn=taken,
            max_turns=view.max_turns,
        )
        return [{"role": "user", "content": content}]


def choices_of(view: EpisodeView) -> list[str]:
    """Return the actions that a prompt may offer by letter."""
    return parsing.choices(view.info["admissible_actions"], view.info["goal"])


class PolicyActor:
    """Decides by a plain function of the view; its text is its action."""

    def __init__(self, policy: Callable[[EpisodeView, int], str]) -> None:
        """Keep the function; it gets the view and the seed of the decision."""
        self._policy = policy

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the function's action."""
        action = self._policy(view, seed)
        return Decision(action, Completion(action))
