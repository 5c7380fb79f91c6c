"""Model text to action string, one parser for each way a prompt asks for the answer.

A text without an action gives "": the environment is told in every case and answers with its
feedback, and whether the model was cut off is in its completion. An answer may break the format it
was asked for and still hold an action: that is taken, and the turn counts as invalid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from harness import code_blocks
from harness.errors import ConfigError

_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL | re.IGNORECASE)
_UNOPENED_THOUGHT = re.compile(r"^.*</think>", re.DOTALL | re.IGNORECASE)
_APART = re.compile(r"(?<=[a-z]) (?=\d)")
_JOINED = re.compile(r"(?<=[a-z])(?=\d)")
_SOKOBAN_WORDS: Final = ("up", "down", "left", "right", "still")
_SEARCH_KINDS: Final = ("search", "answer")
_SEARCH_ACTION = re.compile(r"(search|answer)\[(.*)\]", re.DOTALL)
_CHINESE = re.compile("[\u4e00-\u9fff]")
_OPEN = re.compile(r"(?<=\[)<\w+>(?=\]$)|(?<=: )<\w+>$")
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Parsed(NamedTuple):
    """What a model's text comes to.

    Attributes:
        action: For the environment; "" if there is none.
        valid: The answer keeps the format asked for. Credit takes a turn without it for invalid,
            whatever the environment made of the action.
    """

    action: str
    valid: bool = True


def parse_plain(text: str) -> Parsed:
    """Return the whole text as the action; every text is a valid answer."""
    return Parsed(text.strip())


def parse_tagged(text: str) -> Parsed:
    """Return what stands in the first `<action>` element that is no part of a thought.

    Valid if there is one, and a whole `<think>` element: the prompt asks for both.
    """
    found = _inside("action", _THOUGHT.sub("", text))
    if found is None:
        return Parsed("", valid=False)
    return Parsed(found.strip(), valid=_inside("think", text) is not None)


def _inside(name: str, text: str) -> str | None:
    """Return what stands in the first whole element of a name, in any case; None if there is none.

    An expression for the element would look for its end behind every beginning: minutes for an
    answer that says `<action>` over and over.
    """
    opening = re.search(f"<{name}>", text, re.IGNORECASE)
    if opening is None:
        return None
    closing = re.compile(f"</{name}>", re.IGNORECASE).search(text, opening.end())
    return text[opening.end() : closing.start()] if closing else None


def outside_thoughts(text: str) -> str:
    """Return a text without its thoughts.

    A thought is a `<think>` element, all that follows a `<think>` that nothing closes, and all that
    precedes a `</think>` that nothing opens: some models are prompted into their first thought.
    """
    return _UNOPENED_THOUGHT.sub("", _THOUGHT.sub("", text))


def parse_action(text: str) -> Parsed:
    """Return what stands in the first `<action>` element that is no part of a thought.

    Valid if there is one, whatever stands around it; nobody asked for a thought. Without the
    closing tag there is no action, even at the end of an answer that was cut off: the beginning of
    a command can be another command, as `go to shelf 1` is of `go to shelf 12`.
    """
    found = _inside("action", outside_thoughts(text))
    return Parsed("", valid=False) if found is None else Parsed(found.strip())


@lru_cache(maxsize=8192)
def join_names(text: str) -> str:
    """Return a text with names and their numbers joined, `mug 1` to `mug1`: fewer tokens."""
    return _APART.sub("", text)


def parse_joined(text: str) -> Parsed:
    """Return the whole text as the action, names and numbers parted again; always valid."""
    return Parsed(_JOINED.sub(" ", text).strip())


def parse_sokoban(text: str) -> Parsed:
    """Return the word of a move, read as verl-agent's `sokoban_projection` does.

    What stands between the first `<action>` and the first `</action>`, in any case, is searched for
    `up`, `down`, `left`, `right` and `still`, in this order and within words too: "left then up"
    and "cupboard" are `up`. Without a word the answer is invalid and there is no action. An answer
    without both `<think>` and `</think>`, in small letters, is invalid but its action is taken.
    """
    word = _move(text)
    return Parsed(word, valid=bool(word) and "<think>" in text and "</think>" in text)


def parse_sokoban_action(text: str) -> Parsed:
    """Return the word of a move, found as `parse_sokoban` does; valid if there is one."""
    word = _move(outside_thoughts(text))
    return Parsed(word, valid=bool(word))


def _move(text: str) -> str:
    lowered = text.lower()
    start, end = lowered.find("<action>"), lowered.find("</action>")
    if start < 0 or end < 0:
        return ""
    inside = lowered[start + len("<action>") : end]
    return next((word for word in _SOKOBAN_WORDS if word in inside), "")


def parse_search(text: str) -> Parsed:
    """Return `search[...]` or `answer[...]`, read as verl-agent's `search_projection` does.

    The text ends at its first `</search>`, or without one at its first `</answer>`. In what is left
    the first `<search>` element is the action, else the first `<answer>` element, in any case. The
    answer is invalid if there is none, or if the whole text opens both kinds or one of them twice.
    """
    closing = next((tag for tag in ("</search>", "</answer>") if tag in text), "")
    read = text[: text.index(closing) + len(closing)] if closing else text
    opened = [len(re.findall(f"<{kind}>", text, re.IGNORECASE)) for kind in _SEARCH_KINDS]
    for kind in _SEARCH_KINDS:
        content = _inside(kind, read)
        if content is not None:
            return Parsed(f"{kind}[{content.strip()}]", valid=sum(opened) == 1)
    return Parsed("", valid=False)


def write_search(action: str) -> str:
    """Return the element that says `search[...]` or `answer[...]`.

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
    """Return the action in small letters, read as verl-agent's `webshop_projection` does.

    It is what stands between the first `<action>` and the first `</action>`, in any case; where one
    of them is missing, the last 20 characters, and the answer is invalid. So is an answer without
    both `<think>` and `</think>`, in small letters, and one with a Chinese character.
    """
    action, valid = _purchase(text)
    return Parsed(action, valid=valid and "<think>" in text and "</think>" in text)


def parse_webshop_action(text: str) -> Parsed:
    """Return the action in small letters, read as `parse_webshop` does, with no thought needed."""
    return _purchase(outside_thoughts(text))


def _purchase(text: str) -> Parsed:
    lowered = text.lower()
    start, end = lowered.find("<action>"), lowered.find("</action>")
    if start < 0 or end < 0:
        return Parsed(lowered[-20:], valid=False)
    action = lowered[start + len("<action>") : end].strip()
    return Parsed(action, valid=not _CHINESE.search(text))


def parse_code(text: str) -> Parsed:
    """Return the code of the first block that is no part of a thought; see `code_blocks`.

    Valid if there is one, and a whole `<think>` element: the prompt asks for both.
    """
    action, valid = parse_code_alone(text)
    return Parsed(action, valid=valid and _inside("think", text) is not None)


def parse_code_alone(text: str) -> Parsed:
    """Return the code of the first block that is no part of a thought, with no thought needed.

    Without a whole block there is no action, nor with an empty one.
    """
    code = code_blocks.first_block(outside_thoughts(text))
    return Parsed(code or "", valid=bool(code))


def write_code(action: str) -> str:
    """Return the `<code>` element of an action after an empty thought.

    Raises:
        ConfigError: It would not be read as it is: blank, or with marks of a block inside.
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
    """Return the actions to choose from by letter: those that work, with nothing left open.

    An action that leaves a text open, such as `search[<query>]` or `speak: <words>`, gets the goal
    for it.
    """
    return [_OPEN.sub(lambda _: goal, one) if "<" in one else one for one in actions]


def letter(index: int) -> str:
    """Return the name of a choice: A to Z, then AA, AB and on, as a spreadsheet's columns."""
    name = ""
    while index >= 0:
        index, digit = divmod(index, len(_LETTERS))
        name, index = _LETTERS[digit] + name, index - 1
    return name


def parse_letter(text: str, offered: Sequence[str]) -> Parsed:
    """Return the action among those offered that a text names by its letter.

    Other text is invalid and no action.
    """
    name = text.strip()
    named = {letter(i): action for i, action in enumerate(offered)}
    return Parsed(named[name]) if name in named else Parsed("", valid=False)


def write_letter(action: str, offered: Sequence[str]) -> str:
    """Return the letter of an action among those offered.

    One that is not among them is the only one offered of its kind, the word before the bracket:
    any `search[...]` is the search that is offered.

    Raises:
        ConfigError: It is not among them, and none or several are of its kind.
    """
    same = [i for i, other in enumerate(offered) if other.casefold() == action.casefold()]
    kind = action.partition("[")[0].casefold()
    alike = [i for i, other in enumerate(offered) if other.partition("[")[0].casefold() == kind]
    if same or len(alike) == 1:
        return letter((same or alike)[0])
    raise ConfigError(
        f"the parser lettered cannot write the action {action!r}: expected one of "
        f"{', '.join(offered)}"
    )


@dataclass(frozen=True, slots=True)
class Parser:
    """A way to ask for an answer.

    Attributes:
        read: The action in a text, and whether the text keeps the format.
        say: The shortest valid text that parses to an action.
        lettered: The answer is the letter of a choice; `read` and `say` get the choices too.
    """

    read: Callable[..., Parsed]
    say: Callable[..., str]
    lettered: bool = False

    def parse(self, text: str, offered: Sequence[str] = ()) -> Parsed:
        """Return the action in a text; `offered` are the choices that the prompt showed."""
        return self.read(text, offered) if self.lettered else self.read(text)

    def write(self, action: str, offered: Sequence[str] = ()) -> str:
        """Return the text that says an action, where the prompt showed the choices `offered`."""
        return self.say(action, offered) if self.lettered else self.say(action)


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
    "code_tags": Parser(parse_code, write_code),
    "code_action_tags": Parser(parse_code_alone, write_code_alone),
    "lettered": Parser(parse_letter, write_letter, lettered=True),
}


def get(name: str) -> Parser:
    """Return a parser by name.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in PARSERS:
        raise ConfigError(f"unknown parser {name!r}: expected one of {', '.join(PARSERS)}")
    return PARSERS[name]
