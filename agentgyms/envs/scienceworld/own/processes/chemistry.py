"""What comes of mixing the contents of a container."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.objects import paint as p
from agentgyms.envs.scienceworld.own.objects import substances as s

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject
    from agentgyms.envs.scienceworld.own.world import World

# What the engine looks for before it mixes: the name, and the state it must have ("" for any).
_SOUGHT = {
    "water": "liquid",
    "sodium chloride": "solid",
    **dict.fromkeys(("soap", "flour", "sugar", "chocolate", "marshmallow", "iron block"), ""),
    **dict.fromkeys(("sodium bicarbonate", "acetic acid", "peanut", "almond", "cashew"), ""),
    **dict.fromkeys(("apple", "orange", "banana", "jam", "bread", "paper"), ""),
}
_PAINTS = (
    *("red", "blue", "yellow", "violet", "green", "orange", "yellow-orange", "red-orange"),
    # The engine calls the last but one of these yellow-green elsewhere, and so never finds it.
    *("violet-red", "blue-violet", "green-blue", "green-yellow", "brown"),
)

_Maker = Callable[["World"], "EnvObject"]
_Rule = tuple[tuple[str, ...], _Maker, str]


def _dough(world: World) -> EnvObject:
    from agentgyms.envs.scienceworld.own.life.food import Dough

    return Dough(world)


def _smores(world: World) -> EnvObject:
    from agentgyms.envs.scienceworld.own.life.food import Smores

    return Smores(world)


def _mixed_nuts(world: World) -> EnvObject:
    from agentgyms.envs.scienceworld.own.life.food import MixedNuts

    return MixedNuts(world)


def _fruit_salad(world: World) -> EnvObject:
    from agentgyms.envs.scienceworld.own.life.food import FruitSalad

    return FruitSalad(world)


def _sandwich(filling: str) -> _Maker:
    def make(world: World) -> EnvObject:
        from agentgyms.envs.scienceworld.own.life.food import Sandwich

        return Sandwich(world, filling)

    return make


def _paper(color: str) -> _Rule:
    def make(world: World) -> EnvObject:
        from agentgyms.envs.scienceworld.own.objects.documents import ColoredPaper

        return ColoredPaper(world, color)

    # The engine names blue paint whatever the colour is.
    return (
        ("paper", f"{color} paint"),
        make,
        f"Paper and blue paint mix to produce {color} paper.",
    )


def _color(first: str, second: str, make: _Maker, text: str) -> _Rule:
    return ((f"{first} paint", f"{second} paint"), make, text)


_RULES: tuple[_Rule, ...] = (
    (
        ("water", "sodium chloride"),
        s.SaltWater,
        "Sodium chloride and water mix to produce salt water.",
    ),
    (("water", "soap"), s.SoapyWater, "Soap and water mix to produce soapy water."),
    (("water", "sugar"), s.SugarWater, "Sugar and water mix to produce sugar water."),
    (("water", "flour"), _dough, "Flour and water mix to produce dough."),
    (("chocolate", "marshmallow"), _smores, "Chocolate and marshmallow mix to produce smores."),
    (("water", "iron block"), s.Rust, "Iron block and water mix to produce rust."),
    (
        ("sodium bicarbonate", "acetic acid"),
        s.SodiumAcetate,
        "Sodium bicarbonate and acetic acid mix to produce sodium acetate.",
    ),
    (
        ("bread", "peanut"),
        _sandwich("peanut butter"),
        "Bread and peanuts mix to produce a peanut butter sandwich.",
    ),
    (("bread", "jam"), _sandwich("jam"), "Bread and peanuts mix to produce a jam sandwich."),
    (
        ("bread", "banana"),
        _sandwich("banana"),
        "Bread and peanuts mix to produce a banana sandwich.",
    ),
    *(_paper(color) for color in ("red", "green", "blue", "orange", "yellow", "violet")),
    _color("red", "blue", p.VioletPaint, "Red and blue paint mix to produce violet paint."),
    _color("blue", "yellow", p.GreenPaint, "Blue and yellow paint mix to produce green paint."),
    _color("yellow", "red", p.OrangePaint, "Yellow and red paint mix to produce orange paint."),
    _color(
        *("yellow", "orange", p.YellowOrangePaint),
        "Yellow and orange paint mix to produce yellow-orange paint.",
    ),
    _color(
        *("orange", "red", p.RedOrangePaint),
        "Red and orange paint mix to produce red-orange paint.",
    ),
    _color(
        *("red", "violet", p.VioletRedPaint),
        "Violet and red paint mix to produce violet-red paint.",
    ),
    _color(
        *("violet", "blue", p.BlueVioletPaint),
        "Blue and violet paint mix to produce blue-violet paint.",
    ),
    _color(
        *("blue", "green", p.GreenBluePaint),
        "Blue and green paint mix to produce blue green paint.",
    ),
    _color(
        *("green", "yellow", p.YellowGreenPaint),
        "Green and yellow paint mix to produce yellow-green paint.",
    ),
    (
        ("peanut", "almond", "cashew"),
        _mixed_nuts,
        "Peanuts, almonds, and cashews mix to produce mixed nuts.",
    ),
    (
        ("apple", "orange", "banana"),
        _fruit_salad,
        "Apples, oranges, and bananas mix to produce fruit salad.",
    ),
    (
        ("bread", "peanut", "jam"),
        _sandwich("peanut butter with jam"),
        "Bread and peanuts and jam mix to produce a peanut butter with jam sandwich.",
    ),
    (
        ("bread", "peanut", "banana"),
        _sandwich("peanut butter with banana"),
        "Bread and peanuts and jam mix to produce a peanut butter with banana sandwich.",
    ),
)


def _substance(container: EnvObject, name: str, state: str) -> EnvObject | None:
    """Return the first object in a container that has a name, or is of a substance, in a state."""
    for obj in container.contained_objects():
        material = obj.prop_material
        if obj.name == name and (
            not state or (material is not None and material.state_of_matter == state)
        ):
            return obj
        # Where any state will do for a name, none will for a substance.
        if material is not None and (material.substance_name, material.state_of_matter) == (
            name,
            state,
        ):
            return obj
    return None


def mix_container(container: EnvObject) -> tuple[bool, str]:
    """Mix what is in a container; return whether that works, and the text."""
    contents = container.contained_objects_not_hidden()
    if not contents:
        return (False, "That container is empty, so there are no items to mix.")
    if len(contents) == 1:
        return (False, f"There is only one thing ({contents[0].descript_name()})")
    found = {name: _substance(container, name, state) for name, state in _SOUGHT.items()}
    paints = {f"{c} paint": _substance(container, f"{c} paint", "liquid") for c in _PAINTS}
    found.update(paints)
    if len(contents) <= 3:
        for names, make, text in _RULES:
            parts = [found[name] for name in names]
            if len(names) == len(contents) and None not in parts:
                _replace(container, parts, make)
                return (True, text)
    if len(contents) <= 4 and len(contents) == sum(x is not None for x in paints.values()):
        _replace(container, list(paints.values()), p.BrownPaint)
        return (True, "The paints mix to produce brown paint.")
    name = container.descript_name()
    return (False, f"Mixing the contents of the {name} does not appear to produce anything new.")


def _replace(container: EnvObject, parts: list[EnvObject | None], make: _Maker) -> None:
    for part in parts:
        if part is not None:
            part.delete()
    container.add_object(make(container.world))
