"""A game's whole state as bytes: equal bytes mean equal futures."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.keys.layouts import (
    Reader,
    class_code,
    layout_of,
    reader,
    state_names,
)
from agentgyms.envs.scienceworld.own.keys.parts import PART_ENCODERS, Number, Record
from agentgyms.envs.scienceworld.own.keys.past import past_of
from agentgyms.envs.scienceworld.own.objects.base import EnvObject, Terminal
from agentgyms.envs.scienceworld.own.objects.planes import InclinedPlane
from agentgyms.envs.scienceworld.own.sets import START_BITS, ObjectSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.commands.parser import InputMatch
    from agentgyms.envs.scienceworld.own.keys.state import GameState

_VERSION: Final = 2  # of marshal: without references, so that equal values give equal bytes

Encoder = Callable[[Any, Number], Record | str]


class Numbers(dict[EnvObject | None, int]):
    """Numbers objects in the order met; identifiers would tell how many there were before."""

    __slots__ = ("met",)

    def __init__(self) -> None:
        super().__init__({None: -1})
        self.met: list[EnvObject] = []

    def __missing__(self, obj: EnvObject) -> int:
        number = self[obj] = len(self.met)
        self.met.append(obj)
        return number


def state_bytes(game: GameState) -> bytes:
    """Return the state of a game; games with equal bytes go on alike after equal commands."""
    numbers = Numbers()
    number = numbers.__getitem__
    number(game.universe)
    out: list[Any] = [_game(game, number), _goals(game, number)]
    described = _things(numbers, 0, out)
    out.append(past_of(game, number))
    _things(numbers, described, out)  # what nothing but the past reaches
    return marshal.dumps(out, _VERSION)


def digest(game: GameState) -> str:
    """Return the state of a game as a short text."""
    return blake2b(state_bytes(game), digest_size=16).hexdigest()


# --- what a game has one of ----------------------------------------------------------------------


def _game(game: GameState, number: Number) -> Record:
    world, maker = game.world, game._maker
    return (
        maker.task_name,
        maker.variation_idx,
        tuple(world.simplifier.simplifications),
        game._error,
        world.random.state,
        tuple(sorted((at, tuple(map(tuple, ways))) for at, ways in world.search_patterns.items())),
        number(game.agent),
        _question(game._parser.ambiguous, number),
    )


def _question(matches: tuple[InputMatch, ...] | None, number: Number) -> Record | None:
    """Return what a number that answers the open question may choose."""
    if matches is None:
        return None
    return tuple(
        (match.command.name, tuple((at, number(obj)) for at, obj in match.assignments.items()))
        for match in matches
    )


def _goals(game: GameState, number: Number) -> Record:
    context = game._context
    goals = context.goal_sequence
    return (
        goals.cur_subgoal_idx,
        goals.failed,
        tuple(goals.reached),
        number(goals.last_satisfied_with_object),
        tuple(sorted(goals.stored_values.items())),
        tuple(goals.completed_keys._places),
        number(context.obj_monitor._focus),
        _counts(goals.subgoals),
        _counts(goals.unordered),
    )


_GOALS: Final[dict[type, Reader]] = {}


def _counts(goals: Iterable[Goal]) -> Record:
    """Return what goals count or keep, but not for past actions."""
    return tuple(_goal_reader(type(goal))(goal) for goal in goals)


def _goal_reader(kind: type) -> Reader:
    read = _GOALS.get(kind)
    if read is None:
        names = tuple(name for name in state_names(kind) if name != "activated_at_step")
        read = _GOALS[kind] = reader(names)
    return read


# --- objects -------------------------------------------------------------------------------------


def _things(numbers: Numbers, start: int, out: list[Any]) -> int:
    """Append the records of the objects met, and of those that they lead to; return how many."""
    number = numbers.__getitem__
    for obj in islice(numbers.met, start, None):  # which grows meanwhile
        kind = type(obj)
        encode = _ENCODERS.get(kind)
        if encode is None:
            encode = _ENCODERS[kind] = _encoder(obj)
        out.append(encode(obj, number))
    return len(numbers.met)


_ENCODERS: Final[dict[type, Encoder]] = {}


def _encoder(obj: EnvObject) -> Encoder:
    layout = layout_of(obj)
    code = class_code(type(obj))
    if isinstance(obj, Terminal):
        return _terminal_encoder(code)
    plain, references = reader(layout.plain), reader(layout.references)
    parts, encoders = reader(layout.parts), PART_ENCODERS

    def encode(obj: Any, number: Number) -> Record:
        return (
            code,
            plain(obj),
            tuple(map(number, references(obj))),
            _members(obj._contained, number),
            _members(obj._portals, number),
            tuple(
                [
                    None if part is None else encoders[type(part)](part, number)
                    for part in parts(obj)
                ]
            ),
        )

    if not isinstance(obj, InclinedPlane):
        return encode
    return lambda obj, number: (*encode(obj, number), _positions(obj))


def _terminal_encoder(code: int) -> Encoder:
    def encode(obj: Terminal, number: Number) -> Record | str:
        connected = obj.prop_electrical_connection.connected_to
        if (
            not connected
            and obj._hidden
            and obj.voltage is None
            and obj._contained is None
            and obj._container is obj.parent_object
        ):
            return obj.name  # as most are: the rest is known from the object that has it
        return (
            code,
            obj.name,
            obj._hidden,
            obj.voltage,
            number(obj._container),
            number(obj.parent_object),
            _members(obj._contained, number),
            tuple(map(number, connected)) if connected else (),
        )

    return encode


def _members(members: ObjectSet[EnvObject] | None, number: Number) -> Record:
    """Return the members of a set in order, and its size if that is not the first one."""
    if members is None:
        return ()
    inside = tuple(map(number, members._ring))
    return inside if members._bits == START_BITS else (members._bits, inside)


def _positions(plane: InclinedPlane) -> Record:
    """Return where the things on a plane are; one that comes back begins at the top."""
    return tuple(plane._positions.get(obj.uuid) for obj in plane.contained_objects())
