"""Renders the site's pages as HTML from views and templates; all text is escaped.

The elements of a view go to its template by kind, each with its place. That is the number of the
element, and for a value of an option also its number there: `5`, `5.2`. Buttons send it, and agents
read it as the order of a page, whatever the order on the screen.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from flask import Flask, Response, render_template, url_for
from markupsafe import Markup, escape

from agentgyms.envs.webshop.goals.reward import Purchase
from agentgyms.envs.webshop.product import Product
from agentgyms.envs.webshop.rules.session import PageState
from agentgyms.envs.webshop.rules.view import Button, Card, Element, OptionGroup, Text, View
from env_servers.webshop_site.visits import Visit

_CARRIAGE_RETURN: Final = Markup("&#13;")


def set_up(app: Flask) -> None:
    """Add the filters of the templates."""
    app.jinja_env.filters["exact"] = exact
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True


def exact(text: str) -> Markup:
    """Return text as HTML that browsers submit unchanged, carriage returns included."""
    return Markup(str(escape(text)).replace("\r", _CARRIAGE_RETURN))  # noqa: S704 (escaped above)


def page(visit: Visit, turn: int) -> Response:
    """Return the page of a visit; its session is at this page."""
    session = visit.session
    purchase = session.purchase() if visit.person and session.done else None
    return html(
        "shop.html",
        **arrange(session.view, session.state),
        turn=turn,
        over=visit.over,
        person=visit.person,
        action=url_for("act", visit_id=visit.visit_id, turn=turn),
        latest=url_for("show", visit_id=visit.visit_id, turn=visit.latest),
        start=url_for("start") if visit.person else "",
        purchase=_scores(purchase) if purchase else None,
    )


def message(heading: str, words: str, status: int, *links: tuple[str, str]) -> Response:
    """Return a page with a message, and links to go on."""
    shown = (*links, ("Start with a task", url_for("start")))
    response = html("message.html", heading=heading, words=words, links=shown)
    response.status_code = status
    return response


def html(template: str, **values: Any) -> Response:
    """Return a template filled in; characters that UTF-8 cannot encode are replaced."""
    text = render_template(template, **values)
    return Response(text.encode("utf-8", "replace"), content_type="text/html; charset=utf-8")


def _scores(purchase: Purchase) -> dict[str, Any]:
    """Return the score of a purchase and its parts, for people."""
    options = purchase.r_option
    rows = [
        ("The right kind of product", f"{purchase.r_type:.0%}"),
        ("What you were asked to look for", f"{purchase.r_att:.0%}"),
        ("Options as asked", "none asked for" if options is None else f"{options:.0%}"),
        ("Price within the limit", "yes" if purchase.r_price else "no"),
    ]
    return {"reward": purchase.reward, "rows": rows}


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
    """Return the id of an option's value on the next page, which else would begin at its top."""
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
