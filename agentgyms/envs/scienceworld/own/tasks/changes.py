"""Boiling, melting, freezing and changing the state of matter of a substance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import (
    GoalObjectInContainer,
    GoalObjectsInSingleContainer,
)
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind
from agentgyms.envs.scienceworld.own.goals.matter import (
    GoalChangeStateOfMatter,
    GoalIsDifferentStateOfMatter,
    GoalIsStateOfMatter,
    GoalTemperatureDecrease,
    GoalTemperatureIncrease,
)
from agentgyms.envs.scienceworld.own.goals.places import GoalInRoomWithObject
from agentgyms.envs.scienceworld.own.house.cups import mk_random_liquid_cup
from agentgyms.envs.scienceworld.own.life.food import (
    AppleJuice,
    Chocolate,
    IceCream,
    Marshmallow,
    OrangeJuice,
)
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.heating import Stove
from agentgyms.envs.scienceworld.own.objects.substances import (
    Caesium,
    Gallium,
    Ice,
    Lead,
    Mercury,
    Rubber,
    Soap,
    Tin,
)
from agentgyms.envs.scienceworld.own.tasks.heaters import heater_goals
from agentgyms.envs.scienceworld.own.tasks.modifiers import (
    TaskDisable,
    TaskModifier,
    TaskObject,
    TaskValue,
)
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric, skip_draws

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World


class _Substance(NamedTuple):
    name: str
    kind: type[EnvObject] | None = None
    in_cup: bool = False
    room: str = ""
    holders: tuple[str, ...] = ()
    force: bool = False


_FRIDGE, _FREEZER = ("fridge",), ("freezer",)
_TOPS, _BENCHES = ("cupboard", "table", "desk"), ("table", "desk")

_SUBSTANCES: Final = (
    _Substance("water"),
    _Substance("water"),  # with a broken sink
    _Substance("ice", Ice, False, "kitchen", _FREEZER),
    _Substance("orange juice", OrangeJuice, True, "kitchen", _FRIDGE),
    _Substance("apple juice", AppleJuice, True, "kitchen", _FRIDGE),
    _Substance("chocolate", Chocolate, False, "kitchen", _FRIDGE),
    _Substance("marshmallow", Marshmallow, False, "kitchen", _TOPS),
    _Substance("ice cream", IceCream, True, "kitchen", _FREEZER),
    _Substance("soap", Soap, False, "kitchen", _TOPS),
    _Substance("rubber", Rubber, False, "workshop", _BENCHES),
    _Substance("lead", Lead, True, "workshop", _BENCHES, True),
    _Substance("tin", Tin, True, "workshop", _BENCHES, True),
    _Substance("mercury", Mercury, True, "workshop", _BENCHES, True),
    _Substance("gallium", Gallium, True, "workshop", _BENCHES, True),
    _Substance("caesium", Caesium, True, "workshop", _BENCHES, True),
)
_BROKEN_SINK: Final = 1


class TaskChangeOfState(TaskParametric):
    """A substance, and a stove that works or does not."""

    COUNT = 30
    DRAWS = 8

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the substance and the stove."""
        number, broken = divmod(idx, 2)
        out = self._substance(world, number)
        if broken:
            out.append(TaskDisable("stove", "kitchen"))
        else:
            out.append(TaskObject("stove", Stove(world), "kitchen"))
        return out

    def _substance(self, world: World, number: int) -> list[TaskModifier]:
        name, kind, in_cup, room, holders, force = _SUBSTANCES[number]
        skip_draws(world, sum(earlier.in_cup for earlier in _SUBSTANCES[:number]))
        instance = None if kind is None else kind(world)
        if instance is not None and in_cup:
            instance = mk_random_liquid_cup(instance)
        out: list[TaskModifier] = [TaskObject(name, instance, room, holders, force)]
        if number == _BROKEN_SINK:
            out.append(TaskDisable("sink", "kitchen"))
        return [*out, TaskValue("objectName", name)]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for the change."""
        del idx, world
        name = given.text("objectName")
        goals.append(GoalFind(name, "focus on substance"))
        unordered += [
            GoalInRoomWithObject(name, f"be in same location as {name}"),
            GoalObjectsInSingleContainer((name,), "have substance alone in a single container"),
        ]
        asked = _MODES[self.name](goals, unordered)
        burn = (
            "For compounds without a boiling point, combusting the substance is also acceptable. "
        )
        return (
            f"Your task is to {asked} {name}. {burn if asked == 'boil' else ''}"
            "First, focus on the substance. "
            "Then, take actions that will cause it to change its state of matter. "
        )


def _any_change(goals: list[Goal], unordered: list[Goal]) -> str:
    goals += [GoalIsStateOfMatter(), GoalIsDifferentStateOfMatter()]
    unordered += heater_goals("object")
    unordered += _cooler_goals()
    unordered += [
        GoalTemperatureIncrease(10.0, "heat object by at least 10C"),
        GoalTemperatureDecrease(10.0, "cool object by at least 10C"),
    ]
    return "change the state of matter of"


def _melt(goals: list[Goal], unordered: list[Goal]) -> str:
    goals += [_be("solid"), _be("liquid")]
    _heat(unordered)
    return "melt"


def _boil(goals: list[Goal], unordered: list[Goal]) -> str:
    gas = "substance is in a gaseous state (or combusting)"
    goals += [
        _be("liquid"),
        GoalChangeStateOfMatter("gas", combustion_allowed=True, description=gas),
    ]
    _heat(unordered)
    return "boil"


def _freeze(goals: list[Goal], unordered: list[Goal]) -> str:
    goals += [_be("liquid"), _be("solid")]
    unordered += _cooler_goals()
    unordered.append(GoalTemperatureDecrease(5.0, "cool object by at least 5C"))
    return "freeze"


def _be(state: str) -> Goal:
    return GoalChangeStateOfMatter(state, description=f"substance is in a {state} state")


def _heat(unordered: list[Goal]) -> None:
    unordered += heater_goals("object")
    unordered.append(GoalTemperatureIncrease(20.0, "heat object by at least 20C"))


def _cooler_goals() -> list[Goal]:
    return [
        GoalObjectInContainer(name, f"have object in cooler ({name})")
        for name in ("fridge", "freezer")
    ]


_MODES: Final = {
    "change-the-state-of-matter-of": _any_change,
    "melt": _melt,
    "boil": _boil,
    "freeze": _freeze,
}
