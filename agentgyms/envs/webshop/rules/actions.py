"""Parses the text of an action: `search[query]` or `click[what]`."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from agentgyms.core.outcome import MAX_ACTION

_OPENING: Final = re.compile(r"\s*(search|click)\s*\[", re.IGNORECASE)
_SECOND_ACTION: Final = re.compile(r"\][^\]]*?\b(?:search|click)\s*\[", re.IGNORECASE)


class Action(NamedTuple):
    """A parsed action: `search` or `click`, and its argument in lower case."""

    kind: Literal["search", "click"]
    argument: str

    @property
    def key(self) -> str:
        """The canonical form of the action."""
        return f"{self.kind}[{self.argument}]"


def collapsed(text: str) -> str:
    """Return the text in lower case, with runs of blanks collapsed to one and the ends stripped."""
    return " ".join(text.lower().split())


def parse(action: str) -> Action | str:
    """Return the action that the text states, or the reason why it is invalid.

    The argument is everything between the first `[` and the last `]`; text after that is ignored.
    """
    if len(action) > MAX_ACTION:
        return f"the action is longer than {MAX_ACTION} characters"
    opening, end = _OPENING.match(action), action.rfind("]")
    if opening is None or end < opening.end():
        return "the action is neither search[query] nor click[what]"
    argument = collapsed(action[opening.end() : end])
    if _SECOND_ACTION.search(action, opening.end()):
        return "there are several actions: expected one, search[query] or click[what]"
    kind: Literal["search", "click"] = "search" if opening[1].lower() == "search" else "click"
    if not argument:
        return "the query is blank" if kind == "search" else "there is nothing in click[]"
    return Action(kind, argument)


def parse_original(action: str) -> Action | str:
    """Parse the text as the original does, with the greedy, case-sensitive pattern `(.+)[(.+)]`.

    The argument begins at the last `[` of the first line with a `]` after it.
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
