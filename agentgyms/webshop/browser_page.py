"""One tab on one visit of the web site: what it shows is read, and what it offers is clicked."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from agentgyms.errors import WorkerLost
from agentgyms.webshop.browser_driver import Browser, end_retired, shared_browser
from agentgyms.webshop.browser_launch import Binaries
from agentgyms.webshop.browser_site import Site, VisitLost, shared_site
from agentgyms.webshop.view import (
    Button,
    Card,
    Choice,
    Clickable,
    Element,
    OptionGroup,
    Text,
    View,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

SEARCH_BOX: Final = "#query"

_READ: Final = """
const root = document.documentElement;
if (root === null || document.readyState !== "complete") return null;
if (location.protocol === "about:") return null;
if (!root.dataset.page) return {page: "", heading: document.title};
if (location.pathname !== arguments[0]) return null;
const shown = e => e.checkVisibility({visibilityProperty: true, opacityProperty: true});
const words = (e, part) => e.querySelector(`[data-part="${part}"]`).textContent;
const elements = [...document.querySelectorAll("[data-at]")].filter(shown);
elements.sort((a, b) => a.dataset.at - b.dataset.at);
const notice = document.querySelector("[data-notice]");
const search = document.querySelector("form[role=search]");
return {
  page: root.dataset.page,
  search: search !== null && shown(search) && search.dataset.listed === "1",
  query: search === null ? "" : search.elements.query.value,
  notice: notice !== null && shown(notice) ? notice.textContent : "",
  elements: elements.map(e => {
    const at = e.dataset.at, kind = e.dataset.kind;
    if (kind === "text") return {at, kind, text: e.textContent, role: e.dataset.role};
    if (kind === "button") return {at, kind, label: e.textContent};
    if (kind === "card") return {
      at, kind, asin: words(e, "asin"), title: words(e, "title"), price: words(e, "price"),
      category: e.dataset.category, visited: e.dataset.visited === "1"};
    const choices = [...e.querySelectorAll('[data-part="choice"]')].filter(shown);
    return {
      at, kind, name: words(e, "name"), chosen: e.dataset.chosen,
      choices: choices.map(c => [c.textContent, c.dataset.key, c.dataset.marked === "1"])};
  }),
};
"""


class Shown(NamedTuple):
    """What a tab shows.

    Attributes:
        view: The page, as it is read in the tab.
        places: What can be clicked, each with the value of the button that does it.
    """

    view: View
    places: list[tuple[Clickable, str]]

    def place(self, clickable: Clickable) -> str:
        """Return the value of the button of something that `view` has.

        Raises:
            LookupError: The page has no such thing.
        """
        return next(place for listed, place in self.places if listed is clickable)


class Deed(NamedTuple):
    """What is done on a page.

    Attributes:
        how: `type` a query into the search box, `click` the button of this value, or `tell` the
            shop of an action that no page has a place for.
        what: The query, the value, or the action.
    """

    how: str
    what: str


class ShopPage:
    """The tab of one environment; a lost browser or site is replaced once in every action."""

    def __init__(
        self, binaries: Binaries, arguments: Mapping[str, Any], episodes_per_browser: int
    ) -> None:
        """Keep how to get a browser and the arguments of the shop; nothing is started yet."""
        self._binaries, self._arguments = binaries, dict(arguments)
        self._episodes_per_browser = episodes_per_browser
        self._browser: Browser | None = None
        self._site: Site | None = None
        self._process = os.getpid()
        self._tab = self._visit = self._task_id = self._instruction = ""
        self._turn = 0

    def place(self, task_id: str, instruction: str, saved: Mapping[str, Any]) -> Shown:
        """Bring the tab to a saved session of a task.

        Raises:
            WorkerLost: The browser or the site does not work, and a new one neither.
        """
        return self._twice(lambda: self._place(task_id, instruction, saved), self._forget)

    def do(self, deed: Deed, saved: Mapping[str, Any]) -> tuple[dict[str, Any], Shown]:
        """Do something on the page, and return what the site says of it and what the tab shows.

        Args:
            deed: What to do.
            saved: Where the session is, to begin there again if the browser is lost.

        Raises:
            WorkerLost: The browser or the site does not work, and a new one neither.
        """
        return self._in_tab(lambda: self._do(deed), saved)

    def screenshot(self, saved: Mapping[str, Any]) -> bytes:
        """Return what the tab shows, as PNG; for `saved` see `do`.

        Raises:
            WorkerLost: The browser or the site does not work, and a new one neither.
        """
        return self._in_tab(self._screenshot, saved)

    def close(self) -> None:
        """Give back the tab and end the visit; what is done after that takes another tab."""
        with suppress(WorkerLost):
            if self._site is not None and self._visit and self._process == os.getpid():
                self._site.ask({"end": self._visit})
        with suppress(WorkerLost):
            if self._browser is not None and self._tab and self._process == os.getpid():
                tab, self._tab = self._tab, ""
                self._browser.close_tab(tab)
                end_retired()
        self._forget()

    def __del__(self) -> None:
        """Leave the tab to others."""
        if self._browser is not None and self._tab:
            self._browser.abandon(self._tab)

    def _in_tab(self, work: Callable[[], T], saved: Mapping[str, Any]) -> T:
        """Return what `work` returns, in a tab of this process that shows the visit."""

        def place_again() -> None:
            self._forget()
            self._place(self._task_id, self._instruction, saved)

        if self._browser is None or self._process != os.getpid():  # closed, or made by fork
            place_again()
        return self._twice(work, place_again)

    def _twice(self, work: Callable[[], T], prepare: Callable[[], None]) -> T:
        """Return what `work` returns, the second time if the first one fails."""
        try:
            return work()
        except WorkerLost as e:
            log.warning("%s; it is tried once more", e)
            prepare()
            return work()

    def _leave_tab(self) -> None:
        if self._browser is not None and self._tab and self._process == os.getpid():
            self._browser.abandon(self._tab)
        self._browser, self._tab = None, ""

    def _forget(self) -> None:
        self._leave_tab()
        self._browser, self._site, self._tab, self._visit = None, None, "", ""
        self._process = os.getpid()

    def _place(self, task_id: str, instruction: str, saved: Mapping[str, Any]) -> Shown:
        if self._process != os.getpid():
            self._forget()
        site = shared_site()
        browser = shared_browser(self._binaries, self._episodes_per_browser)
        self._move(site, task_id, saved)
        self._site, self._task_id, self._instruction = site, task_id, instruction
        if browser is not self._browser:
            self._leave_tab()
            self._browser, self._tab = browser, browser.open_tab()
        browser.show(self._tab, f"{site.url}{self._path}")
        return self._read()

    def _move(self, site: Site, task_id: str, saved: Mapping[str, Any]) -> None:
        """Bring the visit to a saved session, or begin one there."""
        if site is self._site and self._visit and task_id == self._task_id:
            try:
                self._turn = site.ask({"put": self._visit, "saved": saved})["turn"]
            except VisitLost:
                self._visit = ""
            else:
                return
        elif site is self._site and self._visit:
            site.ask({"end": self._visit})
        wanted = {**self._arguments, "task_id": task_id, "saved": saved}
        answer = site.ask({"open": wanted})
        self._visit, self._turn = answer["visit"], answer["turn"]

    def _do(self, deed: Deed) -> tuple[dict[str, Any], Shown]:
        browser, site = self._browser, self._site
        assert browser is not None, "place comes before do"
        assert site is not None, "place comes before do"
        if deed.how == "tell":
            request = {"act": self._visit, "turn": self._turn, "action": deed.what}
            self._turn = site.ask(request)["turn"]
            browser.show(self._tab, f"{site.url}{self._path}")
        else:
            if deed.how == "type":
                browser.enter(self._tab, SEARCH_BOX, deed.what)
            else:
                browser.click(self._tab, f'[name="at"][value="{deed.what}"]')
            self._turn += 1
        shown = self._read()
        answer = site.ask({"read": self._visit})
        if answer["turn"] != self._turn:
            raise WorkerLost(f"the tab shows turn {self._turn}, the site is at {answer['turn']}")
        return answer, shown

    def _screenshot(self) -> bytes:
        assert self._browser is not None, "place comes before screenshot"
        return self._browser.screenshot(self._tab)

    @property
    def _path(self) -> str:
        return f"/s/{self._visit}/{self._turn}"

    def _read(self) -> Shown:
        assert self._browser is not None
        found = self._browser.read(self._tab, _READ, self._path)
        if not found["page"]:
            raise WorkerLost(f"the tab shows no page of the shop, but {found['heading']!r:.100}")
        return _shown(found, self._instruction)


def _shown(found: dict[str, Any], instruction: str) -> Shown:
    elements: list[Element] = []
    places: list[tuple[Clickable, str]] = []
    for part in found["elements"]:
        element = _element(part)
        elements.append(element)
        if isinstance(element, OptionGroup):
            at = part["at"]
            places += [(choice, f"{at}.{i}") for i, choice in enumerate(element.choices)]
        elif not isinstance(element, Text):
            places.append((element, part["at"]))
    view = View(
        page=found["page"],
        instruction=instruction,
        query=found["query"],
        has_search_box=found["search"],
        elements=tuple(elements),
        notice=found["notice"],
    )
    return Shown(view, places)


def _element(part: dict[str, Any]) -> Element:
    match part:
        case {"kind": "text"}:
            return Text(part["text"], part["role"])
        case {"kind": "button"}:
            return Button(part["label"])
        case {"kind": "card"}:
            return Card(*(part[name] for name in Card._fields))
    name = part["name"]
    return OptionGroup(name, tuple(Choice(name, *c) for c in part["choices"]), part["chosen"])
