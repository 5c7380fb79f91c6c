"""The shop's policy: its text, and what it says about a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.envs.tau2.shop.database import Database, Write, total

RETURN_DAYS: Final = 30

TEXT: Final = f"""\
Policy of the shop:
- Open an order before you speak about it. Serve only the customer whose name it has.
- Cancel only pending orders.
- Return and exchange only what was delivered at most {RETURN_DAYS} days ago and is no final sale.
- A refund goes back to where the order was paid from: card or voucher.
- Exchange only for a colour of the same product that is in stock.
- Before you change anything, ask the customer: "Shall I do it?" Change it only after a yes.
- When it is done, say so. What the policy forbids you refuse; say that it is not possible.
- Asked for a reason, give the one that applies and no other: the order's status, the days since \
delivery, "final sale", "out of stock", or "another name". Asked for an amount, tell that number."""

_NAME: Final = "another name"
_FINAL: Final = "final sale"
_STOCK: Final = "out of stock"
REASONS: Final = (_NAME, _FINAL, _STOCK, "pending", "shipped", "delivered", "cancelled")
_ORDER: Final = re.compile(r"\bO\d+\b")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Request:
    """The wish of a customer.

    Attributes:
        kind: `cancel`, `return`, `exchange`, or `question`, the total of an order.
        order: The order's number.
        item: The product in question; "" if it is the whole order.
        colour: The colour wished instead; "" if it is no exchange.
        agrees: Whether the customer says yes when asked before a change.
        asks_amount: Whether the customer wants to hear the amount when the change is done.
    """

    kind: str
    order: str
    item: str = ""
    colour: str = ""
    agrees: bool = True
    asks_amount: bool = False


def reason_against(database: Database, customer: str, request: Request) -> str:
    """Return why the policy forbids a request: a word of it, or the days; "" if it is allowed."""
    order = database["orders"][request.order]
    if order["name"] != customer:
        return _NAME
    if request.kind == "question":
        return ""
    if request.kind == "cancel":
        return "" if order["status"] == "pending" else str(order["status"])
    item = order["items"][request.item]
    if order["status"] != "delivered":
        return str(order["status"])
    if order["days"] > RETURN_DAYS:
        return str(order["days"])
    if item["final_sale"]:
        return _FINAL
    gone = request.kind == "exchange" and not database["products"][request.item][request.colour]
    return _STOCK if gone else ""


def write_for(database: Database, request: Request) -> Write | None:
    """Return the call that an allowed request needs; None for a question."""
    if request.kind == "question":
        return None
    paid = database["orders"][request.order]["paid_with"]
    choice = {"cancel": "", "return": paid, "exchange": request.colour}[request.kind]
    return Write(request.kind, request.order, request.item, choice)


def amount(database: Database, request: Request) -> str:
    """Return the amount that a customer asks about: the item's price, or the order's total."""
    order: Mapping[str, Any] = database["orders"][request.order]
    return str(order["items"][request.item]["price"] if request.item else total(order))


def tells(words: str, fact: str) -> bool:
    """Return whether words tell a reason or number, and no other one: a list of all tells none."""
    text = _ORDER.sub("", words)
    numbers = set(_NUMBER.findall(text))
    reasons = {reason for reason in REASONS if re.search(rf"\b{reason}\b", text.lower())}
    if fact in REASONS:
        return reasons == {fact}
    return numbers - ({str(RETURN_DAYS)} - {fact}) == {fact} and reasons <= {"delivered"}
