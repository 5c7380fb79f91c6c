"""The focus of an agent."""

from __future__ import annotations

from agentgyms.envs.scienceworld.own.objects.base import EnvObject


class ObjMonitor:
    """Holds the object that the agent focuses on; the engine has room for one."""

    __slots__ = ("_focus",)

    def __init__(self) -> None:
        self._focus: EnvObject | None = None

    def clear_monitored_objects(self) -> None:
        """Lose the focus."""
        self._focus = None

    def monitored_objects(self) -> tuple[EnvObject, ...]:
        """Return the focus, if there is one."""
        return () if self._focus is None else (self._focus,)

    def add_monitor(self, obj: EnvObject) -> bool:
        """Focus on an object unless there is a focus already; tell whether it did."""
        if self._focus is not None:
            return False
        self._focus = obj
        return True

    def remove_monitor(self, obj: EnvObject) -> None:
        """Lose the focus if it is this object."""
        if self._focus is obj:
            self._focus = None
