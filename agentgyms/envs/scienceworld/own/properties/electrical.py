"""The property of points that wires connect to."""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

MAX_CONNECTIONS: Final = 1


class _Described(Protocol):
    def description(self, mode: int) -> str: ...


_T = TypeVar("_T", bound=_Described)


class ElectricalConnectionProperties(Generic[_T]):
    """Holds what a point is connected to, which is one thing at most."""

    __slots__ = ("connected_to",)

    def __init__(self) -> None:
        self.connected_to: tuple[_T, ...] = ()

    def connections(self) -> tuple[_T, ...]:
        """Return what the point is connected to."""
        return self.connected_to

    def add_connection(self, obj: _T) -> bool:
        """Connect an object; tell whether the point was free."""
        if self.is_at_max_connections():
            return False
        self.connected_to = (*self.connected_to, obj)
        return True

    def remove_connection(self, obj: _T) -> bool:
        """Disconnect an object; tell whether it was connected."""
        if obj not in self.connected_to:
            return False
        self.connected_to = tuple(other for other in self.connected_to if other is not obj)
        return True

    def is_connected(self, obj: _T) -> bool:
        """Tell whether an object is connected."""
        return obj in self.connected_to

    def size(self) -> int:
        """Return the number of connections."""
        return len(self.connected_to)

    def is_at_max_connections(self) -> bool:
        """Tell whether the point is taken."""
        return len(self.connected_to) >= MAX_CONNECTIONS

    def connected_to_str(self) -> str:
        """Return the descriptions of what the point is connected to."""
        if not self.connected_to:
            return "nothing"
        return ", ".join(obj.description(0) for obj in self.connected_to)
