"""Who played: base model, type and method of a row, named as in the papers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

_AGENTS: Final = {"direct": "Direct", "react": "ReAct", "reflexion": "Reflexion"}
_BACKENDS: Final = {"expert": "Expert", "random": "Random"}
_METHODS: Final = {
    "gigpo": "GiGPO",
    "salt": "GRPO+SALT",
    "salt_rloo": "RLOO+SALT",
    "dr_grpo": "Dr.GRPO",
    "reinforce": "REINFORCE",
    "reinforce_pp": "REINFORCE++",
}
"""Methods of training whose names are not just their ids in capitals."""

_SUPERVISED: Final = ("sft", "rft", "ei")


@dataclass(frozen=True, slots=True)
class Named:
    """Who played.

    Attributes:
        model: The base model, "" where no model played.
        type: `"Prompting"`, `"SFT"`, `"RL"`, or "" where no model played.
        method: The method, such as `"ReAct"` or `"GiGPO"`.
    """

    model: str
    type: str
    method: str

    @property
    def text(self) -> str:
        """Method and model in words."""
        return f"{self.method} ({self.model})" if self.model else self.method


def named(result: Mapping[str, Any]) -> Named:
    """Return who played an evaluation, from its `result.json`."""
    model, agent = result["model"], result["agent"]
    backend = model.get("backend")
    if backend in _BACKENDS:
        return Named("", "", _BACKENDS[backend])
    if agent.get("kind") != "trained":
        kind = str(agent.get("kind"))
        return Named(_base(model), "Prompting", _AGENTS.get(kind, kind))
    run = model.get("trained") or model
    method = run.get("method")
    if method is None:
        return Named(_base(model), "RL", "trained")
    return Named(
        _short(str(run.get("model") or run.get("name") or "")),
        "SFT" if method in _SUPERVISED else "RL",
        method_name(str(method)),
    )


def _base(model: Mapping[str, Any]) -> str:
    return _short(str(model.get("name") or ""))


def _short(name: str) -> str:
    """Return a model's name without its organisation or folder."""
    return PurePath(name).name or name


def method_name(method: str) -> str:
    """Return a training method's name as the papers write it."""
    return _METHODS.get(method, method.upper())


def family_of(model: str) -> str:
    """Return what rows of one base model share, however it was written."""
    return _short(model).lower()
