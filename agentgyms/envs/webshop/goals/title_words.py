"""A tokenizer for product titles that follows spaCy's English rules."""

from __future__ import annotations

import re
from typing import Final

_PUNCTUATION: Final = r"[…,:;!?¿¡()\[\]{}<>_#*&。？！，、；：～·।،۔؛٪]"
_QUOTE: Final = r"'{1,2}|[\"`“”„‟‘’‚‛´«»「」『』（）〔〕【】《》〈〉]"
_SYMBOL: Final = r"[©®™°☆★●○■□◆◇♥♡✓✔✦✨❤⭐\U0001F000-\U0001FAFF]"
_CURRENCY: Final = r"[$£€¥฿₽₩₴₿]"
_UNIT: Final = (
    r"km[²³]?|m[²³]?|[dcm]m[²³]?|ha|[µn]m|yd|in|ft|kg|g|[mµ]g|t|lb|oz|m/s|km/h|mmh|mph|h?Pa|mbar"
    r"|[mkgt]b|[MKGT]B|[TGMK]|%"
)
_LETTER: Final = r"[^\W\d_]"

_PREFIX: Final = re.compile(
    rf"\.\.+|{_PUNCTUATION}|{_QUOTE}|{_SYMBOL}|{_CURRENCY}|[%=—–]|\+(?![0-9])"
)
_SUFFIX: Final = re.compile(
    rf"(?:\.\.+|{_PUNCTUATION}|['’][sS]|(?<=[A-Za-z])[nN]['’][tT]|{_QUOTE}|{_SYMBOL}|[—–]|(?<=[0-9])\+"
    rf"|(?<=[0-9])(?:{_CURRENCY}|{_UNIT})|(?<=[0-9a-zß-ÿ%²+\-)\]\"'”’,!?])\.|(?<=[A-Z]{{2}})\.)$"
)
_INFIX: Final = re.compile(
    rf"\.\.+|{_SYMBOL}|(?<=[0-9])[+\-*^](?=[0-9-])|(?<=[a-zß-ÿ])\.(?=[A-ZÀ-Þ])"
    rf"|(?<={_LETTER}),(?={_LETTER})|(?<=[^\W_])(?:-+|[–—~]+)(?={_LETTER})"
    rf"|(?<=[^\W_])[:<>=/](?={_LETTER})"
)
_ABBREVIATION: Final = re.compile(r"(?:Co|Corp|Dr|Inc|Jr|Ltd|Mr|Mrs|Ms|Sr|St|vs)\.")


def words_of(text: str) -> list[str]:
    """Return the tokens of a title: words, numbers and marks.

    Tokens end at blanks; marks and `'s` at the ends, units after numbers, and hyphens and slashes
    before letters are tokens of their own: `T-Shirt` is three, `4K` is two, `2022-23` is one.
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
