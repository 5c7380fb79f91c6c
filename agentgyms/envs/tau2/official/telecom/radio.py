"""The phone itself: its networks, its speed, and what it can send."""

from __future__ import annotations

from typing import Any, Final

from agentgyms.envs.tau2.official.database import Database

_NO_NETWORK: Final = {
    "network_connection_status": "no_service",
    "network_technology_connected": "none",
    "network_signal_strength": "none",
}
_PREFERRED: Final = {"4g_only": "4G", "3g_only": "3G", "2g_only": "2G"}
_SPEEDS: Final = {
    "2G": (0.1, 0.4),
    "3G": (1.0, 5.0),
    "4G": (10.0, 100.0),
    "5G": (50.0, 500.0),
    "none": (0.0, 0.0),
}
_SHARES: Final = {"none": 0.0, "poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0}
_WORDS: Final = ((1, "Very Poor"), (5, "Poor"), (25, "Fair"), (100, "Good"))


def device(db: Database) -> dict[str, Any]:
    """Return the phone to read."""
    return db.get("device", "device")


def surroundings(db: Database) -> dict[str, Any]:
    """Return what is around the phone, and the customer's side of the contract, to read."""
    return db.get("surroundings", "surroundings")


def change(db: Database, **values: Any) -> None:
    """Set values of the phone."""
    db.edit("device", "device").update(values)


def permit(db: Database, app_name: str, permission: str, *, is_granted: bool) -> None:
    """Give an app a permission, or take it."""
    permissions = db.edit("device", "device")["app_statuses"][app_name]["permissions"]
    permissions[permission] = is_granted


def sim(db: Database) -> str:
    """Return the state of the SIM card."""
    phone = device(db)
    state: str = "missing" if phone["sim_card_missing"] else phone["sim_card_status"]
    return state


def search(db: Database) -> None:
    """Search for a network, and connect to it if there is one."""
    phone = device(db)
    blocked = phone["airplane_mode"] or phone["active_apn_settings"]["apn_name"] == "broken"
    if sim(db) != "active" or blocked or not surroundings(db)["line_active"]:
        change(db, **_NO_NETWORK)
        return
    signals = surroundings(db)["signal_strength"]
    technology = _PREFERRED.get(phone["network_mode_preference"])
    if technology is None:
        technology = "4G" if signals.get("5G", "none") == "none" else "5G"
    change(
        db,
        network_connection_status="connected",
        network_technology_connected=technology,
        network_signal_strength=signals.get(technology, "none"),
    )


def has_data(db: Database) -> bool:
    """Return whether mobile data work."""
    phone, around = device(db), surroundings(db)
    is_away = around["is_abroad"]
    return (
        not phone["airplane_mode"]
        and phone["network_signal_strength"] != "none"
        and phone["network_connection_status"] != "no_service"
        and not (is_away and not (phone["roaming_enabled"] and around["roaming_allowed"]))
        and phone["data_enabled"]
        and not around["mobile_data_usage_exceeded"]
    )


def speed(db: Database) -> tuple[float | None, str]:
    """Return the speed in megabits per second, None without data, and a word for it."""
    if not has_data(db):
        return None, "No Connection"
    phone = device(db)
    vpn = phone["vpn_details"] if phone["vpn_connected"] else None
    factor = 0.1 if vpn and vpn["server_performance"] == "poor" else 1.0
    if phone["data_saver_mode"]:
        factor *= 0.2
    low, high = _SPEEDS[phone["network_technology_connected"]]
    found = round((low + high) / 2.0 * _SHARES[phone["network_signal_strength"]] * factor, 2)
    return found, next((words for most, words in _WORDS if found < most), "Excellent")


def sends_mms(db: Database) -> bool:
    """Return whether messages with pictures can be sent."""
    phone = device(db)
    app = phone["app_statuses"].get("messaging")
    by_wifi = phone["wifi_calling_enabled"] and phone["wifi_calling_mms_over_wifi"]
    return (
        has_data(db)
        and phone["network_technology_connected"] != "2G"
        and not by_wifi
        and phone["active_apn_settings"]["mmsc_url"] is not None
        and app is not None
        and app["permissions"]["storage"]
        and app["permissions"]["sms"]
    )
