"""Goals about the state of matter and the temperature of the focus."""

from __future__ import annotations

from typing import Any

from agentgyms.envs.scienceworld.own.goals.base import (
    FAILURE,
    SUCCESS,
    UNSUCCESSFUL,
    FocusGoal,
    GoalReturn,
    Memory,
    NamedSightGoal,
    SameFocusGoal,
    Sight,
    when,
)
from agentgyms.envs.scienceworld.own.objects.base import EnvObject

_UNKNOWN = -999.0  # the engine's mark of a temperature that was not taken yet


class GoalChangeStateOfMatter(SameFocusGoal):
    """The focus is in a state of matter, or burns where that is allowed."""

    __slots__ = ("combustion_allowed", "state")

    def __init__(self, state: str, *, combustion_allowed: bool = False, description: str) -> None:
        super().__init__(description)
        self.state = state
        self.combustion_allowed = combustion_allowed

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Tell whether the focus is in the state."""
        material = focus.prop_material
        if material is None:
            return UNSUCCESSFUL
        burns = self.combustion_allowed and material.is_combusting
        return when(material.state_of_matter == self.state or burns)


class GoalIsStateOfMatter(SameFocusGoal):
    """The focus is made of something; its state is kept for the next goal."""

    __slots__ = ()

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Keep the state of the focus."""
        if focus.prop_material is None:
            return UNSUCCESSFUL
        goals.stored_values["stateOfMatter"] = focus.prop_material.state_of_matter
        return SUCCESS


class GoalIsDifferentStateOfMatter(SameFocusGoal):
    """The focus is in another state than the one that was kept."""

    __slots__ = ()

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Compare the state of the focus with the one that was kept."""
        if focus.prop_material is None:
            return UNSUCCESSFUL
        kept = goals.stored_values.get("stateOfMatter", "")
        return when(focus.prop_material.state_of_matter != kept)


class GoalContainerByTemperature(SameFocusGoal):
    """The focus is in the right one of two boxes; the wrong one fails the task."""

    __slots__ = ("above", "below", "threshold")

    def __init__(self, threshold: float, *, above: str, below: str, description: str) -> None:
        """Set the temperature and the names of the boxes for what is above and below it."""
        super().__init__(description)
        self.threshold = threshold
        self.above = above
        self.below = below

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        """Compare the temperature of the focus with the box that it is in."""
        box = focus.container()
        if focus.prop_material is None or box is None or box.name not in (self.above, self.below):
            return UNSUCCESSFUL
        temperature = focus.prop_material.temperature_c
        if box.name == self.above and temperature >= self.threshold:
            return SUCCESS
        if box.name == self.below and temperature <= self.threshold:
            return SUCCESS
        return FAILURE


class _TemperatureChange(FocusGoal):
    __slots__ = ("degrees", "initial_temperature")

    def __init__(self, degrees: float, description: str, **common: Any) -> None:
        super().__init__(description, **common)
        self.degrees = degrees
        self.initial_temperature = _UNKNOWN

    def check(self, focus: EnvObject | None, sight: Sight, goals: Memory) -> GoalReturn:
        """Compare the temperature of the focus with that of the first focus that was checked."""
        told = super().check(focus, sight, goals)
        self.satisfied_with_object = None  # the engine keeps no focus for these
        return told

    def judge(self, focus: EnvObject, sight: Sight, goals: Memory) -> GoalReturn:
        if focus.prop_material is None:
            return UNSUCCESSFUL
        temperature = focus.prop_material.temperature_c
        if self.initial_temperature == _UNKNOWN:
            self.initial_temperature = temperature
        return when(self.enough(temperature))

    def enough(self, temperature: float) -> bool:
        raise NotImplementedError


class GoalTemperatureIncrease(_TemperatureChange):
    """The focus is warmer than the first focus was at first."""

    __slots__ = ()

    def enough(self, temperature: float) -> bool:
        """Tell whether the temperature has risen enough."""
        return temperature >= self.initial_temperature + self.degrees


class GoalTemperatureDecrease(_TemperatureChange):
    """The focus is colder than the first focus was at first."""

    __slots__ = ()

    def enough(self, temperature: float) -> bool:
        """Tell whether the temperature has fallen enough."""
        return temperature <= self.initial_temperature - self.degrees


class GoalTemperatureOnFire(NamedSightGoal):
    """A thing with a name burns in the location."""

    __slots__ = ()

    def seen(self, location: EnvObject, sight: Sight, goals: Memory) -> bool:
        """Tell whether one of them burns."""
        return any(
            obj.prop_material is not None and obj.prop_material.is_combusting
            for obj in sight.named(self.name)
        )
