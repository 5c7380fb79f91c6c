"""The certificate: its verdicts as JSON and as a page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentgyms.certification.subject import Subject
from agentgyms.certification.verdicts import QUESTIONS, Verdict
from agentgyms.core.errors import visible
from agentgyms.core.imports import __version__
from agentgyms.data.writing import write_named
from agentgyms.recording import recorder

FORMAT: Final = "agentgyms-certificate-1"
PAGE, JSON = "certificate.md", "certificate.json"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The facts of an examination, JSON-plain, and the verdicts in the order of the checks."""

    facts: Mapping[str, Any]
    verdicts: Mapping[str, Verdict]

    @property
    def failed(self) -> list[str]:
        """The names of the checks that failed."""
        return [name for name, one in self.verdicts.items() if one.status == "failed"]

    @property
    def certified(self) -> bool:
        """Whether every check ran and passed."""
        return all(one.status == "passed" for one in self.verdicts.values())

    def to_json(self) -> str:
        """Return the certificate as JSON."""
        checks = {name: one._asdict() for name, one in self.verdicts.items()}
        fields = {"format": FORMAT, "certified": self.certified, **self.facts, "checks": checks}
        return json.dumps(fields, indent=1) + "\n"

    def to_page(self) -> str:
        """Return the certificate as Markdown."""
        words = {True: "certified", False: "not certified"}[self.certified]
        lines = [f"# {_cell(self.facts['env_id'])}: {words}", "", *_settings(self.facts), ""]
        lines += ["| check | verdict | found | expected |", "|---|---|---|---|"]
        lines += [
            f"| {QUESTIONS[name]} | {one.status} | {_cell(one.found)} | {_cell(one.expected)} |"
            for name, one in self.verdicts.items()
        ]
        failed = [f"- **{name}**: {_cell(self.verdicts[name].advice)}" for name in self.failed]
        lines += ["", "## What to do", "", *failed] if failed else []
        return "\n".join([*lines, "", *_floors(self.verdicts)]).rstrip() + "\n"

    def write(self, folder: Path) -> None:
        """Write page and JSON into a folder, which is made if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        write_named(folder / JSON, self.to_json())
        write_named(folder / PAGE, self.to_page(), errors="backslashreplace")


def facts_of(subject: Subject) -> dict[str, Any]:
    """Return what is examined; addresses and tokens are left out."""
    world = subject.world
    arguments = {k: v for k, v in recorder.recorded_arguments(world).items() if k != "oracle"}
    return {
        "env_id": subject.env_id,
        "arguments": arguments,
        "split": world.split,
        "data_version": world.data_version,
        "data_source": world.data_source,
        "parties": dict(world.parties),
        "tasks": [start.task_id for start in subject.starts],
        "seed": subject.seed,
        "agentgyms": __version__,
        "revision": recorder.git_revision(),
    }


def _settings(facts: Mapping[str, Any]) -> list[str]:
    shown = {**facts, "tasks": f"{len(facts['tasks'])} of the split {facts['split']}"}
    names = ("arguments", "data_version", "data_source", "parties", "tasks", "seed", "learning")
    return [
        f"- {name.replace('_', ' ')}: {_cell(shown[name])}"
        for name in (*names, "agentgyms", "revision")
        if shown[name] not in ("", {})
    ]


def _floors(verdicts: Mapping[str, Verdict]) -> list[str]:
    """Return the table of the expert's play and of play without thought, if it was made."""
    rows = verdicts["floor"].figures
    if not rows:
        return []
    names = ("success", "score", "reward", "turns")
    head = [
        "## Means over the tasks",
        "",
        f"| play | {' | '.join(names)} |",
        "|---|---|---|---|---|",
    ]
    return head + [
        f"| {_cell(play)} | {' | '.join(f'{row[name]:g}' for name in names)} |"
        for play, row in rows.items()
    ]


def _cell(text: object) -> str:
    """Return somebody else's text as Markdown shows it, in one line, also inside a table."""
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", visible(" ".join(str(text).split())))
