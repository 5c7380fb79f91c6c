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

from dataclasses import replace
from typing import Any, Final

from harness import prompts
from harness.config import CONTEXTS
from harness.inference.completers import Completer, Sampling
from harness.prompts import answers, truncation
from harness.prompts.answers import after_thoughts, has_thoughts, outside_thoughts
from harness.prompts.scratchpad import notes_in, without_notes
from harness.prompts.truncation import NO_CUTS, NO_PREAMBLE, Cuts, Preamble
from harness.rollouts import tool_turns
from harness.rollouts.self_play import is_partners
from harness.rollouts.views import Decision, EpisodeView
from harness.types.errors import ConfigError
from harness.types.messages import Content, Message, content_text
from harness.types.rollout import Completion
from harness.types.task_draws import seed_of

SUMMARY_TOKENS: Final = 4096
"""Tokens from which on a chat is summarised, where nothing is given."""

_SUMMARIES: Final = 1
"""Stream of random numbers for summaries."""

_MISSING: Final = "\n\n[{turns} left out here]\n\n"


class Agent:
    """A language model behind a prompt style.

    In the context `window` every turn has its own prompt, rendered from the last `window` turns.
    Past turns are text; the image, if any, is that of the current observation.

    In the context `transcript` the episode is one chat that only grows. Answers stay unchanged,
    with their thoughts unless `thoughts` is `"strip"`, and images stay in their prompts. `window`
    has no effect. `max_prompt` leaves out the oldest turns; the model's context ends the episode.

    In the context `summary` it is a transcript until a prompt and its answer have `summary_tokens`.
    Then the model writes a summary, and the chat goes on from the first prompt, the summary and the
    current observation.

    In the style `tools` the first message offers the environment's tools, and in a transcript the
    following prompts are tool results. Tools do not count in `max_prompt`.

    Args:
        completer: The model; None if the agent only writes prompts and parses answers.
        style: The prompt template and parser.
        sampling: The temperature and token limit.
        window: The number of past turns in a prompt, K in the papers.
        context: `"window"`, `"transcript"` or `"summary"`.
        preamble: The text before the prompt; in a transcript before the first prompt only. The
            partner's seat in self-play gets no reflections, because they are the learner's.
        max_prompt: The largest number of characters of a prompt, with the preamble and a
            transcript's earlier messages; None sets no limit.
        thoughts: `"keep"` or `"strip"`: whether a transcript shows the thoughts of earlier answers.
        scratchpad: The most characters of the notes that the model may write in `<memory>` and
            reads in its next prompts; 0 for no notes. Only in the context `window`.
        summary_tokens: The length of prompt and answer from which on a chat is summarised.
        max_observation: The most tokens of an observation in a prompt; None sets no limit.
        tokens: The counter of tokens; None shows observations whole.
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
        thoughts: str = "keep",
        scratchpad: int = 0,
        summary_tokens: int = SUMMARY_TOKENS,
        max_observation: int | None = None,
        tokens: truncation.Tokens | None = None,
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
        if context == "summary" and style.shows_image:
            raise ConfigError(
                f"agent.context 'summary' is for texts, and the style {style.name!r} shows images: "
                "use 'window' or 'transcript'"
            )
        self._shows_thoughts, self._scratchpad = thoughts == "keep", scratchpad
        self._summary_tokens = summary_tokens
        self._cut = truncation.token_cut(max_observation, tokens)

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Ask the model for the next action.

        Raises:
            ConfigError: The agent has no model.
            ContextOverflow: The prompt is longer than `max_prompt`, or than the model's context.
            ModelUnavailable: The model gave no answer.
        """
        if self.completer is None:
            raise ConfigError("the agent has no model: make it with a completer")
        summary = await self._summarise(self.completer, view, seed) if self._is_full(view) else None
        completion = await self.completer.complete(self.messages(view), self.sampling, seed)
        return replace(self.decide(view, completion), summary=summary)

    def _is_full(self, view: EpisodeView) -> bool:
        if self.context != "summary" or len(view.turns) <= view.summarised:
            return False
        usage = view.turns[-1].completion.usage
        return usage.prompt + usage.response >= self._summary_tokens

    async def _summarise(self, completer: Completer, view: EpisodeView, seed: int) -> Completion:
        """Ask for a summary of the chat before the current observation; the next prompt uses it."""
        request = prompts.load_part("summarise", self.preamble.env_id).render()
        messages = tool_turns.with_request(self.messages(view), request)
        own_seed = seed_of(seed, _SUMMARIES)
        completion = await completer.complete(messages, self.sampling, own_seed)
        view.summary = outside_thoughts(completion.text).strip()
        view.summarised = len(view.turns)
        return completion

    def decide(self, view: EpisodeView, completion: Completion) -> Decision:
        """Return the decision of an answer to the last prompt."""
        text = without_notes(completion.text) if self._scratchpad else completion.text
        offered, ended = choices_of(view), completion.finished
        action, valid = self.style.parse(text, offered, completion.calls, ended=ended)
        return Decision(action, completion, valid, content_text(view.shown), view.left_out)

    def messages(self, view: EpisodeView) -> list[Message]:
        """Return the prompt of the next decision; `view.prompts` keeps the prompts of a transcript.

        A transcript needs this call at every turn.

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
        turns = len(view.turns) - view.summarised
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
        return replace(self.preamble, reflections=()) if is_partners(view.info) else self.preamble

    def _compose(self, view: EpisodeView, cuts: Cuts) -> list[Message]:
        preamble = self._preamble(view).text(cuts)
        if self.context != "window":
            return self._transcript(view, cuts, preamble)
        window = min(self.window, len(view.turns)) - cuts.turns
        shown = self.style.render(**_shortened(self._fields(view, window), cuts))
        view.shown = truncation.concatenate(shown, self._notes(view))
        return [tool_turns.first_message(self.style, truncation.concatenate(preamble, view.shown))]

    def _notes(self, view: EpisodeView) -> str:
        """Return the end of a prompt that shows the notes; "" without a scratchpad."""
        if not self._scratchpad:
            return ""
        written = (notes_in(turn.completion.text) for turn in reversed(view.turns))
        notes = next((found for found in written if found is not None), "")
        part = prompts.load_part("scratchpad", self.preamble.env_id)
        shown = part.render(notes=notes[: self._scratchpad], most=self._scratchpad)
        return f"\n\n{shown}"

    def _transcript(self, view: EpisodeView, cuts: Cuts, preamble: str) -> list[Message]:
        taken, missing = len(view.turns), view.summarised + cuts.turns
        contents = self._rendered_prompts(view, cuts)
        view.shown = contents[taken]
        first = truncation.concatenate(preamble, contents[0])
        if view.summarised:
            part = prompts.load_part("summary", self.preamble.env_id)
            shown = part.render(turns=view.summarised, summary=view.summary)
            first = truncation.concatenate(first, f"\n\n{shown}\n")
        if cuts.turns:
            turns = "1 turn" if cuts.turns == 1 else f"{cuts.turns} turns"
            first = truncation.concatenate(first, _MISSING.format(turns=turns))
        if missing:
            first = truncation.concatenate(first, contents[missing])
        messages = [tool_turns.first_message(self.style, first)]
        for turn, content in zip(view.turns[missing:], contents[missing + 1 :], strict=True):
            answer = self._assistant_message(turn.completion)
            calls = turn.completion.calls
            messages += tool_turns.answer_and_next_prompt(self.style, calls, answer, content)
        return messages

    def _assistant_message(self, completion: Completion) -> Message:
        text, ids = completion.text, completion.response_ids
        message: Message = {"role": "assistant", "content": text, "token_ids": ids}
        if not self._shows_thoughts and has_thoughts(text):
            message |= {"content": after_thoughts(text), "without_thoughts": True}
        return message

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
        """Return the template variables of a prompt whose history is the last `window` turns."""
        taken = len(view.turns)
        shown = view.turns[max(0, taken - window) :] if window else []
        history = [
            {
                "number": taken - len(shown) + i + 1,
                "observation": self._cut(turn.observation),
                "action": turn.action,
                "outcome": self._cut(turn.next_observation),
                **tool_turns.history_variables(self.style, turn),
            }
            for i, turn in enumerate(shown)
        ]
        return {
            "image": view.image,
            "goal": view.info["goal"],
            "first_observation": self._cut(view.first_observation),
            "observation": self._cut(view.observation),
            "history": history,
            "actions": view.info["admissible_actions"],
            "choices": choices_of(view),
            "turn": taken,
            "max_turns": view.max_turns,
            **tool_turns.prompt_variables(self.style, view.turns, view.info["admissible_actions"]),
        }


def _shortened(fields: dict[str, Any], cuts: Cuts) -> dict[str, Any]:
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


def choices_of(view: EpisodeView) -> list[str]:
    """Return the actions that a prompt may offer by letter."""
    return answers.choices(view.info["admissible_actions"], view.info["goal"])
