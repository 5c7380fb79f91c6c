"""Paints of all colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.properties import materials as m
from agentgyms.envs.scienceworld.own.sets import FrozenSet

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World


class Paint(EnvObject):
    """Some paint."""

    kind: ClassVar[str] = "paint"
    made_of: ClassVar[m.Material] = m.GenericPaintProp

    def __init__(self, world: World) -> None:
        super().__init__(world, self.kind)
        self.prop_material = self.made_of()

    def referents(self) -> FrozenSet[str]:
        """Return the words that mean this paint."""
        return FrozenSet(("paint", self.name, self.descript_name()))

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Return the text that describes the paint."""
        return self.descript_name()


class RedPaint(Paint):
    """Some red paint."""

    kind = "red paint"
    made_of = m.RedPaintProp


class BluePaint(Paint):
    """Some blue paint."""

    kind = "blue paint"
    made_of = m.BluePaintProp


class YellowPaint(Paint):
    """Some yellow paint."""

    kind = "yellow paint"
    made_of = m.YellowPaintProp


class VioletPaint(Paint):
    """Some violet paint."""

    kind = "violet paint"
    made_of = m.VioletPaintProp


class GreenPaint(Paint):
    """Some green paint."""

    kind = "green paint"
    made_of = m.GreenPaintProp


class OrangePaint(Paint):
    """Some orange paint."""

    kind = "orange paint"
    made_of = m.OrangePaintProp


class BrownPaint(Paint):
    """Some brown paint."""

    kind = "brown paint"
    made_of = m.BrownPaintProp


class YellowOrangePaint(Paint):
    """Some yellow-orange paint."""

    kind = "yellow-orange paint"
    made_of = m.YellowOrangePaintProp


class RedOrangePaint(Paint):
    """Some red-orange paint."""

    kind = "red-orange paint"
    made_of = m.RedOrangePaintProp


class VioletRedPaint(Paint):
    """Some violet-red paint."""

    kind = "violet-red paint"
    made_of = m.VioletRedPaintProp


class BlueVioletPaint(Paint):
    """Some blue-violet paint."""

    kind = "blue-violet paint"
    made_of = m.BlueVioletPaintProp


class GreenBluePaint(Paint):
    """Some green-blue paint."""

    kind = "green-blue paint"
    made_of = m.GreenBluePaintProp


class YellowGreenPaint(Paint):
    """Some yellow-green paint."""

    kind = "yellow-green paint"
    made_of = m.YellowGreenPaintProp
