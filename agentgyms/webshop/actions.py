"""What an agent's text asks for: `search[query]` or `click[what]`, or nothing that can be done."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from agentgyms.outcome import MAX_ACTION

_OPENING: Final = re.compile(r"\s*(search|click)\s*\[", re.IGNORECASE)
_ANOTHER: Final = re.compile(r"\][^\]]*?\b(?:search|click)\s*\[", re.IGNORECASE)


class Action(NamedTuple):
    """What to do.

    Attributes:
        kind: Which of the two.
        argument: The query, or what to click: in lower case; in the default mode without blanks
            around it and with single ones inside.
    """

    kind: Literal["search", "click"]
    argument: str

    @property
    def key(self) -> str:
        """The canonical form of the action; two blanks are not one in the original's mode."""
        return f"{self.kind}[{self.argument}]"


def collapsed(text: str) -> str:
    """Return the text in lower case, with single blanks and none around it."""
    return " ".join(text.lower().split())


def read(action: str) -> Action | str:
    """Return what the text asks for, or why it is no action.

    The name may be in any case. What counts is all between the first `[` and the last `]`; what
    follows is passed over, as in the original.
    """
    if len(action) > MAX_ACTION:
        return f"the action is longer than {MAX_ACTION} characters"
    opening, end = _OPENING.match(action), action.rfind("]")
    if opening is None or end < opening.end():
        return "the action is neither search[query] nor click[what]"
    argument = collapsed(action[opening.end() : end])
    if _ANOTHER.search(action, opening.end()):
        return "there are several actions: expected one, search[query] or click[what]"
    kind: Literal["search", "click"] = "search" if opening[1].lower() == "search" else "click"
    if not argument:
        return "the query is blank" if kind == "search" else "there is nothing in click[]"
    return Action(kind, argument)


def read_original(action: str) -> Action | str:
    """Return what the original makes of the text: its pattern is `(.+)[(.+)]`, greedy.

    That is the last `[` of the first line with a `]` after it; names are case-sensitive.
    """
    if len(action) > MAX_ACTION:
        return f"the action is longer than {MAX_ACTION} characters"
    line = action.partition("\n")[0]
    end = line.rfind("]")
    start = line.rfind("[", 1, max(end - 1, 0))
    name, argument = line[: max(start, 0)], line[start + 1 : end].lower()
    if start > 0 and name == "search":
        return Action("search", argument)
    if start > 0 and name == "click":
        return Action("click", argument)
    return "the action is neither search[query] nor click[what]"
