"""The customer: a program with fixed sentences; it sees no database and believes the agent."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agentgyms.envs.tau2.shop.policy import Request, tells

OPEN: Final = "open"
"""A request was made; nothing came of it yet."""
AGREED: Final = "agreed"
"""The customer said yes."""
WHY: Final = "why"
"""The customer wants the reason of a refusal."""
AMOUNT: Final = "amount"
"""The customer wants to hear an amount."""
OVER: Final = "over"
"""The customer has said goodbye."""
STAGES: Final = (OPEN, AGREED, WHY, AMOUNT, OVER)

_ASKS: Final = re.compile(r"\b(shall|should|may|can|confirm|want|would|proceed|agree)\b", re.I)
_REFUSES: Final = re.compile(r"\b(sorry|cannot|can't|not|unable|impossible|refuse)\b", re.I)
_DONE: Final = re.compile(r"\b(done|cancelled|returned|exchanged|refunded|completed)\b", re.I)
_BYE: Final = "Thank you. Goodbye."


class Fact(NamedTuple):
    """A fact that a request wants told, and the stage in which it is asked for."""

    stage: str
    text: str


class Mood(NamedTuple):
    """The state of a conversation, as far as it decides the future.

    `request` is the index of the open request, their number once all are settled. `told` has, for
    each request settled or answered so far, whether its fact was told.
    """

    request: int
    stage: str
    told: tuple[bool, ...] = ()


class Customer(NamedTuple):
    """A customer of one task: the name, the requests, and the fact that each wants, if any."""

    name: str
    requests: tuple[Request, ...]
    facts: tuple[Fact | None, ...]

    def begin(self) -> tuple[Mood, str]:
        """Return the first state and the first words."""
        stage, words = self._opened(0)
        return Mood(0, stage), f"Hello, my name is {self.name}. {words}"

    def hear(self, mood: Mood, words: str) -> tuple[Mood, str]:
        """Return the state and the answer after the agent said something."""
        request = self.requests[mood.request]
        if mood.stage == AMOUNT and request.kind == "question" and _REFUSES.search(words):
            return mood._replace(stage=WHY), "Why is that?"
        if mood.stage in (WHY, AMOUNT):
            fact = self.facts[mood.request]
            told = fact is not None and fact.stage == mood.stage and tells(words, fact.text)
            return self._settled(mood, told=told)
        if "?" in words and _ASKS.search(words):
            if request.agrees:
                return mood._replace(stage=AGREED), "Yes, please."
            return mood._replace(stage=AMOUNT), f"No, leave it. But {_amount_question(request)}"
        if _REFUSES.search(words):
            return mood._replace(stage=WHY), "Why is that?"
        if "?" not in words and _DONE.search(words):
            if request.asks_amount:
                return mood._replace(stage=AMOUNT), "Good. How much do I get back?"
            return self._settled(mood, told=False)
        return mood, f"I do not understand. {wish(request)}"

    def _settled(self, mood: Mood, *, told: bool) -> tuple[Mood, str]:
        after, told_so_far = mood.request + 1, (*mood.told, told)
        if after == len(self.requests):
            return Mood(after, OVER, told_so_far), _BYE
        stage, words = self._opened(after)
        return Mood(after, stage, told_so_far), f"Thank you. {words}"

    def _opened(self, index: int) -> tuple[str, str]:
        request = self.requests[index]
        return AMOUNT if request.kind == "question" else OPEN, wish(request)


def wish(request: Request) -> str:
    """Return a request in the customer's words."""
    if request.kind == "question":
        return f"What did I pay for order {request.order}?"
    if request.kind == "cancel":
        return f"Please cancel order {request.order}."
    if request.kind == "return":
        return f"I want to return the {request.item} of order {request.order}."
    return f"I want the {request.item} of order {request.order} in {request.colour}."


def _amount_question(request: Request) -> str:
    return f"what did I pay for the {request.item or 'order'}?"
