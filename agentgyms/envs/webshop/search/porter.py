"""The stems of English words, by Porter's algorithm."""

from __future__ import annotations

from typing import Final

_STEP_2: Final = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate",
    "ator": "ate", "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous",
    "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3: Final = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4: Final = dict.fromkeys((
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
), "")  # fmt: skip

_LAST_LETTERS: Final = frozenset("cdegilmnrstuy")  # of all endings that a step removes
_MAX_ENDING: Final = 7


def stem(word: str) -> str:
    """Return the stem of a word in lower case; all characters but `aeiouy` are consonants.

    Porter 1980, "An algorithm for suffix stripping", with the author's later changes (`bli` becomes
    `ble`, `logi` becomes `log`, words of one or two letters stay), as in Lucene's `PorterStemmer`.
    """
    if word[-1:] not in _LAST_LETTERS or (len(word) < 3 and word[:1] <= "\uffff"):
        return word
    word = _step_1b(_step_1a(word))
    if word[-1] == "y" and "v" in _shape(word[:-1]):
        word = f"{word[:-1]}i"
    word = _replace(word, _STEP_2, min_measure=1)
    word = _replace(word, _STEP_3, min_measure=1)
    word = _replace(word, _STEP_4, min_measure=2)
    return _step_5(word)


class _LetterKinds(dict[int, str]):
    """Maps vowels to v, y to itself and every other character to c."""

    def __missing__(self, character: int) -> str:
        return "c"


_KINDS: Final = _LetterKinds({**{ord(vowel): "v" for vowel in "aeiou"}, ord("y"): "y"})


def _shape(word: str) -> str:
    """Return a c for each consonant and a v for each vowel; a y after a consonant is a vowel."""
    shape = word.translate(_KINDS)
    at = shape.find("y")
    while at >= 0:
        shape = f"{shape[:at]}{'v' if at and shape[at - 1] == 'c' else 'c'}{shape[at + 1 :]}"
        at = shape.find("y", at)
    return shape


def _measure(word: str) -> int:
    """Return m of Porter's [C](VC){m}[V]."""
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    """Return whether the word ends in consonant, vowel, consonant, the last one not w, x or y."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _ends_double(word: str) -> bool:
    return word[-1:] == word[-2:-1] and _shape(word)[-1:] == "c"


def _step_1a(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word[-1] == "s" and word[-2] != "s" else word


def _step_1b(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    if word.endswith("ed"):
        rest = word[:-2]
    elif word.endswith("ing"):
        rest = word[:-3]
    else:
        return word
    if "v" not in _shape(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return f"{rest}e"
    if _ends_double(rest):
        return rest if rest[-1] in "lsz" else rest[:-1]
    return f"{rest}e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _replace(word: str, endings: dict[str, str], *, min_measure: int) -> str:
    """Replace the longest matching ending if the rest has at least this measure."""
    for length in range(min(_MAX_ENDING, len(word)), 1, -1):
        ending = word[-length:]
        rest = word[:-length]
        if ending in endings and (ending != "ion" or rest[-1:] in ("s", "t")):
            return f"{rest}{endings[ending]}" if _measure(rest) >= min_measure else word
    return word


def _step_5(word: str) -> str:
    if word[-1] == "e":
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            word = word[:-1]
    if word[-1:] == "l" and _ends_double(word) and _measure(word) > 1:
        word = word[:-1]
    return word
