"""Compiles a copier for each class; reading `__dict__` would make objects larger and slower."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from agentgyms.envs.scienceworld.own.keys import attributes
from agentgyms.envs.scienceworld.own.keys.layouts import layout_of, slots_of, state_names
from agentgyms.envs.scienceworld.own.life.cycles import LifeCycle, LifeStage
from agentgyms.envs.scienceworld.own.life.genetics import ChromosomePair
from agentgyms.envs.scienceworld.own.objects.base import EnvObject, Terminal
from agentgyms.envs.scienceworld.own.properties.electrical import ElectricalConnectionProperties
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.properties.portal import PortalProperties
from agentgyms.envs.scienceworld.own.sets import ObjectSet
from agentgyms.envs.scienceworld.own.world import World

Twins = dict[Any, Any]
ObjectCopier = Callable[[Any, Any, Twins, World], Any]
PartCopier = Callable[[Any, Twins], Any]

_NEW: Final = object.__new__
_TERMINALS: Final = ("terminal1", "terminal2", "anode", "cathode")

_SET: Final = """
    v = o.{0}
    if v is not None:
        n.{0} = members(v, twins)"""
_PART: Final = """
    v = o.{0}
    if v is not None:
        n.{0} = parts[type(v)](v, twins)"""
_CHANGED: Final = """
    v = o.{0}
    if v is not default_{0}:
        n.{0} = {1}"""
_TERMINAL: Final = """
    v = o.{0}
    if v is not None:
        n.{0} = twins[v] if v in twins else terminal(v, new(v.__class__), twins, world)"""
_ALWAYS: Final = """
    n.{0} = {1}"""


def object_copier(obj: EnvObject) -> ObjectCopier:
    """Return the function that makes an object's twin, which is empty, like the object."""
    kind, layout = type(obj), layout_of(obj)
    if isinstance(obj, Terminal):
        return _terminal
    lines = ["def copy(o, n, twins, world):", _ALWAYS.format("world", "world")]
    constant = [name for name in layout.constant if name != "world"]
    lines += _values(kind, (*layout.plain, *constant, "deleted"))
    lines += [_TERMINAL.format(name) for name in _TERMINALS if name in layout.known]
    others = [name for name in layout.references if name not in _TERMINALS]
    lines += _values(kind, others, "twins[{}]")
    lines += [_SET.format(name) for name in attributes.SETS]
    lines += [_PART.format(name) for name in layout.parts]
    lines += [_ALWAYS.format(name, f"n.{attributes.ALIASES[name]}") for name in layout.aliases]
    if "_positions" in layout.known:
        lines.append(_ALWAYS.format("_positions", "o._positions.copy()"))
    copier: ObjectCopier = _compiled(
        kind, lines, new=_NEW, members=_set, parts=PART_COPIERS, terminal=_terminal
    )
    return copier


def _terminal(o: Terminal, n: Terminal, twins: Twins, world: World) -> Terminal:
    """Make a terminal's twin like the terminal, and return it; there are many of them."""
    twins[o] = n
    n.world = world
    n.name, n.obj_type, n.uuid = o.name, o.obj_type, o.uuid
    n.parent_object, n._container = twins[o.parent_object], twins[o._container]
    n.prop_electrical_connection = _connections(o.prop_electrical_connection, twins)
    if o._hidden:
        n._hidden = True
    if o.voltage is not None:
        n.voltage = o.voltage
    if o.deleted:
        n.deleted = True
    if o._contained is not None:
        n._contained = _set(o._contained, twins)
    return n


def _set(members: ObjectSet[EnvObject], twins: Twins) -> ObjectSet[EnvObject]:
    new: ObjectSet[EnvObject] = _NEW(ObjectSet)
    new._ring = {twins[obj]: None for obj in members._ring}
    new._bits, new._shown = members._bits, None
    return new


def _values(kind: type, names: Iterable[str], form: str = "{}") -> Iterator[str]:
    """Write the attributes that differ from the class, or all of which it has none."""
    for name in names:
        if hasattr(kind, name):
            yield _CHANGED.format(name, form.format("v"))
        else:
            yield _ALWAYS.format(name, form.format(f"o.{name}"))


def _compiled(kind: type, lines: Iterable[str], **names: Any) -> Any:
    scope = {f"default_{n}": getattr(kind, n) for n in dir(kind) if not n.startswith("__")}
    scope.update(names, kind=kind)
    exec("".join(lines), scope)  # noqa: S102 - as dataclasses do, of our own names only
    return scope["copy"]


# --- parts ---------------------------------------------------------------------------------------


class PartCopiers(dict[type, PartCopier]):
    """The functions that copy parts, by the part's class, made when they are asked for."""

    def __missing__(self, kind: type) -> PartCopier:
        lines = ["def copy(o, twins):", "\n    n = new(kind)"]
        if issubclass(kind, MaterialProperties):
            lines += _values(kind, state_names(kind))
        else:
            lines += [_ALWAYS.format(name, f"o.{name}") for name in slots_of(kind)]
        lines.append("\n    return n")
        copier: PartCopier = _compiled(kind, lines, new=_NEW)
        self[kind] = copier
        return copier


def _connections(part: ElectricalConnectionProperties[EnvObject], twins: Twins) -> Any:
    new = _NEW(ElectricalConnectionProperties)
    connected = part.connected_to
    new.connected_to = tuple([twins[end] for end in connected]) if connected else ()
    return new


def _portal(part: PortalProperties[EnvObject], twins: Twins) -> PortalProperties[EnvObject]:
    return PortalProperties(
        part.is_open,
        part.is_openable,
        twins[part.connects_from],
        twins[part.connects_to],
        part.is_lockable,
        part.is_locked,
    )


def _genes(part: ChromosomePair, twins: Twins) -> ChromosomePair:  # noqa: ARG001
    return part  # never changes


def _cycle(part: LifeCycle, twins: Twins) -> LifeCycle:
    new = LifeCycle(part.life_cycle_name)
    new.cur_stage_index = part.cur_stage_index
    new.stages = [_stage(stage, new, twins) for stage in part.stages]
    return new


def _stage(stage: LifeStage, lifecycle: LifeCycle, twins: Twins) -> LifeStage:
    new = PART_COPIERS[type(stage)](stage, twins)
    new.lifecycle = lifecycle
    new.obj = twins[stage.obj]
    if hasattr(stage, "plant"):
        new.plant = new.obj
    return new  # type: ignore[no-any-return]


PART_COPIERS: Final = PartCopiers(
    {
        ElectricalConnectionProperties: _connections,
        PortalProperties: _portal,
        ChromosomePair: _genes,
        LifeCycle: _cycle,
    }
)
