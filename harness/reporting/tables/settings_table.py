"""The settings of an evaluation as names and texts, for the head of its page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_NAMES: Final = {
    "environment.id": "Environment",
    "environment.split": "Split",
    "environment.max_turns": "Turn limit",
    "environment.data_version": "Data version",
    "environment.kwargs": "Environment's arguments",
    "environment.tasks": "Tasks",
    "agent.kind": "Agent",
    "agent.style": "Prompt style",
    "agent.tool_format": "Format of tool calls",
    "agent.context": "Context",
    "agent.window": "Past turns shown",
    "agent.summary_tokens": "Summary from, tokens",
    "agent.scratchpad": "Notes, characters",
    "agent.thoughts": "Thoughts of earlier answers",
    "agent.max_thought_tokens": "Longest thought, tokens",
    "agent.max_observation": "Longest observation, tokens",
    "agent.max_prompt": "Prompt limit, characters",
    "agent.examples": "Worked examples",
    "agent.trials": "Trials",
    "agent.memory": "Reflections shown",
    "agent.prompt_versions": "Prompt versions",
    "model.name": "Model",
    "model.backend": "Backend",
    "model.revision": "Model revision",
    "model.trained": "Trained with",
    "model.step": "Training step",
    "model.device": "Device",
    "sampling.temperature": "Temperature",
    "sampling.top_p": "Top p",
    "sampling.max_tokens": "Longest answer, tokens",
    "seeds": "Seeds",
    "partner": "Partner",
    "judge": "Judge",
    "versions.agentgyms": "agentgyms",
    "versions.revision": "Revision",
    "versions.python": "Python",
    "versions.libraries": "Libraries",
    "digest": "Configuration",
    "recordings.sha256": "Recordings, SHA-256",
}
"""Names of settings in display order; the other settings of a section follow."""

_SECTIONS: Final = ("environment", "agent", "model", "sampling", "versions")
_MOST: Final = 2000
"""Maximum characters of one setting."""


def settings_of(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings of a `result.json` as names and texts, without those that are None."""
    found: dict[str, str] = {}
    for section in _SECTIONS:
        for key, value in result.get(section, {}).items():
            if value is not None and value not in ({}, [], ""):
                found[f"{section}.{key}"] = _text(value)
    for key in ("seeds", "partner", "judge", "digest"):
        if result.get(key) not in (None, []):
            found[key] = _text(result[key])
    if "recordings" in result:
        found["recordings.sha256"] = _text(result["recordings"]["sha256"])
    names = {key: name for key, name in _NAMES.items() if key in found}
    names |= {key: key.replace(".", ": ", 1) for key in found if key not in names}
    return [(names[key][:_MOST], found[key][:_MOST]) for key in names]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
