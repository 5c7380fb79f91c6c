"""One Chromium of this process, driven through ChromeDriver: a tab for each environment."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agentgyms import workers
from agentgyms.errors import WorkerLost
from agentgyms.webshop.browser_launch import LIMIT_S, Binaries, start_browser, start_driver

if TYPE_CHECKING:
    from selenium.webdriver import Remote

log = logging.getLogger(__name__)

_SELECT: Final = """
const field = document.querySelector(arguments[0]); field.focus(); field.select(); return field;
"""
KIND: Final = "webshop-browser"
"""What `agentgyms.workers` counts browsers as."""

VISITS: Final = 500
"""After as many visits to the shop, a browser is replaced."""

_IDLE_TABS: Final = 8
_OPENING_S: Final = 10.0
_POLL_S: Final = 0.01

T = TypeVar("T")


class Browser:
    """A running Chromium; all methods may be called from any thread, one at a time works.

    Attributes:
        visits: How many visits to the shop were begun in it, or were brought to it.
    """

    def __init__(self, binaries: Binaries) -> None:
        """Start ChromeDriver and Chromium.

        Raises:
            WorkerLost: One of them does not start.
        """
        self._lock = threading.RLock()
        self._current = ""
        self._idle: deque[str] = deque()
        self._used: set[str] = set()
        self.visits = 0
        self._asked_for = time.monotonic()
        self._guard = start_driver(binaries.driver)
        workers.started(KIND)
        try:
            self._driver = self._working(lambda: start_browser(binaries, self._guard))
            self._first_tab = self._driver.current_window_handle  # new ones are opened from it
        except WorkerLost:
            self.close("lost")
            raise

    @property
    def in_use(self) -> bool:
        """Whether somebody has a tab of it, or may be about to open one."""
        return bool(self._used) or time.monotonic() - self._asked_for < _OPENING_S

    def visit(self) -> None:
        """Count a visit that is about to begin."""
        self.visits += 1
        self._asked_for = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether it has not been closed and answers."""
        if self._guard.process.poll() is not None:
            return False
        try:
            with self._lock:
                self._working(lambda: self._driver.window_handles)
        except WorkerLost:
            return False
        return True

    def open_tab(self) -> str:
        """Return a tab that nobody else uses."""
        with self._lock:
            while self._idle:
                tab = self._idle.pop()
                with suppress(WorkerLost):
                    self.show(tab, "about:blank")
                    self.read(tab, 'return location.href === "about:blank" || null')
                    self._used.add(tab)
                    return tab
            tab = self._working(self._new_tab)
            self._used.add(tab)
            return tab

    def close_tab(self, tab: str) -> None:
        """Give a tab back."""
        with self._lock:
            self._used.discard(tab)
            if len(self._idle) < _IDLE_TABS:
                self._idle.append(tab)
            else:
                self._do(tab, lambda driver: driver.close())
                self._current = ""

    def abandon(self, tab: str) -> None:
        """Leave a tab to others; takes no time and no lock, so that finalizers may call it."""
        self._used.discard(tab)
        self._idle.append(tab)

    def show(self, tab: str, url: str) -> None:
        """Open a page in a tab."""
        self._do(tab, lambda driver: driver.get(url))

    def read(self, tab: str, script: str, *arguments: Any) -> Any:
        """Return what a script in a tab's page returns, as soon as that is not None.

        Raises:
            WorkerLost: It stays None for `LIMIT_S`, or the browser is lost.
        """
        deadline = time.monotonic() + LIMIT_S
        while True:
            found = self._do(tab, lambda driver: _evaluate(driver, script, arguments))
            if found is not None:
                return found
            if time.monotonic() > deadline:
                raise WorkerLost(f"the browser did not show the expected page in {LIMIT_S:g} s")
            time.sleep(_POLL_S)

    def click(self, tab: str, selector: str) -> None:
        """Click the element that a CSS selector finds, as a mouse does."""
        self._do(tab, lambda driver: driver.find_element("css selector", selector).click())

    def enter(self, tab: str, selector: str, text: str) -> None:
        """Put `text` into a field instead of what is there, as an input method does, and submit."""

        def type_and_submit(driver: Remote) -> None:
            field = driver.execute_script(_SELECT, selector)
            # Keys cannot type characters beyond U+FFFF, nor those that stand for keys.
            driver.execute(
                "executeCdpCommand", {"cmd": "Input.insertText", "params": {"text": text}}
            )
            field.send_keys("\n")

        self._do(tab, type_and_submit)

    def screenshot(self, tab: str) -> bytes:
        """Return what a tab shows, as PNG."""
        return self._do(tab, lambda driver: driver.get_screenshot_as_png())

    def close(self, how: workers.End = "closed") -> None:
        """End Chromium and ChromeDriver.

        Args:
            how: Why, for the counts of `agentgyms.workers`.
        """
        workers.ended(KIND, how)
        with self._lock, suppress(WorkerLost, AttributeError):  # it may not have started
            self._working(self._driver.quit)
        self._guard.end()

    def _new_tab(self) -> str:
        self._current = ""
        self._driver.switch_to.window(self._first_tab)
        self._driver.switch_to.new_window("tab")
        self._current = self._driver.current_window_handle
        return self._current

    def _do(self, tab: str, work: Callable[[Remote], T]) -> T:
        """Return what `work` returns, with the driver turned to a tab."""

        def turned() -> T:
            if self._current != tab:
                self._current = ""  # if this is interrupted, nobody knows where the driver is
                self._driver.switch_to.window(tab)
                self._current = tab
            return work(self._driver)

        with self._lock:
            return self._working(turned)

    def _working(self, work: Callable[[], T]) -> T:
        """Return what `work` returns.

        Raises:
            WorkerLost: The browser does not do it.
        """
        from selenium.common.exceptions import WebDriverException
        from urllib3.exceptions import HTTPError

        try:
            return work()
        except (WebDriverException, HTTPError, OSError) as e:
            said = str(getattr(e, "msg", None) or e).strip().partition("\n")[0]
            raise WorkerLost(f"the browser failed: {type(e).__name__}: {said:.300}") from e


def _evaluate(driver: Remote, script: str, arguments: tuple[Any, ...]) -> Any:
    """Return what a script returns, None if the page is left or not there yet."""
    from selenium.common.exceptions import JavascriptException

    try:
        return driver.execute_script(script, *arguments)
    except JavascriptException as e:
        log.debug("a page is not ready: %s", e.msg)
        return None


_opening = threading.RLock()
_open: dict[tuple[int, Binaries], Browser] = {}
_retired: list[tuple[int, Browser]] = []


def shared_browser(binaries: Binaries, most_visits: int = VISITS) -> Browser:
    """Return this process's browser, for one visit more; one that was lost is replaced.

    Args:
        binaries: What it is made of.
        most_visits: After as many visits another browser takes its place, and it ends as soon as
            nobody has a tab of it: what it leaks, it leaks that often at most.

    Raises:
        WorkerLost: It does not start.
    """
    key = (os.getpid(), binaries)  # a process made by fork has no part in its parent's browser
    with _opening:
        end_retired()
        browser = _open.get(key)
        if browser is not None and not browser.alive:
            _open.pop(key).close("lost")
            browser = None
        if browser is not None and browser.visits >= most_visits:
            _retired.append((key[0], _open.pop(key)))
            browser = None
        if browser is None:
            browser = _open[key] = Browser(binaries)
        browser.visit()
        return browser


def end_retired() -> None:
    """End the browsers that others have replaced and nobody has a tab of any more."""
    with _opening:
        for process, browser in list(_retired):
            if process == os.getpid() and not browser.in_use:
                _retired.remove((process, browser))
                browser.close("recycled")


@atexit.register
def close_browsers() -> None:
    """End the browsers of this process."""
    with _opening:
        for key in [key for key in _open if key[0] == os.getpid()]:
            _open.pop(key).close()
        for process, browser in _retired:
            if process == os.getpid():
                browser.close("recycled")
        _retired.clear()
