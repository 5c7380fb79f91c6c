"""The properties of movement, devices, food, heat sources and cooling sources."""

from __future__ import annotations


class MoveableProperties:
    """Tells whether an object can be moved; it never changes."""

    __slots__ = ("is_movable",)

    def __init__(self, is_movable: bool) -> None:
        self.is_movable = is_movable


class DeviceProperties:
    """Tells whether a device can be switched, is on, can be used, and is broken."""

    __slots__ = ("is_activable", "is_activated", "is_broken", "is_usable")

    def __init__(
        self, is_activable: bool = False, is_activated: bool = False, is_usable: bool = False
    ) -> None:
        self.is_activable = is_activable
        self.is_activated = is_activated
        self.is_usable = is_usable
        self.is_broken = False


def IsActivableDeviceOff() -> DeviceProperties:  # noqa: N802
    """Return the properties of a device that can be switched on."""
    return DeviceProperties(is_activable=True)


def IsActivableDeviceOn() -> DeviceProperties:  # noqa: N802
    """Return the properties of a device that is on and can be switched off."""
    return DeviceProperties(is_activable=True, is_activated=True)


def IsNotActivableDeviceOff() -> DeviceProperties:  # noqa: N802
    """Return the properties of a device without a switch that is off."""
    return DeviceProperties()


def IsNotActivableDeviceOn() -> DeviceProperties:  # noqa: N802
    """Return the properties of a device without a switch that is on."""
    return DeviceProperties(is_activated=True)


def IsUsable() -> DeviceProperties:  # noqa: N802
    """Return the properties of a tool."""
    return DeviceProperties(is_usable=True)


def IsUsableNonActivable() -> DeviceProperties:  # noqa: N802
    """Return the properties of a tool."""
    return DeviceProperties(is_usable=True)


class EdibilityProperties:
    """Tells whether an object can be eaten, and harms."""

    __slots__ = ("is_edible", "is_poisonous")

    def __init__(self, is_edible: bool = True, is_poisonous: bool = False) -> None:
        self.is_edible = is_edible
        self.is_poisonous = is_poisonous


def Edible() -> EdibilityProperties:  # noqa: N802
    """Return the properties of food."""
    return EdibilityProperties()


def Poisonous() -> EdibilityProperties:  # noqa: N802
    """Return the properties of what the engine calls poisonous, and yet has as harmless."""
    return EdibilityProperties()


def Inedible() -> EdibilityProperties:  # noqa: N802
    """Return the properties of what cannot be eaten."""
    return EdibilityProperties(is_edible=False)


class HeatSourceProperties:
    """Holds the highest temperature of a heat source, and the one it is set to."""

    __slots__ = ("cur_set_temp", "max_temp")

    def __init__(self, max_temp: float, cur_set_temp: float | None = None) -> None:
        self.max_temp = max_temp
        self.cur_set_temp = cur_set_temp

    def set_on_max(self) -> None:
        """Set the source to its highest temperature."""
        self.cur_set_temp = self.max_temp

    def set_off(self) -> None:
        """Set the source to none."""
        self.cur_set_temp = None


class CoolingSourceProperties:
    """Holds the lowest temperature of a cooling source, and the one it is set to."""

    __slots__ = ("cur_set_temp", "min_temp")

    def __init__(self, min_temp: float, cur_set_temp: float | None = None) -> None:
        self.min_temp = min_temp
        self.cur_set_temp = cur_set_temp

    def set_on_min(self) -> None:
        """Set the source to its lowest temperature."""
        self.cur_set_temp = self.min_temp

    def set_off(self) -> None:
        """Set the source to none."""
        self.cur_set_temp = None


def HeatSourcePropertiesStove() -> HeatSourceProperties:  # noqa: N802
    """Return the properties of a stove that is off."""
    return HeatSourceProperties(260.0)


def HeatSourcePropertiesOven() -> HeatSourceProperties:  # noqa: N802
    """Return the properties of an oven that is off."""
    return HeatSourceProperties(540.0)


def HeatSourcePropertiesBlastFurnace() -> HeatSourceProperties:  # noqa: N802
    """Return the properties of a blast furnace that is off."""
    return HeatSourceProperties(3000.0)


def HeatSourcePropertiesWoodFire() -> HeatSourceProperties:  # noqa: N802
    """Return the properties of a wood fire that is off."""
    return HeatSourceProperties(600.0)


def HeatSourcePropertiesLighter() -> HeatSourceProperties:  # noqa: N802
    """Return the properties of a lighter that is off."""
    return HeatSourceProperties(2200.0)


def CoolingSourcePropertiesFridge() -> CoolingSourceProperties:  # noqa: N802
    """Return the properties of a fridge that is off."""
    return CoolingSourceProperties(2.0)


def CoolingSourcePropertiesFreezer() -> CoolingSourceProperties:  # noqa: N802
    """Return the properties of a freezer that is off."""
    return CoolingSourceProperties(-18.0)


def CoolingSourcePropertiesULTFreezer() -> CoolingSourceProperties:  # noqa: N802
    """Return the properties of an ultra low temperature freezer that is off."""
    return CoolingSourceProperties(-86.0)
