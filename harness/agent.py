"""Agents: they turn an episode so far into the next action.

A prompt may be limited to a number of characters (`max_prompt`). It is then the unlimited one where
that fits; else parts are left out in this order, only as many as need be:

1. Oldest turns, one by one. In a window, of its history; the last one stays where the style tells
   the observation to act on as its outcome. In a transcript, with their answers; the first prompt
   stays, and one line after it says how many turns are missing.
2. Worked examples, the last one first.
3. Reflections on earlier trials, the oldest one first.
4. The middle of the observation to act on, and in a transcript of the first one too, down to
   `budget.SHORTEST_OBSERVATION` characters each, with a mark that tells how much is missing.

If that is still too long, the prompt is refused with `ContextOverflow`. Goal, instructions and the
list of actions are never cut. `Decision.left_out` says in words what was left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from harness import budget, parsing, prompts
from harness.budget import WHOLE, Cuts
from harness.completers import Completer, Content, Message, Sampling
from harness.errors import ConfigError
from harness.images import Image
from harness.preamble import NOTHING, Preamble
from harness.rollout import Completion, Turn
from harness.seats import is_partners

CONTEXTS: Final = ("window", "transcript")
"""How an agent sees its episode; see `Agent`."""

_MISSING: Final = "\n\n[{turns} left out here]\n\n"


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
            next once it was written. They are whole, whatever a limit left out when they were read.
        opening: What the template of a transcript's first prompt saw.
        shown: Content of the prompt written last, without the preamble, as it was shown.
        left_out: What that prompt left out, in words.
    """

    first_observation: str
    observation: str
    info: dict[str, Any]
    max_turns: int
    turns: list[Turn] = field(default_factory=list)
    image: Image | None = None
    asked: list[Content] = field(default_factory=list)
    opening: dict[str, Any] = field(default_factory=dict)
    shown: Content = ""
    left_out: str = ""


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
    no meaning there: what limits a transcript is `max_prompt`, which leaves out its oldest turns,
    and the model's context, which ends the episode.

    Args:
        completer: The model.
        style: Prompt template and parser.
        sampling: Temperature and token limit.
        window: Number of past turns shown, K in the papers.
        context: `"window"` or `"transcript"`.
        preamble: Stands before the prompt; in a transcript once, before the first one. The
            partner's seat in self-chat gets no reflections: they are the learner's.
        max_prompt: Most characters of a prompt, a transcript's earlier messages and the preamble
            included; None sets no limit. What is left out first stands above.
    """

    def __init__(
        self,
        completer: Completer,
        style: prompts.PromptStyle,
        sampling: Sampling,
        window: int,
        context: str = "window",
        *,
        preamble: Preamble = NOTHING,
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
            ContextOverflow: The prompt is longer than `max_prompt`, or than the model's context.
            ModelUnavailable: The model gave no answer.
        """
        completion = await self.completer.complete(self.messages(view), self.sampling, seed)
        return self.decide(view, completion)

    def decide(self, view: EpisodeView, completion: Completion) -> Decision:
        """Return what an answer to the prompt written last comes to."""
        action, valid = self.style.parse(completion.text, choices_of(view))
        return Decision(action, completion, valid, budget.text_of(view.shown), view.left_out)

    def messages(self, view: EpisodeView) -> list[Message]:
        """Return the prompt of the next decision.

        In a transcript it is to be asked for at every turn: what a turn's prompt showed is known
        then, and kept in `view.asked`.

        Raises:
            ConfigError: The style shows an image and the environment has none.
            ContextOverflow: The prompt is longer than `max_prompt`, whatever is left out.
            ValueError: A turn of the transcript was taken without its prompt.
        """
        view.left_out = ""
        if self.max_prompt is None:
            return self._compose(view, WHOLE)
        messages, cuts = budget.fit(
            lambda cuts: self._compose(view, cuts), self._most(view), self.max_prompt
        )
        view.left_out = cuts.in_words()
        return messages

    def _most(self, view: EpisodeView) -> Cuts:
        """Return how much there is to leave out."""
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
        """Return what stands before a seat's prompts; reflections are the learner's own."""
        return replace(self.preamble, reflections=()) if is_partners(view.info) else self.preamble

    def _compose(self, view: EpisodeView, cuts: Cuts) -> list[Message]:
        preamble = self._preamble(view).text(cuts)
        if self.context == "transcript":
            return self._transcript(view, cuts, preamble)
        window = min(self.window, len(view.turns)) - cuts.turns
        view.shown = self.style.render(**_shortened(self._fields(view, window), cuts))
        return [_asked(budget.joined(preamble, view.shown))]

    def _transcript(self, view: EpisodeView, cuts: Cuts, preamble: str) -> list[Message]:
        taken, missing = len(view.turns), cuts.turns
        asked = self._asked_so_far(view, cuts)
        view.shown = asked[taken]
        first = budget.joined(preamble, asked[0])
        if missing:
            line = _MISSING.format(turns="1 turn" if missing == 1 else f"{missing} turns")
            first = budget.joined(first, line, asked[missing])
        messages = [_asked(first)]
        for turn, content in zip(view.turns[missing:], asked[missing + 1 :], strict=True):
            messages += [_answer(turn.completion), _asked(content)]
        return messages

    def _asked_so_far(self, view: EpisodeView, cuts: Cuts) -> list[Content]:
        """Return the transcript's prompts, the next one included; keep that one."""
        taken = len(view.turns)
        if len(view.asked) < taken:
            raise ValueError(f"the transcript has {len(view.asked)} prompts for {taken} turns")
        render = self.style.render_next if taken else self.style.render
        if len(view.asked) == taken:
            fields = self._fields(view, 0)
            view.opening = view.opening or fields
            view.asked.append(render(**fields))
        if cuts.observation is None:
            return view.asked
        last = render(**_shortened(self._fields(view, 0), cuts))
        if not taken:
            return [last]
        return [self.style.render(**_shortened(view.opening, cuts)), *view.asked[1:taken], last]

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


def _shortened(fields: dict[str, Any], cuts: Cuts) -> dict[str, Any]:
    """Return what a template sees, with observations cut to the length that `cuts` allows."""
    if cuts.observation is None:
        return fields
    names = ("observation", "first_observation")
    cut: dict[str, Any] = {
        name: budget.cut_middle(fields[name], cuts.observation) for name in names
    }
    if fields["history"]:
        *earlier, last = fields["history"]
        cut["history"] = [*earlier, last | {"outcome": cut["observation"]}]
    return fields | cut


def _asked(content: Content) -> Message:
    return {"role": "user", "content": content}


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
