"""What an agent asks the customer to do: tools of the phone that its words name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from agentgyms.core.tools import ToolCall
from agentgyms.envs.tau2.official.telecom.phone import TOOLS
from agentgyms.envs.tau2.official.telecom.tables import MODES, PERMISSIONS

APPS: Final = ("messaging", "browser")
"""The apps that a phone has."""

_BY_LENGTH: Final = sorted(
    TOOLS, key=len, reverse=True
)  # toggle_data begins toggle_data_saver_mode
_GAP: Final = r"(?:_|\s+(?:your\s+|the\s+)?)"
_NAMES: Final = re.compile(
    "|".join(rf"\b{_GAP.join(name.split('_'))}\b" for name in _BY_LENGTH), re.IGNORECASE
)
_VALUES: Final = {"mode": MODES, "app_name": APPS, "permission": PERMISSIONS}
_ARGUMENTS: Final = {
    "set_network_mode_preference": ("mode",),
    "check_app_status": ("app_name",),
    "check_app_permissions": ("app_name",),
    "grant_app_permission": ("app_name", "permission"),
}


def calls_in(words: str) -> list[ToolCall]:
    """Return the calls that words ask for, each tool once: `toggle_data`, or `toggle your data`.

    Values of arguments are those that the words name; without one the call is refused.
    """
    text = re.sub(_GAP, "_", words.lower())
    names = (re.sub(_GAP, "_", found[0].lower()) for found in _NAMES.finditer(words))
    return [ToolCall(name, dict(_arguments(name, text))) for name in dict.fromkeys(names)]


def request(call: ToolCall) -> str:
    """Return words that ask for a call."""
    values = " ".join(str(value) for value in call.arguments.values())
    return f"Please do this: {call.name} {values}".rstrip() + "."


def _arguments(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a tool: the first values behind its name, or the last before it."""
    before, _, behind = text.partition(name)
    for argument in _ARGUMENTS.get(name, ()):
        pattern = rf"(?<![a-z0-9])({'|'.join(_VALUES[argument])})(?![a-z0-9])"
        values = [*re.findall(pattern, behind), *reversed(re.findall(pattern, before))]
        if values:
            yield argument, values[0]
