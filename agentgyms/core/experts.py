"""Expert policies: they play the actions of an environment's oracle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentgyms.core.env import TextEnv
from agentgyms.core.errors import BadOption


class Expert:
    """A policy that plays the actions of the environment's oracle, in any state.

    It is called like an agent, `expert(observation, info)`, or without arguments.
    """

    def __init__(self, env: Any, kind: str = "best") -> None:
        """Raise `BadOption` if there is no expert; `TextEnv.expert_actions` has the kinds."""
        unwrapped = env.unwrapped
        if not isinstance(unwrapped, TextEnv):
            raise BadOption(f"{type(unwrapped).__name__} is not an agentgyms environment")
        if type(unwrapped).expert_actions is TextEnv.expert_actions:
            unwrapped.expert_actions()  # which raises
        self._env = unwrapped
        self.kind = kind

    def __call__(self, observation: Any = None, info: dict[str, Any] | None = None) -> str:
        """Return the next action; raise `BadOption` if there is no expert of this kind."""
        oracle = (info or {}).get("oracle")
        return choose(json.loads(oracle) if oracle else self._env.expert_actions(), self.kind)


def choose(oracle: Mapping[str, Any], kind: str) -> str:
    """Return an expert's action from an oracle; raise `BadOption` if there is none of this kind."""
    actions = {name: action for name, action in oracle.items() if isinstance(action, str)}
    if kind not in actions:
        known = f"expected one of {', '.join(sorted(actions))}" if actions else "this task has none"
        raise BadOption(f"there is no expert {kind!r}: {known}")
    return actions[kind]
