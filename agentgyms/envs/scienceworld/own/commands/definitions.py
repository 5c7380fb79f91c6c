"""The table of commands: their words, and the actions that they lead to."""

from __future__ import annotations

from typing import Final, NamedTuple

from agentgyms.envs.scienceworld.own.commands import connecting, handling, looking, moving
from agentgyms.envs.scienceworld.own.commands.actions import Action, Assignments
from agentgyms.envs.scienceworld.own.maps import MutableMap
from agentgyms.envs.scienceworld.own.objects.agent import Agent
from agentgyms.envs.scienceworld.own.simplify import (
    SIMPLIFICATION_NO_ELECTRICAL_ACTION,
    SIMPLIFICATION_TELEPORT_ACTION,
    SimplifierProcessor,
)

Pattern = tuple[tuple[str, ...] | str, ...]
"""A command's parts: words of which one must follow, or the name of an object's place."""


class Command(NamedTuple):
    """One kind of command; the engine orders them by the hash of `name`.

    It needs the simplification `only`; the simplification `never` takes it away. If `everywhere`,
    it may name things in any place. `moves_to` is where it moves things, if it names no place.
    """

    name: str
    pattern: Pattern
    action: type[Action]
    moves_to: str = ""
    everywhere: bool = False
    only: str = ""
    never: str = ""

    def __deepcopy__(self, memo: dict[int, object]) -> Command:
        return self  # it never changes

    def typecast(self, assignments: Assignments) -> Action:
        """Return the action with its objects."""
        agent = assignments["agent"]
        assert isinstance(agent, Agent)
        if self.moves_to == "inventory":
            assignments = {**assignments, "moveTo": agent.inventory_container()}
        elif self.moves_to == "here":
            here = agent.container() or agent.inventory_container()
            assignments = {**assignments, "moveTo": here}
        return self.action(self.name, assignments)

    def example(self) -> str:
        """Return the command's words, with OBJ for objects."""
        return " ".join("OBJ" if isinstance(part, str) else part[0] for part in self.pattern)


_GO: Final = (
    "go", "go through", "walk through", "move through", "go to", "walk to", "move to", "go into",
    "move into",
)  # fmt: skip
_ELECTRICAL: Final = SIMPLIFICATION_NO_ELECTRICAL_ACTION

COMMANDS: Final = (
    Command("open door", (("open",), "door"), handling.ActionOpenDoor),
    Command("close door", (("close",), "door"), handling.ActionCloseDoor),
    Command("move through door", (_GO, "doorOrLocation"), moving.ActionMoveThroughDoor),
    Command("look around", (("look around", "look"),), looking.ActionLookAround),
    Command("look at", (("look at", "look on", "examine"), "obj"), looking.ActionLookAt),
    Command("look in", (("look in",), "obj"), looking.ActionLookIn),
    Command("activate", (("activate", "turn on"), "device"), handling.ActionActivate),
    Command("deactivate", (("deactivate", "turn off"), "device"), handling.ActionDeactivate),
    Command("eat", (("eat", "consume"), "food"), handling.ActionEat),
    Command(
        "move object",
        (("move", "put"), "obj", ("to", "in", "into", "on"), "moveTo"),
        moving.ActionMoveObject,
    ),
    Command(
        "pour object",
        (("pour",), "obj", ("in", "into", "on", "to"), "moveTo"),
        moving.ActionPourObject,
    ),
    Command(
        "dunk object", (("dunk",), "moveTo", ("in", "into"), "moveFrom"), moving.ActionDunkObject
    ),
    Command("focus on", (("focus on", "focus"), "obj"), handling.ActionFocus),
    Command("reset task", (("reset task",),), handling.ActionResetTask),
    Command(
        "use object", (("use",), "device", ("on", "with"), "patient"), handling.ActionUseDevice
    ),
    Command("read", (("read",), "document"), looking.ActionRead),
    Command("flush", (("flush",), "device"), handling.ActionFlush),
    Command(
        "connect electrically",
        (("connect",), "terminalA", ("to", "in", "into"), "terminalB"),
        connecting.ActionConnectElectrical,
        never=_ELECTRICAL,
    ),
    Command(
        "disconnect electrically",
        (("disconnect",), "obj"),
        connecting.ActionDisconnectElectrical,
        never=_ELECTRICAL,
    ),
    Command("wait1", (("wait1",),), handling.ActionWait1),
    Command("wait10", (("wait",),), handling.ActionWait10),
    Command("view inventory", (("inventory",),), looking.ActionInventory),
    Command(
        "pick up",
        (("pick up", "get", "take"), "obj"),
        moving.ActionMoveObject,
        moves_to="inventory",
    ),
    Command("put down", (("put down", "drop"), "obj"), moving.ActionMoveObject, moves_to="here"),
    Command("mix", (("mix", "stir"), "container"), handling.ActionMix),
    Command("task description", (("task",),), looking.ActionTaskDesc),
    Command(
        "teleport to location",
        (("teleport", "teleport to", "teleport into"), "location"),
        moving.ActionTeleport,
        everywhere=True,
        only=SIMPLIFICATION_TELEPORT_ACTION,
    ),
)
"""All commands, in the order in which the engine registers them."""


def commands_of(simplifier: SimplifierProcessor) -> tuple[Command, ...]:
    """Return the commands of a game, in the order of the engine's map."""
    known: MutableMap[str, Command] = MutableMap()
    for command in COMMANDS:
        enabled = simplifier.is_simplification_enabled
        if (not command.only or enabled(command.only)) and not (
            command.never and enabled(command.never)
        ):
            known[command.name] = command
    return tuple(known.values())
