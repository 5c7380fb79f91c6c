"""The protocol of a leaderboard's numbers, and an evaluation's departures from it.

The protocol is the behaviour of `harness eval` where nothing is set: every task of the split once,
with seed 0, by the turn limit, sampling and prompts of `harness.evaluation.defaults`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentgyms.core.arguments import defaults as default_arguments
from agentgyms.core.errors import plain
from agentgyms.recording.untrusted import check_id
from agentgyms.registration import find_maker
from harness.config import EvaluationConfig, build
from harness.evaluation import defaults
from harness.evaluation.results import reproducible_settings
from harness.reporting.leaderboard.verification import Verified

_PARTIES: Final = ("partner", "judge")
_AGENT_SETTINGS: Final = (
    *("style", "tool_format", "context", "window", "summary_tokens", "scratchpad", "thoughts"),
    *("max_thought_tokens", "max_observation", "max_prompt", "examples"),
)
_SAMPLING_SETTINGS: Final = ("temperature", "top_p", "max_tokens")
_TRAINED_SETTINGS: Final = ("temperature", "top_p")
"""Settings that a trained model does not bring with it: it is prompted as it was trained."""

NO_MODEL: Final = ("expert", "random")
_MOST: Final = 80


def departures(verified: Verified) -> tuple[str, ...]:
    """Return in what an evaluation departs from the protocol, such as `seeds 0, 1, 2`."""
    result = verified.evaluation.result
    found = [*_panel_departures(verified), *_environment_departures(verified)]
    if result["model"].get("backend") not in NO_MODEL:
        found += _model_departures(result)
    return tuple(plain(text, _MOST) for text in found)


def _panel_departures(verified: Verified) -> Iterator[str]:
    result = verified.evaluation.result
    if len(result["tasks"]) != verified.split_tasks:
        yield f"{len(result['tasks'])} of {verified.split_tasks} tasks"
    if result["seeds"] != [0]:
        yield f"seed{'s' * (len(result['seeds']) > 1)} {', '.join(map(str, result['seeds']))}"
    if result["agent"]["trials"] != 1:
        yield f"{result['agent']['trials']} trials of a task"


def _environment_departures(verified: Verified) -> Iterator[str]:
    environment = verified.evaluation.result["environment"]
    row = _standard(verified.evaluation.result)["env"]
    usual = row["max_turns"] or verified.usual_turns
    if environment["max_turns"] not in (None, usual):
        yield f"at most {environment['max_turns']} turns"
    maker: Any = find_maker(check_id(str(environment["id"])))[0]
    given, usual_arguments = environment["kwargs"], default_arguments(maker)
    source = maker.data_source_of(given)
    for name, value in sorted(given.items()):
        without = {key: other for key, other in given.items() if key != name}
        changes_data = (
            maker.data_source_of(without) != source
        )  # the data version stands in the title
        if name not in _PARTIES and not changes_data and value != usual_arguments.get(name):
            yield f"{name} {_text(value)}"


def _model_departures(result: Mapping[str, Any]) -> Iterator[str]:
    standard, config, agent = _standard(result), result["config"], result["agent"]
    trained = agent["kind"] == "trained"
    for section, names in (
        ("agent", () if trained else _AGENT_SETTINGS),
        ("sampling", _TRAINED_SETTINGS if trained else _SAMPLING_SETTINGS),
    ):
        for name in names:
            value = config[section].get(name)
            if value != standard[section].get(name):
                yield f"{name.replace('_', ' ')} {_text(value)}"
    style = str(standard["agent"]["style"])
    known = defaults.template_versions(str(result["environment"]["id"]), style)
    for name, version in sorted(agent.get("prompt_versions", {}).items()):
        if not trained and known.get(name) != version:
            yield f"prompt {name} {version}"
    if not result["model"].get("revision"):
        yield "revision of the model unknown"


def _standard(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of `harness eval` for this environment, split and kind of agent."""
    environment, kind = result["environment"], result["agent"]["kind"]
    values = {
        "env": {"id": environment["id"], "split": environment["split"]},
        "model": {"name": "random", "backend": "random"},
        "agent": {"kind": kind if kind in ("direct", "react", "reflexion") else "react"},
    }
    return reproducible_settings(defaults.resolve(build(EvaluationConfig, values)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
