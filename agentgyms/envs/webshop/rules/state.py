"""The state of an episode, its JSON form in snapshots, and the checks on loading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from agentgyms.envs.webshop.rules.view import Page
from agentgyms.envs.webshop.shop import Shop

SUB_PAGES: Final = ("Description", "Features", "Reviews", "Attributes")
"""The names of the sub pages, which are also the labels of their buttons."""

_MAX_WORDS: Final = 10_000


@dataclass(frozen=True, slots=True)
class PageState:
    """The state of an episode: everything that later pages depend on; immutable."""

    page: Page = "index"
    # The words of the last search, () before the first one and at the start.
    keywords: tuple[str, ...] = ()
    number: int = 0  # which page of the results is or was open, from 1; 0 at the start
    asin: str = ""  # the product that is open or bought, "" if none is
    # The chosen options, in the order in which they were first chosen.
    options: tuple[tuple[str, str], ...] = ()
    sub_page: str = ""  # one of `SUB_PAGES` while the page is `sub`, else ""
    # Products opened since the last return to the start. The state key contains them in the
    # observation mode `text_rich` alone, which shows them.
    visited: frozenset[str] = frozenset()
    draw: int = 0  # how many random pages (`<r>`) were shown; `compat` alone has such pages

    @property
    def chosen(self) -> dict[str, str]:
        """The chosen options by name."""
        return dict(self.options)

    def at_start(self) -> PageState:
        """Return the state after `Back to Search`: the start, with only `draw` unchanged."""
        return PageState(draw=self.draw)

    def with_results(self, keywords: tuple[str, ...], number: int, draw: int = 0) -> PageState:
        """Return the state that shows a page of results, with no product open."""
        return PageState("search", keywords, number, visited=self.visited, draw=self.draw + draw)

    def with_product(self, asin: str) -> PageState:
        """Return the state that shows a product's page, with no option chosen."""
        visited = self.visited | {asin}
        return replace(self, page="item", asin=asin, options=(), sub_page="", visited=visited)

    def with_option(self, name: str, value: str) -> PageState:
        """Return the state with a value chosen; an option that had one keeps its position."""
        return replace(self, page="item", options=tuple({**self.chosen, name: value}.items()))

    def with_page(self, page: Page, sub_page: str = "") -> PageState:
        """Return the state that shows another page of the open product."""
        return replace(self, page=page, sub_page=sub_page)

    def key_parts(self, *, with_visited: bool) -> list[Any]:
        """Return the JSON values that identify this state, for `keys.state_key`."""
        visited = sorted(self.visited) if with_visited else []
        page = [self.page, list(self.keywords), self.number, self.asin, self.sub_page, self.draw]
        return [*page, self.chosen, visited]

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        fields = asdict(self)
        fields["keywords"], fields["visited"] = list(self.keywords), sorted(self.visited)
        fields["options"] = [list(pair) for pair in self.options]
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], shop: Shop) -> PageState:
        """Return the checked state of `to_json`; or `TypeError`, `ValueError` or `LookupError`."""
        state = cls(
            page=fields["page"],
            keywords=tuple(_strings("keywords", fields["keywords"])),
            number=_count("number", fields["number"]),
            asin=_string("asin", fields["asin"]),
            options=tuple(map(_pair, _list("options", fields["options"]))),
            sub_page=_string("sub_page", fields["sub_page"]),
            visited=frozenset(_strings("visited", fields["visited"])),
            draw=_count("draw", fields["draw"]),
        )
        _check(state, shop)
        return state


def _check(state: PageState, shop: Shop) -> None:
    """Raise unless the fields are consistent and the shop has the products they name."""
    if state.page not in ("index", "search", "item", "sub", "done"):
        raise ValueError(f"there is no page {state.page!r:.80}")
    if len(state.keywords) > _MAX_WORDS:
        raise ValueError(f"a search has at most {_MAX_WORDS} words, got {len(state.keywords)}")
    searched = state.page != "index"
    if searched != bool(state.keywords) or (state.number and not searched):
        raise ValueError(f"page {state.page!r} does not go with the search that is given")
    if not searched and state.visited:
        raise ValueError(f"page 'index' has visited products: {sorted(state.visited)!r:.80}")
    shown = state.page in ("item", "sub", "done")
    if shown != bool(state.asin) or (state.options and not shown):
        raise ValueError(f"page {state.page!r} does not go with product {state.asin!r:.80}")
    if (state.page == "sub") != (state.sub_page in SUB_PAGES) or (
        state.page != "sub" and state.sub_page
    ):
        raise ValueError(f"page {state.page!r} does not go with sub page {state.sub_page!r:.80}")
    if state.asin:
        _check_options(state, shop)
    for asin in state.visited:
        shop.position(asin)


def _check_options(state: PageState, shop: Shop) -> None:
    product = shop.product(state.asin)
    if state.asin not in state.visited:
        raise ValueError(f"product {state.asin!r:.80} is open but is not in 'visited'")
    if len(state.chosen) < len(state.options):
        raise ValueError("an option is chosen twice")
    for name, value in state.options:
        if value not in product.options[name]:
            raise ValueError(f"{name!r:.80} cannot be {value!r:.80} for {state.asin}")


def _list(name: str, value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError(f"{name!r} must be a list, got {value!r:.80}")
    return value


def _strings(name: str, value: Any) -> list[str]:
    return [_string(name, item) for item in _list(name, value)]


def _string(name: str, value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{name!r} must be of strings, got {value!r:.80}")
    return value


def _count(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**31:
        raise TypeError(f"{name!r} must be an integer that is not negative, got {value!r:.80}")
    return value


def _pair(value: Any) -> tuple[str, str]:
    name, chosen = _strings("options", value)
    return name, chosen
