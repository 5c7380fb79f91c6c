"""Customers of official tasks, and the scripted one: it reads its instructions out by pieces.

It stands in for the benchmark's user, a model (`model_customer`), where there is none: figures with
it are not the benchmark's. Its sentences are fixed, and it changes its mind for no argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from agentgyms.core.tools import ToolCall
from agentgyms.envs.tau2.official.files import OfficialTask
from agentgyms.envs.tau2.official.state import Round, State
from agentgyms.envs.tau2.official.telecom.requests import calls_in
from agentgyms.models.usage import NO_USAGE, Usage

NAME: Final = "scripted-instructions-v1"
"""The customer's name in results."""

GOODBYE: Final = "Thank you. Goodbye."

Make = Callable[[ToolCall], tuple[str, bool]]
"""Makes a call of the customer's; returns its result, and whether too many calls have failed."""

_IDENTITY: Final = re.compile(
    r"\b(name|zip|e-?mail|user id|identity|verify|authenticate)\b", re.IGNORECASE
)
_CLOSING: Final = re.compile(r"\b(anything else|goodbye|being transferred)\b", re.IGNORECASE)
_QUESTION: Final = re.compile(
    r"\b(confirm|proceed|shall i|should i|do you want me to|would you like me to|\(?yes/no\)?)",
    re.IGNORECASE,
)


class Heard(NamedTuple):
    """A customer's answer, and the state of the customer after it.

    Attributes:
        words: The answer.
        told: The pieces that a scripted customer has told.
        over: Whether the customer is done.
        nothing_new: Whether it tells nothing that was not known.
        before: The text in front of the customer's first words.
        said: The conversation with a model.
        rounds: The calls of a model, all of them.
        unheard: Whether the conversation has become too long for the model.
        usage: The tokens and the cost of the answer.
    """

    words: str
    told: frozenset[str]
    over: bool = False
    nothing_new: bool = False
    before: str = ""
    said: tuple[str, ...] = ()
    rounds: tuple[Round, ...] = ()
    unheard: bool = False
    usage: Usage = NO_USAGE


class Customer(Protocol):
    """Answers the agent; equal conversations and seeds have equal answers, as far as models allow.

    After an `EnvUnavailable` a retry is safe. `make` is None where the customer has no tools.
    """

    @property
    def name(self) -> str:
        """The customer's name in results."""

    def begin(self, task: OfficialTask, seed: int, make: Make | None) -> Heard:
        """Return the first words."""

    def hear(self, task: OfficialTask, state: State, words: str, make: Make | None) -> Heard:
        """Return the answer to what the agent says."""


class ScriptedCustomer:
    """Reads its instructions out, and does on its phone what it is asked to do."""

    name: Final = NAME

    def begin(self, task: OfficialTask, seed: int, make: Make | None) -> Heard:
        """Return the first words: the reason of the call."""
        return _tell(task.pieces, frozenset(), ("reason_for_call",))

    def hear(self, task: OfficialTask, state: State, words: str, make: Make | None) -> Heard:
        """Return the answer to what the agent says."""
        pieces, told = task.pieces, state.told
        if state.transferred:
            return Heard(GOODBYE, told, over=True)
        asked = calls_in(words) if make else []
        if len(asked) > 1:
            return Heard("One thing at a time, please.", told, nothing_new=True)
        if make and asked:
            seen, _ = make(asked[0])
            return Heard(f'I have done it. My phone says: "{seen}"', told)
        asks = _IDENTITY.search(words) or (make and "number" in words.lower())
        if asks and "known_info" in pieces and "known_info" not in told:
            return _tell(pieces, told, ("known_info",))
        is_done = set(pieces) <= told
        if _CLOSING.search(words) and is_done:
            return Heard(GOODBYE, told, over=True)
        if _QUESTION.search(words):
            return Heard("Yes.", told)
        if is_done:
            return Heard("I have told you all I know.", told, nothing_new=True)
        return _tell(pieces, told, tuple(pieces))


def _tell(pieces: Mapping[str, str], told: frozenset[str], wanted: tuple[str, ...]) -> Heard:
    piece = next((one for one in wanted if one in pieces and one not in told), None)
    if piece is None:
        return Heard("Hello.", told)
    return Heard(f'My instructions say: "{pieces[piece]}"', told | {piece})
