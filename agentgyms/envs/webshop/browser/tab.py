"""A browser tab that shows one visit of the web site: reads its page and performs actions on it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from agentgyms.core.errors import WorkerLost
from agentgyms.envs.webshop.browser.driver import Browser, end_retired, shared_browser
from agentgyms.envs.webshop.browser.launch import Binaries
from agentgyms.envs.webshop.browser.site import Site, VisitLost, shared_site
from agentgyms.envs.webshop.rules.view import (
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
const visible = e => e.checkVisibility({visibilityProperty: true, opacityProperty: true});
const words = (e, part) => e.querySelector(`[data-part="${part}"]`).textContent;
const elements = [...document.querySelectorAll("[data-at]")].filter(visible);
elements.sort((a, b) => a.dataset.at - b.dataset.at);
const notice = document.querySelector("[data-notice]");
const search = document.querySelector("form[role=search]");
return {
  page: root.dataset.page,
  search: search !== null && visible(search) && search.dataset.listed === "1",
  query: search === null ? "" : search.elements.query.value,
  notice: notice !== null && visible(notice) ? notice.textContent : "",
  elements: elements.map(e => {
    const at = e.dataset.at, kind = e.dataset.kind;
    if (kind === "text") return {at, kind, text: e.textContent, role: e.dataset.role};
    if (kind === "button") return {at, kind, label: e.textContent};
    if (kind === "card") return {
      at, kind, asin: words(e, "asin"), title: words(e, "title"), price: words(e, "price"),
      category: e.dataset.category, visited: e.dataset.visited === "1"};
    const choices = [...e.querySelectorAll('[data-part="choice"]')].filter(visible);
    return {
      at, kind, name: words(e, "name"), chosen: e.dataset.chosen,
      choices: choices.map(c => [c.textContent, c.dataset.key, c.dataset.marked === "1"])};
  }),
};
"""


class PageContent(NamedTuple):
    """The page in a tab: its view, and each clickable element with its button's value."""

    view: View
    button_values: list[tuple[Clickable, str]]

    def button_value(self, clickable: Clickable) -> str:
        """Return the value of the button of an element of `view`, else raise `LookupError`."""
        return next(value for listed, value in self.button_values if listed is clickable)


class PageAction(NamedTuple):
    """An action on a page: `type` a query, `click` a button, or `send` a text to the site."""

    method: str
    what: str


class ShopPage:
    """The tab of one environment; a lost browser or site is replaced once per action."""

    def __init__(
        self, binaries: Binaries, arguments: Mapping[str, Any], episodes_per_browser: int
    ) -> None:
        self._binaries, self._arguments = binaries, dict(arguments)
        self._episodes_per_browser = episodes_per_browser
        self._browser: Browser | None = None
        self._site: Site | None = None
        self._process = os.getpid()
        self._tab = self._visit = self._task_id = self._instruction = ""
        self._turn = 0

    def restore(self, task_id: str, instruction: str, saved: Mapping[str, Any]) -> PageContent:
        """Show a saved session of a task in the tab.

        This and the methods below raise `WorkerLost` if a new browser or site failed too.
        """
        return self._with_retry(lambda: self._restore(task_id, instruction, saved), self._reset)

    def perform(
        self, page_action: PageAction, saved: Mapping[str, Any]
    ) -> tuple[dict[str, Any], PageContent]:
        """Perform an action on the page, and return the site's reply and the new page.

        If the browser is lost, the session is restored from `saved`.
        """
        return self._in_tab(lambda: self._perform(page_action), saved)

    def screenshot(self, saved: Mapping[str, Any]) -> bytes:
        """Return a screenshot of the tab, as PNG; for `saved` see `perform`."""
        return self._in_tab(self._screenshot, saved)

    def close(self) -> None:
        """Release the tab and end the visit; a later action opens another tab."""
        with suppress(WorkerLost):
            if self._site is not None and self._visit and self._process == os.getpid():
                self._site.request({"end": self._visit})
        with suppress(WorkerLost):
            if self._browser is not None and self._tab and self._process == os.getpid():
                tab, self._tab = self._tab, ""
                self._browser.close_tab(tab)
                end_retired()
        self._reset()

    def __del__(self) -> None:
        if self._browser is not None and self._tab:
            self._browser.release_tab(self._tab)

    def _in_tab(self, work: Callable[[], T], saved: Mapping[str, Any]) -> T:
        def restore_again() -> None:
            self._reset()
            self._restore(self._task_id, self._instruction, saved)

        if self._browser is None or self._process != os.getpid():  # closed, or made by fork
            restore_again()
        return self._with_retry(work, restore_again)

    def _with_retry(self, work: Callable[[], T], prepare: Callable[[], None]) -> T:
        try:
            return work()
        except WorkerLost as e:
            log.warning("%s; retrying once", e)
            prepare()
            return work()

    def _release_tab(self) -> None:
        if self._browser is not None and self._tab and self._process == os.getpid():
            self._browser.release_tab(self._tab)
        self._browser, self._tab = None, ""

    def _reset(self) -> None:
        self._release_tab()
        self._browser, self._site, self._tab, self._visit = None, None, "", ""
        self._process = os.getpid()

    def _restore(self, task_id: str, instruction: str, saved: Mapping[str, Any]) -> PageContent:
        if self._process != os.getpid():
            self._reset()
        site = shared_site()
        browser = shared_browser(self._binaries, self._episodes_per_browser)
        self._restore_visit(site, task_id, saved)
        self._site, self._task_id, self._instruction = site, task_id, instruction
        if browser is not self._browser:
            self._release_tab()
            self._browser, self._tab = browser, browser.open_tab()
        browser.show(self._tab, f"{site.url}{self._path}")
        return self._read()

    def _restore_visit(self, site: Site, task_id: str, saved: Mapping[str, Any]) -> None:
        """Restore a saved session in the visit, or open a visit with it."""
        if site is self._site and self._visit and task_id == self._task_id:
            try:
                self._turn = site.request({"put": self._visit, "saved": saved})["turn"]
            except VisitLost:
                self._visit = ""
            else:
                return
        elif site is self._site and self._visit:
            site.request({"end": self._visit})
        wanted = {**self._arguments, "task_id": task_id, "saved": saved}
        reply = site.request({"open": wanted})
        self._visit, self._turn = reply["visit"], reply["turn"]

    def _perform(self, page_action: PageAction) -> tuple[dict[str, Any], PageContent]:
        browser, site = self._browser, self._site
        assert browser is not None, "restore comes before perform"
        assert site is not None, "restore comes before perform"
        if page_action.method == "send":
            request = {"act": self._visit, "turn": self._turn, "action": page_action.what}
            self._turn = site.request(request)["turn"]
            browser.show(self._tab, f"{site.url}{self._path}")
        else:
            if page_action.method == "type":
                browser.enter(self._tab, SEARCH_BOX, page_action.what)
            else:
                browser.click(self._tab, f'[name="at"][value="{page_action.what}"]')
            self._turn += 1
        content = self._read()
        reply = site.request({"read": self._visit})
        if reply["turn"] != self._turn:
            raise WorkerLost(f"the tab shows turn {self._turn}, the site is at {reply['turn']}")
        return reply, content

    def _screenshot(self) -> bytes:
        assert self._browser is not None, "restore comes before screenshot"
        return self._browser.screenshot(self._tab)

    @property
    def _path(self) -> str:
        return f"/s/{self._visit}/{self._turn}"

    def _read(self) -> PageContent:
        assert self._browser is not None
        found = self._browser.read(self._tab, _READ, self._path)
        if not found["page"]:
            raise WorkerLost(f"the tab shows no page of the shop, but {found['heading']!r:.100}")
        elements: list[Element] = []
        button_values: list[tuple[Clickable, str]] = []
        for part in found["elements"]:
            element = _element(part)
            elements.append(element)
            if isinstance(element, OptionGroup):
                at = part["at"]
                button_values += [(choice, f"{at}.{i}") for i, choice in enumerate(element.choices)]
            elif not isinstance(element, Text):
                button_values.append((element, part["at"]))
        view = View(
            page=found["page"],
            instruction=self._instruction,
            query=found["query"],
            has_search_box=found["search"],
            elements=tuple(elements),
            notice=found["notice"],
        )
        return PageContent(view, button_values)


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
