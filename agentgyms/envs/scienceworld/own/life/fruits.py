"""Fruits."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.life.food import ColoredFood, NamedFood
from agentgyms.envs.scienceworld.own.properties.materials import PlantMatterProp


class Fruit(NamedFood):
    """A fruit."""

    ARTICLE = "a "


class Apple(ColoredFood, Fruit):
    """An apple."""

    KIND, COLOR = "apple", "red"


class Apricot(ColoredFood, Fruit):
    """An apricot, the only fruit that has a material."""

    KIND, COLOR, MATERIAL = "apricot", "orange", PlantMatterProp


class Avocado(Fruit):
    """An avocado."""

    KIND, ARTICLE = "avocado", "an "


class Banana(Fruit):
    """A banana."""

    KIND = "banana"


class Cherry(Fruit):
    """A cherry."""

    KIND = "cherry"


class Lemon(Fruit):
    """A lemon."""

    KIND = "lemon"


class Orange(Fruit):
    """An orange."""

    KIND, ARTICLE = "orange", "an "


class Grapefruit(Fruit):
    """A grapefruit, which the real engine gives the article `an`."""

    KIND, ARTICLE = "grapefruit", "an "


class Peach(Fruit):
    """A peach."""

    KIND = "peach"


class Pear(Fruit):
    """A pear."""

    KIND = "pear"
