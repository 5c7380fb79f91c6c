"""Actions that open, switch, use, eat or mix things, wait, or set the focus."""

from __future__ import annotations

from typing import ClassVar

from agentgyms.envs.scienceworld.own.commands.actions import Action
from agentgyms.envs.scienceworld.own.commands.context import Context
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.objects.plumbing import Toilet
from agentgyms.envs.scienceworld.own.processes.chemistry import mix_container


class _Shutting(Action):
    """Opens or closes a door or a container; `UNABLE` is the word for what one cannot do."""

    __slots__ = ()

    OPEN: ClassVar[bool]
    STATE: ClassVar[str]
    UNABLE: ClassVar[str]

    def run(self, context: Context) -> str:
        obj = self.assignments["door"]
        refused = self.refusal(obj)
        if refused:
            return refused
        # A thing that is both portal and container has its portal changed.
        part = obj.prop_portal or obj.prop_container
        assert part is not None  # was checked
        part.is_open = self.OPEN
        return f"The {obj.name} is now {self.STATE}."

    @classmethod
    def refusal(cls, obj: EnvObject) -> str:
        """Return why the thing stays as it is, or ""."""
        unable = f"The {obj.name} is not {cls.UNABLE}."
        portal, container = obj.prop_portal, obj.prop_container
        if portal is None and container is None:
            return unable
        if portal is not None:
            if portal.is_open == cls.OPEN:
                return f"The {obj.name} is already {cls.STATE}."
            if not portal.is_openable:
                return unable
        if container is not None:
            if not container.is_closable:
                return unable
            if container.is_open == cls.OPEN:
                return f"The {obj.name} is already {cls.STATE}."
        return ""


class ActionOpenDoor(_Shutting):
    """Open a door or a container."""

    __slots__ = ()
    OPEN, STATE, UNABLE = True, "open", "openable"


class ActionCloseDoor(_Shutting):
    """Close a door or a container."""

    __slots__ = ()
    OPEN, STATE, UNABLE = False, "closed", "closeable"


class _Switching(Action):
    __slots__ = ()

    ON: ClassVar[bool]
    STATE: ClassVar[str]

    def run(self, context: Context) -> str:
        obj = self.assignments["device"]
        device = obj.prop_device
        if device is None or not device.is_activable:
            # The engine says "activated" of both.
            return f"The {obj.name} is not something that can be activated."
        if device.is_activated == self.ON:
            return f"The {obj.name} is already {self.STATE}."
        if device.is_broken:
            return f"The {obj.name} appears broken, and can't be activated or deactivated."
        device.is_activated = self.ON
        return f"The {obj.name} is now {self.STATE}."

    @classmethod
    def applies(cls, obj: EnvObject) -> bool:
        device = obj.prop_device
        return device is not None and device.is_activable and device.is_activated != cls.ON


class ActionActivate(_Switching):
    """Switch a device on."""

    __slots__ = ()
    ON, STATE = True, "activated"


class ActionDeactivate(_Switching):
    """Switch a device off."""

    __slots__ = ()
    ON, STATE = False, "deactivated"


class ActionEat(Action):
    """Eat a thing, which is gone then."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Eat it."""
        food = self.assignments["food"]
        if not is_edible(food):
            return f"The {food.name} is not edible."
        harms = food.prop_edibility is not None and food.prop_edibility.is_poisonous
        food.remove_and_reset_container()
        return "You don't feel well." if harms else f"The {food.name} was delicious."


def is_edible(obj: EnvObject) -> bool:
    """Tell whether an object can be eaten."""
    return obj.prop_edibility is not None and obj.prop_edibility.is_edible


class ActionFlush(Action):
    """Flush a toilet."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Flush it."""
        obj = self.assignments["device"]
        if not isinstance(obj, Toilet):
            return "It's not clear how to flush that."
        if not can_flush(obj):
            return "That is already flushing."
        assert obj.prop_device is not None  # every toilet is a device
        obj.prop_device.is_activated = True
        return f"The {obj.name} is now flushing."


def can_flush(obj: EnvObject) -> bool:
    """Tell whether an object is a toilet that does not flush now."""
    device = obj.prop_device
    return isinstance(obj, Toilet) and device is not None and not device.is_activated


class ActionUseDevice(Action):
    """Use a device on a thing."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Use it."""
        device = self.assignments["device"]
        if not is_usable(device):
            return f"I'm not sure how to use the {device.name}. "
        worked, told = device.use_with(self.assignments["patient"])
        return told if worked else "I'm not sure how to use those two things together."


def is_usable(obj: EnvObject) -> bool:
    """Tell whether an object is a device that can be used on others."""
    return obj.prop_device is not None and obj.prop_device.is_usable


class ActionMix(Action):
    """Mix what is in a container."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Mix it; the engine says nothing where there are not two things."""
        container = self.assignments["container"]
        return mix_container(container)[1] if is_mixable(container) else ""


def is_mixable(obj: EnvObject) -> bool:
    """Tell whether two things are in an object; the hidden terminals count."""
    return len(obj.contained_objects()) > 1


class ActionFocus(Action):
    """Say that the task is about a thing."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Set the focus."""
        obj = self.assignments["obj"]
        context.obj_monitor.clear_monitored_objects()
        context.obj_monitor.add_monitor(obj)
        return f"You focus on the {obj.descript_name()}."


class ActionResetTask(Action):
    """Forget the focus and the goals."""

    __slots__ = ()

    def run(self, context: Context) -> str:
        """Forget them."""
        context.goal_sequence.reset()
        context.obj_monitor.clear_monitored_objects()
        return "You reset the goal progress and focus."


class _Waiting(Action):
    """Lets `TURNS` turns of the world pass after the one of the action itself."""

    __slots__ = ()

    TURNS: ClassVar[int]

    def run(self, context: Context) -> str:
        self.agent.set_wait(self.TURNS)
        return f"You decide to wait for {self.TURNS} iterations."


class ActionWait10(_Waiting):
    """Let eleven turns pass."""

    __slots__ = ()
    TURNS = 10


class ActionWait1(_Waiting):
    """Let two turns pass."""

    __slots__ = ()
    TURNS = 1
