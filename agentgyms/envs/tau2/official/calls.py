"""Calls of the domains' tools: what each returns, as the benchmark writes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Final, Protocol

from agentgyms.envs.tau2.official import airline, retail
from agentgyms.envs.tau2.official.calculator import calculate
from agentgyms.envs.tau2.official.database import CallError, Database
from agentgyms.envs.tau2.official.tools import TOOLS

_MODULES: Final[Mapping[str, ModuleType]] = {"retail": retail, "airline": airline}
_GENERIC: Final[Mapping[str, Callable[..., Any]]] = {
    "calculate": lambda _, expression: calculate(expression),
    "transfer_to_human_agents": lambda _, summary: "Transfer successful",  # noqa: ARG005
}
_FUNCTIONS: Final[Mapping[str, Mapping[str, Callable[..., Any]]]] = {
    domain: {
        tool.name: _GENERIC.get(tool.name) or getattr(_MODULES[domain], tool.name)
        for tool in tools
        if tool.name != "say"
    }
    for domain, tools in TOOLS.items()
}


class NamedCall(Protocol):
    """A call of a tool."""

    @property
    def name(self) -> str:
        """The tool's name."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The values of its arguments."""


def run(domain: str, db: Database, call: NamedCall) -> str:
    """Make a call and return the text of its result.

    Raises `CallError` with the benchmark's message, which it shows as `Error: ...`; what the call
    has changed by then stays changed, there and here.
    """
    function = _FUNCTIONS[domain].get(call.name)
    if function is None:
        raise CallError(f"Tool '{call.name}' not found.")
    try:
        result = function(db, **call.arguments)
    except (LookupError, TypeError, ValueError) as e:
        raise CallError(str(e)) from None
    return result if isinstance(result, str) else json.dumps(result)


def replay(domain: str, db: Database, calls: Iterable[NamedCall]) -> None:
    """Make the calls of a solution; refused ones are passed over, as in the benchmark."""
    for call in calls:
        try:
            run(domain, db, call)
        except CallError:
            continue
