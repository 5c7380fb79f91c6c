"""Heat that flows between objects, from heat sources and into cooling sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties

HEAT_TRANSFER_COEFFICIENT: Final = 0.10
MAX_TRANSFER_PER_STEP: Final = 1000.0


def _is_running(source: EnvObject) -> bool:
    return source.prop_device is None or source.prop_device.is_activated


def heat_transfer_heat_source(heat_source: EnvObject, heated_obj: EnvObject) -> None:
    """Warm an object by a heat source that is on."""
    source, material = heat_source.prop_heat_source, heated_obj.prop_material
    if not _is_running(heat_source):
        return
    assert source is not None
    if source.cur_set_temp is None or material is None:
        return
    if material.temperature_c < source.cur_set_temp:
        flow = (source.cur_set_temp - material.temperature_c) * HEAT_TRANSFER_COEFFICIENT
        material.temperature_c += _limited(flow)


def heat_transfer_cooling_source(cooling_source: EnvObject, cooled_obj: EnvObject) -> None:
    """Cool an object by a cooling source that is on."""
    source, material = cooling_source.prop_cooling_source, cooled_obj.prop_material
    if not _is_running(cooling_source):
        return
    assert source is not None
    if source.cur_set_temp is None or material is None:
        return
    if material.temperature_c > source.cur_set_temp:
        flow = (source.cur_set_temp - material.temperature_c) * HEAT_TRANSFER_COEFFICIENT
        material.temperature_c += _limited(flow)


def heat_transfer_touching_objects(obj1: EnvObject, obj2: EnvObject) -> None:
    """Let heat flow between two objects."""
    if obj1.prop_material is not None and obj2.prop_material is not None:
        _exchange(obj1.prop_material, obj2.prop_material)


def heat_transfer_within(around: MaterialProperties, inside: Sequence[MaterialProperties]) -> None:
    """Let heat flow between a container and each of the things in it."""
    warmth = around.temperature_c
    for inner in inside:
        if inner.temperature_c != warmth:
            _exchange(around, inner)
            warmth = around.temperature_c


def heat_transfer_touching(things: Sequence[MaterialProperties]) -> None:
    """Let heat flow between each two things in a container, as `_exchange`, but faster."""
    warmths = [thing.temperature_c for thing in things]
    if len(set(warmths)) <= 1:
        return  # among equals nothing flows
    conductivities = [thing.thermal_conductivity for thing in things]
    for position in range(1, len(things)):
        warmth, conductivity = warmths[position], conductivities[position]
        for place in range(position):
            other, least = warmths[place], conductivities[place]
            if other == warmth:
                continue
            if conductivity < least:
                least = conductivity
            flow = (other - warmth) * least * HEAT_TRANSFER_COEFFICIENT
            warmth += flow if -1000.0 <= flow <= 1000.0 else _limited(flow)
            flow = (warmth - other) * least * HEAT_TRANSFER_COEFFICIENT
            warmths[place] = other + (flow if -1000.0 <= flow <= 1000.0 else _limited(flow))
        warmths[position] = warmth
    for thing, warmth in zip(things, warmths, strict=True):
        thing.temperature_c = warmth


def _exchange(first: MaterialProperties, second: MaterialProperties) -> None:
    """Let heat flow to the first thing, and then to the second from what the first has become."""
    conductivity = min(first.thermal_conductivity, second.thermal_conductivity)
    warm1, warm2 = first.temperature_c, second.temperature_c
    warm1 += _limited((warm2 - warm1) * conductivity * HEAT_TRANSFER_COEFFICIENT)
    first.temperature_c = warm1
    flow = (warm1 - warm2) * conductivity * HEAT_TRANSFER_COEFFICIENT
    second.temperature_c = warm2 + _limited(flow)


def _limited(flow: float) -> float:
    if flow > MAX_TRANSFER_PER_STEP:
        return MAX_TRANSFER_PER_STEP
    return max(flow, -MAX_TRANSFER_PER_STEP)
