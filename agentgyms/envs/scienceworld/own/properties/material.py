"""The properties of what objects are made of."""

from __future__ import annotations

from typing import Final

STATES: Final = ("solid", "liquid", "gas")


class MaterialProperties:
    """A substance's properties; its class holds the defaults, an object those that differ."""

    substance_name = "none"
    name_in_state_of_matter: dict[str, str] = dict.fromkeys(STATES, "none")
    color = "clear"
    temperature_c = 0.0
    thermal_conductivity = 1.0
    state_of_matter = "solid"
    boiling_point = 100.0
    melting_point = 0.0
    combustion_point = 200.0
    is_combusting = False
    has_combusted = False
    combustion_ticks = 100
    electrically_conductive = False
    friction_coefficient = 0.5


def material(
    substance_name: str,
    forms: tuple[str, str, str] | None,
    color: str,
    thermal_conductivity: float,
    points: tuple[float, float, float],
    friction_coefficient: float,
    *,
    electric: bool = False,
    state_of_matter: str = "solid",
    temperature_c: float = 10.0,
) -> type[MaterialProperties]:
    """Return the class of a material's properties.

    `forms` are the names of the solid, the liquid and the gas, and `points` the temperatures at
    which it melts, boils and burns.
    """
    melting, boiling, combustion = map(float, points)
    members = {
        "__module__": __name__,
        "substance_name": substance_name,
        "name_in_state_of_matter": dict(zip(STATES, forms, strict=True)) if forms else {},
        "color": color,
        "temperature_c": temperature_c,
        "thermal_conductivity": thermal_conductivity,
        "state_of_matter": state_of_matter,
        "melting_point": melting,
        "boiling_point": boiling,
        "combustion_point": combustion,
        "electrically_conductive": electric,
        "friction_coefficient": friction_coefficient,
    }
    return type(substance_name, (MaterialProperties,), members)


def common(name: str) -> tuple[str, str, str]:
    """Return the usual names of a substance as a solid, a liquid and a gas."""
    return (name, f"liquid {name}", f"gaseous {name}")


def dissolved(name: str) -> tuple[str, str, str]:
    """Return the names of what is usually a liquid."""
    return (f"solid {name}", name, f"gaseous {name}")


def paint(color: str) -> type[MaterialProperties]:
    """Return the class of a paint's properties."""
    forms = (f"dried {color} paint", f"{color} paint", f"gaseous {color} paint")
    return material(
        # Without a space, so that no rule for mixing finds a paint by its substance.
        f"{color}paint", forms, color, 0.2, (0, 10000, 293), 0.3, state_of_matter="liquid"
    )  # fmt: skip


def unknown_friction(letter: str, friction_coefficient: float) -> type[MaterialProperties]:
    """Return the class of a material that differs from its like in its friction."""
    name = f"unknown material {letter}".rstrip()
    return material(name, None, "grey", 0.1, (100001, 100002, 100000), friction_coefficient)
