"""Extracts the nouns of product titles, by which WebShop's reward compares products."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib import import_module, resources
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol

from gymnasium.error import DependencyNotInstalled

from agentgyms.core.errors import BadOption, DataMissing

BUILTIN: Final = "builtin"
SPACY: Final = "spacy:"
VERSION: Final = 1
LEXICON: Final = "noun_lexicon.toml"
NOUN_TAGS: Final = frozenset({"NOUN", "PROPN", "PNOUN"})
"""The tags of the original; `PNOUN` is its misspelling, which no tagger returns."""

_CACHED_TITLES: Final = 4096
_PARTICIPLE_OR_ADVERB: Final = re.compile(r"(?:[^e]ed|ly)$")
_ADJECTIVE_OR_VERB: Final = re.compile(r"(?:[^e]ed|ly|able|ible|al|ful|ic|ing|ive|less|ous|proof)$")
_CODE: Final = re.compile(r"\d+[A-Z]{2,}[A-Z0-9]*")
_LETTER: Final = re.compile(r"[^\W\d_]")


class NounExtractor(Protocol):
    """Extracts the nouns of titles, deterministically."""

    name: str
    """Its name and version, a part of the environments' `data_version`."""

    def nouns(self, text: str) -> list[str]:
        """Return the nouns of a title in lower case, in its order, with repetitions."""


def open_extractor(name: str = BUILTIN) -> NounExtractor:
    """Return the extractor `builtin`, or `spacy:` and a model (the original's `en_core_web_sm`)."""
    if name == BUILTIN:
        return BuiltinNouns()
    if isinstance(name, str) and name.startswith(SPACY) and name != SPACY:
        return SpacyNouns(name.removeprefix(SPACY))
    raise BadOption(
        f"nouns {name!r} are unknown: expected {BUILTIN!r}, or {SPACY!r} and a model, such as "
        f"'{SPACY}en_core_web_sm'"
    )


class BuiltinNouns:
    """Finds nouns by capitals, endings and a small lexicon, the same on every machine.

    A capitalised word is a noun unless it is a function word or ends in -ly or -ed. A word in lower
    case must not be an adjective, or end like an adjective or a verb, either.
    """

    name = f"{BUILTIN}-{VERSION}"

    def __init__(self) -> None:
        self._lexicon = _lexicon()
        self._nouns = lru_cache(_CACHED_TITLES)(self._find)

    def nouns(self, text: str) -> list[str]:
        """Return the nouns of a title in lower case, in its order, with repetitions."""
        return list(self._nouns(text))

    def _find(self, text: str) -> tuple[str, ...]:
        words = words_of(text)
        return tuple(
            word.lower()
            for word, after in zip(words, [*words[1:], ""], strict=False)
            if self._is_noun(word, after.lower())
        )

    def _is_noun(self, word: str, after: str) -> bool:
        lower, lexicon = word.lower(), self._lexicon
        if not _LETTER.search(word) or lower in ("'s", "’s"):
            return False
        if lower in lexicon.function_words:
            return word != lower and lexicon.names.get(lower) == after
        if lower in lexicon.nouns:
            return True
        if word[0].isdigit():
            return _CODE.fullmatch(word) is not None
        if word != lower:
            return not _PARTICIPLE_OR_ADVERB.search(lower)
        return lower not in lexicon.adjectives and not _ADJECTIVE_OR_VERB.search(lower)


class SpacyNouns:
    """Returns the words that a spaCy model tags as nouns, as the original does."""

    def __init__(self, model: str) -> None:
        try:
            spacy: Any = import_module("spacy")
        except ModuleNotFoundError as e:
            raise DependencyNotInstalled(
                f"nouns '{SPACY}{model}' need spaCy, run: pip install spacy"
            ) from e
        try:
            self._pipeline = spacy.load(model)
        except OSError as e:
            raise DataMissing(
                f"spaCy has no model {model!r} ({e}); run: python -m spacy download {model}"
            ) from e
        about = self._pipeline.meta
        self.name = (
            f"{SPACY}{about['lang']}_{about['name']}-{about['version']}, spacy-{spacy.__version__}"
        )
        self._nouns = lru_cache(_CACHED_TITLES)(self._find)
        self._lock = Lock()

    def nouns(self, text: str) -> list[str]:
        """Return the nouns of a title in lower case, in its order, with repetitions."""
        return list(self._nouns(text))

    def _find(self, text: str) -> tuple[str, ...]:
        with self._lock:  # spaCy does not promise that a pipeline is thread-safe
            return tuple(
                word.text.lower() for word in self._pipeline(text) if word.pos_ in NOUN_TAGS
            )


class _Lexicon(NamedTuple):
    function_words: frozenset[str]
    adjectives: frozenset[str]
    nouns: frozenset[str]
    names: dict[str, str]


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    text = (
        resources.files("agentgyms.envs.webshop.goals")
        .joinpath(LEXICON)
        .read_text(encoding="utf-8")
    )
    table = tomllib.loads(text)
    return _Lexicon(
        _word_set(table["function_words"]),
        _word_set(table["adjectives"]),
        _word_set(table["nouns"]),
        table["names"],
    )


def _word_set(lines: list[str]) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


_PUNCTUATION: Final = r"[…,:;!?¿¡()\[\]{}<>_#*&。？！，、；：～·।،۔؛٪]"
_QUOTE: Final = r"'{1,2}|[\"`“”„‟‘’‚‛´«»「」『』（）〔〕【】《》〈〉]"
_SYMBOL: Final = r"[©®™°☆★●○■□◆◇♥♡✓✔✦✨❤⭐\U0001F000-\U0001FAFF]"
_CURRENCY: Final = r"[$£€¥฿₽₩₴₿]"
_UNIT: Final = (
    r"km[²³]?|m[²³]?|[dcm]m[²³]?|ha|[µn]m|yd|in|ft|kg|g|[mµ]g|t|lb|oz|m/s|km/h|mmh|mph|h?Pa|mbar"
    r"|[mkgt]b|[MKGT]B|[TGMK]|%"
)
_ANY_LETTER: Final = r"[^\W\d_]"

_PREFIX: Final = re.compile(
    rf"\.\.+|{_PUNCTUATION}|{_QUOTE}|{_SYMBOL}|{_CURRENCY}|[%=—–]|\+(?![0-9])"
)
_SUFFIX: Final = re.compile(
    rf"(?:\.\.+|{_PUNCTUATION}|['’][sS]|(?<=[A-Za-z])[nN]['’][tT]|{_QUOTE}|{_SYMBOL}|[—–]|(?<=[0-9])\+"
    rf"|(?<=[0-9])(?:{_CURRENCY}|{_UNIT})|(?<=[0-9a-zß-ÿ%²+\-)\]\"'”’,!?])\.|(?<=[A-Z]{{2}})\.)$"
)
_INFIX: Final = re.compile(
    rf"\.\.+|{_SYMBOL}|(?<=[0-9])[+\-*^](?=[0-9-])|(?<=[a-zß-ÿ])\.(?=[A-ZÀ-Þ])"
    rf"|(?<={_ANY_LETTER}),(?={_ANY_LETTER})|(?<=[^\W_])(?:-+|[–—~]+)(?={_ANY_LETTER})"
    rf"|(?<=[^\W_])[:<>=/](?={_ANY_LETTER})"
)
_ABBREVIATION: Final = re.compile(r"(?:Co|Corp|Dr|Inc|Jr|Ltd|Mr|Mrs|Ms|Sr|St|vs)\.")


def words_of(text: str) -> list[str]:
    """Return the tokens of a title: words, numbers and marks.

    Marks, `'s`, units and hyphens before letters are tokens: `T-Shirt` is three, `2022-23` is one.
    """
    return [word for chunk in text.split() for word in _words(chunk)]


def _words(chunk: str) -> list[str]:
    if chunk.isalpha():
        return [chunk]
    before, chunk, after = _split_affixes(chunk)
    # A chunk split at inner hyphens, slashes and the like, which are parts as well.
    parts, end = [], 0
    for found in _INFIX.finditer(chunk):
        parts += [chunk[end : found.start()], found[0]]
        end = found.end()
    parts.append(chunk[end:])
    return before + [part for part in parts if part] + after[::-1]


def _split_affixes(chunk: str) -> tuple[list[str], str, list[str]]:
    """Return the prefixes, the rest, and the suffixes, the last one first."""
    before: list[str] = []
    after: list[str] = []
    while chunk and not _ABBREVIATION.fullmatch(chunk):
        if found := _PREFIX.match(chunk):
            before.append(found[0])
            chunk = chunk[found.end() :]
        elif found := _SUFFIX.search(chunk):
            after.append(found[0])
            chunk = chunk[: found.start()]
        else:
            break
    return before, chunk, after
