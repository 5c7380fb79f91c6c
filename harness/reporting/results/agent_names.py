"""Names of agents as in the papers: base model, type and method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from harness.config import SEARCHES

_AGENTS: Final = {"direct": "Direct", "react": "ReAct", "reflexion": "Reflexion"}
_BACKENDS: Final = {"expert": "Expert", "random": "Random"}
_METHODS: Final = {
    "distill": "Distillation",
    "gigpo": "GiGPO",
    "graphgpo": "GraphGPO",
    "maxrl": "MaxRL",
    "milegpo": "MileGPO",
    "oracle": "Oracle",
    "planpo": "PlanPO",
    "proxmo": "ProxMO",
    "salt": "GRPO+SALT",
    "salt_rloo": "RLOO+SALT",
    "dr_grpo": "Dr.GRPO",
    "reinforce": "REINFORCE",
    "reinforce_pp": "REINFORCE++",
    "tree_grpo": "Tree-GRPO",
    "treerpo": "TreeRPO",
    "vineppo": "VinePPO",
}
"""Names of training methods that are not just their ids in capitals."""

_SUPERVISED: Final = ("sft", "rft", "ei")


@dataclass(frozen=True, slots=True)
class AgentName:
    """The name of an agent."""

    model: str
    type: str  # `"Prompting"`, `"SFT"`, `"RL"`, or "" if no model played
    method: str  # the method, such as `"ReAct"` or `"GiGPO"`

    @property
    def text(self) -> str:
        """Method and model in words."""
        return f"{self.method} ({self.model})" if self.model else self.method


def agent_name(result: Mapping[str, Any]) -> AgentName:
    """Return the name of an evaluation's agent, from its `result.json`."""
    name = _without_search(result)
    kind = result["agent"].get("kind")
    if kind not in SEARCHES:
        return name
    search = result["config"]["search"]
    if kind == "mcts":  # what the search knows that none may know is named
        way = "MCTS" + (" (value by the solver)" if search["value"] == "solver" else "")
    else:
        by = "an oracle" if search["select"] == "oracle" else search["select"]
        way = f"best of {search['episodes']} (by {by})"
    return replace(name, method=f"{name.method} + {way}")


def _without_search(result: Mapping[str, Any]) -> AgentName:
    model, kind = result["model"], str(result["agent"].get("kind"))
    backend = model.get("backend")
    if backend in _BACKENDS:
        return AgentName("", "", _BACKENDS[backend])
    run = model.get("trained") if kind in ("trained", *SEARCHES) else None
    if kind == "trained":
        run = run or model
    base = short(str(model.get("name") or ""))
    if not run:
        named = "react" if kind in SEARCHES else kind
        return AgentName(base, "Prompting", _AGENTS.get(named, named))
    method = run.get("method")
    if method is None:
        return AgentName(base, "RL", "trained")
    return AgentName(
        short(str(run.get("model") or run.get("name") or "")),
        "SFT" if method in _SUPERVISED else "RL",
        method_name(str(method)),
    )


def short(name: str) -> str:
    """Return a model's name without its organisation or folder; of a checkpoint, its run's."""
    path = PurePath(name)
    run = path.parent.parent if path.parent.name == "checkpoints" else path
    return run.name or path.name or name


def method_name(method: str) -> str:
    """Return a training method's name as the papers write it."""
    return _METHODS.get(method, method.upper())


def model_key(model: str) -> str:
    """Return a key that is equal for all spellings of a base model's name."""
    return short(model).lower()
