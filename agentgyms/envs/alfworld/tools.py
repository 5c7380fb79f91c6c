"""The game's commands as tools that a model calls."""

from __future__ import annotations

from typing import Final

from agentgyms.core.tools import Tool, Tools

_OBJECT: Final = "Name and number of an object, such as mug 1."
_RECEPTACLE: Final = "Name and number of a place, such as shelf 1."


def _with(verb: str, description: str, place: str) -> Tool:
    """Return the tool of a verb that treats a held object at a place."""
    arguments = {"object": "The object that you carry, such as mug 1.", "receptacle": place}
    return Tool(verb, description, f"{verb} {{object}} with {{receptacle}}", arguments)


TOOLS: Final = Tools(
    Tool("go_to", "Walk to a place.", "go to {receptacle}", {"receptacle": _RECEPTACLE}),
    Tool("open", "Open a closed place.", "open {receptacle}", {"receptacle": _RECEPTACLE}),
    Tool("close", "Close an open place.", "close {receptacle}", {"receptacle": _RECEPTACLE}),
    Tool(
        "take",
        "Take an object from the place where you are; you carry one at a time.",
        "take {object} from {receptacle}",
        {"object": _OBJECT, "receptacle": _RECEPTACLE},
    ),
    Tool(
        "move",
        "Put the object that you carry into or onto the place where you are.",
        "move {object} to {receptacle}",
        {"object": _OBJECT, "receptacle": _RECEPTACLE},
    ),
    Tool("use", "Switch something on, such as a lamp.", "use {object}", {"object": _OBJECT}),
    _with("clean", "Wash the object that you carry.", "A sink, such as sinkbasin 1."),
    _with("heat", "Heat the object that you carry.", "An oven, such as microwave 1."),
    _with("cool", "Cool the object that you carry.", "A fridge, such as fridge 1."),
    Tool(
        "slice",
        "Slice an object with a knife that you carry.",
        "slice {object} with {knife}",
        {"object": _OBJECT, "knife": "The knife, such as knife 1."},
    ),
    Tool(
        "examine",
        "Look closely at an object or a place.",
        "examine {thing}",
        {"thing": "Name and number, such as mug 1."},
    ),
    Tool("look", "Look around.", "look"),
    Tool("inventory", "See what you carry.", "inventory"),
    Tool("help", "List the commands.", "help"),
)
