"""A bank of skills, taken from the policy's own successes, for the hints of a teacher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rapidfuzz import fuzz

from agentgyms.core.outcome import Feedback
from harness.types.rollout import Rollout

MOST: Final = 8
"""Most skills of a family."""


class Skill(NamedTuple):
    """The actions of a success, those that the environment took, and its goal."""

    turns: int
    goal: str
    actions: str


class SkillBank:
    """Keeps the shortest successes of each family of tasks, one for each goal.

    A rollout is told the skill of its family whose goal is the most like its own, by rapidfuzz's
    ratio; of equal ones the shortest. Skills come from earlier steps: no rollout is told its own.
    Reference: what SkillRL and Skill-SD (arXiv:2604.10674) share: skills from own successes are
    retrieved into a prompt, and distilled into the policy, which plays without them.
    Departs from them: no model writes the skills.
    """

    def __init__(self) -> None:
        self._skills: dict[str, list[Skill]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._skills.values()))

    def take(self, rollouts: Iterable[Rollout]) -> None:
        """Take the successes of a step; their order does not matter."""
        for rollout in rollouts:
            taken = [turn.action for turn in rollout.turns if turn.feedback == Feedback.OK]
            if rollout.success and not rollout.error and taken:
                skill = Skill(len(taken), rollout.goal, "; ".join(taken))
                self._skills.setdefault(rollout.family, []).append(skill)
        self._skills = {family: _kept(found) for family, found in sorted(self._skills.items())}

    def find(self, rollout: Rollout) -> str | None:
        """Return the skill for a rollout's task in words; None if there is none."""
        found = self._skills.get(rollout.family)
        if not found:
            return None
        best = max(found, key=lambda skill: fuzz.ratio(skill.goal, rollout.goal))
        return f"{best.goal}: {best.actions}" if best.goal else best.actions

    def state_dict(self) -> dict[str, Any]:
        """Return the skills."""
        return {family: [list(skill) for skill in found] for family, found in self._skills.items()}

    def load_state_dict(self, state: Mapping[str, Sequence[Sequence[Any]]]) -> None:
        """Go on from `state_dict`."""
        self._skills = {
            family: [Skill(*skill) for skill in found] for family, found in state.items()
        }


def _kept(found: Iterable[Skill]) -> list[Skill]:
    """Return the shortest skill of each goal, shortest first."""
    shortest: dict[str, Skill] = {}
    for skill in sorted(found):
        shortest.setdefault(skill.goal, skill)
    return sorted(shortest.values())[:MOST]
