"""Actions that move the agent, or things."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.commands.actions import UNKNOWN_CATCH, Action
from agentgyms.envs.scienceworld.own.commands.context import Context
from agentgyms.envs.scienceworld.own.jvm import JavaError
from agentgyms.envs.scienceworld.own.objects.agent import Agent
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.locations import Location
from agentgyms.envs.scienceworld.own.objects.portals import Door, Portal

_DIRECTLY = (
    "You can't pick up a liquid directly.  Try pouring it from one container to another, or dunking"
    " empty containers into containers filled with the liquid."
)


class ActionMoveThroughDoor(Action):
    """Go through a door, or to a place that a way leads to."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Go, and return where."""
        agent, aim = self.agent, self.assignments["doorOrLocation"]
        refused = why_not_go(agent, aim)
        if refused:
            return refused
        if isinstance(aim, Door):
            there = aim.connects_to(_place(agent))
            assert there is not None  # was checked
            there.add_object(agent)
            return f"You move through the {aim.name} to the {there.name}."
        if way_to(agent, aim) is None:
            return UNKNOWN_CATCH
        aim.add_object(agent)
        return f"You move to the {aim.name}."


def why_not_go(agent: Agent, aim: EnvObject) -> str:
    """Return why the agent cannot go through a door or to a place, or ""."""
    if isinstance(aim, Door):
        if not aim.is_currently_passable():
            return aim.unpassable_error_message()
        if aim.connects_to(_place(agent)) is None:
            return "The door doesn't appear to go anywhere."
        return ""
    if not isinstance(aim, Location):
        return f"Its not clear how to go to/through a {aim.name}."
    if agent.container_recursive_of_type(Location) is None:
        return "<ERROR> The agent doesn't appear to be in a valid location."
    way = way_to(agent, aim)
    if way is None:
        return "It's not clear how to get there from here."
    return "" if way.is_currently_passable() else way.unpassable_error_message()


def way_to(agent: Agent, aim: EnvObject) -> Portal | None:
    """Return the first way from the agent's place to one that has the name of the aim."""
    here = agent.container_recursive_of_type(Location)
    for portal in here.portals() if here is not None else ():
        if isinstance(portal, Portal) and here is not None:
            there = portal.connects_to(here)
            if there is not None and aim.name in there.referents():
                return portal
    return None


def _place(agent: Agent) -> EnvObject:
    container = agent.container()
    if container is None:
        raise JavaError("java.util.NoSuchElementException: None.get")
    return container


class ActionTeleport(Action):
    """Go to any place."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Go, and return where."""
        aim = self.assignments["location"]
        if not is_teleport_aim(aim):
            return f"Its not clear how to go to {aim.name}."
        aim.add_object(self.agent)
        return f"You teleport to the {aim.name}."


def is_teleport_aim(aim: EnvObject) -> bool:
    """Tell whether one can teleport there."""
    return isinstance(aim, Location) and aim.name.lower() != "universe"


class ActionMoveObject(Action):
    """Put a thing into another one, the inventory or the room."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Move the thing."""
        obj, aim = self.assignments["obj"], self.assignments["moveTo"]
        refused = self._refusal(obj, aim)
        if refused:
            return refused
        aim.add_object(obj)
        told = f"(disconnecting {obj.name})" if _torn_off(obj) else ""
        return f"{told}You move the {obj.name} to the {aim.name}."

    @staticmethod
    def _refusal(obj: EnvObject, aim: EnvObject) -> str:
        if not is_movable(obj):
            return f"The {obj.name} is not moveable."
        if obj is aim:
            return "You can't move something into itself."
        state = state_of(obj)
        if state == "liquid":
            return _DIRECTLY
        if state == "gas":
            return "You can't pick up a gas directly."
        if aim.prop_container is None:
            return "That can't be moved there."
        if not aim.prop_container.is_open:
            return f"That can't be moved there, because the {aim.name} isn't open."
        return ""


class ActionPourObject(Action):
    """Pour a liquid, or all that is in a container."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Pour it."""
        obj, aim = self.assignments["obj"], self.assignments["moveTo"]
        refused = why_not_pour_out(obj) or self._why_not_into(obj, aim)
        if refused:
            return refused
        if obj is aim:
            return "You can't move something into itself."
        if not is_vessel(obj):
            aim.add_object(obj)
            told = f"(disconnecting {obj.name})\n" if _torn_off(obj) else ""
            return f"{told}You pour the {obj.name} into the {aim.name}."
        told = ""
        for inside in obj.contained_objects():
            if is_movable(inside):
                aim.add_object(inside)
                told += f"(disconnecting {inside.name})\n" if _torn_off(inside) else ""
        return f"{told}You pour the contents of the {obj.name} into the {aim.name}."

    @staticmethod
    def _why_not_into(obj: EnvObject, aim: EnvObject) -> str:
        if aim.prop_container is None:
            return "That can't be moved there, because it's not a container."
        if not aim.prop_container.is_open:
            return f"That can't be moved there, because the {aim.name} isn't open."
        if is_vessel(obj) and not obj.contained_objects():
            return f"The {obj.name} is empty, so there's nothing to pour."
        return ""


def why_not_pour_out(obj: EnvObject) -> str:
    """Return why a thing cannot be poured anywhere, or ""."""
    if not is_movable(obj):
        return f"The {obj.name} is not moveable."
    if is_vessel(obj):
        container = obj.prop_container
        if container is not None and not container.is_open:
            return f"The {obj.name} can't be poured out, because it's not open."
        return ""
    around = obj.container()
    if around is None:
        return f"The {obj.name} can't be poured out because it doesn't appear to be in a container."
    if not is_movable(around):
        return f"The {around.name} the {obj.name} is in is not movable."
    state = state_of(obj)
    if state == "solid":
        return "I'm not sure how to pour a solid. "
    return "You can't pour a gas directly. " if state == "gas" else ""


class ActionDunkObject(Action):
    """Fill a container with the liquids of another."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Move the liquids."""
        source, vessel = self.assignments["moveFrom"], self.assignments["moveTo"]
        if source is vessel:
            return "You can't dunk something into itself."
        refused = why_not_dunk(vessel) or self._why_not_from(source)
        if refused:
            return refused
        told, moved = "", movable_liquids(source)
        for liquid in moved:
            vessel.add_object(liquid)
            told += f"(disconnecting {liquid.name})" if _torn_off(liquid) else ""
        names = ", ".join(liquid.name for liquid in moved)
        return (
            f"{told}You dunk the {vessel.name} in the {source.name}, moving the liquids ({names})"
            f" to the {vessel.name}."
        )

    @staticmethod
    def _why_not_from(source: EnvObject) -> str:
        if not _liquids(source):
            return f"The {source.name} does not contain any liquids to dunk into."
        if not movable_liquids(source):
            return f"The liquids in {source.name} aren't able to move."
        return ""


def why_not_dunk(vessel: EnvObject) -> str:
    """Return why a thing cannot be dunked into anything, or ""."""
    if not is_movable(vessel):
        return f"The {vessel.name} is not moveable."
    if vessel.prop_container is not None and not vessel.prop_container.is_open:
        return f"The {vessel.name} is not open."
    return "" if is_vessel(vessel) else f"The {vessel.name} is not a container."


def movable_liquids(source: EnvObject) -> list[EnvObject]:
    """Return the liquids in a thing that can be moved."""
    return [liquid for liquid in _liquids(source) if is_movable(liquid)]


def is_movable(obj: EnvObject) -> bool:
    """Tell whether an object can be moved."""
    return obj.prop_moveable is not None and obj.prop_moveable.is_movable


def is_vessel(obj: EnvObject) -> bool:
    """Tell whether an object is made to hold others."""
    return obj.prop_container is not None and obj.prop_container.is_container


def state_of(obj: EnvObject) -> str:
    """Return the state of matter of an object, or "" if it is of no material."""
    return "" if obj.prop_material is None else obj.prop_material.state_of_matter


def _liquids(source: EnvObject) -> list[EnvObject]:
    inside = source.contained_objects(include_hidden=False)
    return [obj for obj in inside if state_of(obj) == "liquid"]


def _torn_off(obj: EnvObject) -> bool:
    """Disconnect an object's wires; tell whether there were any."""
    if not obj.is_electrically_connected():
        return False
    obj.disconnect_electrical_terminals()
    return True
