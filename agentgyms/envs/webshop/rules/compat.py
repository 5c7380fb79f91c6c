"""The mode `compat`: the behaviour of the released WebShop that differs from the default."""

from __future__ import annotations

import json
from typing import Final

from agentgyms.envs.webshop.rules.state import SUB_PAGES, PageState
from agentgyms.envs.webshop.rules.view import (
    Button,
    Card,
    Choice,
    Clickable,
    OptionGroup,
    Text,
    View,
)
from agentgyms.envs.webshop.shop import Shop

BASE_URL: Final = "http://127.0.0.1:3000"

_PAGE_NAMES: Final = ("search_results", "item_page", "item_sub_page", "done")
_SUB_PAGES: Final = {name.lower(): name for name in SUB_PAGES}
_JSON_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"}
)


def url(state: PageState, session: str) -> str:
    """Return the original's URL of this state, in which it searches for page and options."""
    words, options = "+".join(state.keywords), state.chosen
    match state.page:
        case "index":
            return f"{BASE_URL}/{session}"
        case "search":
            return f"{BASE_URL}/search_results/{session}/{words}/{state.number}"
        case "item":
            page = f"{state.asin}/{words}/{state.number}/{json.dumps(options)}"
            return f"{BASE_URL}/item_page/{session}/{page}"
        case "sub":
            page = f"{state.asin}/{words}/{state.number}/{state.sub_page}/{options}"
            return f"{BASE_URL}/item_sub_page/{session}/{page}"
        case "done":
            return f"{BASE_URL}/done/{session}/{state.asin}/{options}"


def clickables(view: View) -> dict[str, Clickable]:
    """Return the clickable elements by key, in the original's order: buttons, products, options.

    If keys are equal, the later element counts, at the position of the first. An empty value is
    included, though no action can name it.
    """
    choices: list[Clickable] = []
    links: list[Clickable] = []
    for element in view.elements:
        if isinstance(element, OptionGroup):
            choices += element.choices
        elif not isinstance(element, Text):
            links.append(element)
    return {item.key: item for item in links + choices}


def results(shop: Shop, task_id: str, state: PageState) -> tuple[int, ...]:
    """Return the positions of the products that a search finds, or a command such as `<r>`."""
    first, rest = state.keywords[0], state.keywords[1:]
    if first == "<r>":
        return shop.random_page(task_id, state.draw)
    if first == "<c>":
        return shop.products_with("category", rest[0].strip())
    if first == "<q>":
        return shop.products_with("query", " ".join(rest).strip())
    return shop.search(" ".join(state.keywords))


def failure(keywords: tuple[str, ...]) -> str:
    """Return why this search raises an exception in the original, "" if it does not."""
    if keywords[0] == "<a>":
        return "the search by attribute fails: the original's text environment has no table for it"
    if keywords[0] == "<c>" and len(keywords) == 1:
        return "the search by category fails: no category is given"
    return ""


def after_click(state: PageState, clicked: Clickable, name: str, session: str) -> PageState:
    """Return the state after a click; the key decides before the kind of element.

    The open page is found in the URL, so that a query such as `search_results` is mistaken for it.
    """
    where = next((page for page in _PAGE_NAMES if page in url(state, session)), "")
    if name == "buy now":
        return state.with_page("done")
    if name == "back to search":
        return state.at_start()
    if name in ("next >", "< prev") and where == "search_results":
        by = 1 if name == "next >" else -1
        return results_page(state, state.keywords, state.number + by)
    if name == "< prev" and where == "item_page":
        return results_page(state, state.keywords, state.number)
    if name in _SUB_PAGES and not (name == "< prev" and where == "item_sub_page"):
        return state.with_page("sub", _SUB_PAGES[name])
    if isinstance(clicked, Card):
        return state.with_product(clicked.asin)
    if isinstance(clicked, Choice):
        return state.with_option(clicked.option, clicked.value)
    return state.with_page("item")


def results_page(state: PageState, keywords: tuple[str, ...], number: int) -> PageState:
    """Return the state that shows a page of results; `<r>` draws another random page each time."""
    return state.with_results(keywords, number, draw=int(keywords[0] == "<r>"))


def is_marked(state: PageState, value: str, session: str) -> bool:
    """Return whether the original displays the value as chosen: whether its URL contains it."""
    return f'"{value}"' in url(state, session)


def receipt(state: PageState, reward: float) -> tuple[Text | Button, ...]:
    """Return the last page, with the score and the fields that the original leaves empty."""
    options = json.dumps(state.chosen, sort_keys=True).translate(_JSON_ESCAPES)
    purchased = ["asin", state.asin, "options", options]
    for field in ("attrs", "category", "query", "product category"):
        purchased += [field, "None"]
    target = ["asin", "options", "attrs", "price upper", "instuction text"]
    target += ["category", "product category", "query"]
    code = ["Your code: ", "None", " (Paste it in your MTurk interface.)"]
    score = ["Your score (min 0.0, max 1.0)", str(reward), "Reward Details ", "None"]
    return (
        Text("Thank you for shopping with us!", "thanks"),
        *(Text(text, "value") for text in code),
        Text("Purchased", "heading"),
        *(Text(text, "value") for text in purchased),
        Text("Target", "heading"),
        *(Text(text, "field") for text in target),
        Text("Goal ", "field"),
        Text("None", "value"),
        Text("Reward", "heading"),
        *(Text(text, "value") for text in score),
    )
