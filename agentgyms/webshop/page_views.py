"""The views of all pages: what the shop shows in a state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from agentgyms.webshop import original
from agentgyms.webshop.actions import collapsed
from agentgyms.webshop.product import Product
from agentgyms.webshop.state import SUB_PAGES, PageState
from agentgyms.webshop.view import (
    Button,
    Card,
    Choice,
    Element,
    OptionGroup,
    Text,
    View,
)

if TYPE_CHECKING:
    from agentgyms.webshop.rules import Rules

PRODUCTS_SHOWN: Final = 10
"""Products on a page of results."""

SEARCH: Final = Button("Search")
"""The button beside the search box, which is used by `search[...]` alone."""
BACK: Final = Button("Back to Search")
PREVIOUS: Final = Button("< Prev")
NEXT: Final = Button("Next >")
BUY: Final = Button("Buy Now")

_PRODUCT_LABELS: Final = (BACK, PREVIOUS, BUY, *map(Button, SUB_PAGES))


def view_of(rules: Rules, state: PageState) -> View:
    """Return what the page of this state shows."""
    product = rules.shop.product(state.asin) if state.asin else None
    elements: Iterable[Element]
    match state.page:
        case "index":
            elements = _index(rules)
        case "search":
            elements = _results(rules, state)
        case "item":
            elements = _item(rules, state, product)
        case "sub":
            elements = _sub_page(rules, state, product)
        case "done":
            elements = _receipt(rules, state)
    return View(
        page=state.page,
        instruction=rules.goal.instruction_text,
        query=" ".join(state.keywords),
        has_search_box=state.page == "index" or (state.page != "done" and not rules.compat),
        elements=tuple(elements),
        product=product,
    )


def pages_of(rules: Rules, state: PageState) -> int:
    """Return how many pages of results there are, at least one."""
    return max(1, -(-len(rules.results(state)) // PRODUCTS_SHOWN))


def _index(rules: Rules) -> Iterator[Element]:
    yield Text("WebShop", "brand")
    yield Text("Instruction: ", "label")
    yield Text(rules.goal.instruction_text, "instruction")
    yield SEARCH


def _top(rules: Rules) -> Iterator[Element]:
    yield Text("Instruction:", "label")
    yield Text(rules.goal.instruction_text, "instruction")
    yield BACK


def _results(rules: Rules, state: PageState) -> Iterator[Element]:
    found, number = rules.results(state), state.number
    shown = found[(number - 1) * PRODUCTS_SHOWN : number * PRODUCTS_SHOWN]
    yield from _top(rules)
    yield Text(f"Page {number} (Total results: {len(found)})", "count")
    if number > 1:
        yield PREVIOUS
    if rules.compat or number * PRODUCTS_SHOWN < len(found):
        yield NEXT
    if not found and not rules.compat:
        yield Text("No products found", "empty")
    for product in rules.shop.products(shown):
        visited = product.asin in state.visited
        yield Card(product.asin, product.title, product.price_text, product.category, visited)


def _item(rules: Rules, state: PageState, product: Product | None) -> Iterator[Element]:
    assert product is not None
    yield from _top(rules)
    yield PREVIOUS
    groups = _option_groups(rules, state, product)
    yield from groups
    chosen = [f"{group.name}: {group.chosen}" for group in groups if group.chosen]
    if chosen and not rules.compat:
        yield Text(f"Chosen: {', '.join(chosen)}", "chosen")
    yield Text(product.title, "title")
    yield Text(f"Price: {product.price_text}", "price")
    yield Text("Rating: N.A.", "rating")
    yield from map(Button, SUB_PAGES if rules.show_attributes else SUB_PAGES[:3])
    yield BUY


def _option_groups(rules: Rules, state: PageState, product: Product) -> list[OptionGroup]:
    chosen = state.chosen
    shared = set() if rules.compat else _shared_keys(product.options.values())
    groups = []
    for name, values in product.options.items():
        choices = []
        for value in values:
            key = value if rules.compat else collapsed(value)
            if key in shared:
                key = collapsed(f"{name}: {value}")
            if rules.compat:
                marked = original.is_marked(state, value, rules.session)
            else:
                marked = chosen.get(name) == value
            choices.append(Choice(name, value, key, marked))
        groups.append(OptionGroup(name, tuple(choices), chosen.get(name, "")))
    return groups


def _shared_keys(values: Iterable[tuple[str, ...]]) -> set[str]:
    """Return what does not say which option is meant: values of several, and buttons' labels."""
    counts = Counter(key for group in values for key in set(map(collapsed, group)))
    buttons = {button.key for button in _PRODUCT_LABELS}
    return buttons.union(key for key, count in counts.items() if count > 1)


def _sub_page(rules: Rules, state: PageState, product: Product | None) -> Iterator[Element]:
    assert product is not None
    yield from _top(rules)
    yield PREVIOUS
    match state.sub_page:
        case "Description":
            yield Text(product.description, "body")
        case "Features":
            yield from (Text(f" {point}", "bullet") for point in product.bullet_points)
        case "Attributes":
            yield from (Text(f" {attribute}", "bullet") for attribute in product.attributes)
            yield Text(product.category, "body")
            yield Text(product.query, "body")
            yield Text(product.product_category, "body")


def _receipt(rules: Rules, state: PageState) -> Iterable[Element]:
    if rules.compat:
        return original.receipt(state, rules.purchase(state).reward)
    options = json.dumps(state.chosen, sort_keys=True, ensure_ascii=False)
    return (
        Text("Thank you for shopping with us!", "thanks"),
        Text("Purchased", "heading"),
        Text("asin", "field"),
        Text(state.asin, "value"),
        Text("options", "field"),
        Text(options, "value"),
    )
