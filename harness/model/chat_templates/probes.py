"""Short chats that show the text of a chat template around an answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from harness.model.chat_templates.rendering import ChatRefused, ChatTemplate
from harness.model.chat_templates.special_tokens import SpecialTokens
from harness.types.messages import Message

ANSWER: Final = "\x00answer\x00"
"""Placeholder of an answer while the template renders the text around it."""

PROBE: Final[tuple[Message, ...]] = (
    {"role": "user", "content": "What is on the shelf?"},
    {"role": "assistant", "content": ANSWER},
    {"role": "user", "content": "And on the table?"},
)


def probe(speaker: str, tools: Sequence[dict[str, Any]] = ()) -> list[Message]:
    """Return a short chat with tools, in which users or tools speak after the answer."""
    first, answer, then = PROBE
    offered: Message = {**first, "tools": list(tools)} if tools else first
    return [offered, answer, {**then, "role": speaker}]


def find_end(
    template: ChatTemplate,
    special_tokens: SpecialTokens,
    # Returns the tokens of a text; special tokens are recognised.
    encode: Callable[[str], tuple[int, ...]],
    speaker: str,  # who speaks after the answer, `"user"` or `"tool"`
) -> int | None:
    """Return the token that a template writes right after an answer.

    It is the first token behind the answer, blanks left out, if that is an added token and no tag.
    Where the template closes the last answer of a chat with nothing, it is the token that begins
    the next message: GLM's models stop there. None if the template has no such token there, or
    refuses the chat.
    """
    chat = probe(speaker)
    last, between = _after_answer(template, chat[:2]), _after_answer(template, chat)
    if last == _after_answer(template, chat[:2], is_asked=True):
        # The template may begin the next answer unasked.
        last = os.path.commonprefix([last, between])  # noqa: RUF071 - these are no paths
    for text in (last, between):
        begin = next(iter(encode(text.lstrip())), None)
        if begin in special_tokens.ends:
            return begin
    return None


def _after_answer(
    template: ChatTemplate, chat: Sequence[Message], *, is_asked: bool = False
) -> str:
    """Return the template's text after the answer of a probe, "" if it refuses the probe."""
    with suppress(ChatRefused):
        return template.render(chat, add_generation_prompt=is_asked).partition(ANSWER)[2]
    return ""
