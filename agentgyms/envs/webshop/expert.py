"""The expert: the next action towards buying the goal's product, from any state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from agentgyms.envs.webshop.goals.fuzzy import matches, normalize_color, normalize_pair
from agentgyms.envs.webshop.rules.actions import collapsed
from agentgyms.envs.webshop.rules.page_views import BUY, NEXT, PREVIOUS, PRODUCTS_SHOWN
from agentgyms.envs.webshop.rules.state import PageState
from agentgyms.envs.webshop.rules.view import Choice

if TYPE_CHECKING:
    from agentgyms.envs.webshop.product import Product
    from agentgyms.envs.webshop.rules.session import ShopSession
    from agentgyms.envs.webshop.rules.transitions import Rules

_BOUND: Final = re.compile(r", and price lower than \d+\.\d\d dollars$")
_BRACKETS: Final = re.compile(r"[\[\]]")
"""With `compat`, queries with brackets are parsed differently; the expert's queries have none."""

_LONGEST_QUERY: Final = 2000


def best(session: ShopSession) -> str:
    """Return the next action towards buying the goal's product with its options.

    The expert searches with words of the instruction, or else of the title, and goes to the
    product's page in the fewest clicks. There it chooses the missing options and buys. It skips an
    option that cannot be clicked (with `compat` and in the official catalogue): the score is then
    below 1.
    """
    rules, state = session.rules, session.state
    if state.asin != rules.goal.asin or state.page == "done":
        return _approach(rules, state)
    if state.page == "sub":
        return _click(PREVIOUS.key)
    return next(_missing(rules, state), _click(BUY.key))


def queries(rules: Rules) -> Iterator[tuple[str, ...]]:
    """Yield groups of queries; the expert uses the first group that finds the product."""
    goal = rules.goal
    goal_words = f"{' '.join(goal.attributes)} {goal.query} {' '.join(goal.option_values)}"
    yield _as_query(_BOUND.sub("", goal.instruction_text)), _as_query(goal_words)
    yield (_as_query(goal.name),)
    product = rules.shop.product(goal.asin)
    yield (_as_query(" ".join([goal.name, product.description, *product.bullet_points[:1]])),)


def _approach(rules: Rules, state: PageState) -> str:
    query, fresh = _best_query(rules)
    here = _page_in(rules, state)
    if here is None or state.page in ("index", "done"):
        return f"search[{query}]"
    back = {"search": 0, "item": 1, "sub": 2}[state.page]
    if fresh is not None and fresh < back + abs(here - state.number):
        return f"search[{query}]"
    if back or here < state.number:
        return _click(PREVIOUS.key)
    return _click(rules.goal.asin.lower() if here == state.number else NEXT.key)


def _best_query(rules: Rules) -> tuple[str, int | None]:
    """Return the query that shows the product earliest, and the page; title and None if none."""
    for group in queries(rules):
        pages = {}
        for query in filter(None, group):
            page = _page_in(rules, PageState().with_results(tuple(query.split(" ")), 1))
            if page is not None:
                pages[query] = page
        if pages:
            return min(pages.items(), key=lambda item: item[1])
    return _as_query(rules.goal.name), None


def _page_in(rules: Rules, state: PageState) -> int | None:
    """Return the page of the last search's results that has the goal's product, or None."""
    found = rules.results(state)
    if rules.goal.position not in found:
        return None
    return found.index(rules.goal.position) // PRODUCTS_SHOWN + 1


def _missing(rules: Rules, state: PageState) -> Iterator[str]:
    """Yield the clicks that choose the missing values."""
    view = rules.view(state)
    clicks = {
        (clicked.option, clicked.value): _click(key)
        for key, clicked in rules.clickables(view).items()
        if isinstance(clicked, Choice)
    }
    planned: dict[str, str] = {}
    for choices in _wanted(rules):
        for name, value in choices:
            click = clicks.get((name, value))
            if click is None or planned.get(name, value) != value:
                continue
            if rules.act(state, view, click)[0].chosen.get(name) == value:
                planned[name] = value
                break
    for name, value in planned.items():
        if state.chosen.get(name) != value:
            yield clicks[name, value]


def _wanted(rules: Rules) -> Iterator[list[tuple[str, str]]]:
    """Yield, for each option of the goal, the choices that satisfy it: exact ones first."""
    options = rules.goal.goal_options
    product = rules.shop.product(rules.goal.asin)
    if isinstance(options, tuple):
        for value in options:
            yield _choices(product, "", value, normalize_color(value))
    else:
        for name, value in options.items():
            yield _choices(product, name, value, normalize_pair(name, value))


def _choices(product: Product, name: str, value: str, compared: str) -> list[tuple[str, str]]:
    """Return the choices that the reward accepts for an option, compared with `compared`."""
    found = [
        (other, candidate)
        for other, values in product.options.items()
        for candidate in values
        if candidate == value or matches(normalize_color(candidate), compared)
    ]
    return sorted(found, key=lambda choice: (choice[1] != value, choice[0] != name))


def _as_query(text: str) -> str:
    return collapsed(_BRACKETS.sub(" ", text))[:_LONGEST_QUERY].strip()


def _click(key: str) -> str:
    return f"click[{key}]"
