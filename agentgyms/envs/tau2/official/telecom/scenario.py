"""How a task of the domain `telecom` begins, how the two sides agree, and what it asserts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from agentgyms.envs.tau2.official.database import CallError, Database
from agentgyms.envs.tau2.official.telecom import crm, phone, radio
from agentgyms.envs.tau2.official.telecom.radio import device, surroundings
from agentgyms.envs.tau2.official.telecom.tables import VPN

_LAST_MONTH: Final = {
    "period_start": "2025-01-01",
    "period_end": "2025-01-31",
    "issue_date": "2025-01-01",
    "total_due": 0.0,
    "due_date": "2025-01-15",
}
_SAME: Final = 1e-6


class Step(NamedTuple):
    """A function of one side, `user` or `assistant`; an assertion expects its value."""

    side: str
    name: str
    arguments: Mapping[str, Any]
    expected: bool = True


def begin(db: Database, steps: tuple[Step, ...]) -> None:
    """Set a task up; `CallError`, `LookupError`, `TypeError` or `ValueError` if it cannot be."""
    for step in steps:
        function = _BEGINNINGS[step.side].get(step.name)
        if function is None:
            tools = phone if step.side == "user" else crm
            function = getattr(tools, step.name)
        function(db, **step.arguments)
        sync(db)


def is_known(step: Step) -> bool:
    """Return whether there is such an assertion."""
    return step.name in _ASSERTIONS[step.side]


def holds(db: Database, step: Step) -> bool:
    """Return whether an assertion holds."""
    try:
        return bool(_ASSERTIONS[step.side][step.name](db, **step.arguments)) == step.expected
    except (CallError, LookupError, TypeError, ValueError):
        return False


def sync(db: Database) -> None:
    """Make the phone know what its contract allows, and the agent which bill is paid.

    The benchmark does so after each call. `CallError` if the phone's number is nobody's.
    """
    around = surroundings(db)
    number = around["phone_number"]
    if number is None:
        return
    line = next((one for one in db.records("lines") if one["phone_number"] == number), None)
    if line is None:
        raise CallError(f"Line with phone number {number} not found")
    limit = crm.look_up(db, "P", line["plan_id"])["data_limit_gb"] + line["data_refueling_gb"]
    values = {
        "line_active": line["status"] == "Active",
        "roaming_allowed": line["roaming_enabled"],
        "mobile_data_usage_exceeded": line["data_used_gb"] >= limit,
        "payment_request": _request(db, number, around["payment_request"]),
    }
    if any(around[name] != value for name, value in values.items()):
        db.edit("surroundings", "surroundings").update(values)


def _request(db: Database, number: str, asked: Mapping[str, Any] | None) -> Any:
    """Return the request that the customer has now; a bill that was paid is paid."""
    if asked is not None and not asked["paid"]:
        return asked
    if asked is not None:
        crm.look_up(db, "B", asked["bill_id"])
        db.edit("bills", asked["bill_id"])["status"] = "Paid"
    bill = crm.awaiting(db, crm.get_customer_by_phone(db, number))
    return bill and {"bill_id": bill["bill_id"], "amount_due": bill["total_due"], "paid": False}


def _set_user_info(db: Database, name: str, phone_number: str) -> None:
    db.edit("surroundings", "surroundings").update(name=name, phone_number=phone_number)


def _set_user_location(db: Database, abroad: bool) -> None:
    db.edit("surroundings", "surroundings")["is_abroad"] = abroad


def _turn(toggle: Callable[[Database], str], name: str, *, on: bool) -> Callable[[Database], None]:
    """Return the function that toggles a setting until it is on or off: once or twice."""

    def turn(db: Database) -> None:
        toggle(db)
        if device(db)[name] != on:
            toggle(db)

    return turn


def _unseat_sim_card(db: Database) -> None:
    radio.change(db, sim_card_missing=True)
    radio.search(db)


def _lock_sim_card(db: Database, mode: str) -> None:
    if mode in ("pin", "puk"):
        radio.change(db, sim_card_status=f"locked_{mode}")
    radio.search(db)


def _break_apn_settings(db: Database) -> None:
    settings = device(db)["active_apn_settings"]
    radio.change(db, active_apn_settings={**settings, "apn_name": "broken"})
    radio.search(db)


def _break_apn_mms_setting(db: Database) -> None:
    settings = device(db)["active_apn_settings"]
    radio.change(db, active_apn_settings={**settings, "mmsc_url": None})


def _set_wifi_calling(db: Database, enabled: bool, mms_over_wifi: bool | None = None) -> None:
    radio.change(db, wifi_calling_enabled=enabled)
    if mms_over_wifi is not None:
        radio.change(db, wifi_calling_mms_over_wifi=mms_over_wifi)


def _break_vpn(db: Database) -> None:
    phone.connect_vpn(db)
    # the package changes the settings that later connections get, too
    db.edit(VPN, VPN)["server_performance"] = "poor"
    radio.change(db, vpn_details=dict(db.get(VPN, VPN)))


def _remove_app_permission(db: Database, app_name: str, permission: str) -> None:
    if app_name in device(db)["app_statuses"]:
        radio.permit(db, app_name, permission.lower(), is_granted=False)


def _set_data_usage(db: Database, customer_id: str, line_id: str, data_used_gb: float) -> None:
    crm.line_of(db, customer_id, line_id)
    db.edit("lines", line_id)["data_used_gb"] = data_used_gb


def _suspend_line_for_overdue_bill(
    db: Database, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool
) -> None:
    line, customer = crm.look_up(db, "L", line_id), crm.get_customer_by_id(db, customer_id)
    price = crm.look_up(db, "P", line["plan_id"])["price_per_month"]
    overdue = [bill for bill in crm.bills_of(db, customer) if bill["status"] == "Overdue"]
    if line["status"] != "Active" or price <= 0 or overdue or db.has("bills", new_bill_id):
        raise CallError(f"line {line_id} cannot be suspended for the bill {new_bill_id}")
    items = [crm.item(f"Charge for line {line_id}", price)]
    fields = {**_LAST_MONTH, "total_due": price, "line_items": items, "status": "Overdue"}
    crm.add_bill(db, customer_id, new_bill_id, fields)
    line = db.edit("lines", line_id)
    line["status"], line["suspension_start_date"] = "Suspended", crm.TODAY
    if contract_ended:
        line["contract_end_date"] = _LAST_MONTH["period_end"]


_BEGINNINGS: Final[Mapping[str, Mapping[str, Callable[..., Any]]]] = {
    "user": {
        "set_user_info": _set_user_info,
        "set_user_location": _set_user_location,
        "turn_airplane_mode_on": _turn(phone.toggle_airplane_mode, "airplane_mode", on=True),
        "turn_airplane_mode_off": _turn(phone.toggle_airplane_mode, "airplane_mode", on=False),
        "unseat_sim_card": _unseat_sim_card,
        "lock_sim_card": _lock_sim_card,
        "turn_data_on": lambda db: radio.change(db, data_enabled=True),
        "turn_data_off": _turn(phone.toggle_data, "data_enabled", on=False),
        "turn_roaming_on": _turn(phone.toggle_roaming, "roaming_enabled", on=True),
        "turn_roaming_off": _turn(phone.toggle_roaming, "roaming_enabled", on=False),
        "turn_data_saver_mode_on": _turn(phone.toggle_data_saver_mode, "data_saver_mode", on=True),
        "turn_data_saver_mode_off": _turn(
            phone.toggle_data_saver_mode, "data_saver_mode", on=False
        ),
        "break_apn_settings": _break_apn_settings,
        "break_apn_mms_setting": _break_apn_mms_setting,
        "set_wifi_calling": _set_wifi_calling,
        "break_vpn": _break_vpn,
        "remove_app_permission": _remove_app_permission,
        "simulate_network_search": radio.search,
    },
    "assistant": {
        "set_data_usage": _set_data_usage,
        "suspend_line_for_overdue_bill": _suspend_line_for_overdue_bill,
    },
}


def _has_speed(db: Database, expected_speed: float, expected_desc: str | None = None) -> bool:
    speed, words = radio.speed(db)
    right = expected_desc is None or words.lower() == expected_desc.lower()
    return (speed or 0.0) >= expected_speed and right


def _has_refueled(db: Database, customer_id: str, line_id: str, expected_amount: float) -> bool:
    line = crm.line_of(db, customer_id, line_id)
    return bool(abs(line["data_refueling_gb"] - expected_amount) < _SAME)


def _is_overdue(db: Database, customer_id: str, overdue_bill_id: str) -> bool:
    bills = crm.bills_of(db, crm.get_customer_by_id(db, customer_id))
    return any(one["bill_id"] == overdue_bill_id and one["status"] == "Overdue" for one in bills)


def _is_not_overdue(db: Database, overdue_bill_id: str) -> bool:
    known = db.has("bills", overdue_bill_id)
    return not known or db.get("bills", overdue_bill_id)["status"] == "Paid"


def _is(name: str) -> Callable[[Database, Any], bool]:
    """Return the assertion that a setting of the phone has a value."""
    return lambda db, expected_status: bool(device(db)[name] == expected_status)


_ASSERTIONS: Final[Mapping[str, Mapping[str, Callable[..., bool]]]] = {
    "user": {
        "assert_airplane_mode_status": _is("airplane_mode"),
        "assert_service_status": _is("network_connection_status"),
        "assert_mobile_data_status": lambda db, expected_status: (
            radio.has_data(db) == expected_status
        ),
        "assert_mobile_roaming_status": _is("roaming_enabled"),
        "assert_mobile_data_saver_mode_status": _is("data_saver_mode"),
        "assert_internet_speed": _has_speed,
        "assert_internet_not_excellent": lambda db: radio.speed(db)[1] != "Excellent",
        "assert_can_send_mms": lambda db, expected_status: radio.sends_mms(db) == expected_status,
        "assert_mobile_data_usage_exceeded": lambda db, expected_status: (
            surroundings(db)["mobile_data_usage_exceeded"] == expected_status
        ),
    },
    "assistant": {
        "assert_data_refueling_amount": _has_refueled,
        "assert_line_status": lambda db, customer_id, line_id, expected_status: (
            crm.line_of(db, customer_id, line_id)["status"] == expected_status
        ),
        "assert_overdue_bill_exists": _is_overdue,
        "assert_no_overdue_bill": _is_not_overdue,
    },
}
