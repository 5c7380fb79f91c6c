"""A game in the same state as another, which goes on alone."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agentgyms.envs.scienceworld.own.commands.actions import Action
from agentgyms.envs.scienceworld.own.commands.context import Context
from agentgyms.envs.scienceworld.own.commands.parser import InputMatch, InputParser
from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.monitor import ObjMonitor
from agentgyms.envs.scienceworld.own.goals.sequence import GoalSequence
from agentgyms.envs.scienceworld.own.keys.copiers import (
    PART_COPIERS,
    ObjectCopier,
    Twins,
    object_copier,
)
from agentgyms.envs.scienceworld.own.keys.past import past_goals
from agentgyms.envs.scienceworld.own.objects.agent import Deed
from agentgyms.envs.scienceworld.own.random import JavaRandom
from agentgyms.envs.scienceworld.own.sets import MutableSet
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskObject
from agentgyms.envs.scienceworld.own.world import World

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.keys.state import GameState

G = TypeVar("G", bound="GameState")

_NEW: Final = object.__new__
_COPIERS: Final[dict[type, ObjectCopier]] = {}


class _Twins(dict[Any, Any]):
    """The empty twins of objects, made when asked for; `met` has the objects in that order."""

    __slots__ = ("met",)

    def __init__(self) -> None:
        super().__init__({None: None})
        self.met: list[Any] = []

    def __missing__(self, obj: Any) -> Any:
        twin = self[obj] = _NEW(type(obj))
        self.met.append(obj)
        return twin


def fork(game: G) -> G:
    """Return a game in the same state; neither game changes the other."""
    twins = _Twins()
    new = _NEW(type(game))
    new.world = world = _world(game.world)
    new.universe, new.agent = twins[game.universe], twins[game.agent]
    new._context = Context(_focus(game, twins), _goals(game._context.goal_sequence, twins))
    new._parser = _parser(game._parser, twins)
    new._maker = copy.copy(game._maker)
    new._maker.world = world
    new._maker.modifiers = [
        _placed(each, twins) if isinstance(each, TaskObject) else each
        for each in game._maker.modifiers or ()
    ]
    new._task = copy.copy(game._task)
    new._task.goal_sequence = new._context.goal_sequence
    new._task.task_modifiers = new._maker.modifiers
    past = _past(game, twins)
    for obj in twins.met:  # which grows meanwhile
        kind = type(obj)
        copier = _COPIERS.get(kind)
        if copier is None:
            copier = _COPIERS[kind] = object_copier(obj)
        copier(obj, twins[obj], twins, world)
    new.agent._action_history = past
    new._error, new._history = game._error, game._history.copy()
    new.score, new.completed, new.moves = game.score, game.completed, game.moves
    return new


def _world(world: World) -> World:
    new = copy.copy(world)  # whose simplifications never change once a game has begun
    new.random = _NEW(JavaRandom)
    new.random.state = world.random.state
    new.search_patterns = world.search_patterns.copy()
    return new


def _focus(game: GameState, twins: Twins) -> ObjMonitor:
    new = ObjMonitor()
    new._focus = twins[game._context.obj_monitor._focus]
    return new


def _goals(goals: GoalSequence, twins: Twins) -> GoalSequence:
    new = GoalSequence(
        [_goal(goal, twins) for goal in goals.subgoals],
        [_goal(goal, twins) for goal in goals.unordered],
    )
    new.reached = goals.reached.copy()
    new.cur_subgoal_idx, new.failed = goals.cur_subgoal_idx, goals.failed
    new.last_satisfied_with_object = twins[goals.last_satisfied_with_object]
    new.stored_values = goals.stored_values.copy()
    new.completed_keys = _keys(goals.completed_keys)
    return new


def _keys(keys: MutableSet[str]) -> MutableSet[str]:
    new: MutableSet[str] = _NEW(MutableSet)
    new._bits, new._places, new._known = keys._bits, keys._places.copy(), keys._known.copy()
    return new


def _goal(goal: Goal, twins: Twins) -> Goal:
    new: Goal = PART_COPIERS[type(goal)](goal, twins)
    new.satisfied_with_object = None  # asked for only right after it was set
    return new


def _parser(parser: InputParser, twins: Twins) -> InputParser:
    new = InputParser(parser._commands)
    if parser.ambiguous is not None:
        new.ambiguous = tuple(
            InputMatch(match.command, _twins_of(match.assignments, twins))
            for match in parser.ambiguous
        )
    return new


def _twins_of(assignments: dict[str, Any], twins: Twins) -> dict[str, Any]:
    return {place: twins[obj] for place, obj in assignments.items()}


def _placed(each: TaskObject, twins: Twins) -> TaskObject:
    return TaskObject(each.name, twins[each.instance], each.room, each.containers, each.force)


_DONE: Final = Action("", {})
"""The action that stands for one that no goal looks for."""


def _past(game: GameState, twins: Twins) -> list[Deed]:
    """Return the agent's past actions, of which only those matter that goals look for."""
    kinds = {goal.ACTION for goal in past_goals(game)}
    actions = game.agent._action_history
    if not kinds:
        return [_DONE] * len(actions)
    return [
        _again(action, twins)
        if isinstance(action, Action) and type(action).__name__ in kinds
        else _DONE
        for action in actions
    ]


def _again(action: Action, twins: Twins) -> Action:
    return type(action)(action.name, _twins_of(action.assignments, twins))
