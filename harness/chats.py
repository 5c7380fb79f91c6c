"""Chats to tokens: what a chat template writes, around answers that keep their own tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, Final

import jinja2

from harness.completers import Message, images_of
from harness.errors import ConfigError
from harness.images import SAID, Image
from harness.vision import Vision

_ANSWER: Final = "\x00answer\x00"
"""Stands for an answer while the template writes what is around it."""

_MARK_SIGNS: Final = re.compile(r"[\x00<>\[\]|]")
"""What makes a special token of a word."""

_PROBE: Final[tuple[Message, ...]] = (
    {"role": "user", "content": "What is on the shelf?"},
    {"role": "assistant", "content": "<think>It could be a mug.</think>A mug."},
    {"role": "user", "content": "And on the table?"},
)
_REMEMBERED_TEMPLATES: Final = 8


class Chats:
    """Writes chats as tokens, up to where the next answer begins.

    An assistant's message may bring the tokens of its answer (`token_ids`); they are taken as they
    are, and a text without tokens is encoded for itself. All else is what the chat template writes
    between the answers. So a chat that goes on after an answer begins with the tokens that the
    model saw and said before, to the last one, whatever its answer's text would be encoded to.

    A text that a user's message shows comes from an environment: special tokens in it are written
    as plain words, so that no page can end its message and answer for the model.

    Args:
        tokenizer: With a chat template.
        encode: The tokens of a text, special ones recognised.
        vision: What prepares images, or None.
    """

    def __init__(
        self, tokenizer: Any, encode: Callable[[str], tuple[int, ...]], vision: Vision | None
    ) -> None:
        """Write nothing yet."""
        self._tokenizer, self._encode, self._vision = tokenizer, encode, vision
        self._marks = _pattern([_ANSWER, *_special_tokens(tokenizer)])
        self._closing = lru_cache(_REMEMBERED_TEMPLATES)(self._closing_anew)

    def encode(self, messages: Sequence[Message], stop_ids: Collection[int]) -> tuple[int, ...]:
        """Return the tokens of a chat, up to where the assistant's next answer begins.

        An earlier answer that ran into the token limit is closed as the template closes answers;
        one that ended with the template's own stop token is not closed twice.

        Args:
            messages: Of a system, a user and an assistant.
            stop_ids: Tokens that end an answer.

        Raises:
            ConfigError: The template writes an earlier answer in another way than it was said, or
                as many image tokens as there are no images.
        """
        answers = [message for message in messages if message["role"] == "assistant"]
        written = self._written_around(messages, len(answers))
        shown = _shown_between(messages)
        tokens = list(self._around(written[0], shown[0]))
        closing = self.check() if answers else ()
        for answer, text, images in zip(answers, written[1:], shown[1:], strict=True):
            said = self._said(answer)
            after = self._around(text, images)
            tokens += said
            tokens += after[_already_closed(said, closing, stop_ids) :]
        return tuple(tokens)

    def images(self, messages: Sequence[Message]) -> tuple[Image, ...]:
        """Return what the image tokens of `encode(messages)` stand for, in order.

        `SAID` stands for one that the model wrote itself.
        """
        if self._vision is None:
            return ()
        shown: list[Image] = []
        for message in messages:
            if message["role"] == "assistant":
                shown += [SAID] * self._said(message).count(self._vision.image_token_id)
            else:
                shown += images_of([message])
        return tuple(shown)

    def check(self) -> tuple[int, ...]:
        """Return the tokens with which the template closes an answer.

        Raises:
            ConfigError: The template rewrites earlier answers: it drops their thoughts, say.
        """
        return self._closing(self._tokenizer.chat_template)

    def _closing_anew(self, _: str) -> tuple[int, ...]:
        chat = [dict(message) for message in _PROBE]
        begun = self._render(chat[:1]) + str(chat[1]["content"])
        closed = self._render(chat[:2], going_on=False)
        if not closed.startswith(begun) or not self._render(chat).startswith(closed):
            raise _unstable()
        return self._encode(closed.removeprefix(begun))

    def _written_around(self, messages: Sequence[Message], num_answers: int) -> list[str]:
        """Return what the template writes before, between and after the answers."""
        marked = [
            {**message, "content": _ANSWER} if message["role"] == "assistant" else message
            for message in self._plain(messages)
        ]
        rendered = self._render(marked)
        written = rendered.split(_ANSWER)
        last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
        stable = last < 0 or rendered.startswith(self._render(marked[:last]) + _ANSWER)
        if len(written) != num_answers + 1 or not stable:
            raise _unstable()
        return written

    def _plain(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return messages as the template takes them."""
        return [{**message, "content": self._content(message)} for message in messages]

    def _content(self, message: Message) -> Any:
        """Return a message's content, special tokens that it only shows made words."""
        content = message["content"]
        if isinstance(content, str):
            return content if message["role"] == "system" else self.harmless(content)
        return [
            {"type": "image"}
            if part["type"] == "image"
            else {"type": "text", "text": self.harmless(part["text"])}
            for part in content
        ]

    def harmless(self, text: str) -> str:
        """Return a text of the environment's, special tokens in it made words."""
        return self._marks.sub(lambda mark: _MARK_SIGNS.sub(" ", mark[0]), text)

    def _render(self, messages: Sequence[Any], *, going_on: bool = True) -> str:
        try:
            text = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=going_on
            )
        except jinja2.TemplateError as e:
            raise ConfigError(f"the model's chat template refuses a chat: {e}") from e
        return str(text)

    def _around(self, text: str, images: Sequence[Image]) -> tuple[int, ...]:
        tokens = self._encode(text)
        return self._vision.expand(tokens, images) if self._vision else tokens

    def _said(self, answer: Message) -> tuple[int, ...]:
        own = answer.get("token_ids", ())
        return own or self._encode(str(self._plain([answer])[0]["content"]))


def _special_tokens(tokenizer: Any) -> list[str]:
    added = tokenizer.added_tokens_decoder.values()
    return [str(token) for token in added if token.special]


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Return what matches any of the words, the longest where several do."""
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


def _shown_between(messages: Sequence[Message]) -> list[list[Image]]:
    """Return the images shown before, between and after the answers."""
    shown: list[list[Image]] = [[]]
    for message in messages:
        if message["role"] == "assistant":
            shown.append([])
        else:
            shown[-1] += images_of([message])
    return shown


def _already_closed(said: Sequence[int], closing: Sequence[int], stop_ids: Collection[int]) -> int:
    """Return how many of the closing tokens an answer has said itself."""
    if not said or said[-1] not in stop_ids or said[-1] not in closing:
        return 0
    return list(closing).index(said[-1]) + 1


def _unstable() -> ConfigError:
    return ConfigError(
        "the model's chat template does not keep earlier answers as they were said (some drop "
        "their thoughts), so it cannot write a transcript: use agent.context = 'window', or a chat "
        "template that only adds to a chat"
    )
