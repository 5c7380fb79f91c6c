"""Agents: an agent turns the episode so far into the next action.

A prompt may be limited to a number of characters (`max_prompt`). If the full prompt is longer,
parts are left out in this order, no more than necessary:

1. Oldest turns, one by one. In a window: turns of the history; the last one stays if the style
   shows the current observation as its outcome. In a transcript: turns with their answers; the
   first prompt stays, and one line after it says how many turns are missing.
2. Worked examples, the last one first.
3. Reflections on earlier trials, the oldest one first.
4. The middle of the current observation, and in a transcript of the first one too, down to
   `truncation.SHORTEST_OBSERVATION` characters each, with a mark that says how much is missing.

If that is still too long, the prompt is refused with `ContextOverflow`. Goal, instructions and the
list of actions are never cut. `Decision.left_out` describes what was left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from harness import prompts
from harness.config import CONTEXTS
from harness.inference.completers import Completer, Sampling
from harness.prompts import lettered, truncation
from harness.prompts.few_shot import NO_PREAMBLE, Preamble
from harness.prompts.truncation import NO_CUTS, Cuts
from harness.rollouts.self_play import is_partners
from harness.types.errors import ConfigError
from harness.types.messages import Content, Image, Message
from harness.types.rollout import Completion, Turn

_MISSING: Final = "\n\n[{turns} left out here]\n\n"


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
    """

    action: str
    completion: Completion
    valid: bool = True
    prompt: str = ""
    left_out: str = ""


class Actor(Protocol):
    """Anything that chooses actions."""

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the next action; `seed` seeds all randomness of this decision."""
        ...


class Agent:
    """A language model behind a prompt style.

    In the context `window` every turn has its own prompt, rendered from the last `window` turns.
    Past turns are text; the image, if any, is that of the current observation.

    In the context `transcript` the episode is one chat that only grows: the first prompt, the
    answer, the next observation in the style's follow-up template, the answer, and so on. Answers
    stay unchanged, with their thoughts, and images stay in their prompts. `window` has no effect
    there. A transcript is limited by `max_prompt`, which leaves out its oldest turns, and by the
    model's context, which ends the episode.

    Args:
        completer: The model; None if the agent only writes prompts and parses answers.
        style: Prompt template and parser.
        sampling: Temperature and token limit.
        window: Number of past turns in a prompt, K in the papers.
        context: `"window"` or `"transcript"`.
        preamble: Text before the prompt; in a transcript before the first prompt only. The
            partner's seat in self-play gets no reflections, because they are the learner's.
        max_prompt: Largest number of characters of a prompt, with the preamble and a transcript's
            earlier messages; None sets no limit. The module says what is left out first.
    """

    def __init__(
        self,
        completer: Completer | None,
        style: prompts.PromptStyle,
        sampling: Sampling,
        window: int,
        context: str = "window",
        *,
        preamble: Preamble = NO_PREAMBLE,
        max_prompt: int | None = None,
    ) -> None:
        """Raise `ConfigError` if a number is out of range or the context unknown."""
        if window < 0:
            raise ConfigError(f"window must be 0 or more turns, got {window}")
        if max_prompt is not None and max_prompt < 1:
            raise ConfigError(f"agent.max_prompt must be at least 1 character, got {max_prompt}")
        if context not in CONTEXTS:
            known = ", ".join(CONTEXTS)
            raise ConfigError(f"unknown agent.context {context!r}: expected one of {known}")
        self.completer, self.style, self.sampling = completer, style, sampling
        self.window, self.context = window, context
        self.preamble, self.max_prompt = preamble, max_prompt

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Ask the model for the next action.

        Raises:
            ConfigError: The agent has no model.
            ContextOverflow: The prompt is longer than `max_prompt`, or than the model's context.
            ModelUnavailable: The model gave no answer.
        """
        if self.completer is None:
            raise ConfigError("the agent has no model: make it with a completer")
        completion = await self.completer.complete(self.messages(view), self.sampling, seed)
        return self.decide(view, completion)

    def decide(self, view: EpisodeView, completion: Completion) -> Decision:
        """Return the decision of an answer to the last prompt."""
        action, valid = self.style.parse(completion.text, choices_of(view))
        return Decision(
            action, completion, valid, truncation.content_text(view.shown), view.left_out
        )

    def messages(self, view: EpisodeView) -> list[Message]:
        """Return the prompt of the next decision.

        In a transcript this must be called at every turn, because the prompts are kept in
        `view.prompts`.

        Raises:
            ConfigError: The style shows an image and the environment has none.
            ContextOverflow: The prompt is longer than `max_prompt` even after all cuts.
            ValueError: The transcript lacks the prompt of a turn.
        """
        view.left_out = ""
        if self.max_prompt is None:
            return self._compose(view, NO_CUTS)
        messages, cuts = truncation.fit(
            lambda cuts: self._compose(view, cuts), self._largest_cuts(view), self.max_prompt
        )
        view.left_out = cuts.describe()
        return messages

    def _largest_cuts(self, view: EpisodeView) -> Cuts:
        """Return the largest possible cuts."""
        turns = len(view.turns)
        if self.context == "window":
            turns = min(turns, self.window)
            turns -= bool(turns) and self.style.observes_in_history
        return Cuts(
            turns,
            len(self.preamble.examples),
            len(self._preamble(view).reflections),
            max(len(view.observation), len(view.first_observation)),
        )

    def _preamble(self, view: EpisodeView) -> Preamble:
        """Return the preamble of a seat; the partner's seat gets no reflections."""
        return replace(self.preamble, reflections=()) if is_partners(view.info) else self.preamble

    def _compose(self, view: EpisodeView, cuts: Cuts) -> list[Message]:
        preamble = self._preamble(view).text(cuts)
        if self.context == "transcript":
            return self._transcript(view, cuts, preamble)
        window = min(self.window, len(view.turns)) - cuts.turns
        view.shown = self.style.render(**_shortened(self._fields(view, window), cuts))
        return [_user_message(truncation.concatenate(preamble, view.shown))]

    def _transcript(self, view: EpisodeView, cuts: Cuts, preamble: str) -> list[Message]:
        taken, missing = len(view.turns), cuts.turns
        contents = self._rendered_prompts(view, cuts)
        view.shown = contents[taken]
        first = truncation.concatenate(preamble, contents[0])
        if missing:
            line = _MISSING.format(turns="1 turn" if missing == 1 else f"{missing} turns")
            first = truncation.concatenate(first, line, contents[missing])
        messages = [_user_message(first)]
        for turn, content in zip(view.turns[missing:], contents[missing + 1 :], strict=True):
            messages += [_assistant_message(turn.completion), _user_message(content)]
        return messages

    def _rendered_prompts(self, view: EpisodeView, cuts: Cuts) -> list[Content]:
        """Return the transcript's prompts and keep the next one, which is included."""
        taken = len(view.turns)
        if len(view.prompts) < taken:
            raise ValueError(f"the transcript has {len(view.prompts)} prompts for {taken} turns")
        render = self.style.render_next if taken else self.style.render
        if len(view.prompts) == taken:
            fields = self._fields(view, 0)
            view.opening = view.opening or fields
            view.prompts.append(render(**fields))
        if cuts.observation is None:
            return view.prompts
        last = render(**_shortened(self._fields(view, 0), cuts))
        if not taken:
            return [last]
        return [self.style.render(**_shortened(view.opening, cuts)), *view.prompts[1:taken], last]

    def _fields(self, view: EpisodeView, window: int) -> dict[str, Any]:
        """Return the template variables, with the last `window` turns as the history."""
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


def _shortened(fields: dict[str, Any], cuts: Cuts) -> dict[str, Any]:
    """Return template variables with observations cut to the length in `cuts`."""
    if cuts.observation is None:
        return fields
    names = ("observation", "first_observation")
    cut: dict[str, Any] = {
        name: truncation.cut_middle(fields[name], cuts.observation) for name in names
    }
    if fields["history"]:
        *earlier, last = fields["history"]
        cut["history"] = [*earlier, last | {"outcome": cut["observation"]}]
    return fields | cut


def _user_message(content: Content) -> Message:
    return {"role": "user", "content": content}


def _assistant_message(completion: Completion) -> Message:
    return {
        "role": "assistant",
        "content": completion.text,
        "token_ids": completion.response_ids,
    }


def choices_of(view: EpisodeView) -> list[str]:
    """Return the actions that a prompt may offer by letter."""
    return lettered.choices(view.info["admissible_actions"], view.info["goal"])
