"""The shop's database, and the calls that change it, whatever the policy says.

A database is JSON: `{"orders": {id: order}, "products": {name: {colour: pieces in stock}}}`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Database = Mapping[str, Any]

PAYMENTS: Final = ("card", "voucher")


class Refused(Exception):
    """The system cannot do a call; the message tells the agent why, without a full stop."""


class Write(NamedTuple):
    """A call that changes the database: `cancel`, `return` or `exchange`.

    `item` is the product's name in the order. `choice` is where a refund goes, or the new colour.
    Both are "" for `cancel`.
    """

    kind: str
    order: str
    item: str = ""
    choice: str = ""


def order_of(database: Database, number: str) -> dict[str, Any]:
    """Return an order; `Refused` if there is none of this number."""
    if number not in database["orders"]:
        raise Refused(f"there is no order {number[:20]}")
    found: dict[str, Any] = database["orders"][number]
    return found


def stock_of(database: Database, product: str) -> dict[str, int]:
    """Return the pieces in stock by colour; `Refused` if there is no such product."""
    if product not in database["products"]:
        raise Refused(f"there is no product {product[:20]}")
    found: dict[str, int] = database["products"][product]
    return found


def total(order: Mapping[str, Any]) -> int:
    """Return what was paid for an order."""
    return sum(item["price"] for item in order["items"].values())


def changed(database: Database, write: Write) -> Database:
    """Return a changed copy; raise `Refused` if order or item is missing or was changed before."""
    after = copy.deepcopy(dict(database))
    order = order_of(after, write.order)
    if order["status"] == "cancelled":
        raise Refused(f"order {write.order} is cancelled")
    if write.kind == "cancel":
        order["status"] = "cancelled"
        return after
    if write.item not in order["items"]:
        raise Refused(f"order {write.order} has no {write.item[:20]}")
    item = order["items"][write.item]
    if item["state"] != "bought":
        raise Refused(f"the {write.item} was {item['state']} before")
    if write.kind == "return":
        if write.choice not in PAYMENTS:
            raise Refused(f"a refund goes to {' or '.join(PAYMENTS)}, not to {write.choice[:20]}")
        item["state"], item["refund"] = "returned", write.choice
        return after
    stock = stock_of(after, write.item)
    if write.choice not in stock or write.choice == item["colour"]:
        raise Refused(f"the {write.item} cannot be exchanged for {write.choice[:20]}")
    stock[write.choice] -= 1
    stock[item["colour"]] += 1
    item["state"], item["colour"] = "exchanged", write.choice
    return after
