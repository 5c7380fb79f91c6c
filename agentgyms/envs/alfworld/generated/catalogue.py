"""Types of rooms, furniture and objects of generated households, and their placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Furniture:
    """A type of receptacle, such as `CounterTop`; `holds` are sorts of things, see `Thing.sort`.

    `SinkBasin` cleans, `Microwave` heats, `Fridge` cools. `word` is `in` or `on`, for sentences.
    """

    name: str
    openable: bool
    holds: frozenset[str]
    word: str


@dataclass(frozen=True, slots=True)
class Thing:
    """A type of object, such as `ButterKnife`; its sort decides where it goes.

    Traits are some of `cleanable`, `heatable`, `coolable`, `sliceable`, `vessel`, `lamp`. `mass` is
    whether English does not count it: some bread, not a bread.
    """

    name: str
    sort: str
    traits: frozenset[str]
    mass: bool = False


@dataclass(frozen=True, slots=True)
class Room:
    """A kind of room, such as `kitchen`; a large one has several pieces of `repeated`."""

    name: str
    always: tuple[str, ...]
    sometimes: tuple[str, ...]
    repeated: tuple[str, ...]
    things: tuple[str, ...]
    families: tuple[str, ...]


def _furniture(name: str, holds: str, *, openable: bool = False, word: str = "on") -> Furniture:
    return Furniture(name, openable, frozenset(holds.split()), word)


def _thing(name: str, sort: str, traits: str = "", *, mass: bool = False) -> Thing:
    return Thing(name, sort, frozenset(traits.split()), mass)


_EVERYDAY: Final = "dish paper gadget decor"
_FOOD: Final = "cleanable heatable coolable sliceable"
_DISH: Final = "cleanable heatable coolable vessel"

FURNITURE: Final = {
    item.name: item
    for item in (
        _furniture("ArmChair", "paper gadget textile toy"),
        _furniture("BathtubBasin", "toiletry textile", word="in"),
        _furniture("Bed", "paper gadget textile toy"),
        _furniture("Cabinet", "dish cutlery pan bottle toiletry decor", openable=True, word="in"),
        _furniture("CoffeeTable", f"{_EVERYDAY} lamp"),
        _furniture("CounterTop", "food dish cutlery pan bottle toiletry"),
        _furniture("Desk", f"{_EVERYDAY} lamp"),
        _furniture("DiningTable", "food dish cutlery pan bottle paper decor"),
        _furniture("Drawer", "cutlery paper gadget toiletry", openable=True, word="in"),
        _furniture("Dresser", f"{_EVERYDAY} lamp textile"),
        _furniture("Fridge", "food dish bottle pan", openable=True, word="in"),
        _furniture("GarbageCan", "food paper toiletry", word="in"),
        _furniture("LaundryHamper", "textile", openable=True, word="in"),
        _furniture("Microwave", "food dish", openable=True, word="in"),
        _furniture("Safe", "paper gadget", openable=True, word="in"),
        _furniture("Shelf", "dish paper gadget decor bottle toiletry"),
        _furniture("SideTable", f"{_EVERYDAY} toiletry lamp"),
        _furniture("SinkBasin", "food dish cutlery pan toiletry", word="in"),
        _furniture("Sofa", "paper gadget textile toy"),
        _furniture("StoveBurner", "pan"),
        _furniture("TVStand", "gadget decor paper lamp"),
        _furniture("Toilet", "toiletry decor paper"),
    )
}

THINGS: Final = {
    item.name: item
    for item in (
        _thing("AlarmClock", "gadget"),
        _thing("Apple", "food", _FOOD),
        _thing("Book", "paper"),
        _thing("Bowl", "dish", _DISH),
        _thing("Box", "toy", "vessel"),
        _thing("Bread", "food", "heatable coolable sliceable", mass=True),
        _thing("ButterKnife", "cutlery", "cleanable"),
        _thing("Candle", "decor"),
        _thing("CellPhone", "gadget"),
        _thing("Cloth", "toiletry", "cleanable"),
        _thing("CreditCard", "paper"),
        _thing("Cup", "dish", _DISH),
        _thing("DeskLamp", "lamp", "lamp"),
        _thing("Egg", "food", "cleanable heatable coolable"),
        _thing("FloorLamp", "lamp", "lamp"),
        _thing("Fork", "cutlery", "cleanable"),
        _thing("KeyChain", "gadget"),
        _thing("Knife", "cutlery", "cleanable"),
        _thing("Laptop", "gadget"),
        _thing("Lettuce", "food", "cleanable coolable sliceable", mass=True),
        _thing("Mug", "dish", _DISH),
        _thing("Newspaper", "paper"),
        _thing("Pan", "pan", "cleanable coolable vessel"),
        _thing("Pen", "paper"),
        _thing("Pencil", "paper"),
        _thing("Pillow", "textile"),
        _thing("Plate", "dish", _DISH),
        _thing("Pot", "pan", "cleanable coolable vessel"),
        _thing("Potato", "food", _FOOD),
        _thing("RemoteControl", "gadget"),
        _thing("SaltShaker", "bottle"),
        _thing("SoapBar", "toiletry", "cleanable"),
        _thing("SoapBottle", "toiletry"),
        _thing("Spoon", "cutlery", "cleanable"),
        _thing("SprayBottle", "toiletry"),
        _thing("TeddyBear", "toy"),
        _thing("TissueBox", "decor"),
        _thing("ToiletPaper", "toiletry", mass=True),
        _thing("Tomato", "food", _FOOD),
        _thing("Towel", "textile"),
        _thing("Vase", "decor"),
        _thing("Watch", "gadget"),
        _thing("WineBottle", "bottle", "coolable"),
    )
}

ROOMS: Final = (
    Room(
        "kitchen",
        ("Fridge", "Microwave", "SinkBasin"),
        ("Cabinet", "CounterTop", "DiningTable", "Drawer", "GarbageCan", "Shelf", "StoveBurner"),
        ("Cabinet", "Drawer", "StoveBurner"),
        (
            *("Apple", "Bowl", "Bread", "ButterKnife", "Cup", "Egg", "Fork", "Knife", "Lettuce"),
            *("Mug", "Pan", "Plate", "Pot", "Potato", "SaltShaker", "Spoon", "Tomato"),
            "WineBottle",
        ),
        ("pick", "clean", "heat", "cool", "pick2"),
    ),
    Room(
        "living room",
        ("SideTable",),
        (
            *("ArmChair", "Cabinet", "CoffeeTable", "DiningTable", "Drawer", "GarbageCan"),
            *("Shelf", "Sofa", "TVStand"),
        ),
        ("Cabinet", "Drawer", "Shelf"),
        (
            *("Book", "Box", "Candle", "CreditCard", "KeyChain", "Laptop", "Newspaper", "Pillow"),
            *("RemoteControl", "TissueBox", "Vase", "Watch"),
        ),
        ("pick", "look", "pick2"),
    ),
    Room(
        "bedroom",
        ("Bed", "SideTable"),
        (
            *("ArmChair", "Desk", "Drawer", "Dresser", "GarbageCan", "LaundryHamper", "Safe"),
            "Shelf",
        ),
        ("Drawer", "Safe", "Shelf"),
        (
            *("AlarmClock", "Book", "CellPhone", "CreditCard", "KeyChain", "Laptop", "Mug", "Pen"),
            *("Pencil", "Pillow", "TeddyBear", "Watch"),
        ),
        ("pick", "look", "pick2"),
    ),
    Room(
        "bathroom",
        ("SinkBasin",),
        (
            *("BathtubBasin", "Cabinet", "CounterTop", "Drawer", "GarbageCan", "LaundryHamper"),
            *("Shelf", "SideTable", "Toilet"),
        ),
        ("Cabinet", "Drawer", "Shelf"),
        (
            *("Candle", "Cloth", "SoapBar", "SoapBottle", "SprayBottle", "TissueBox"),
            *("ToiletPaper", "Towel"),
        ),
        ("pick", "clean", "pick2"),
    ),
    Room(
        "study",
        ("Desk",),
        (
            *("ArmChair", "Cabinet", "Drawer", "Dresser", "GarbageCan", "Safe", "Shelf"),
            *("SideTable", "Sofa"),
        ),
        ("Cabinet", "Drawer", "Shelf"),
        (
            *("Book", "CellPhone", "CreditCard", "KeyChain", "Laptop", "Mug", "Newspaper", "Pen"),
            *("Candle", "Pencil", "Vase", "Watch"),
        ),
        ("pick", "look", "pick2"),
    ),
)
