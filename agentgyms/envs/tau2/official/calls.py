"""Calls of the domains' tools: what each returns, as the benchmark writes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Final, Literal, Protocol

from agentgyms.envs.tau2.official import airline, retail
from agentgyms.envs.tau2.official.calculator import calculate
from agentgyms.envs.tau2.official.database import CallError, Database
from agentgyms.envs.tau2.official.telecom import crm, phone, scenario
from agentgyms.envs.tau2.official.tools import TOOLS

Side = Literal["assistant", "user"]
"""The side that makes a call, the agent or the customer, in the benchmark's words."""

_MODULES: Final[Mapping[str, ModuleType]] = {"retail": retail, "airline": airline, "telecom": crm}
_GENERIC: Final[Mapping[str, Callable[..., Any]]] = {
    "calculate": lambda _, expression: calculate(expression),
    "transfer_to_human_agents": lambda _, summary: "Transfer successful",  # noqa: ARG005
}
_FUNCTIONS: Final[Mapping[Side, Mapping[str, Mapping[str, Callable[..., Any]]]]] = {
    "assistant": {
        domain: {
            tool.name: _GENERIC.get(tool.name) or getattr(_MODULES[domain], tool.name)
            for tool in tools
            if tool.name != "say"
        }
        for domain, tools in TOOLS.items()
    },
    "user": {"telecom": phone.TOOLS},
}
_SYNC: Final[Mapping[str, Callable[[Database], None]]] = {"telecom": scenario.sync}


class NamedCall(Protocol):
    """A call of a tool."""

    @property
    def name(self) -> str:
        """The tool's name."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The values of its arguments."""


class SidedCall(NamedCall, Protocol):
    """A call of one side."""

    @property
    def side(self) -> Side:
        """The side that makes it."""


def has_user_tools(domain: str) -> bool:
    """Return whether the customer has tools."""
    return domain in _FUNCTIONS["user"]


def run(domain: str, db: Database, call: NamedCall, side: Side = "assistant") -> str:
    """Make a call, let the two sides agree, and return the text of the call's result.

    Raises `CallError` with the benchmark's message, which it shows as `Error: ...`; what the call
    has changed by then stays changed, there and here.
    """
    result = _run(domain, db, call, side)
    if domain in _SYNC:
        _SYNC[domain](db)
    return result if isinstance(result, str) else json.dumps(result)


def _run(domain: str, db: Database, call: NamedCall, side: Side) -> Any:
    function = _FUNCTIONS[side][domain].get(call.name)
    if function is None:
        raise CallError(f"Tool '{call.name}' not found.")
    try:
        return function(db, **call.arguments)
    except (AttributeError, LookupError, TypeError, ValueError) as e:
        raise CallError(str(e)) from None


def replay(domain: str, db: Database, calls: Iterable[SidedCall]) -> None:
    """Make the calls of a solution; refused ones are passed over, as in the benchmark.

    As there, the two sides do not agree in between.
    """
    for call in calls:
        try:
            _run(domain, db, call, call.side)
        except CallError:
            continue
