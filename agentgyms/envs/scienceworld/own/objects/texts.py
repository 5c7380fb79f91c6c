"""Lists of things as the engine tells them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal

from agentgyms.envs.scienceworld.own.objects.base import MODE_CURSORY_DETAIL, EnvObject
from agentgyms.envs.scienceworld.own.objects.portals import Portal


def object_list_to_string_description(
    objs: Iterable[EnvObject],
    perspective_container: EnvObject,
    mode: int = MODE_CURSORY_DETAIL,
    multiline: bool = False,
) -> str:
    """Describe the visible objects, by name; those of one name stay in the order of the set."""
    told = []
    for obj in sorted(objs, key=_name):
        text = _told(obj, mode, perspective_container)
        if text is not None:
            told.append(text)
    return _listed(told, multiline)


def portal_list_to_string_description(
    objs: Iterable[EnvObject],
    perspective_container: EnvObject,
    mode: int = MODE_CURSORY_DETAIL,
    multiline: bool = False,
) -> str:
    """Describe the visible portals, sorted by text, each text once."""
    texts = {_told(obj, mode, perspective_container) for obj in objs}
    return _listed(sorted(text for text in texts if text is not None), multiline)


def whole_number_text(x: float) -> str:
    """Return Java's `%.0f` of a number: halves go away from zero, and -0.3 is "-0"."""
    return str(Decimal(x).quantize(Decimal(1), ROUND_HALF_UP))


def _told(obj: EnvObject, mode: int, perspective_container: EnvObject) -> str | None:
    if isinstance(obj, Portal):
        return obj.description_safe_from(mode, perspective_container)
    return obj.description_safe(mode)


def _name(obj: EnvObject) -> str:
    return obj.name


def _listed(texts: list[str], multiline: bool) -> str:
    if not texts:
        return "\tnothing" if multiline else "nothing"
    if not multiline:
        return ", ".join(texts)
    return "".join(f"\t{text}\n" for text in texts)
