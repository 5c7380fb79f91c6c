"""Encodes chats: the tokens of the chat template, and answers with their generated tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, Final

import jinja2

from harness.model.template_limit import LIMIT_S, TemplateTooSlow, limited
from harness.model.vision import Vision
from harness.types.errors import ConfigError
from harness.types.messages import GENERATED_IMAGE_TOKEN, Image, Message, images_of

_ANSWER: Final = "\x00answer\x00"
"""Placeholder of an answer while the template renders the text around it."""

_MARKUP: Final = re.compile(r"[\x00<>\[\]|]")
"""Characters that distinguish a special token from a word."""

_PROBE: Final[tuple[Message, ...]] = (
    {"role": "user", "content": "What is on the shelf?"},
    {"role": "assistant", "content": "<think>It could be a mug.</think>A mug."},
    {"role": "user", "content": "And on the table?"},
)
_CACHED_TEMPLATES: Final = 8


class ChatEncoder:
    """Encodes chats as tokens, up to the start of the next answer.

    An assistant's message may have the tokens of its answer (`token_ids`), which are used
    unchanged; a text without tokens is encoded. The chat template gives all other tokens. So a
    longer chat starts with exactly the prompt and response tokens of the chat before, even if the
    answer's text would be encoded differently.

    Texts of users' messages come from an environment: special tokens in them become plain words, so
    that no observation can end its message and answer for the model.

    Args:
        tokenizer: A tokenizer with a chat template.
        encode: Returns the tokens of a text; special tokens are recognised.
        vision: Prepares images; None for a text model.
    """

    def __init__(
        self, tokenizer: Any, encode: Callable[[str], tuple[int, ...]], vision: Vision | None
    ) -> None:
        """Compile the pattern of special tokens."""
        self._tokenizer, self._encode, self._vision = tokenizer, encode, vision
        self._special_tokens_pattern = _pattern([_ANSWER, *_special_tokens(tokenizer)])
        self._closing = lru_cache(_CACHED_TEMPLATES)(self._find_closing_tokens)

    def encode(self, messages: Sequence[Message], stop_ids: Collection[int]) -> tuple[int, ...]:
        """Return the tokens of a chat, up to the start of the assistant's next answer.

        An earlier answer that reached the token limit is closed with the template's closing tokens;
        one that ends with the template's stop token is not closed twice.

        Args:
            messages: Messages of a system, a user and an assistant.
            stop_ids: Tokens that end an answer.

        Raises:
            ConfigError: The template changes an earlier answer, or the numbers of image tokens and
                images differ.
        """
        answers = [message for message in messages if message["role"] == "assistant"]
        written = self._written_around(messages, len(answers))
        shown = _shown_between(messages)
        tokens = list(self._around(written[0], shown[0]))
        closing = self.closing_tokens() if answers else ()
        for answer, text, images in zip(answers, written[1:], shown[1:], strict=True):
            generated = self._answer_tokens(answer)
            after = self._around(text, images)
            tokens += generated
            tokens += after[_already_closed(generated, closing, stop_ids) :]
        return tuple(tokens)

    def images(self, messages: Sequence[Message]) -> tuple[Image, ...]:
        """Return the image of each image token of `encode(messages)`, in order.

        `GENERATED_IMAGE_TOKEN` stands for a token that the model generated.
        """
        if self._vision is None:
            return ()
        shown: list[Image] = []
        for message in messages:
            if message["role"] == "assistant":
                shown += [GENERATED_IMAGE_TOKEN] * self._answer_tokens(message).count(
                    self._vision.image_token_id
                )
            else:
                shown += images_of([message])
        return tuple(shown)

    def closing_tokens(self) -> tuple[int, ...]:
        """Return the tokens with which the template closes an answer.

        Raises:
            ConfigError: The template changes earlier answers, for example drops their thoughts.
        """
        return self._closing(self._tokenizer.chat_template)

    def _find_closing_tokens(self, _: str) -> tuple[int, ...]:
        chat = [dict(message) for message in _PROBE]
        begun = self.render(chat[:1]) + str(chat[1]["content"])
        closed = self.render(chat[:2], add_generation_prompt=False)
        if not closed.startswith(begun) or not self.render(chat).startswith(closed):
            raise _rewrites_answers()
        return self._encode(closed.removeprefix(begun))

    def _written_around(self, messages: Sequence[Message], num_answers: int) -> list[str]:
        """Return the template's text before, between and after the answers."""
        marked = [
            {**message, "content": _ANSWER} if message["role"] == "assistant" else message
            for message in self._plain(messages)
        ]
        rendered = self.render(marked)
        written = rendered.split(_ANSWER)
        last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
        stable = last < 0 or rendered.startswith(self.render(marked[:last]) + _ANSWER)
        if len(written) != num_answers + 1 or not stable:
            raise _rewrites_answers()
        return written

    def _plain(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return messages in the form that the template takes."""
        return [{**message, "content": self._content(message)} for message in messages]

    def _content(self, message: Message) -> Any:
        """Return a message's content, with special tokens of users and assistants escaped."""
        content = message["content"]
        if isinstance(content, str):
            return content if message["role"] == "system" else self.escape_special_tokens(content)
        return [
            {"type": "image"}
            if part["type"] == "image"
            else {"type": "text", "text": self.escape_special_tokens(part["text"])}
            for part in content
        ]

    def escape_special_tokens(self, text: str) -> str:
        """Return a text with its special tokens changed to plain words."""
        return self._special_tokens_pattern.sub(lambda mark: _MARKUP.sub(" ", mark[0]), text)

    def render(self, messages: Sequence[Any], *, add_generation_prompt: bool = True) -> str:
        """Return the template's text of a chat.

        Raises:
            ConfigError: The template refuses the chat, or does not come to an end.
        """
        try:
            with limited():
                text = self._tokenizer.apply_chat_template(
                    messages, tokenize=False, add_generation_prompt=add_generation_prompt
                )
        except TemplateTooSlow:
            raise ConfigError(
                f"the model's chat template takes longer than {LIMIT_S:g} s for a chat: it may "
                "loop without end; use another model or mend its chat template"
            ) from None
        except jinja2.TemplateError as e:
            raise ConfigError(f"the model's chat template refuses a chat: {e}") from e
        return str(text)

    def _around(self, text: str, images: Sequence[Image]) -> tuple[int, ...]:
        tokens = self._encode(text)
        return self._vision.expand(tokens, images) if self._vision else tokens

    def _answer_tokens(self, answer: Message) -> tuple[int, ...]:
        own = answer.get("token_ids", ())
        return own or self._encode(str(self._plain([answer])[0]["content"]))


def _special_tokens(tokenizer: Any) -> list[str]:
    added = tokenizer.added_tokens_decoder.values()
    return [str(token) for token in added if token.special]


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of the words, the longest first."""
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


def _shown_between(messages: Sequence[Message]) -> list[list[Image]]:
    """Return the images before, between and after the answers."""
    shown: list[list[Image]] = [[]]
    for message in messages:
        if message["role"] == "assistant":
            shown.append([])
        else:
            shown[-1] += images_of([message])
    return shown


def _already_closed(
    generated: Sequence[int], closing: Sequence[int], stop_ids: Collection[int]
) -> int:
    """Return the number of closing tokens that an answer already ends with."""
    if not generated or generated[-1] not in stop_ids or generated[-1] not in closing:
        return 0
    return list(closing).index(generated[-1]) + 1


def _rewrites_answers() -> ConfigError:
    return ConfigError(
        "the model's chat template does not keep earlier answers unchanged (some templates drop "
        "their thoughts), so it cannot encode a transcript: use agent.context = 'window', or a "
        "chat template that only adds to a chat"
    )
