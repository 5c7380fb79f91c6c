"""The tokenizer of a model with its chat template and stop tokens, without the model's weights."""

from __future__ import annotations

import hashlib
import json
import logging
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentgyms.core.errors import plain
from harness.model.chat_template import ChatEncoder
from harness.model.chat_templates import clock
from harness.model.chat_templates.rendering import ChatRefused
from harness.types.errors import ConfigError
from harness.types.messages import Message, tools_of

if TYPE_CHECKING:
    from harness.model.vision import Vision

_log = logging.getLogger(__name__)

_CACHED_TEXTS = 16384
_SAID: Final = "a mug"
_SHOWN: Final = 300
_SPEAKERS: Final = ("user", "tool")
"""Who speaks after an answer."""


class ChatTokenizer:
    """Encodes prompts and decodes answers alike for all backends; text models have no `vision`."""

    def __init__(
        self, tokenizer: Any, generation_config: Any, vision: Vision | None = None
    ) -> None:
        if tokenizer.chat_template is None:
            raise ConfigError("the tokenizer has no chat template: use an instruction-tuned model")
        if not hasattr(tokenizer, "backend_tokenizer"):
            raise ConfigError(
                f"the tokenizer is a {type(tokenizer).__name__}, which has no tokenizer.json: save "
                "it as a fast tokenizer of transformers, or use another model"
            )
        self._pure: Any = None
        self.tokenizer, self._generation_config = tokenizer, generation_config
        self._known = frozenset(tokenizer.get_vocab().values())
        # Prompts repeat.
        self._encode = lru_cache(_CACHED_TEXTS)(self._encode_uncached)
        self.chat_encoder = ChatEncoder(tokenizer, self.encode, vision)

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a response: the model's, and those by which the chat template ends it."""
        configured = self._generation_config.eos_token_id
        ids = configured if isinstance(configured, list) else [configured]
        ends = map(self.chat_encoder.end_of_answer, _SPEAKERS)
        return frozenset(i for i in [*ids, self.tokenizer.eos_token_id, *ends] if i is not None)

    @property
    def digest(self) -> str:
        """First 12 hex characters of the SHA-256 of vocabulary, template, arguments and date."""
        own, template = self.tokenizer, self.chat_encoder.template
        arguments = dict(template.arguments)
        if template.date is not None:
            arguments[clock.NAME] = template.date
        values = [own.get_vocab(), own.chat_template, arguments]
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def unknown_ids(self, size: int) -> tuple[int, ...]:
        """Return the ids below `size` that no token has; embeddings have more rows than tokens."""
        return tuple(i for i in range(size) if i not in self._known)

    def first_unknown(self, ids: Sequence[int]) -> int | None:
        """Return the first of some ids that no token has, None if all have one."""
        return next((i for i in ids if i not in self._known), None)

    def check_ends(self) -> None:
        """Check that the tokens which end a response are those that the chat template writes.

        A template that ends an answer with no token is logged. Raises `ConfigError` if no token
        ends a response, or the template's is not among them.
        """
        ends = self.stop_ids
        if not ends:
            raise ConfigError(
                "no token ends an answer: the model has no eos_token_id, and its chat template "
                "writes no special token after an answer; set eos_token in tokenizer_config.json"
            )
        names = map(str, self.tokenizer.convert_ids_to_tokens(sorted(ends)))
        named = plain(", ".join(names), _SHOWN)
        written = self._written_end()
        if written is not None and written not in ends:
            name = plain(str(self.tokenizer.convert_ids_to_tokens(written)), _SHOWN)
            raise ConfigError(
                f"the chat template ends an answer with {name}, and responses end at {named} alone"
            )
        if self.chat_encoder.end_of_answer() is None:
            _log.warning(
                "the model's chat template ends an answer with no special token: responses end at "
                "%s alone",
                named,
            )

    def _written_end(self) -> int | None:
        """Return the special token right after the answer in a chat as the template writes it."""
        chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _SAID}]
        try:
            text = self.chat_encoder.render(chat, add_generation_prompt=False)
            if text == self.chat_encoder.render(chat):
                return None  # the next answer may have begun
        except ChatRefused:  # it refuses chats with answers
            return None
        ids = self.encode(text.rpartition(_SAID)[2].lstrip())
        return ids[0] if ids and ids[0] in self.chat_encoder.special_tokens.ends else None

    def encode_chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the tokens of a chat, up to the next answer; see `ChatEncoder.encode`."""
        return self.chat_encoder.encode(messages, self.stop_ids)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text, special ones recognised, none added."""
        return self._encode(text)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where each token of a text begins and ends, in characters."""
        encoding = self.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
        return list(encoding.offsets)

    def _encode_uncached(self, text: str) -> tuple[int, ...]:
        return tuple(self._backend().encode(text, add_special_tokens=False).ids)

    def _backend(self) -> Any:
        """Return the tokenizer's backend, or a copy without truncation, padding and dropout.

        `tokenizer.json` may cut or pad each text, and drop merges at random; each call of the
        tokenizer itself may set that anew. The tokenizer stays unchanged, and is saved so.
        """
        given = self.tokenizer.backend_tokenizer
        if not (
            given.truncation
            or given.padding
            or given.encode_special_tokens
            or getattr(given.model, "dropout", None)
        ):
            return given
        if self._pure is None:
            self._pure = _pure(given)
        return self._pure

    def encode_answer(self, answer: str) -> tuple[int, ...]:
        """Return the tokens that a model generates if its answer is this text, without its end."""
        return self.encode(self.chat_encoder.generated_text(answer))

    def encode_response(self, answer: str, messages: Sequence[Message] = ()) -> tuple[int, ...]:
        """Return the tokens to learn for an answer to `messages`, with the one that ends it."""
        end = self.chat_encoder.end_of_answer("tool" if tools_of(messages) else "user")
        if end is None:
            end = self.tokenizer.eos_token_id
        return (*self.encode_answer(answer), min(self.stop_ids) if end is None else int(end))

    def decode_answer(self, ids: Sequence[int]) -> str:
        """Return the text of an answer, with the beginning that the generation prompt has."""
        return self.chat_encoder.prefill + self.decode(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without special ones that are no tags of answers."""
        return self.chat_encoder.special_tokens.decode(ids)


def _pure(backend: Any) -> Any:
    """Return a copy that encodes texts whole, as they are, each time alike."""
    values = json.loads(backend.to_str()) | {"truncation": None, "padding": None}
    if values["model"].get("dropout"):
        values["model"]["dropout"] = None
    return type(backend).from_str(json.dumps(values))


_OPENING: Final = "<think>"
_CLOSING: Final = "</think>"

CLOSING_TEXT: Final = f"\n{_CLOSING}\n\n"
"""The texts that chat templates write between a thought and the rest of an answer."""


class Thought(NamedTuple):
    """The first thought of an answer."""

    # Index of its first token, in the generated ones: of the opening tag where the model writes it,
    # 0 where the prompt has opened the thought.
    begin: int
    end: int  # index after its last token, the closing tag excluded
    closed: bool


def find_thought(chat_tokenizer: ChatTokenizer, ids: Sequence[int]) -> Thought | None:
    """Return the first thought of an answer, None without one.

    A thought that the prompt opens and closes is an empty one. `ids` are all generated tokens.
    """
    text, before = chat_tokenizer.decode_answer(ids), len(chat_tokenizer.chat_encoder.prefill)
    start = text.find(_OPENING)
    if start < 0:
        return None
    begin = _tokens_before(chat_tokenizer, ids, start - before)
    stop = text.find(_CLOSING, start)
    end = _tokens_before(chat_tokenizer, ids, stop - before) if stop >= 0 else len(ids)
    return Thought(begin, end, stop >= 0)


def _tokens_before(chat_tokenizer: ChatTokenizer, ids: Sequence[int], position: int) -> int:
    """Return the number of tokens that end at or before a position of their text."""
    if position <= 0:
        return 0
    counts = range(len(ids) + 1)
    return bisect_right(counts, position, key=lambda n: len(chat_tokenizer.decode(ids[:n]))) - 1


class ThoughtLimit:
    """The largest number of tokens of an answer's first thought; None sets no limit."""

    def __init__(self, chat_tokenizer: ChatTokenizer, most: int | None) -> None:
        self._chat_tokenizer, self._most = chat_tokenizer, most
        self.closing = () if most is None else chat_tokenizer.encode(CLOSING_TEXT)

    def room(self, ids: Sequence[int]) -> int | None:
        """Return the number of tokens that may follow before the next check of the thought.

        0 closes the thought now; None means that no later thought can be the first one, or no
        limit.
        """
        if self._most is None:
            return None
        thought = find_thought(self._chat_tokenizer, ids)
        if thought is None:  # the last tokens may be the begin of an opening tag
            text = self._chat_tokenizer.decode(ids)
            partial = next((n for n in range(6, 0, -1) if text.endswith(_OPENING[:n])), 0)
            begun = len(ids) - _tokens_before(self._chat_tokenizer, ids, len(text) - partial)
            return max(1, self._most - (begun if partial else 0))
        return None if thought.closed else max(0, self._most - (len(ids) - thought.begin))
