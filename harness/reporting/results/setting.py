"""The setting of an evaluation: environment, whose tasks, split, partner, judge; warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from agentgyms.registration import ENVIRONMENTS, env_class
from harness.evaluation.breakdowns import env_name

PROGRAMMATIC_JUDGES: Final = ("programmatic-v1",)
"""Judges that are programs; their ratings are not scores of the benchmark."""

OFFICIAL: Final = "official"
NOT_THE_BENCHMARK: Final = "generated tasks, not the benchmark"
"""The words beside every figure of generated tasks: in tables, on pages, in curves."""

_SELF_CHAT: Final = "self"


class Setting(NamedTuple):
    """The setting that the evaluations in one block of a table have in common."""

    name: str
    split: str
    partner: str = ""  # the partner in the episodes; "" if there is none
    judge: str = ""  # the judge of the episodes; "" if the environment's own rules score them
    data: str = ""  # whose tasks they are; see `data_source`

    @property
    def world(self) -> str:
        """The name of what was played: a smaller world stands under its own name."""
        return self.name if self.data in ("", OFFICIAL, "generated") else self.data

    @property
    def title(self) -> str:
        """The world, whose tasks they are, partner and judge as a heading."""
        parts = [f"{self.world} {self.split}".strip(), *labels(self.data)]
        if self.partner:
            in_self_chat = self.partner == _SELF_CHAT
            parts.append("self-chat" if in_self_chat else f"{self.partner} as partner")
        if self.judge:
            parts.append(f"judged by {self.judge}")
        return ", ".join(parts)


def setting_of(result: Mapping[str, Any]) -> Setting:
    """Return the setting of a `result.json`."""
    environment = result["environment"]
    return Setting(
        env_name(str(environment["id"])),
        str(environment["split"]),
        str(result.get("partner") or ""),
        str(result.get("judge") or ""),
        data_source(environment["id"], environment.get("kwargs", {}), result.get("data_source")),
    )


def data_source(env_id: str, kwargs: Any, recorded: Any = None) -> str:
    """Return the source of the tasks: `recorded`, else by the arguments; "" if nobody knows."""
    if isinstance(recorded, str):
        return recorded
    known = str(env_id).rpartition(":")[2]
    if known not in ENVIRONMENTS or not isinstance(kwargs, Mapping):
        return ""
    return env_class(known).data_source_of(kwargs)


def labels(data: str) -> list[str]:
    """Return what must stand beside figures of tasks of this source: nothing, or one text."""
    return [] if data in ("", OFFICIAL) else [NOT_THE_BENCHMARK]


def warnings(result: Mapping[str, Any]) -> list[str]:
    """Return the warnings that must stand beside the figures of a `result.json`."""
    if result.get("judge") not in PROGRAMMATIC_JUDGES:
        return []
    return [
        f"NOT A SOTOPIA SCORE: {result['judge']} is a program, which counts by rules of its own"
    ]


def programmatic_heading(heading: str) -> str:
    """Return a column's heading, marked as rated by a program."""
    kind, bracket, rest = heading.partition(" (")
    return f"{kind} (programmatic, {rest}" if bracket else f"{heading} (programmatic)"
