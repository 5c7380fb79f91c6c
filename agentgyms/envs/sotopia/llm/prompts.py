"""Prompts for an agent's next act and for the judge's ratings, in the words of the package.

The texts are those of `sotopia` 0.1.4, byte by byte (`agenerate_action` and `EpisodeLLMEvaluator`
with `SotopiaDimensions`). Differences: types of action are always in the order of `Kind`, where
the package's order changes between processes; and inserted texts are never searched for
placeholders, so that braces in utterances stay unchanged.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from agentgyms.envs.sotopia import render
from agentgyms.envs.sotopia.dialogue import Dialogue, Kind
from agentgyms.envs.sotopia.partner_judge import RANGES
from agentgyms.envs.sotopia.profiles import Encounter


def agent_prompt(encounter: Encounter, dialogue: Dialogue, seat: int) -> str:
    """Return the prompt for a seat's next act."""
    wording: str = _texts()["agent"]
    return wording.format(
        agent=encounter.people[seat].name,
        history=render.history(encounter, dialogue, seat),
        turn=len(dialogue),
        actions=" ".join(Kind),
        schema=action_schema(),
    )


def judge_prompt(encounter: Encounter, dialogue: Dialogue) -> str:
    """Return the prompt for ratings of both people."""
    wording: str = _texts()["judge"]
    return wording.format(
        history=render.judge_history(encounter, dialogue), schema=ratings_schema()
    )


def retry_prompt(wrong: str, schema: str) -> str:
    """Return the prompt after an answer that cannot be parsed; `wrong` is the error."""
    wording: str = _texts()["again"]
    return wording.format(wrong=wrong, schema=schema)


@cache
def action_schema() -> str:
    """Return the JSON schema of an act, as pydantic 2 writes the package's."""
    descriptions = _texts()["action"]
    action_type = {
        "description": descriptions["action_type"],
        "enum": list(Kind),
        "title": "Action Type",
        "type": "string",
    }
    argument = {"description": descriptions["argument"], "title": "Argument", "type": "string"}
    return json.dumps(_object("AgentAction", {"action_type": action_type, "argument": argument}))


@cache
def ratings_schema() -> str:
    """Return the JSON schema of both ratings, as pydantic 2 writes the package's."""
    descriptions = _texts()["dimensions"]
    dimensions = {
        name: {
            "description": descriptions[name],
            "maxItems": 2,
            "minItems": 2,
            "prefixItems": [{"type": "string"}, {"type": "integer"}],
            "title": name.replace("_", " ").title(),
            "type": "array",
        }
        for name in RANGES
    }
    described = {"description": "The social dimensions used in Sotopia paper (ICLR 2024)"}
    reference = {"$ref": "#/$defs/SotopiaDimensions"}
    both = {"agent_1_evaluation": reference, "agent_2_evaluation": reference}
    definitions = {"SotopiaDimensions": described | _object("SotopiaDimensions", dimensions)}
    whole = _object("EvaluationForTwoAgents[SotopiaDimensions]", both)
    return json.dumps({"$defs": definitions} | whole)


def _object(title: str, properties: dict[str, Any]) -> dict[str, Any]:
    required = list(properties)
    return {"properties": properties, "required": required, "title": title, "type": "object"}


@cache
def _texts() -> dict[str, Any]:
    text = resources.files("agentgyms.envs.sotopia.llm").joinpath("prompts.toml").read_text("utf-8")
    return tomllib.loads(text)
