"""Prompts of limited length: what is left out, in which order, and how it is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from harness.completers import Content, ImagePart, Message, TextPart
from harness.errors import ContextOverflow

SHORTEST_OBSERVATION: Final = 200
"""An observation is never cut to fewer characters."""

_MARK: Final = "\n[... {left_out} of {total} characters left out ...]\n"
_IMAGE: Final = "[image]"


@dataclass(frozen=True, slots=True)
class Cuts:
    """What a prompt leaves out, in the order in which it is left out.

    Attributes:
        turns: Oldest turns.
        examples: Worked examples, from the last on.
        reflections: Oldest reflections.
        observation: Most characters of an observation, or None to show it whole.
    """

    turns: int = 0
    examples: int = 0
    reflections: int = 0
    observation: int | None = None

    def in_words(self) -> str:
        """Return such as `"3 turns, 1 example"`; "" for nothing."""
        counts = {"turn": self.turns, "example": self.examples, "reflection": self.reflections}
        said = [f"{n} {name}{'s' * (n > 1)}" for name, n in counts.items() if n]
        if self.observation is not None:
            said.append("the middle of the observation")
        return ", ".join(said)


WHOLE: Final = Cuts()


def text_of(content: Content) -> str:
    """Return what a message says, an image as `[image]`."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] if part["type"] == "text" else _IMAGE for part in content)


def joined(*contents: Content) -> Content:
    """Return the content of one message that says all of these in order."""
    shown = [content for content in contents if content]
    texts = [content for content in shown if isinstance(content, str)]
    if len(texts) == len(shown):
        return "".join(texts)
    parts: list[TextPart | ImagePart] = []
    for content in shown:
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return parts


def size(messages: Sequence[Message]) -> int:
    """Return the characters of a chat; an image counts as what stands for it in text."""
    return sum(len(text_of(message["content"])) for message in messages)


def cut_middle(text: str, limit: int | None) -> str:
    """Return a text, or its two ends around a mark that tells how much is missing.

    Args:
        text: Any.
        limit: Most characters, the mark included; at least `SHORTEST_OBSERVATION`. None: no limit.
    """
    if limit is None or len(text) <= limit:
        return text
    room = limit - len(_MARK.format(left_out=len(text), total=len(text)))
    head, tail = room - room // 2, room // 2
    mark = _MARK.format(left_out=len(text) - room, total=len(text))
    return text[:head] + mark + text[len(text) - tail :]


def fit(
    compose: Callable[[Cuts], list[Message]], most: Cuts, limit: int
) -> tuple[list[Message], Cuts]:
    """Return the first prompt that is not too long, and what it leaves out.

    Nothing is left out at first; then turns, one more at a time, then examples, then reflections.
    With all of these gone the observation is shortened.

    Args:
        compose: The prompt without what is to be left out.
        most: How much of each kind there is to leave out; of observations, the longest one's length
            in characters.
        limit: Most characters of a prompt; see `size`.

    Raises:
        ContextOverflow: It stays too long with an observation of `SHORTEST_OBSERVATION` characters.
    """
    cuts, excess = WHOLE, 0
    for cuts in _gradual(most):
        messages = compose(cuts)
        excess = size(messages) - limit
        if excess <= 0:
            return messages, cuts
    length, step = most.observation or 0, 1
    while length > SHORTEST_OBSERVATION:
        step = max(2 * step, excess)  # a template may show less of the text than was cut off
        length = max(SHORTEST_OBSERVATION, length - step)
        cuts = replace(cuts, observation=length)
        messages = compose(cuts)
        excess = size(messages) - limit
        if excess <= 0:
            return messages, cuts
    raise ContextOverflow(
        f"a prompt of {limit + excess} characters is left when all that may be left out is, and "
        f"the limit is {limit}: raise agent.max_prompt"
    )


def _gradual(most: Cuts) -> Iterator[Cuts]:
    """Yield what may be left out before an observation is cut, least first."""
    yield WHOLE
    cuts = WHOLE
    for n in range(1, most.turns + 1):
        yield (cuts := replace(cuts, turns=n))
    for n in range(1, most.examples + 1):
        yield (cuts := replace(cuts, examples=n))
    for n in range(1, most.reflections + 1):
        yield (cuts := replace(cuts, reflections=n))
