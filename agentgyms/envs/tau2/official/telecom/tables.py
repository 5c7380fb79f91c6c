"""The tables of the domain `telecom`: those of the agent's database, and those of the phone.

In the benchmark the agent's are lists; the device and its surroundings are one record each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentgyms.envs.tau2.official.database import Database
from agentgyms.envs.tau2.official.records import (
    Default,
    Optional,
    Reader,
    day,
    flag,
    listing,
    maybe,
    moment,
    number,
    one_of,
    record,
    table,
    text,
    whole,
)

KEYS: Final = {
    "plans": "plan_id",
    "customers": "customer_id",
    "lines": "line_id",
    "bills": "bill_id",
    "devices": "device_id",
}
"""The tables of the agent's database, and the fields that name their records."""

SINGLES: Final = ("device", "surroundings")
"""The tables of the customer's database, of one record each, which has the table's name."""

VPN: Final = "vpn"
"""The table of the VPN that the phone connects to, in no database of the benchmark: its class
keeps it."""

MODES: Final = ("4g_5g_preferred", "4g_only", "3g_only", "2g_only")
PERMISSIONS: Final = ("sms", "storage", "phone", "network")
URL: Final = "http://mms.carrier.com/mms/wapenc"

_SIGNAL: Final = one_of("none", "poor", "fair", "good", "excellent")
_TECHNOLOGIES: Final = ("none", "2G", "3G", "4G", "5G")
_TECHNOLOGY: Final = one_of(*_TECHNOLOGIES)
_OFF: Final = Default(flag, False)
_NOTHING: Final = Default(maybe(text), None)

APN: Final = record(
    apn_name=Default(one_of("internet", "broken"), "internet"),
    reset_at_reboot=_OFF,
    mms_apn=Default(maybe(text), "mms"),
    mmsc_url=Default(maybe(text), URL),
    mms_proxy=_NOTHING,
    mms_port=Default(maybe(whole), None),
)
"""The reader of a phone's access point; without a field it has the field's first value."""

VPN_DETAILS: Final = record(
    server_address=_NOTHING,
    protocol=_NOTHING,
    server_performance=Default(one_of("unknown", "poor", "fair", "good", "excellent"), "unknown"),
)
_PERMISSIONS: Final = record(**dict.fromkeys(PERMISSIONS, _OFF))
_APP: Final = record(app_name=text, permissions=Default(_PERMISSIONS, _PERMISSIONS({})))
_APPS: Final = {
    "messaging": {
        "app_name": "messaging",
        "permissions": _PERMISSIONS({"sms": True, "storage": True, "phone": True}),
    },
    "browser": {
        "app_name": "browser",
        "permissions": _PERMISSIONS({"network": True, "storage": True}),
    },
}

TELECOM: Final[Mapping[str, Reader]] = {
    "plans": record(
        plan_id=text,
        name=text,
        data_limit_gb=number,
        price_per_month=number,
        data_refueling_price_per_gb=number,
    ),
    "customers": record(
        customer_id=text,
        full_name=text,
        date_of_birth=text,
        email=text,
        phone_number=text,
        address=record(street=text, city=text, state=text, zip_code=text),
        account_status=Default(
            one_of("Active", "Suspended", "Pending Verification", "Closed"), "Pending Verification"
        ),
        payment_methods=Default(
            listing(
                record(
                    method_type=one_of("Credit Card", "Debit Card", "PayPal"),
                    account_number_last_4=text,
                    expiration_date=text,
                )
            ),
            [],
        ),
        line_ids=Default(listing(text), []),
        bill_ids=Default(listing(text), []),
        created_at=moment,
        last_extension_date=Optional(day),
        goodwill_credit_used_this_year=Default(number, 0.0),
    ),
    "lines": record(
        line_id=text,
        phone_number=text,
        status=Default(
            one_of("Active", "Suspended", "Pending Activation", "Closed"), "Pending Activation"
        ),
        plan_id=text,
        device_id=Optional(text),
        data_used_gb=Default(number, 0.0),
        data_refueling_gb=Default(number, 0.0),
        roaming_enabled=_OFF,
        contract_end_date=Optional(day),
        last_plan_change_date=Optional(day),
        last_sim_replacement_date=Optional(day),
        suspension_start_date=Optional(day),
    ),
    "bills": record(
        bill_id=text,
        customer_id=text,
        period_start=day,
        period_end=day,
        issue_date=day,
        total_due=number,
        due_date=day,
        line_items=Default(
            listing(record(description=text, amount=number, date=day, item_type=text)), []
        ),
        status=Default(
            one_of("Draft", "Issued", "Awaiting Payment", "Paid", "Overdue", "Disputed"), "Draft"
        ),
    ),
    "devices": record(
        device_id=text,
        device_type=one_of("phone", "router", "tablet", "watch", "other"),
        model=text,
        imei=Optional(text),
        is_esim_capable=flag,
        activated=_OFF,
        activation_date=Optional(moment),
        last_esim_transfer_date=Optional(moment),
    ),
    "device": record(
        sim_card_status=Default(one_of("active", "locked_pin", "locked_puk"), "active"),
        sim_card_missing=_OFF,
        airplane_mode=_OFF,
        network_signal_strength=Default(_SIGNAL, "good"),
        network_technology_connected=Default(_TECHNOLOGY, "5G"),
        network_connection_status=Default(
            one_of("connected", "searching", "no_service", "emergency_only"), "connected"
        ),
        battery_level=Default(whole, 80),
        data_enabled=Default(flag, True),
        roaming_enabled=_OFF,
        network_mode_preference=Default(one_of(*MODES), MODES[0]),
        active_apn_settings=Default(APN, APN({})),
        wifi_enabled=_OFF,
        wifi_connected=_OFF,
        wifi_ssid=_NOTHING,
        wifi_signal_strength=Default(_SIGNAL, "none"),
        wifi_calling_enabled=_OFF,
        wifi_calling_mms_over_wifi=_OFF,
        data_saver_mode=_OFF,
        vpn_enabled_setting=_OFF,
        vpn_connected=_OFF,
        vpn_details=Default(maybe(VPN_DETAILS), None),
        app_statuses=Default(table(_APP), _APPS),
    ),
    "surroundings": record(
        name=_NOTHING,
        phone_number=_NOTHING,
        is_abroad=_OFF,
        roaming_allowed=_OFF,
        signal_strength=Default(
            lambda value: {_TECHNOLOGY(one): _SIGNAL(signal) for one, signal in value.items()},
            {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent"},
        ),
        mobile_data_usage_exceeded=_OFF,
        line_active=Default(flag, True),
        payment_request=Default(
            maybe(record(bill_id=text, amount_due=number, paid=_OFF)),
            None,
        ),
    ),
    VPN: VPN_DETAILS,
}
"""The readers of the records of each table."""


def records_of(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the records by their keys from the agent's and the customer's file, not yet read.

    Raises `LookupError`, `TypeError` or `ValueError` if they are none.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, key in KEYS.items():
        listed = values["db.toml"].get(name, [])
        found[name] = {text(one[key]): one for one in listed}
        if len(found[name]) < len(listed):
            raise ValueError(f"two of the {name} have one {key}")
    for name in SINGLES:
        found[name] = {name: values["user_db.toml"].get(name, {})}
    default = {"server_address": "192.168.1.1", "protocol": "OpenVPN"}
    return found | {VPN: {VPN: {**default, "server_performance": "excellent"}}}


def dumps(db: Database) -> Iterator[dict[str, Any]]:
    """Yield the agent's and the customer's database in the form that the benchmark hashes."""
    yield {name: list(db.records(name)) for name in KEYS}
    yield {name: db.get(name, name) for name in SINGLES}
