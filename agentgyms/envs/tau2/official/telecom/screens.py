"""What the phone of the domain `telecom` shows: the customer's tools that change nothing."""

from __future__ import annotations

from typing import Final

from agentgyms.envs.tau2.official.database import Database
from agentgyms.envs.tau2.official.telecom import radio
from agentgyms.envs.tau2.official.telecom.radio import device, surroundings

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


def check_status_bar(db: Database, /) -> str:
    """Show the status bar."""
    return f"Status Bar: {_bar(db)}"


def check_network_status(db: Database, /) -> str:
    """Show the states of the networks."""
    phone = device(db)
    lines = [
        f"Airplane Mode: {on(phone['airplane_mode'])}",
        f"SIM Card Status: {radio.sim(db)}",
        f"Cellular Connection: {phone['network_connection_status']}",
        f"Cellular Signal: {phone['network_signal_strength']}",
        f"Cellular Network Type: {phone['network_technology_connected']}",
        f"Mobile Data Enabled: {_yes(phone['data_enabled'])}",
        f"Data Roaming Enabled: {_yes(phone['roaming_enabled'])}",
        f"Wi-Fi Radio: {on(phone['wifi_enabled'])}",
        f"Wi-Fi Connected: {_yes(phone['wifi_connected'])}",
    ]
    if phone["wifi_connected"]:
        lines.append(f"Connected Wi-Fi Network: {phone['wifi_ssid']}")
    return "\n".join(lines)


def check_network_mode_preference(db: Database, /) -> str:
    """Show which networks are preferred."""
    return f"Network Mode Preference: {device(db)['network_mode_preference']}"


def run_speed_test(db: Database, /) -> str:
    """Measure the speed of the connection."""
    speed, words = radio.speed(db)
    if speed is None:
        return f"Speed test failed: {words}."
    return f"Speed Test Result: {speed:.2f} Mbps ({words}). {_ADVICE[words]}"


def check_sim_status(db: Database, /) -> str:
    """Show whether the SIM card works."""
    return _SIM[radio.sim(db)]


def check_data_restriction_status(db: Database, /) -> str:
    """Show whether data are saved."""
    if device(db)["data_saver_mode"]:
        return "Data Saver mode is ON (limits data usage)."
    return "Data Saver mode is OFF."


def check_apn_settings(db: Database, /) -> str:
    """Show the access point."""
    settings = device(db)["active_apn_settings"]
    return (
        f"Current APN Name: {settings['apn_name']}\n"
        f"MMSC URL (for picture messages): {settings['mmsc_url'] or 'Not Set'}\n"
        "(These are technical settings, usually best left unchanged.)"
    )


def check_wifi_status(db: Database, /) -> str:
    """Show the state of Wi-Fi."""
    phone = device(db)
    if not phone["wifi_enabled"]:
        return "Wi-Fi is turned OFF."
    if not phone["wifi_connected"]:
        return "Wi-Fi is ON but not connected to any network."
    strength = phone["wifi_signal_strength"]
    return f"Wi-Fi is ON and connected to '{phone['wifi_ssid']}'. Signal strength: {strength}."


def check_wifi_calling_status(db: Database, /) -> str:
    """Show whether calls go by Wi-Fi."""
    return f"Wi-Fi Calling is currently turned {on(device(db)['wifi_calling_enabled'])}."


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


def can_send_mms(db: Database, /) -> str:
    """Show whether messages with pictures can be sent."""
    words = "can" if radio.sends_mms(db) else "cannot"
    return f"Your messaging app {words} send MMS messages."


def check_payment_request(db: Database, /) -> str:
    """Show the bill that waits for its payment."""
    asked = surroundings(db)["payment_request"]
    if asked is None:
        return "No payment request has been made."
    return f"You have a payment request for bill {asked['bill_id']} of {asked['amount_due']} USD."


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


def with_bar(db: Database, words: str) -> str:
    """Return words with the status bar below."""
    return f"{words}\nStatus Bar: {_bar(db)}"


def _granted(db: Database, app_name: str) -> list[str] | None:
    """Return an app's permissions; None if there is no such app."""
    app = device(db)["app_statuses"].get(app_name)
    return app and [name for name, granted in app["permissions"].items() if granted]


def on(is_on: bool) -> str:
    """Return the word for a setting that is on or off."""
    return "ON" if is_on else "OFF"


def _yes(holds: bool) -> str:
    return "Yes" if holds else "No"
