"""Simplifications of an episode: open doors, open containers, and what other modules ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentgyms.envs.scienceworld.own.objects.base import EnvObject

SIMPLIFICATION_TELEPORT_ACTION: Final = "teleportAction"
SIMPLIFICATION_NO_ELECTRICAL_ACTION: Final = "noElectricalAction"
SIMPLIFICATION_OPEN_DOORS: Final = "openDoors"
SIMPLIFICATION_OPEN_CONTAINERS: Final = "openContainers"
SIMPLIFICATION_SELF_WATERING_FLOWER_POTS: Final = "selfWateringFlowerPots"

ALL: Final = (
    SIMPLIFICATION_OPEN_DOORS,
    SIMPLIFICATION_OPEN_CONTAINERS,
    SIMPLIFICATION_TELEPORT_ACTION,
    SIMPLIFICATION_NO_ELECTRICAL_ACTION,
    SIMPLIFICATION_SELF_WATERING_FLOWER_POTS,
)
"""The labels that the engine knows."""

_BY_LOWER: Final = {label.lower(): label for label in ALL}
_SPACE: Final = "".join(map(chr, range(33)))  # what Java's trim takes away


class SimplifierProcessor:
    """The simplifications of a game in the order asked for; `World.simplifier` holds it."""

    __slots__ = ("simplifications",)

    def __init__(self) -> None:
        self.simplifications: list[str] = []

    def is_simplification_enabled(self, label: str) -> bool:
        """Return whether the simplification is in use."""
        return label in self.simplifications

    def parse_simplification_str(self, simplification_str: str) -> tuple[bool, str]:
        """Use the labels in a text, divided by commas; tell whether all are known, and the error.

        At an unknown label the engine stops, and keeps the labels before it.
        """
        self.simplifications.clear()
        if not simplification_str:
            return True, ""
        fields = simplification_str.lower().strip(_SPACE).split(",")
        while len(fields) > 1 and not fields[-1]:
            fields.pop()  # as Java's split does
        if fields == [""] and "," in simplification_str:
            return True, ""
        for field in fields:
            label = _BY_LOWER.get(field.strip(_SPACE))
            if label is None:
                return False, f"ERROR: Unknown simplification label: {field}"
            if label not in self.simplifications:
                self.simplifications.append(label)
        return True, ""

    def simplifications_used(self) -> str:
        """Return the labels in use, sorted."""
        return ", ".join(sorted(self.simplifications))

    def possible_simplifications(self) -> str:
        """Return the labels known, sorted."""
        return ", ".join(sorted(ALL))

    def run_simplifications_initialization(self, universe: EnvObject) -> None:
        """Change the new world as the labels ask for; the order changes nothing."""
        if SIMPLIFICATION_OPEN_DOORS in self.simplifications:
            _open_doors(universe)
        if SIMPLIFICATION_OPEN_CONTAINERS in self.simplifications:
            _open_containers(universe)


def _open_doors(universe: EnvObject) -> None:
    # Drains are portals too: the toilet's is open until the toilet's first tick.
    for obj in _all_things(universe):
        for portal in obj.portals():
            if portal.prop_portal is not None and portal.prop_portal.is_openable:
                portal.prop_portal.is_open = True


def _open_containers(universe: EnvObject) -> None:
    for obj in _all_things(universe):
        container = obj.prop_container
        if obj is universe or container is None:
            continue
        if container.is_container and container.is_closable:
            container.is_open = True


def _all_things(root: EnvObject) -> Iterator[EnvObject]:
    yield root
    for obj in root.contained_objects():
        yield from _all_things(obj)
