"""Agents: they turn an episode so far into the next action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from harness import parsing, prompts
from harness.completers import Completer, Content, Message, Sampling
from harness.errors import ConfigError
from harness.images import Image
from harness.rollout import Completion, Turn

CONTEXTS: Final = ("window", "transcript")
"""How an agent sees its episode; see `Agent`."""


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
        asked: Contents of a transcript's prompts so far, one for each turn taken, and one for the
            next once it was written.
    """

    first_observation: str
    observation: str
    info: dict[str, Any]
    max_turns: int
    turns: list[Turn] = field(default_factory=list)
    image: Image | None = None
    asked: list[Content] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decision:
    """An action and the completion it was parsed from.

    Attributes:
        action: For the environment.
        completion: What the model said.
        valid: The completion keeps the format that the prompt asks for.
        prompt: What the prompt of this turn said, without the preamble of the episode.
        left_out: What a limited prompt left out, such as `"2 turns"`; "" for nothing.
    """

    action: str
    completion: Completion
    valid: bool = True
    prompt: str = ""
    left_out: str = ""


class Actor(Protocol):
    """Anything that decides."""

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the next action; `seed` is the randomness of this decision."""
        ...


class Agent:
    """A language model behind a prompt style.

    In the context `window` every turn has its own prompt, rendered from the last `window` turns.
    Past turns are text; the image shown, if any, is that of the observation to act on.

    In the context `transcript` the episode is one chat that only grows: the first prompt, the
    answer, the next observation as the style's follow-up puts it, the answer, and so on. Answers
    stay as they were said, thoughts included, and images stay where they were shown. `window` has
    no meaning there: what limits a transcript is the model's context, which ends the episode.

    Args:
        completer: The model.
        style: Prompt template and parser.
        sampling: Temperature and token limit.
        window: Number of past turns shown, K in the papers.
        context: `"window"` or `"transcript"`.
    """

    def __init__(
        self,
        completer: Completer,
        style: prompts.PromptStyle,
        sampling: Sampling,
        window: int,
        context: str = "window",
    ) -> None:
        """Raise `ConfigError` if `window` is negative or the context unknown."""
        if window < 0:
            raise ConfigError(f"window must be 0 or more turns, got {window}")
        if context not in CONTEXTS:
            known = ", ".join(CONTEXTS)
            raise ConfigError(f"unknown agent.context {context!r}: expected one of {known}")
        self.completer, self.style, self.sampling = completer, style, sampling
        self.window, self.context = window, context

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Ask the model for the next action."""
        completion = await self.completer.complete(self.messages(view), self.sampling, seed)
        action, valid = self.style.parse(completion.text, choices_of(view))
        return Decision(action, completion, valid)

    def messages(self, view: EpisodeView) -> list[Message]:
        """Return the prompt of the next decision.

        In a transcript it is to be asked for at every turn: what a turn's prompt showed is known
        then, and kept in `view.asked`.

        Raises:
            ConfigError: The style shows an image and the environment has none.
            ValueError: A turn of the transcript was taken without its prompt.
        """
        if self.context == "transcript":
            return self._transcript(view)
        return [{"role": "user", "content": self.style.render(**self._fields(view, self.window))}]

    def _transcript(self, view: EpisodeView) -> list[Message]:
        taken = len(view.turns)
        if len(view.asked) < taken:
            raise ValueError(f"the transcript has {len(view.asked)} prompts for {taken} turns")
        if len(view.asked) == taken:
            render = self.style.render_next if taken else self.style.render
            view.asked.append(render(**self._fields(view, 0)))
        messages: list[Message] = []
        for content, turn in zip(view.asked, view.turns, strict=False):
            messages += [{"role": "user", "content": content}, _answer(turn.completion)]
        return [*messages, {"role": "user", "content": view.asked[taken]}]

    def _fields(self, view: EpisodeView, window: int) -> dict[str, Any]:
        """Return what a template sees, with the last `window` turns as its history."""
        taken = len(view.turns)
        shown = view.turns[max(0, taken - window) :] if window else []
        history = [
            {
                "number": taken - len(shown) + i + 1,
                "observation": turn.observation,
                "action": turn.action,
                "outcome": turn.next_observation,
            }
            for i, turn in enumerate(shown)
        ]
        return {
            "image": view.image,
            "goal": view.info["goal"],
            "first_observation": view.first_observation,
            "observation": view.observation,
            "history": history,
            "actions": view.info["admissible_actions"],
            "choices": choices_of(view),
            "turn": taken,
            "max_turns": view.max_turns,
        }


def _answer(completion: Completion) -> Message:
    return {
        "role": "assistant",
        "content": completion.text,
        "token_ids": completion.response_ids,
    }


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
