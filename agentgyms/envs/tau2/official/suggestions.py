"""Actions that are possible in a state: fixed sentences, and calls about what was looked up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentgyms.core.tools import ToolCall
from agentgyms.envs.tau2.official.calls import has_user_tools
from agentgyms.envs.tau2.official.database import Database
from agentgyms.envs.tau2.official.files import Domain, OfficialTask
from agentgyms.envs.tau2.official.retail import REASONS
from agentgyms.envs.tau2.official.state import State
from agentgyms.envs.tau2.official.telecom.phone import TOOLS as PHONE
from agentgyms.envs.tau2.official.telecom.requests import APPS, request
from agentgyms.envs.tau2.official.telecom.tables import MODES, PERMISSIONS

ASK: Final = "say: May I have your name and zip code, or your email?"
CONFIRM: Final = "say: Shall I proceed?"
MORE: Final = "say: Please tell me more."
CLOSE: Final = "say: Is there anything else?"

_LINE_CHANGES: Final = ("enable_roaming", "disable_roaming", "resume_line")
_WITH_ARGUMENTS: Final[Mapping[str, list[dict[str, str]]]] = {
    "set_network_mode_preference": [{"mode": mode} for mode in MODES],
    "set_apn_settings": [],  # the scripted customer cannot do it
    "check_app_status": [{"app_name": app} for app in APPS],
    "check_app_permissions": [{"app_name": app} for app in APPS],
    "grant_app_permission": [
        {"app_name": app, "permission": permission} for app in APPS for permission in PERMISSIONS
    ],
}
_REQUESTS: Final = [
    f"say: {request(ToolCall(name, given))}"
    for name in PHONE
    for given in _WITH_ARGUMENTS.get(name, [{}])
]


def suggestions(domain: Domain, task: OfficialTask, state: State) -> list[str]:
    """Return actions that are possible now: fixed sentences, and calls about what was looked up."""
    if state.ended:
        return []
    db, found = Database(task.base, state.changes), [ASK, CONFIRM, MORE, CLOSE]
    found += _REQUESTS if has_user_tools(domain.name) else []
    for name in sorted(state.opened):
        table, _, key = name.partition(":")
        if table in _SUGGESTED:
            found += _SUGGESTED[table](db.get(table, key))
    return list(dict.fromkeys(found))


def _text(name: str, **arguments: Any) -> str:
    return f"{name} {json.dumps(arguments, ensure_ascii=False)}"


def _about_user(user: Mapping[str, Any]) -> list[str]:
    orders = [_text("get_order_details", order_id=one) for one in user.get("orders", ())]
    booked = [
        _text("get_reservation_details", reservation_id=one) for one in user.get("reservations", ())
    ]
    return [_text("get_user_details", user_id=user["user_id"]), *orders, *booked]


def _about_order(order: Mapping[str, Any]) -> list[str]:
    number, items = order["order_id"], order["items"]
    found = [_text("get_product_details", product_id=item["product_id"]) for item in items]
    if order["status"] == "pending":
        found += [
            _text("cancel_pending_order", order_id=number, reason=reason) for reason in REASONS
        ]
    if order["status"] == "delivered":
        paid_with = order["payment_history"][0]["payment_method_id"]
        for item in items:
            given = {"order_id": number, "item_ids": [item["item_id"]]}
            found.append(
                _text("return_delivered_order_items", **given, payment_method_id=paid_with)
            )
    return found


def _about_reservation(reservation: Mapping[str, Any]) -> list[str]:
    if reservation["status"] == "cancelled":
        return []
    return [_text("cancel_reservation", reservation_id=reservation["reservation_id"])]


def _about_customer(customer: Mapping[str, Any]) -> list[str]:
    number = customer["customer_id"]
    found = [_text("get_bills_for_customer", customer_id=number)]
    for line_id in customer["line_ids"]:
        line = {"customer_id": number, "line_id": line_id}
        found.append(_text("get_details_by_id", id=line_id))
        found += [_text(name, **line) for name in ("get_data_usage", *_LINE_CHANGES)]
        found.append(_text("refuel_data", **line, gb_amount=2.0))
    for bill_id in customer["bill_ids"]:
        found.append(_text("send_payment_request", customer_id=number, bill_id=bill_id))
    return found


_SUGGESTED: Final[Mapping[str, Callable[[Mapping[str, Any]], list[str]]]] = {
    "customers": _about_customer,
    "users": _about_user,
    "orders": _about_order,
    "reservations": _about_reservation,
}
