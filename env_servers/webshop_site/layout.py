"""From a page's view to its template's elements, by kind, each with its place.

A place is the number of an element in the view, and for a value of an option also its number there:
`5`, `5.2`. The pages mark elements with it, buttons send it, and agents read it as the order of a
page, whatever the order on the screen.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.rules.session import PageState
from agentgyms.envs.webshop.rules.view import Button, Card, Element, OptionGroup, Text, View

CATEGORIES: Final = ("beauty", "electronics", "fashion", "garden", "grocery")
TINTS: Final = 6

_PAGING: Final = ("< Prev", "Next >")
_WAYS: Final = ("Back to Search", *_PAGING)
_RECEIPT: Final = ("heading", "field", "value")


def arrange(view: View, state: PageState) -> dict[str, Any]:
    """Return the variables of the template of a view's page."""
    pairs = [(_part(at, element), element) for at, element in enumerate(view.elements)]
    roles: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for part, element in pairs:
        if isinstance(element, Text):
            roles[element.role].append(part)
    buttons = [part for part, element in pairs if isinstance(element, Button)]
    product = view.product
    return {
        "page": view.page,
        "query": view.query,
        "instruction": view.instruction,
        "has_search_box": view.has_search_box,
        "notice": view.notice,
        "roles": roles,
        "heading": _heading(view, state),
        "title": product.title if product else "",
        "category": product.category if product else "",
        "tint": _tint(product.asin) if product else 0,
        "bought": _bought(product, state) if product and view.page == "done" else (),
        "sub_page": state.sub_page,
        "categories": CATEGORIES,
        "cards": [part for part, element in pairs if isinstance(element, Card)],
        "groups": [part for part, element in pairs if isinstance(element, OptionGroup)],
        "lines": [p for p, e in pairs if isinstance(e, Text) and e.role in _RECEIPT],
        "search_buttons": [part for part in buttons if part["label"] == "Search"],
        "crumbs": [part for part in buttons if part["label"] in _WAYS],
        "paging": [part for part in buttons if part["label"] in _PAGING],
        "buy": [part for part in buttons if part["label"] == "Buy Now"],
        "more": [p for p in buttons if p["label"] not in (*_WAYS, "Search", "Buy Now")],
    }


def key_at(view: View, place: str) -> str | None:
    """Return the `click[...]` name of the element at a place; None without an element."""
    number, _, choice = place.partition(".")
    try:
        element = view.elements[_index(number)]
        if isinstance(element, OptionGroup):
            return element.choices[_index(choice)].key or None
    except (IndexError, ValueError):
        return None
    return None if choice or isinstance(element, Text) else element.key


def anchor(place: str) -> str | None:
    """Return the id of the element pressed at a place, an option's value, if the next page has it.

    Without it the browser would begin the next page at its top, far from the options.
    """
    return f"at-{place}" if "." in place else None


def _index(digits: str) -> int:
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 6:
        raise ValueError(f"{digits!r:.20} is no place")
    return int(digits)


def _part(at: int, element: Element) -> dict[str, Any]:
    part: dict[str, Any] = {"at": at, **element._asdict()}
    if isinstance(element, Button | Card):
        part["key"] = element.key
    if isinstance(element, Card):
        part["tint"] = _tint(element.asin)
    return part


def _bought(product: Product, state: PageState) -> list[tuple[str, str]]:
    return [("Product", product.title), ("Price", product.price_text), *state.chosen.items()]


def _tint(asin: str) -> int:
    return sum(asin.encode("utf-8", "surrogatepass")) % TINTS


def _heading(view: View, state: PageState) -> str:
    match view.page:
        case "index":
            return "Search"
        case "search":
            return f"Results for {view.query}"
        case "done":
            return "Receipt"
        case "sub":
            return state.sub_page
    return view.product.title if view.product else "Product"
