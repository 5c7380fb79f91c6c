"""Axes on trees, and on devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.envs.scienceworld.own.objects.substances import Wood

if TYPE_CHECKING:
    from agentgyms.envs.scienceworld.own.objects.base import EnvObject


def do_chop(obj: EnvObject) -> tuple[bool, str]:
    """Hit an object with an axe; return whether that works, and the text."""
    from agentgyms.envs.scienceworld.own.life.trees import Tree

    if isinstance(obj, Tree):
        return _fell(obj)
    if obj.prop_device is not None:
        obj.prop_device.is_broken = True
        return (True, f"You hit the {obj.name} with the axe, causing it to break.")
    return (False, "It's not clear how to use an axe with that.")


def _fell(tree: EnvObject) -> tuple[bool, str]:
    container = tree.container()
    if container is None:
        return (False, f"ERROR: The {tree.name} does not appear to be in a location.")
    if tree.is_seed():  # type: ignore[attr-defined]
        return (True, "You can't chop a seed.")
    container.add_object(Wood(tree.world))
    name = tree.descript_name()
    tree.delete(expel_contents=True)
    return (True, f"You chop down the {name}, creating wood.")
