"""Makes products from items of the official files, cleaned like WebShop's `load_products`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from agentgyms.core.errors import DataCorrupt
from agentgyms.envs.webshop.product import HumanInstruction, Product

UNKNOWN_ATTRIBUTES: Final[tuple[str, ...]] = ("DUMMY_ATTR",)
"""The attributes of a product that is not in the attribute file."""

NO_PRICE: Final = (100.0,)
"""The price of a product without one, in dollars."""

_MAX_ASIN: Final = 10
_NO_DIGIT: Final = re.compile(r"[^\d.]")


def asin_of(item: Any, where: str) -> str | None:
    """Return an item's asin, None if WebShop skips it: `nan`, or longer than 10 characters."""
    if not isinstance(item, dict):
        raise DataCorrupt(f"{where} is {_type_name(item)}: expected an object")
    asin = _text(item, "asin", where)
    if not asin.isprintable():
        raise DataCorrupt(f"{where}, field 'asin': {asin!r} holds unprintable characters")
    return None if asin == "nan" or len(asin) > _MAX_ASIN else asin


def product_of(item: Mapping[str, Any], about: Any, people: Any, where: str) -> Product:
    """Return the product of an item that `asin_of` accepts; raise `DataCorrupt` at a bad field.

    `about` and `people` are its entries in `items_ins_v2.json` and `items_human_ins.json`, or None.
    """
    where = f"{where} ({item['asin']})"
    title = _text(item, "name", where)
    attributes, instruction, goal_attributes = _instruction(about, where)
    return Product(
        asin=item["asin"],
        title=title,
        description=_text(item, "full_description", where),
        bullet_points=_bullet_points(item, where),
        category=_text(item, "category", where),
        query=_text(item, "query", where).lower().strip(),
        product_category=_text(item, "product_category", where),
        attributes=attributes,
        options=_options(item.get("customization_options"), where),
        pricing=pricing_of(item.get("pricing"), where),
        image=_image(item.get("images"), where),
        instruction=instruction,
        instruction_attributes=goal_attributes,
        human=_human(people, where),
    )


def pricing_of(pricing: Any, where: str) -> tuple[float, ...]:
    """Return the price, or the first two prices, of a text such as `$5.99 - $12.99`, in dollars."""
    if not pricing:
        return NO_PRICE
    if isinstance(pricing, str):
        amounts = [_NO_DIGIT.sub("", amount) for amount in pricing.split("$")[1:]]
        try:
            prices = tuple(float(amount) for amount in amounts)
        except ValueError:
            prices = ()
        if prices:
            return prices[:2]
    raise DataCorrupt(
        f"{where}, field 'pricing': found {str(pricing)[:60]!r}, expected prices such as '$5.99'"
    )


def _bullet_points(item: Mapping[str, Any], where: str) -> tuple[str, ...]:
    found = item.get("small_description")
    return (found,) if isinstance(found, str) else _texts(found, "small_description", where)


def _image(found: Any, where: str) -> str:
    """Return the URL of the first picture; WebShop ignores the others."""
    if found and not isinstance(found, list):
        raise DataCorrupt(f"{where}, field 'images' is {_type_name(found)}: expected a list")
    first = found[0] if found else ""
    return first if isinstance(first, str) else ""


def _options(found: Any, where: str) -> dict[str, tuple[str, ...]]:
    """Return the values of each option; of names that differ in case alone, the last one counts."""
    if not found:
        return {}
    if not isinstance(found, dict):
        raise DataCorrupt(
            f"{where}, field 'customization_options' is {_type_name(found)}: expected an object"
        )
    options = {}
    for name, values in found.items():
        if values is None:
            continue
        field = f"customization_options[{name!r}]"
        if not isinstance(values, list) and values not in ("", {}):  # no values, to WebShop
            raise DataCorrupt(f"{where}, field {field} is {_type_name(values)}: expected a list")
        options[name.lower()] = tuple(_value(value, field, where) for value in values)
    return options


def _value(value: Any, field: str, where: str) -> str:
    text = value.get("value") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise DataCorrupt(f"{where}, field {field}: expected objects with a text 'value'")
    return text.strip().replace("/", " | ").lower()


def _instruction(about: Any, where: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Return a product's attributes, its instruction, and the instruction's attributes."""
    if about is None:
        return UNKNOWN_ATTRIBUTES, "", ()
    if not isinstance(about, dict):
        raise DataCorrupt(f"{where}: its attributes are {_type_name(about)}: expected an object")
    attributes = UNKNOWN_ATTRIBUTES
    if "attributes" in about:
        attributes = _texts(about["attributes"], "attributes", where)
    if about.get("instruction") is None:
        return attributes, "", ()
    wanted = _texts(about.get("instruction_attributes") or [], "instruction_attributes", where)
    return attributes, _text(about, "instruction", where), wanted


def _human(people: Any, where: str) -> tuple[HumanInstruction, ...]:
    if people is None:
        return ()
    if not isinstance(people, list) or not all(isinstance(row, dict) for row in people):
        raise DataCorrupt(f"{where}: its human instructions are not a list of objects")
    # An instruction without attributes makes no goal and may lack other fields.
    spare = {"instruction": "", "instruction_options": []}
    rows = [spare | row if row.get("instruction_attributes") == [] else row for row in people]
    lists = ("instruction_attributes", "instruction_options")
    return tuple(
        HumanInstruction(
            _text(row, "instruction", where),
            *(_texts(row.get(field), field, where) for field in lists),
        )
        for row in rows
    )


def _text(item: Mapping[str, Any], field: str, where: str) -> str:
    if field not in item:
        raise DataCorrupt(f"{where} has no field {field!r}")
    found = item[field]
    if not isinstance(found, str):
        raise DataCorrupt(f"{where}, field {field!r} is {_type_name(found)}: expected a string")
    return found


def _texts(found: Any, field: str, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise DataCorrupt(
            f"{where}, field {field!r} is {_type_name(found)}: expected a list of strings"
        )
    return tuple(found)


def _type_name(found: Any) -> str:
    kinds = {type(None): "null", dict: "an object", list: "a list", str: "a string"}
    return kinds.get(type(found), f"{str(found)[:30]!r}")
