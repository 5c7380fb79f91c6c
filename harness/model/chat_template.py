"""Encodes chats: the tokens of the chat template, and answers with their generated tokens."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from harness.model.chat_templates import probes
from harness.model.chat_templates.probes import ANSWER, PROBE, probe
from harness.model.chat_templates.rendering import ChatTemplate
from harness.model.chat_templates.special_tokens import SpecialTokens
from harness.model.vision import Vision
from harness.prompts import tool_formats
from harness.types.errors import ConfigError
from harness.types.messages import GENERATED_IMAGE_TOKEN, Image, Message, images_of, tools_of

_TOOL_MARK: Final = re.compile(r"</?tool_(?:call|response)>")
"""Tags around calls and results, which are no special tokens everywhere."""

_BRACKETS: Final = re.compile("[<>]")

_OPENING: Final = "<think>"
_CLOSING: Final = "</think>"

_CACHED_TEMPLATES: Final = 8
_CACHED_ANSWERS: Final = 4096


class _Frame(NamedTuple):
    """The text and tokens that a template puts around an answer."""

    # End of the text in front of the next answer, as far as earlier answers have another one, such
    # as an opened thought.
    prompt: str
    header: str  # the text there before an earlier answer, such as an empty thought
    closing: tuple[int, ...]  # tokens after the last answer of a chat


class ChatEncoder:
    """Encodes chats as tokens, up to the start of the next answer.

    An assistant's message may have the tokens of its answer (`token_ids`), which are used
    unchanged; a text without tokens is encoded. The chat template gives all other tokens. So a
    longer chat starts with exactly the prompt and response tokens of the chat before. This holds
    even if the answer's text would be encoded differently, the template would drop its thoughts, or
    the prompt had opened its thought. An answer `without_thoughts` is shown as the template shows
    earlier answers: behind its own header, with the generated tokens after the last thought.

    Texts of users' and tools' messages come from an environment: special tokens in them become
    plain words, so that no observation can end its message and answer for the model. Tags such as
    `<action>`, which prompts name, stay what they are. `encode` recognises special tokens. `vision`
    is None for a text model.
    """

    def __init__(
        self, tokenizer: Any, encode: Callable[[str], tuple[int, ...]], vision: Vision | None
    ) -> None:
        """Raise `ConfigError` if the template or a special token cannot be used."""
        self._tokenizer, self._encode, self._vision = tokenizer, encode, vision
        self.template = ChatTemplate(tokenizer)
        self.special_tokens = SpecialTokens(tokenizer, encode, [ANSWER])
        self._end_of = lru_cache(_CACHED_TEMPLATES)(self._find_end)
        self._frame_of = lru_cache(_CACHED_TEMPLATES)(self._find_frame)
        self._rest_of = lru_cache(_CACHED_ANSWERS)(self._tokens_after_thoughts)
        self._prefill_of = lru_cache(_CACHED_TEMPLATES)(self._find_prefill)

    def encode(self, messages: Sequence[Message], stop_ids: Collection[int]) -> tuple[int, ...]:
        """Return the tokens of a chat, up to the start of the assistant's next answer.

        An earlier answer that reached the token limit is closed with the template's closing tokens;
        one that ends with the template's stop token is not closed twice. After the first answer
        either users or tools alone speak to the assistant. Raises `ConfigError` if the template
        changes an earlier message or shows no tools, or the numbers of image tokens and images
        differ.
        """
        if messages and messages[0].get("as_rendered"):
            return self._around(self.render(self._plain(messages)), images_of(messages))
        answers = [message for message in messages if message["role"] == "assistant"]
        written = self._written_around(messages, len(answers))
        shown = _shown_between(messages)
        tokens = list(self._around(written[0], shown[0]))
        closing = self._frame(messages).closing if answers else ()
        for answer, text, images in zip(answers, written[1:], shown[1:], strict=True):
            generated = self._answer_tokens(answer)
            after = self._around(text, images)
            tokens += generated
            tokens += after[_already_closed(generated, closing, after, stop_ids) :]
        return tuple(tokens)

    def images(self, messages: Sequence[Message]) -> tuple[Image, ...]:
        """Return the image of each image token; generated tokens have `GENERATED_IMAGE_TOKEN`."""
        if self._vision is None:
            return ()
        if messages and messages[0].get("as_rendered"):
            return images_of(messages)
        shown: list[Image] = []
        for message in messages:
            if message["role"] == "assistant":
                shown += [GENERATED_IMAGE_TOKEN] * self._answer_tokens(message).count(
                    self._vision.image_token_id
                )
            else:
                shown += images_of([message])
        return tuple(shown)

    @property
    def prefill(self) -> str:
        """The text with which the generation prompt begins the answer, "" for most models.

        It opens a thought, or has an empty one.
        """
        return self._prefill_of(*self.template.key)

    def generated_text(self, answer: str) -> str:
        """Return an answer without the prefill; a thought that only the prefill has is closed."""
        prefill = self.prefill
        if answer.startswith(prefill):
            return answer.removeprefix(prefill)
        rest = answer.removeprefix("".join(prefill.split()))
        lacks = rest == answer and _CLOSING not in prefill
        return f"\n{_CLOSING}\n\n{answer}" if lacks else rest

    def _find_prefill(self, *_template: str) -> str:
        question = str(PROBE[0]["content"])
        _, _, prompt = self.render(PROBE[:1]).rpartition(question)
        _, opening, rest = prompt.partition(_OPENING)
        return opening + rest

    @property
    def tool_format(self) -> str | None:
        """The format in which the template asks for calls of tools; None if it is unknown."""
        return tool_formats.template_format(str(self._tokenizer.chat_template))

    @property
    def template_arguments(self) -> Mapping[str, Any]:
        """Further arguments of the chat template, such as `enable_thinking`."""
        return self.template.arguments

    @template_arguments.setter
    def template_arguments(self, given: Mapping[str, Any]) -> None:
        """Raise `ConfigError` for an argument that the template does not read."""
        self.template.arguments = given

    def end_of_answer(self, speaker: str = "user") -> int | None:
        """Return the token that follows an answer if `speaker` is next; see `probes.find_end`."""
        return self._end_of(*self.template.key, speaker)

    def _find_end(self, _template: str, _arguments: str, speaker: str) -> int | None:
        return probes.find_end(self.template, self.special_tokens, self._encode, speaker)

    def check_transcripts(self, tools: Sequence[dict[str, Any]] = ()) -> None:
        """Refuse a template that cannot encode a growing chat, with tools if there are any."""
        self.encode(probe("tool" if tools else "user", tools), ())

    def _frame(self, messages: Sequence[Message]) -> _Frame:
        speaker = "tool" if any(message["role"] == "tool" for message in messages) else "user"
        return self._frame_of(*self.template.key, speaker, json.dumps(tools_of(messages)))

    def _find_frame(self, _template: str, _arguments: str, speaker: str, tools: str) -> _Frame:
        chat = probe(speaker, json.loads(tools))
        prompt = self.render(chat[:1])
        around = self.render(chat).split(ANSWER)
        closed = self.render(chat[:2], add_generation_prompt=False).split(ANSWER)
        if len(around) != 2 or len(closed) != 2:
            raise _rewrites_messages()
        same = len(os.path.commonprefix([prompt, around[0]]))  # noqa: RUF071 - these are no paths
        if str(PROBE[0]["content"]) not in prompt[:same]:
            raise _rewrites_messages()
        return _Frame(prompt[same:], around[0][same:], self._encode(closed[1]))

    def _written_around(self, messages: Sequence[Message], num_answers: int) -> list[str]:
        """Return the text before, between and after answers, generation prompts included."""
        marked = [
            {**message, "content": ANSWER} if message["role"] == "assistant" else message
            for message in self._plain(messages)
        ]
        rendered = self.render(marked)
        written = rendered.split(ANSWER)
        if not all(tool["function"]["name"] in written[0] for tool in tools_of(messages)):
            raise ConfigError(
                "the model's chat template tells the model of no tools: use another agent.style"
            )
        if num_answers:
            frame = self._frame(messages)
            last = max(i for i, m in enumerate(messages) if m["role"] == "assistant")
            asked = self.render(marked[:last]).removesuffix(frame.prompt)
            kept = rendered.startswith(asked + frame.header + ANSWER)
            if len(written) != num_answers + 1 or not kept:
                raise _rewrites_messages()
            answers = [message for message in messages if message["role"] == "assistant"]
            for i, answer in enumerate(answers):
                if not answer.get("without_thoughts"):
                    written[i] = written[i].removesuffix(frame.header) + frame.prompt
        return written

    def _plain(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        return [{**message, "content": self._content(message)} for message in messages]

    def _content(self, message: Message) -> Any:
        """Return a message's content, with special tokens of users and assistants escaped."""
        content = message["content"]
        if isinstance(content, str):
            if message["role"] == "tool":
                content = _TOOL_MARK.sub(lambda mark: _BRACKETS.sub(" ", mark[0]), content)
            return content if message["role"] == "system" else self.escape_special_tokens(content)
        return [
            {"type": "image"}
            if part["type"] == "image"
            else {"type": "text", "text": self.escape_special_tokens(part["text"])}
            for part in content
        ]

    def escape_special_tokens(self, text: str) -> str:
        """Return a text with its special tokens changed to plain words; tags of answers stay."""
        return self.special_tokens.escape(text)

    def render(self, messages: Sequence[Any], *, add_generation_prompt: bool = True) -> str:
        """Return the template's text of a chat; see `ChatTemplate.render`."""
        return self.template.render(messages, add_generation_prompt=add_generation_prompt)

    def _around(self, text: str, images: Sequence[Image]) -> tuple[int, ...]:
        tokens = self._encode(text)
        return self._vision.expand(tokens, images) if self._vision else tokens

    def _answer_tokens(self, answer: Message) -> tuple[int, ...]:
        own = answer.get("token_ids", ())
        if answer.get("without_thoughts"):
            return self._rest_of(own, str(self._plain([answer])[0]["content"]))
        return own or self._encode(self.generated_text(str(self._plain([answer])[0]["content"])))

    def _tokens_after_thoughts(self, ids: tuple[int, ...], text: str) -> tuple[int, ...]:
        """Return the last of an answer's tokens, which are `text`; encode it if there are none."""
        begin = bisect_right(
            range(len(ids)), -len(text), key=lambda n: -len(self.special_tokens.decode(ids[n:]))
        )
        kept = ids[max(0, begin - 1) :]
        return kept if kept and self.special_tokens.decode(kept) == text else self._encode(text)


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
    generated: Sequence[int],
    closing: Sequence[int],
    after: Sequence[int],
    stop_ids: Collection[int],
) -> int:
    """Return the number of tokens after an answer that it already ends with."""
    if not generated or generated[-1] not in stop_ids:
        return 0
    for size, token in enumerate(closing, 1):
        if token == generated[-1] and (size == 1 or tuple(after[:size]) == tuple(closing[:size])):
            return size
    return int(after[:1] == (generated[-1],))  # some models stop at the next message's first token


def _rewrites_messages() -> ConfigError:
    return ConfigError(
        "the model's chat template does not keep earlier messages unchanged when a chat grows, so "
        "it cannot encode a transcript: use agent.context = 'window', or a chat template that only "
        "adds to a chat"
    )
