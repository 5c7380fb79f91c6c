"""The Chromium of this process, controlled through ChromeDriver, with a tab per environment."""

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

from agentgyms.core.errors import WorkerLost
from agentgyms.envs.webshop.browser.launch import LIMIT_S, Binaries, start_browser, start_driver
from agentgyms.processes import workers

if TYPE_CHECKING:
    from selenium.webdriver import Remote

log = logging.getLogger(__name__)

_SELECT: Final = """
const field = document.querySelector(arguments[0]); field.focus(); field.select(); return field;
"""
KIND: Final = "webshop-browser"
"""The name of browsers in the counts of `agentgyms.processes.workers`."""

VISITS: Final = 500
"""Visits after which a browser is replaced."""

_IDLE_TABS: Final = 8
_OPENING_S: Final = 10.0
_POLL_S: Final = 0.01

T = TypeVar("T")


class Browser:
    """A running Chromium; thread-safe, one operation at a time."""

    def __init__(self, binaries: Binaries) -> None:
        """Start ChromeDriver and Chromium; raise `WorkerLost` if one does not start."""
        self._lock = threading.RLock()
        self._current = ""
        self._idle: deque[str] = deque()
        self._used: set[str] = set()
        self.visits = 0
        self._last_visit = time.monotonic()
        self._driver_process = start_driver(binaries.driver)
        workers.started(KIND)
        try:
            self._driver = self._translating_errors(
                lambda: start_browser(binaries, self._driver_process)
            )
            self._first_tab = self._driver.current_window_handle  # new ones are opened from it
        except WorkerLost:
            self.close("lost")
            raise

    @property
    def in_use(self) -> bool:
        """Whether a tab is in use, or a visit may be about to open one."""
        return bool(self._used) or time.monotonic() - self._last_visit < _OPENING_S

    def visit(self) -> None:
        """Count a visit that is about to begin."""
        self.visits += 1
        self._last_visit = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether it is open and responds."""
        if self._driver_process.process.poll() is not None:
            return False
        try:
            with self._lock:
                self._translating_errors(lambda: self._driver.window_handles)
        except WorkerLost:
            return False
        return True

    def open_tab(self) -> str:
        """Return a tab that is not in use."""
        with self._lock:
            while self._idle:
                tab = self._idle.pop()
                with suppress(WorkerLost):
                    self.show(tab, "about:blank")
                    self.read(tab, 'return location.href === "about:blank" || null')
                    self._used.add(tab)
                    return tab
            tab = self._translating_errors(self._new_tab)
            self._used.add(tab)
            return tab

    def close_tab(self, tab: str) -> None:
        """Release a tab, and close it if there are enough idle ones."""
        with self._lock:
            self._used.discard(tab)
            if len(self._idle) < _IDLE_TABS:
                self._idle.append(tab)
            else:
                self._in_tab(tab, lambda driver: driver.close())
                self._current = ""

    def release_tab(self, tab: str) -> None:
        """Release a tab; needs no lock, so that finalizers may call it."""
        self._used.discard(tab)
        self._idle.append(tab)

    def show(self, tab: str, url: str) -> None:
        """Open a page in a tab."""
        self._in_tab(tab, lambda driver: driver.get(url))

    def read(self, tab: str, script: str, *arguments: Any) -> Any:
        """Run a script in a tab until it returns anything but None (at most `LIMIT_S`)."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            found = self._in_tab(tab, lambda driver: _evaluate(driver, script, arguments))
            if found is not None:
                return found
            if time.monotonic() > deadline:
                raise WorkerLost(f"the browser did not show the expected page in {LIMIT_S:g} s")
            time.sleep(_POLL_S)

    def click(self, tab: str, selector: str) -> None:
        """Click the element that a CSS selector finds, as a mouse does."""
        self._in_tab(tab, lambda driver: driver.find_element("css selector", selector).click())

    def enter(self, tab: str, selector: str, text: str) -> None:
        """Replace the text of a field, as an input method does, and submit."""

        def type_and_submit(driver: Remote) -> None:
            field = driver.execute_script(_SELECT, selector)
            # Key events cannot type characters beyond U+FFFF, nor those that encode keys.
            driver.execute(
                "executeCdpCommand", {"cmd": "Input.insertText", "params": {"text": text}}
            )
            field.send_keys("\n")

        self._in_tab(tab, type_and_submit)

    def screenshot(self, tab: str) -> bytes:
        """Return a screenshot of a tab, as PNG."""
        return self._in_tab(tab, lambda driver: driver.get_screenshot_as_png())

    def close(self, reason: workers.End = "closed") -> None:
        """End Chromium and ChromeDriver."""
        workers.ended(KIND, reason)
        with self._lock, suppress(WorkerLost, AttributeError):  # it may not have started
            self._translating_errors(self._driver.quit)
        self._driver_process.end()

    def _new_tab(self) -> str:
        self._current = ""
        self._driver.switch_to.window(self._first_tab)
        self._driver.switch_to.new_window("tab")
        self._current = self._driver.current_window_handle
        return self._current

    def _in_tab(self, tab: str, work: Callable[[Remote], T]) -> T:
        def switch_and_work() -> T:
            if self._current != tab:
                self._current = ""  # unknown if the switch is interrupted
                self._driver.switch_to.window(tab)
                self._current = tab
            return work(self._driver)

        with self._lock:
            return self._translating_errors(switch_and_work)

    def _translating_errors(self, work: Callable[[], T]) -> T:
        from selenium.common.exceptions import WebDriverException
        from urllib3.exceptions import HTTPError

        try:
            return work()
        except (WebDriverException, HTTPError, OSError) as e:
            message = str(getattr(e, "msg", None) or e).strip().partition("\n")[0]
            raise WorkerLost(f"the browser failed: {type(e).__name__}: {message:.300}") from e


def _evaluate(driver: Remote, script: str, arguments: tuple[Any, ...]) -> Any:
    """Return the result of a script, None if the page is not ready."""
    from selenium.common.exceptions import JavascriptException

    try:
        return driver.execute_script(script, *arguments)
    except JavascriptException as e:
        log.debug("a page is not ready: %s", e.msg)
        return None


_browsers_lock = threading.RLock()
_browsers: dict[tuple[int, Binaries], Browser] = {}
_retired: list[tuple[int, Browser]] = []


def shared_browser(binaries: Binaries, most_visits: int = VISITS) -> Browser:
    """Return this process's browser; a lost one, or one after `most_visits`, is replaced."""
    key = (os.getpid(), binaries)  # a forked process does not use its parent's browser
    with _browsers_lock:
        end_retired()
        browser = _browsers.get(key)
        if browser is not None and not browser.alive:
            _browsers.pop(key).close("lost")
            browser = None
        if browser is not None and browser.visits >= most_visits:
            _retired.append((key[0], _browsers.pop(key)))
            browser = None
        if browser is None:
            browser = _browsers[key] = Browser(binaries)
        browser.visit()
        return browser


def end_retired() -> None:
    """End the replaced browsers of which no tab is in use."""
    with _browsers_lock:
        for process, browser in list(_retired):
            if process == os.getpid() and not browser.in_use:
                _retired.remove((process, browser))
                browser.close("recycled")


@atexit.register
def close_browsers() -> None:
    """End the browsers of this process."""
    with _browsers_lock:
        for key in [key for key in _browsers if key[0] == os.getpid()]:
            _browsers.pop(key).close()
        for process, browser in _retired:
            if process == os.getpid():
                browser.close("recycled")
        _retired.clear()
