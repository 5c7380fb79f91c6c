"""Makes the view of a state's page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.rules.actions import collapsed
from agentgyms.envs.webshop.rules.compat import is_marked, receipt, results
from agentgyms.envs.webshop.rules.state import SUB_PAGES, PageState
from agentgyms.envs.webshop.rules.view import Button, Card, Choice, Element, OptionGroup, Text, View

if TYPE_CHECKING:
    from agentgyms.envs.webshop.goals.goal_list import Goal
    from agentgyms.envs.webshop.goals.reward import Purchase
    from agentgyms.envs.webshop.shop import Shop

PRODUCTS_SHOWN: Final = 10

SEARCH: Final = Button("Search")
"""The button of the search box; `search[...]` uses it, `click[...]` cannot."""
BACK: Final = Button("Back to Search")
PREVIOUS: Final = Button("< Prev")
NEXT: Final = Button("Next >")
BUY: Final = Button("Buy Now")

_PRODUCT_LABELS: Final = (BACK, PREVIOUS, BUY, *map(Button, SUB_PAGES))


@dataclass(frozen=True)
class Shopping:
    """One goal in one shop; immutable. `session` is in the original's URLs, for `compat`."""

    shop: Shop
    goal: Goal
    compat: bool = False
    show_attributes: bool = False
    session: str = "0"

    def results(self, state: PageState) -> tuple[int, ...]:
        """Return the positions of all products that the last search found, the best one first."""
        if not state.keywords:
            return ()
        if self.compat:
            return results(self.shop, self.goal.task_id, state)
        return self.shop.search(" ".join(state.keywords))

    def purchase(self, state: PageState) -> Purchase:
        """Return the score of buying the open product as chosen; `LookupError` if none is open."""
        return self.shop.purchase(self.goal, state.asin, state.chosen)


def view_of(shopping: Shopping, state: PageState) -> View:
    """Return the view of the page of this state."""
    product = shopping.shop.product(state.asin) if state.asin else None
    elements: Iterable[Element]
    match state.page:
        case "index":
            elements = _index(shopping)
        case "search":
            elements = _results(shopping, state)
        case "item":
            elements = _item(shopping, state, product)
        case "sub":
            elements = _sub_page(shopping, state, product)
        case "done":
            elements = _receipt(shopping, state)
    return View(
        page=state.page,
        instruction=shopping.goal.instruction_text,
        query=" ".join(state.keywords),
        has_search_box=state.page == "index" or (state.page != "done" and not shopping.compat),
        elements=tuple(elements),
        product=product,
    )


def pages_of(shopping: Shopping, state: PageState) -> int:
    """Return the number of pages of results, at least one."""
    return max(1, -(-len(shopping.results(state)) // PRODUCTS_SHOWN))


def _index(shopping: Shopping) -> Iterator[Element]:
    yield Text("WebShop", "brand")
    yield Text("Instruction: ", "label")
    yield Text(shopping.goal.instruction_text, "instruction")
    yield SEARCH


def _top(shopping: Shopping) -> Iterator[Element]:
    yield Text("Instruction:", "label")
    yield Text(shopping.goal.instruction_text, "instruction")
    yield BACK


def _results(shopping: Shopping, state: PageState) -> Iterator[Element]:
    found, number = shopping.results(state), state.number
    shown = found[(number - 1) * PRODUCTS_SHOWN : number * PRODUCTS_SHOWN]
    yield from _top(shopping)
    yield Text(f"Page {number} (Total results: {len(found)})", "count")
    if number > 1:
        yield PREVIOUS
    if shopping.compat or number * PRODUCTS_SHOWN < len(found):
        yield NEXT
    if not found and not shopping.compat:
        yield Text("No products found", "empty")
    for product in shopping.shop.products(shown):
        visited = product.asin in state.visited
        yield Card(product.asin, product.title, product.price_text, product.category, visited)


def _item(shopping: Shopping, state: PageState, product: Product | None) -> Iterator[Element]:
    assert product is not None
    yield from _top(shopping)
    yield PREVIOUS
    groups = _option_groups(shopping, state, product)
    yield from groups
    chosen = [f"{group.name}: {group.chosen}" for group in groups if group.chosen]
    if chosen and not shopping.compat:
        yield Text(f"Chosen: {', '.join(chosen)}", "chosen")
    yield Text(product.title, "title")
    yield Text(f"Price: {product.price_text}", "price")
    yield Text("Rating: N.A.", "rating")
    yield from map(Button, SUB_PAGES if shopping.show_attributes else SUB_PAGES[:3])
    yield BUY


def _option_groups(shopping: Shopping, state: PageState, product: Product) -> list[OptionGroup]:
    chosen = state.chosen
    shared = set() if shopping.compat else _shared_keys(product.options.values())
    groups = []
    for name, values in product.options.items():
        choices = []
        for value in values:
            key = value if shopping.compat else collapsed(value)
            if key in shared:
                key = collapsed(f"{name}: {value}")
            if shopping.compat:
                marked = is_marked(state, value, shopping.session)
            else:
                marked = chosen.get(name) == value
            choices.append(Choice(name, value, key, marked))
        groups.append(OptionGroup(name, tuple(choices), chosen.get(name, "")))
    return groups


def _shared_keys(values: Iterable[tuple[str, ...]]) -> set[str]:
    """Return the ambiguous keys: values of several options, and labels of buttons."""
    counts = Counter(key for group in values for key in set(map(collapsed, group)))
    buttons = {button.key for button in _PRODUCT_LABELS}
    return buttons.union(key for key, count in counts.items() if count > 1)


def _sub_page(shopping: Shopping, state: PageState, product: Product | None) -> Iterator[Element]:
    assert product is not None
    yield from _top(shopping)
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


def _receipt(shopping: Shopping, state: PageState) -> Iterable[Element]:
    if shopping.compat:
        return receipt(state, shopping.purchase(state).reward)
    options = json.dumps(state.chosen, sort_keys=True, ensure_ascii=False)
    return (
        Text("Thank you for shopping with us!", "thanks"),
        Text("Purchased", "heading"),
        Text("asin", "field"),
        Text(state.asin, "value"),
        Text("options", "field"),
        Text(options, "value"),
    )
