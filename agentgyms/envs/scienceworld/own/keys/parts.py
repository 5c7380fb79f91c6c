"""What belongs to one object only, as values without references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agentgyms.envs.scienceworld.own.keys.layouts import Reader, class_code, reader, state_names
from agentgyms.envs.scienceworld.own.life.animal_stages import GrowingStage
from agentgyms.envs.scienceworld.own.life.cycles import LifeCycle, LifeStage
from agentgyms.envs.scienceworld.own.life.genetics import ChromosomePair, GeneticTrait
from agentgyms.envs.scienceworld.own.life.properties import LifeProperties, PollinationProperties
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.properties.container import ContainerProperties
from agentgyms.envs.scienceworld.own.properties.electrical import ElectricalConnectionProperties
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.properties.portal import PortalProperties
from agentgyms.envs.scienceworld.own.properties.simple import (
    CoolingSourceProperties,
    DeviceProperties,
    EdibilityProperties,
    HeatSourceProperties,
)

Record = tuple[Any, ...]
Number = Callable[[EnvObject | None], int]
PartEncoder = Callable[[Any, Number], Record]

_SIMPLE = (
    ContainerProperties,
    DeviceProperties,
    EdibilityProperties,
    HeatSourceProperties,
    CoolingSourceProperties,
    PortalProperties,
    LifeProperties,
)
"""The classes with nothing but texts, numbers and truth values."""


def _simple(kind: type) -> PartEncoder:
    read = reader(state_names(kind))
    return lambda part, number: read(part)  # noqa: ARG005


def _material(kind: type[MaterialProperties]) -> PartEncoder:
    code, forms = class_code(kind), kind.name_in_state_of_matter
    read = reader(tuple(n for n in state_names(kind) if n != "name_in_state_of_matter"))

    def encode(part: MaterialProperties, number: Number) -> Record:  # noqa: ARG001
        own = part.name_in_state_of_matter
        return (code, *read(part)) if own is forms else (code, *read(part), tuple(own.items()))

    return encode


def _connections(part: ElectricalConnectionProperties[EnvObject], number: Number) -> Record:
    return tuple(map(number, part.connected_to))


_read_allele = reader(state_names(GeneticTrait))


def _genes(part: ChromosomePair, number: Number) -> Record:  # noqa: ARG001
    return tuple(
        tuple(map(_read_allele, parent.chromosomes)) for parent in (part.parent1, part.parent2)
    )


def _pollination(part: PollinationProperties, number: Number) -> Record:
    genes = part.parent2_chromosome_pairs
    return (part.pollination_step, None if genes is None else _genes(genes, number))


_STAGES: dict[type, Reader] = {}


def _stage(stage: LifeStage) -> Record:
    kind = type(stage)
    if kind is GrowingStage and stage.next_stage is None:  # type: ignore[attr-defined]
        return ()  # its ticks lead nowhere
    if kind not in _STAGES:
        _STAGES[kind] = reader(state_names(kind))
    return _STAGES[kind](stage)


def _cycle(part: LifeCycle, number: Number) -> Record:  # noqa: ARG001
    return (part.cur_stage_index, *map(_stage, part.stages))


class PartEncoders(dict[type, PartEncoder]):
    """The functions that encode parts, by the part's class; those of materials come when asked."""

    def __missing__(self, kind: type) -> PartEncoder:
        if not issubclass(kind, MaterialProperties):
            raise NotImplementedError(f"no table has the class {kind.__name__}")
        self[kind] = encoder = _material(kind)
        return encoder


_KNOWN: dict[type, PartEncoder] = {kind: _simple(kind) for kind in _SIMPLE}

PART_ENCODERS: Final = PartEncoders(
    {
        **_KNOWN,
        ElectricalConnectionProperties: _connections,
        ChromosomePair: _genes,
        PollinationProperties: _pollination,
        LifeCycle: _cycle,
    }
)
