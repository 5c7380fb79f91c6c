"""Parsers from a model's text to an action string, one for each answer format.

A text without an action gives "": the environment gets it like any action and returns its feedback.
Whether the answer was cut off is in its completion. An answer may break the required format and
still contain an action: the action is used, and the turn counts as invalid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from harness.prompts import code_blocks
from harness.types.errors import ConfigError
from harness.types.hyperparameters import Registry

_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_UNOPENED_THOUGHT = re.compile(r"^.*</think>", re.DOTALL | re.IGNORECASE)
_SPACED_NUMBER = re.compile(r"(?<=[a-z]) (?=\d)")
_JOINED_NUMBER = re.compile(r"(?<=[a-z])(?=\d)")
_SOKOBAN_WORDS: Final = ("up", "down", "left", "right", "still")
_SEARCH_KINDS: Final = ("search", "answer")
_SEARCH_ACTION = re.compile(r"(search|answer)\[(.*)\]", re.DOTALL)
_WEBSHOP_TAIL: Final = 20
_ALFWORLD_TAIL: Final = 30
_CHINESE = re.compile("[\u4e00-\u9fff]")
_PLACEHOLDER = re.compile(r"(?<=\[)<\w+>(?=\]$)|(?<=: )<\w+>$")
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Parsed(NamedTuple):
    """The result of parsing a model's text.

    Attributes:
        action: The action for the environment; "" if there is none.
        valid: The answer has the required format. Otherwise credit counts the turn as invalid,
            whatever the environment's feedback.
    """

    action: str
    valid: bool = True


def parse_plain(text: str) -> Parsed:
    """Return the text after a leading thought as the action; every text is a valid answer."""
    return Parsed(_after_leading_thought(text))


def _after_leading_thought(text: str) -> str:
    """Return a text without the `<think>` element that it begins with; "" if that is not closed."""
    stripped = text.strip()
    if not stripped.startswith("<think>"):
        return stripped
    return stripped.partition("</think>")[2].strip()


def parse_tagged(text: str) -> Parsed:
    """Return the content of the first `<action>` element outside thoughts.

    Valid if there is one, and a closed `<think>` element: the prompt requires both.
    """
    found = _element_content("action", _THOUGHT.sub("", text))
    if found is None:
        return Parsed("", valid=False)
    return Parsed(found.strip(), valid=_element_content("think", text) is not None)


def _element_content(name: str, text: str) -> str | None:
    """Return the content of the first closed element of a name, in any case; None without one.

    A single regular expression would search for the end after every opening tag: this takes minutes
    for an answer that repeats `<action>`.
    """
    opening = re.search(f"<{name}>", text, re.IGNORECASE)
    if opening is None:
        return None
    closing = re.compile(f"</{name}>", re.IGNORECASE).search(text, opening.end())
    return text[opening.end() : closing.start()] if closing else None


def outside_thoughts(text: str) -> str:
    """Return a text without its thoughts.

    A thought is a `<think>` element, all text after an unclosed `<think>`, and all text before an
    unopened `</think>`: some chat templates open the first thought in the prompt.
    """
    return _UNOPENED_THOUGHT.sub("", _THOUGHT.sub("", text))


def parse_action(text: str) -> Parsed:
    """Return the content of the first `<action>` element outside thoughts.

    Valid if there is one; a thought is not required. Without the closing tag there is no action,
    even at the end of a truncated answer: the beginning of a command can be another command, as
    `go to shelf 1` is of `go to shelf 12`.
    """
    found = _element_content("action", outside_thoughts(text))
    return Parsed("", valid=False) if found is None else Parsed(found.strip())


@lru_cache(maxsize=8192)
def join_names(text: str) -> str:
    """Return a text without the space between names and numbers, `mug1` for `mug 1`."""
    return _SPACED_NUMBER.sub("", text)


def parse_joined(text: str) -> Parsed:
    """Return the text as the action, with a space between names and numbers; always valid."""
    return Parsed(_JOINED_NUMBER.sub(" ", _after_leading_thought(text)))


def parse_sokoban(text: str) -> Parsed:
    """Return the word of a move, as verl-agent's `sokoban_projection` parses it.

    The text between the first `<action>` and the first `</action>`, in any case, is searched for
    `up`, `down`, `left`, `right` and `still`, in this order and within words too: "left then up"
    and "cupboard" are `up`. Without a word the answer is invalid and there is no action. An answer
    without both `<think>` and `</think>`, in lower case, is invalid but its action is used.
    """
    word = _sokoban_move(text)
    return _after_thought(text, Parsed(word, valid=bool(word)))


def parse_sokoban_action(text: str) -> Parsed:
    """Return the word of a move, found as `parse_sokoban` does; valid if there is one."""
    word = _sokoban_move(outside_thoughts(text))
    return Parsed(word, valid=bool(word))


def _sokoban_move(text: str) -> str:
    lowered = text.lower()
    start, end = lowered.find("<action>"), lowered.find("</action>")
    if start < 0 or end < 0:
        return ""
    inside = lowered[start + len("<action>") : end]
    return next((word for word in _SOKOBAN_WORDS if word in inside), "")


def parse_search(text: str) -> Parsed:
    """Return `search[...]` or `answer[...]`, as verl-agent's `search_projection` parses it.

    The text is cut after its first `</search>`, or without one after its first `</answer>`. The
    first `<search>` element before the cut is the action, else the first `<answer>` element, in any
    case. The answer is invalid if there is none, or if the text opens both kinds or one twice.
    """
    closing = next((tag for tag in ("</search>", "</answer>") if tag in text), "")
    read = text[: text.index(closing) + len(closing)] if closing else text
    opened = [len(re.findall(f"<{kind}>", text, re.IGNORECASE)) for kind in _SEARCH_KINDS]
    for kind in _SEARCH_KINDS:
        content = _element_content(kind, read)
        if content is not None:
            return Parsed(f"{kind}[{content.strip()}]", valid=sum(opened) == 1)
    return Parsed("", valid=False)


def write_search(action: str) -> str:
    """Return the `<search>` or `<answer>` element of `search[...]` or `answer[...]`.

    Raises:
        ConfigError: The action is neither.
    """
    found = _SEARCH_ACTION.fullmatch(action)
    if found is None:
        raise ConfigError(
            f"the parser search_tags cannot write the action {action!r}: expected search[...] or "
            "answer[...]"
        )
    kind, content = found.groups()
    return f"<{kind}>{content}</{kind}>"


def parse_webshop(text: str) -> Parsed:
    """Return the action in lower case, as verl-agent's `webshop_projection` parses it.

    It is the text between the first `<action>` and the first `</action>`, in any case; if a tag is
    missing, it is the last 20 characters, and the answer is invalid. An answer without both
    `<think>` and `</think>`, in lower case, or with a Chinese character is invalid, too.
    """
    return _after_thought(text, _lowered_action(text, _WEBSHOP_TAIL))


def parse_webshop_action(text: str) -> Parsed:
    """Return the action in lower case, as `parse_webshop` does; a thought is not required."""
    return _lowered_action(outside_thoughts(text), _WEBSHOP_TAIL)


def parse_alfworld(text: str) -> Parsed:
    """Return the action in lower case, as verl-agent's `alfworld_projection` parses it.

    It is the action of `parse_webshop`, but for 30 characters instead of 20 if a tag is missing.
    """
    return _after_thought(text, _lowered_action(text, _ALFWORLD_TAIL))


def _lowered_action(text: str, tail: int) -> Parsed:
    lowered = text.lower()
    start, end = lowered.find("<action>"), lowered.find("</action>")
    if start < 0 or end < 0:
        return Parsed(lowered[-tail:], valid=False)
    action = lowered[start + len("<action>") : end].strip()
    return Parsed(action, valid=not _CHINESE.search(text))


def _after_thought(text: str, parsed: Parsed) -> Parsed:
    thinks = "<think>" in text and "</think>" in text
    return Parsed(parsed.action, parsed.valid and thinks)


def parse_code(text: str) -> Parsed:
    """Return the code of the first block outside thoughts; see `code_blocks`.

    Valid if there is one, and a closed `<think>` element: the prompt requires both.
    """
    action, valid = parse_code_alone(text)
    return Parsed(action, valid=valid and _element_content("think", text) is not None)


def parse_code_alone(text: str) -> Parsed:
    """Return the code of the first block outside thoughts; a thought is not required.

    An unclosed or empty block gives no action.
    """
    code = code_blocks.first_block(outside_thoughts(text))
    return Parsed(code or "", valid=bool(code))


def write_code(action: str) -> str:
    """Return the `<code>` element of an action after an empty thought.

    Raises:
        ConfigError: It would not parse to itself: blank, or with tags of a block inside.
    """
    answer = "<think></think>" + code_blocks.element(action)
    if parse_code(answer) != Parsed(action):
        raise _unwritable("code_tags", action)
    return answer


def write_code_alone(action: str) -> str:
    """Return the `<code>` element of an action; see `write_code`."""
    answer = code_blocks.element(action)
    if parse_code_alone(answer) != Parsed(action):
        raise _unwritable("code_action_tags", action)
    return answer


def _unwritable(parser: str, action: str) -> ConfigError:
    return ConfigError(
        f"the parser {parser} cannot write the action {action!r}: expected code without blank "
        "lines at its ends and without </code>, <think> and </think> in it"
    )


def choices(actions: Sequence[str], goal: str) -> list[str]:
    """Return the actions to choose from by letter: the admissible ones, without placeholders.

    The goal replaces a placeholder, as in `search[<query>]` or `speak: <words>`.
    """
    return [_PLACEHOLDER.sub(lambda _: goal, one) if "<" in one else one for one in actions]


def letter(index: int) -> str:
    """Return the letters of a choice: A to Z, then AA, AB..., as a spreadsheet's columns."""
    name = ""
    while index >= 0:
        index, digit = divmod(index, len(_LETTERS))
        name, index = _LETTERS[digit] + name, index - 1
    return name


def parse_letter(text: str, offered: Sequence[str]) -> Parsed:
    """Return the offered action of a letter; any other text is invalid and no action."""
    name = _after_leading_thought(text)
    named = {letter(i): action for i, action in enumerate(offered)}
    return Parsed(named[name]) if name in named else Parsed("", valid=False)


def write_letter(action: str, offered: Sequence[str]) -> str:
    """Return the letter of an offered action.

    An action that is not offered counts as the only offered one of its kind, the word before the
    bracket: any `search[...]` is the offered search.

    Raises:
        ConfigError: It is not offered, and none or several offered actions are of its kind.
    """
    same = [i for i, other in enumerate(offered) if other.casefold() == action.casefold()]
    kind = action.partition("[")[0].casefold()
    same_kind = [i for i, other in enumerate(offered) if other.partition("[")[0].casefold() == kind]
    if same or len(same_kind) == 1:
        return letter((same or same_kind)[0])
    raise ConfigError(
        f"the parser lettered cannot write the action {action!r}: expected one of "
        f"{', '.join(offered)}"
    )


@dataclass(frozen=True, slots=True)
class Parser:
    """An answer format: how to parse an action from a text, and how to write one.

    Attributes:
        parser: Returns the action in a text, and whether the text has the format.
        writer: Returns the shortest valid text that parses to an action.
        lettered: The answer is the letter of a choice; both functions get the choices, too.
    """

    parser: Callable[..., Parsed]
    writer: Callable[..., str]
    lettered: bool = False

    def parse(self, text: str, offered: Sequence[str] = ()) -> Parsed:
        """Return the action in a text; `offered` are the choices of the prompt."""
        return self.parser(text, offered) if self.lettered else self.parser(text)

    def write(self, action: str, offered: Sequence[str] = ()) -> str:
        """Return the text of an action; `offered` are the choices of the prompt."""
        return self.writer(action, offered) if self.lettered else self.writer(action)


_in_tags: Final = "<think></think><action>{}</action>".format
_in_action: Final = "<action>{}</action>".format

PARSERS: Final = {
    "plain": Parser(parse_plain, str),
    "joined": Parser(parse_joined, join_names),
    "tagged": Parser(parse_tagged, _in_tags),
    "action_tags": Parser(parse_action, _in_action),
    "sokoban_tags": Parser(parse_sokoban, _in_tags),
    "sokoban_action_tags": Parser(parse_sokoban_action, _in_action),
    "search_tags": Parser(parse_search, write_search),
    "webshop_tags": Parser(parse_webshop, _in_tags),
    "webshop_action_tags": Parser(parse_webshop_action, _in_action),
    "alfworld_tags": Parser(parse_alfworld, _in_tags),
    "code_tags": Parser(parse_code, write_code),
    "code_action_tags": Parser(parse_code_alone, write_code_alone),
    "lettered": Parser(parse_letter, write_letter, lettered=True),
}

_PARSERS: Final = Registry("parser", entries=PARSERS)


def get(name: str) -> Parser:
    """Return a parser by name.

    Raises:
        ConfigError: No parser has this name.
    """
    return _PARSERS.get(name)
