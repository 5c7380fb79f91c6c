"""The bundled example: ALFWorld tasks played by a noisy expert, equal on every machine."""

from __future__ import annotations

import json
import random
from typing import Any, Final

import agentgyms
from agentgyms.core import experts
from agentgyms.core.env import Feedback, TextEnv
from agentgyms.core.outcome import text_of
from agentgyms.registration import GroupEnv
from harness.types.rollout import Completion, Rollout, StopReason, Turn

ENV_ID: Final = "agentgyms/ALFWorld-v0"
TASKS: Final = (
    "small-valid_seen-heat-0011",
    "small-valid_seen-cool-0037",
    "small-valid_seen-pick2-0030",
)
GROUP_SIZE: Final = 8
MAX_TURNS: Final = 18
_NOISE: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Share of turns in which each member of a group does not follow the expert."""
_BROKEN: Final = "I should look around first."
"""An action in a wrong format."""


def rollouts() -> list[Rollout]:
    """Return three groups of eight rollouts of ALFWorld's generated tasks.

    Each member of a group follows the expert less often than the member before; its other actions
    are random admissible ones, or sometimes malformed.
    """
    played: list[Rollout] = []
    settings = {"split": "valid_seen", "oracle": True, "max_turns": MAX_TURNS}
    with agentgyms.make_group(ENV_ID, GROUP_SIZE, **settings) as group:
        for index, task in enumerate(TASKS):
            played += _play_group(group, task, index)
    return played


def _play_group(group: GroupEnv, task: str, index: int) -> list[Rollout]:
    observations, infos = group.reset(seed=index, options={"task_id": task})
    return [
        _play(env, text_of(observation), info, Rollout(task, info["family"], index, member, index))
        for member, (env, observation, info) in enumerate(
            zip(group.envs, observations, infos, strict=True)
        )
    ]


def _play(env: TextEnv, observation: str, info: dict[str, Any], rollout: Rollout) -> Rollout:
    rng = random.Random(f"{rollout.task_id} {rollout.member}")
    rollout.goal, over = info["goal"], False
    while not over:
        action = _choose(info, rng, _NOISE[rollout.member])
        seen, reward, terminated, truncated, after = env.step(action)
        broken = action == _BROKEN
        turn = Turn(
            observation=observation,
            state_key=info["state_key"],
            completion=Completion(action),
            action=action,
            action_key=after["action_key"],
            feedback=Feedback.MALFORMED.value if broken else after["feedback"],
            reward=float(reward),
            next_observation=text_of(seen),
            next_state_key=after["state_key"],
            progress=after["progress"],
        )
        rollout.turns.append(turn)
        observation, info, over = turn.next_observation, after, terminated or truncated
    rollout.success, rollout.score = info["success"], info["score"]
    rollout.stop_reason = StopReason.TERMINATED if terminated else StopReason.TURN_LIMIT
    return rollout


def _choose(info: dict[str, Any], rng: random.Random, noise: float) -> str:
    if rng.random() >= noise:
        return experts.choose(json.loads(info["oracle"]), "best")
    if rng.random() < 0.1:
        return _BROKEN
    actions: list[str] = info["admissible_actions"]
    return rng.choice(actions)
