"""Actions that tell the agent something, and change nothing."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.commands.actions import Action
from agentgyms.envs.scienceworld.own.commands.context import Context
from agentgyms.envs.scienceworld.own.objects.base import (
    MODE_CURSORY_DETAIL,
    MODE_DETAILED,
    EnvObject,
)
from agentgyms.envs.scienceworld.own.objects.documents import Document
from agentgyms.envs.scienceworld.own.objects.portals import Portal
from agentgyms.envs.scienceworld.own.objects.texts import object_list_to_string_description

_NOWHERE = "<ERROR> The agent is not in a container (this should never happen)"


class ActionLookAround(Action):
    """Describe the place of the agent."""

    __slots__ = ()
    TAKES_TIME = False

    def run(self, context: Context) -> str:
        """Return the text."""
        container = self.agent.container()
        if container is None:
            return _NOWHERE
        text = container.description_safe(MODE_DETAILED)
        return "<ERROR: attempting to view hidden object>" if text is None else text


class ActionLookAt(Action):
    """Describe a thing."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Return the text."""
        container = self.agent.container()
        if container is None:
            return _NOWHERE
        obj = self.assignments["obj"]
        if isinstance(obj, Portal):
            text = obj.description_safe_from(MODE_DETAILED, container)
        else:
            text = obj.description_safe(MODE_DETAILED)
        return "<ERROR: Could not retrieve object description>" if text is None else text


class ActionLookIn(Action):
    """List what is in a container, and its ways out."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Return the text."""
        obj = self.assignments["obj"]
        if self.agent.container() is None:
            return _NOWHERE
        if obj.prop_container is None:
            return "It's not clear how to look inside of that."
        if not obj.prop_container.is_open:
            return f"The {obj.name} isn't open, so you can't see inside."
        return self._inside(obj) + self._ways_out(obj)

    def _inside(self, obj: EnvObject) -> str:
        inside = obj.contained_objects()
        if not inside:
            return f"There is nothing in the {obj.name}.\n"
        listed = object_list_to_string_description(inside, self.agent, multiline=True)
        return f"Inside the {obj.name} is: \n{listed}\n"

    @staticmethod
    def _ways_out(obj: EnvObject) -> str:
        portals = obj.portals()
        if not portals:
            return ""
        told = [
            portal.description_safe_from(MODE_CURSORY_DETAIL, obj)
            for portal in portals
            if isinstance(portal, Portal)
        ]
        return f" You also see: {', '.join(text for text in told if text is not None)}."


class ActionInventory(Action):
    """List what the agent carries."""

    __slots__ = ()
    TAKES_TIME = False

    def run(self, context: Context) -> str:
        """Return the text."""
        inventory = self.agent.inventory_container()
        listed = object_list_to_string_description(
            inventory.contained_objects(), inventory, MODE_DETAILED, multiline=True
        )
        return f"In your inventory, you see:\n{listed}"


class ActionTaskDesc(Action):
    """Repeat the task."""

    __slots__ = ()
    TAKES_TIME = False

    def run(self, context: Context) -> str:
        """Return the text."""
        return f"Task Description:\n{self.agent.task_description()}"


class ActionRead(Action):
    """Read a document."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Return the text."""
        document = self.assignments["document"]
        if not isinstance(document, Document):
            return "It's not clear how to read that."
        return document.read_document()
