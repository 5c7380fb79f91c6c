"""Inclined planes, which things slide down."""

from __future__ import annotations

import math
import re
from typing import Final

from agentgyms.envs.scienceworld.own.jvm import float32
from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.objects.texts import whole_number_text
from agentgyms.envs.scienceworld.own.properties.container import IsOpenUnclosableContainer
from agentgyms.envs.scienceworld.own.properties.material import MaterialProperties
from agentgyms.envs.scienceworld.own.properties.materials import (
    DefaultFrictionMaterialProp,
    SteelProp,
)
from agentgyms.envs.scienceworld.own.sets import FrozenSet
from agentgyms.envs.scienceworld.own.world import World

_G: Final = float32(0.1)
_TOP: Final = 1.0
_BOTTOM: Final = 0.0
_NEAR_TOP: Final = float32(0.99)
_SPACES: Final = re.compile(r"[ \t\n\x0b\f\r]+")


class InclinedPlane(EnvObject):
    """A plane on which an object starts at the top, and slides at a steady speed."""

    def __init__(
        self,
        world: World,
        angle_deg: float = 45.0,
        surface_material: MaterialProperties | None = None,
        additional_name: str = "",
    ) -> None:
        # Before the terminals come, which are added to the plane as any object is.
        self._positions: dict[int, float] = {}
        super().__init__(world)
        self.angle_deg = angle_deg
        if surface_material is None:
            surface_material = DefaultFrictionMaterialProp()
        self.surface_material = surface_material
        self.additional_name = additional_name
        self.name = "inclined plane"
        self.prop_container = IsOpenUnclosableContainer()
        self.prop_material = SteelProp()

    def set_object_to_top_of_plane(self, obj: EnvObject) -> None:
        """Put the object to the top."""
        self._positions[obj.uuid] = _TOP

    def object_position_on_plane(self, obj: EnvObject) -> float | None:
        """Return where the object is, 1 at the top and 0 at the bottom; None if it never was."""
        return self._positions.get(obj.uuid)

    def slide_object_down_plane(self, obj: EnvObject) -> None:
        """Move the object for one tick: a solid slides, a liquid runs down, a gas rises."""
        position = self._positions.get(obj.uuid)
        if position is None:
            return
        state = obj.prop_material.state_of_matter if obj.prop_material is not None else "solid"
        if state == "liquid":
            self._positions[obj.uuid] = _BOTTOM
        elif state == "gas":
            self._positions[obj.uuid] = _TOP
        elif position > _BOTTOM:
            force_down = _G * math.sin(math.radians(self.angle_deg))
            delta = force_down * (1 - self.surface_material.friction_coefficient)
            self._positions[obj.uuid] = max(position - delta, _BOTTOM)

    def add_object(self, obj_in: EnvObject) -> None:
        """Put the object on the plane, at the top."""
        self.set_object_to_top_of_plane(obj_in)
        super().add_object(obj_in)

    def tick(self) -> bool:
        """Let all things slide."""
        for obj in self.contained_objects_not_hidden():
            self.slide_object_down_plane(obj)
        return super().tick()

    def name_suffix(self) -> str:
        """Return what tells the surface, nothing for the default."""
        if isinstance(self.surface_material, DefaultFrictionMaterialProp):
            return ""
        return f" with a {self.surface_material.substance_name} surface"

    def descript_name(self, override_name: str = "") -> str:
        """Return the name with the additional name and the surface."""
        if override_name:
            return super().descript_name(override_name)
        full = f"{self.name} {self.additional_name} {self.name_suffix()}"
        return super().descript_name(_SPACES.sub(" ", full).strip())

    def referents(self) -> FrozenSet[str]:
        """Return the names that a command may use."""
        name = self.descript_name()
        out = FrozenSet.of("inclined plane", "plane", self.name, name)
        extra = self.additional_name
        if not extra:
            return out
        return out.union(
            FrozenSet.of(
                f"inclined plane {extra}",
                f"plane {extra}",
                f"{self.name} {extra}",
                f"{name} {extra}",
            )
        )

    def description(self, mode: int = MODE_CURSORY_DETAIL) -> str:
        """Describe the plane and where things are on it."""
        told = f"an {self.descript_name()}"
        contents = self.contained_objects_and_portals(include_hidden=False)
        if not contents:
            return told
        things = (f" a {obj.descript_name()}{self._told_position(obj)}" for obj in contents)
        return f"{told}, with: {','.join(things)}"

    def _told_position(self, obj: EnvObject) -> str:
        position = self.object_position_on_plane(obj)
        if position is None:
            return ""
        if position == _BOTTOM:
            return " at the bottom of the plane"
        if position >= _NEAR_TOP:
            return " at the top of the plane"
        return f" approximately {whole_number_text(100 - 100 * position)}% down the plane"
