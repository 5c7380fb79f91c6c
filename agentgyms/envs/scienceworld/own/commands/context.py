"""What an action may change besides the objects that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.goals.monitor import ObjMonitor
    from agentgyms.envs.scienceworld.own.goals.sequence import GoalSequence


class Context(NamedTuple):
    """The focus and the goals of a game."""

    obj_monitor: ObjMonitor
    goal_sequence: GoalSequence
