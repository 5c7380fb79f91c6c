"""The agent's actions that goals may still look for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.goals.past import (
    GoalPastActionExamineObject,
    GoalPastActionReadObject,
    GoalPastActionUseObjectOnObject,
)
from agentgyms.envs.scienceworld.own.keys.parts import Number, Record
from agentgyms.envs.scienceworld.own.life.trees import SeedEater
from agentgyms.envs.scienceworld.own.objects.agent import Deed
from agentgyms.envs.scienceworld.own.objects.base import EnvObject

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.keys.state import GameState

PAST_GOALS: Final = (
    GoalPastActionExamineObject,
    GoalPastActionReadObject,
    GoalPastActionUseObjectOnObject,
)

PastGoal = GoalPastActionExamineObject | GoalPastActionReadObject | GoalPastActionUseObjectOnObject
Named = tuple[tuple[str, str], ...]
"""Places of an action's objects, each with the name that the goal looks for there."""


def past_goals(game: GameState) -> list[PastGoal]:
    """Return the goals of a game that look for actions; those reached may be reset."""
    goals = game._context.goal_sequence
    return [goal for goal in (*goals.subgoals, *goals.unordered) if isinstance(goal, PAST_GOALS)]


def past_of(game: GameState, number: Number) -> Record:
    """Return of each goal the objects of past actions that may reach it, in no order."""
    return tuple(_noted(goal, game, number) for goal in past_goals(game))


def _noted(goal: PastGoal, game: GameState, number: Number) -> Record | None:
    """Return a goal's objects by their places; None for a goal that was not checked yet."""
    if goal.activated_at_step == -1:
        return None
    actions = game.agent.action_history_since(goal.activated_at_step)
    named = looked_for(goal)
    found = {(place, number(obj)) for place, obj in _objects(actions, goal.ACTION, named)}
    return tuple(sorted(found))


def looked_for(goal: PastGoal) -> Named:
    """Return the names that a goal looks for, any of which reaches it."""
    if isinstance(goal, GoalPastActionExamineObject):
        return (("obj", goal.name),)
    if isinstance(goal, GoalPastActionReadObject):
        return (("document", goal.name),)
    return (("device", goal.device), ("patient", goal.patient))


def _objects(actions: Iterable[Deed], kind: str, named: Named) -> Iterator[tuple[str, EnvObject]]:
    for action in actions:
        if type(action).__name__ == kind:
            for place, name in named:
                obj = action.assignments[place]
                if may_be_called(obj, name):
                    yield place, obj


def may_be_called(obj: EnvObject, name: str) -> bool:
    """Tell whether an object may ever have a name in lower case; if in doubt, it may.

    A thing takes its name from its state of matter, and fire or its end only add to that.
    """
    if isinstance(obj, SeedEater) or type(obj).descript_name is not EnvObject.descript_name:
        return True
    material = obj.prop_material
    names = [obj.name, *(material.name_in_state_of_matter.values() if material else ())]
    return any(each.lower() in name for each in names)
