"""Truncation of prompts: the parts left out, their order, and the marks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final, Protocol

from harness import prompts
from harness.types.errors import ContextOverflow
from harness.types.messages import Content, ImagePart, Message, TextPart, content_text

SHORTEST_OBSERVATION: Final = 200
"""Fewest characters that an observation is cut to."""

_MARK: Final = "\n[... {left_out} of {total} characters left out ...]\n"
_CACHED: Final = 256
"""Texts that are cut once for all prompts that show them."""

_MARK_OF_TOKENS: Final = "\n[... {left_out} of {total} tokens left out ...]\n"


@dataclass(frozen=True, slots=True)
class Cuts:
    """The parts that a prompt leaves out, in the order in which they are left out."""

    turns: int = 0
    examples: int = 0  # number of worked examples, counted from the last
    reflections: int = 0
    observation: int | None = None  # most characters of an observation, or None for no limit

    def describe(self) -> str:
        """Return a description, such as `"3 turns, 1 example"`; "" for nothing."""
        counts = {"turn": self.turns, "example": self.examples, "reflection": self.reflections}
        parts = [f"{n} {name}{'s' * (n > 1)}" for name, n in counts.items() if n]
        if self.observation is not None:
            parts.append("the middle of the observation")
        return ", ".join(parts)


NO_CUTS: Final = Cuts()


def concatenate(*contents: Content) -> Content:
    """Return the contents as the content of one message, in order."""
    shown = [content for content in contents if content]
    texts = [content for content in shown if isinstance(content, str)]
    if len(texts) == len(shown):
        return "".join(texts)
    parts: list[TextPart | ImagePart] = []
    for content in shown:
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return parts


def num_characters(messages: Sequence[Message]) -> int:
    """Return the number of characters of a chat; an image counts as `[image]`."""
    return sum(len(content_text(message["content"])) for message in messages)


def cut_middle(text: str, limit: int | None) -> str:
    """Return a text of at most `limit` characters: its two ends around a mark for the middle."""
    if limit is None or len(text) <= limit:
        return text
    room = limit - len(_MARK.format(left_out=len(text), total=len(text)))
    head, tail = room - room // 2, room // 2
    mark = _MARK.format(left_out=len(text) - room, total=len(text))
    return text[:head] + mark + text[len(text) - tail :]


class Tokens(Protocol):
    """The tokens of a text, as a tokenizer of a model makes them."""

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return where each token of a text begins and ends, in characters."""
        ...


def token_cut(limit: int | None, tokens: Tokens | None) -> Callable[[str], str]:
    """Return a function that cuts a text to `limit` tokens, or not without a limit or tokenizer."""
    if limit is None or tokens is None:
        return lambda text: text
    # Windows show past outcomes again and again.
    return lru_cache(_CACHED)(partial(_cut_to_tokens, limit=limit, tokens=tokens))


def _cut_to_tokens(text: str, limit: int, tokens: Tokens) -> str:
    """Return a text, or its ends around a mark; the end, where errors stand, is a quarter."""
    if len(text.encode("utf-8", "replace")) <= limit:  # a token has a byte or more
        return text
    spans = tokens.spans(text)
    if len(spans) <= limit:
        return text
    tail = limit // 4
    start, end = spans[limit - tail - 1][1], spans[-tail][0] if tail else len(text)
    mark = _MARK_OF_TOKENS.format(left_out=len(spans) - limit, total=len(spans))
    return text[:start] + mark + text[max(start, end) :]


def fit(
    compose: Callable[[Cuts], list[Message]], most: Cuts, limit: int
) -> tuple[list[Message], Cuts]:
    """Return the prompt with the fewest cuts that is not too long, and its cuts.

    Turns are left out first, one more at a time, then examples, then reflections; then the
    observation is shortened. `most` has the largest cuts; for observations that is the length of
    the longest one in characters. `limit` is in characters, see `num_characters`. Raises
    `ContextOverflow` if it is too long even with observations of `SHORTEST_OBSERVATION` characters.
    """
    cuts, excess = NO_CUTS, 0
    for cuts in _cuts_before_observation(most):
        messages = compose(cuts)
        excess = num_characters(messages) - limit
        if excess <= 0:
            return messages, cuts
    length, step = most.observation or 0, 1
    while length > SHORTEST_OBSERVATION:
        step = max(2 * step, excess)  # a template may show less of the text than was cut off
        length = max(SHORTEST_OBSERVATION, length - step)
        cuts = replace(cuts, observation=length)
        messages = compose(cuts)
        excess = num_characters(messages) - limit
        if excess <= 0:
            return messages, cuts
    raise ContextOverflow(
        f"a prompt of {limit + excess} characters is left when all that may be left out is, and "
        f"the limit is {limit}: raise agent.max_prompt"
    )


def _cuts_before_observation(most: Cuts) -> Iterator[Cuts]:
    """Yield the cuts that leave observations complete, fewest first."""
    yield NO_CUTS
    cuts = NO_CUTS
    for n in range(1, most.turns + 1):
        yield (cuts := replace(cuts, turns=n))
    for n in range(1, most.examples + 1):
        yield (cuts := replace(cuts, examples=n))
    for n in range(1, most.reflections + 1):
        yield (cuts := replace(cuts, reflections=n))


@dataclass(frozen=True, slots=True)
class Preamble:
    """Worked examples, then reflections, each rendered with its template."""

    env_id: str = ""  # environment whose templates `examples` and `memory` are used
    examples: tuple[str, ...] = ()  # worked examples as text; the last ones are left out first
    # Reflections, oldest first; the oldest ones are left out first.
    reflections: tuple[str, ...] = ()

    def text(self, cuts: Cuts = NO_CUTS) -> str:
        """Return the text with these cuts and a blank line at its end; "" if it is empty."""
        examples = self.examples[: len(self.examples) - cuts.examples]
        return _text(self.env_id, examples, self.reflections[cuts.reflections :])


@lru_cache(maxsize=1024)
def _text(env_id: str, examples: tuple[str, ...], reflections: tuple[str, ...]) -> str:
    text = ""
    if examples:
        text += prompts.load_part("examples", env_id).render(examples=examples) + "\n\n"
    if reflections:
        text += prompts.load_part("memory", env_id).render(reflections=reflections) + "\n\n"
    return text


NO_PREAMBLE: Final = Preamble()
