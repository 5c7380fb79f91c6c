"""Mixing a substance after a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgyms.envs.scienceworld.own.goals.base import Goal
from agentgyms.envs.scienceworld.own.goals.contents import GoalObjectsInSingleContainer
from agentgyms.envs.scienceworld.own.goals.finds import GoalFind
from agentgyms.envs.scienceworld.own.goals.past import GoalPastActionReadObject
from agentgyms.envs.scienceworld.own.goals.places import (
    GoalInRoomWithObject,
    GoalMoveToNewLocation,
)
from agentgyms.envs.scienceworld.own.life import food, fruits
from agentgyms.envs.scienceworld.own.objects import paint, substances
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.documents import Paper, Recipe
from agentgyms.envs.scienceworld.own.tasks.modifiers import TaskModifier, TaskValue, placed
from agentgyms.envs.scienceworld.own.tasks.parametric import Notes, TaskParametric

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.world import World

_Kinds = tuple[type[EnvObject], ...]

_ROOMS: Final = ("kitchen", "workshop")
_WATER: Final = substances.Water

_RECIPES: Final[tuple[tuple[tuple[str, _Kinds], ...], ...]] = (
    (
        ("salt water", (substances.SodiumChloride, _WATER)),
        ("soapy water", (substances.Soap, _WATER)),
        ("mixed nuts", (food.Peanut, food.Almond, food.Cashew)),
        ("sodium acetate", (substances.AceticAcid, substances.SodiumBicarbonate)),
        ("banana sandwich", (fruits.Banana, food.Bread)),
        ("blue paper", (Paper, paint.BluePaint)),
        ("peanut butter sandwich", (food.Peanut, food.Bread)),
        ("peanut butter with jam sandwich", (food.Peanut, food.Jam, food.Bread)),
    ),
    (
        ("smores", (food.Chocolate, food.Marshmallow)),
        ("dough", (food.Flour, _WATER)),
        ("fruit salad", (fruits.Apple, fruits.Orange, fruits.Banana)),
        ("jam sandwich", (food.Jam, food.Bread)),
    ),
    (
        ("sugar water", (substances.Sugar, _WATER)),
        ("peanut butter with banana sandwich", (food.Peanut, fruits.Banana, food.Bread)),
        ("rust", (substances.IronBlock, _WATER)),
        ("red paper", (Paper, paint.RedPaint)),
    ),
)
"""The recipes for training, development and test; each comes for both rooms."""

_FOUND_IN_HOUSE: Final = (_WATER, paint.BluePaint, paint.RedPaint)

_VARIATIONS: Final = [
    (room, product, kinds) for recipes in _RECIPES for room in _ROOMS for product, kinds in recipes
]


class TaskChemistryMix(TaskParametric):
    """A recipe, and those of its ingredients that the house may lack."""

    COUNT = 32

    def combination(self, world: World, idx: int) -> list[TaskModifier]:
        """Make the ingredients and the recipe."""
        room, product, kinds = _VARIATIONS[idx]
        made = [kind(world) for kind in kinds]
        names = [obj.name for obj in made]
        out: list[TaskModifier] = [
            placed(obj, room) for obj in made if type(obj) not in _FOUND_IN_HOUSE
        ]
        out += [
            TaskValue("inputChemicals", ",".join(names)),
            TaskValue("result", product),
            TaskValue("location", room),
        ]
        return [*out, placed(Recipe.mk_recipe(world, product, names), room)]

    def describe(
        self, given: Notes, idx: int, world: World, goals: list[Goal], unordered: list[Goal]
    ) -> str:
        """Ask for the substance."""
        del idx, world
        product, names = given.text("result"), given.texts("inputChemicals")
        goals.append(GoalFind(product, f"focus on result chemical ({product})"))
        unordered.append(GoalMoveToNewLocation("move to a new location"))
        unordered += [GoalInRoomWithObject(name, _with(name)) for name in names]
        unordered += [
            GoalObjectsInSingleContainer(names, "have all ingredients alone in a single container"),
            GoalInRoomWithObject(product, _with(product)),
            GoalPastActionReadObject("recipe", "read recipe"),
        ]
        return (
            f"Your task is to use chemistry to create the substance '{product}'. "
            "A recipe and some of the ingredients might be found near the "
            f"{given.text('location')}. "
            f"When you are done, focus on the {product}."
        )


def _with(name: str) -> str:
    return f"be in same location as {name}"
