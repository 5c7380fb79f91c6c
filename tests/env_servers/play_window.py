"""A browser's window with `/play` in it: what tests read there, and how they press and click."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LIMIT_S = 15
READY = "return document.documentElement.dataset.ready === 'yes'"
NAMED = """return [...document.querySelectorAll(arguments[0])].find(
  e => e.checkVisibility() && e.innerText.includes(arguments[1]))"""
TEXTS = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"


class PlayWindow:
    """Chromium without a head; `downloads` is where it saves files."""

    def __init__(self, downloads: Path) -> None:
        from selenium import webdriver

        from agentgyms.envs.webshop.browser.launch import find_binaries

        found = find_binaries(None, None, True)
        options = webdriver.ChromeOptions()
        options.binary_location = found.browser or ""
        for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(
            options=options, service=webdriver.ChromeService(found.driver)
        )
        self.downloads = downloads
        saved = {"behavior": "allow", "downloadPath": str(downloads)}
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", saved)

    def open(self, url: str, *, width: int = 1280, dark: bool = False, forget: bool = True) -> None:
        """Open an address as a new visitor; `forget` clears what an earlier test left behind."""
        self.size(width)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
        if forget:
            self.driver.get(f"{url}/healthz")
            self.look("sessionStorage.clear()")
            self.driver.delete_all_cookies()
        self.driver.get(f"{url}/play")

    def begin(self, url: str, **options: Any) -> None:
        """Open the page and wait for its first episode."""
        self.open(url, **options)
        self.wait(READY)

    def size(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def look(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns as soon as that is true."""
        from selenium.webdriver.support.ui import WebDriverWait

        waiting = WebDriverWait(self.driver, LIMIT_S, poll_frequency=0.02)
        return waiting.until(lambda _: self.look(script, *arguments), script)

    def text(self, name: str) -> str:
        """Return what an element says, letter by letter."""
        return str(self.look("return document.getElementById(arguments[0]).textContent", name))

    def seen(self, name: str) -> bool:
        """Return whether an element is on the page."""
        script = "return document.getElementById(arguments[0]).checkVisibility()"
        return bool(self.look(script, name))

    def wait_text(self, name: str, part: str) -> None:
        script = "return document.getElementById(arguments[0]).textContent.includes(arguments[1])"
        self.wait(script, name, part)

    def wait_turn(self, turn: int) -> None:
        """Wait until the page shows a turn."""
        script = "return document.getElementById('turn').dataset.turn === String(arguments[0])"
        self.wait(script, turn)

    def press(self, *keys: str) -> None:
        """Press keys at whatever has the focus, as a keyboard does."""
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def click(self, selector: str, text: str = "") -> None:
        """Click the element that a selector finds, with a text in it, where a mouse would."""
        element = self.wait(NAMED, selector, text)
        self.look("arguments[0].scrollIntoView({block: 'nearest'})", element)
        element.click()

    def push(self, name: str) -> None:
        """Click an element by its id."""
        self.click(f"#{name}")

    def act(self, action: str, turn: int) -> None:
        """Type an action, send it, and wait for its turn."""
        self.look(
            "const field = document.getElementById('action'); field.value = arguments[0];"
            "field.dispatchEvent(new Event('input'))",
            action,
        )
        self.push("send")
        self.wait_turn(turn)

    def actions(self) -> list[str]:
        """Return the actions that have a key of the cross or a button, in the order of numbers."""
        return [*self.moves(), *self.look(TEXTS, "#actions button > span")]

    def moves(self) -> list[str]:
        """Return the moves that can be made by a key of the cross."""
        keys = "#cross:not([hidden]) button[aria-disabled=false]"
        names = "return [...document.querySelectorAll(arguments[0])].map(e => e.ariaLabel)"
        return list(self.look(names, keys))

    def turns(self) -> list[str]:
        """Return the actions in the list of turns."""
        return list(self.look(TEXTS, "#history .action"))

    def give_file(self, path: Path) -> None:
        """Choose a recording in the form for one."""
        self.driver.find_element("id", "file").send_keys(str(path))

    def downloaded(self, press: str = "download") -> Path:
        """Press the button and return the file that comes."""
        import time

        before = set(self.downloads.iterdir())
        self.push(press)
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            new = [p for p in set(self.downloads.iterdir()) - before if p.suffix == ".jsonl"]
            if new:
                return new[0]
            time.sleep(0.02)
        raise AssertionError(f"no file came; the page says {self.text('notice')!r}")

    def offline(self, off: bool) -> None:
        rate = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": off, **rate})

    def errors(self) -> list[str]:
        """Return what went wrong in the page; that the server refused something is no fault."""
        logged = [entry["message"] for entry in self.driver.get_log("browser")]
        return [line for line in logged if "Failed to load resource" not in line]

    def overflow(self) -> list[str]:
        """Return the elements that are wider than the window."""
        script = """
        const wide = [...document.querySelectorAll("body *")].filter(e => e.checkVisibility()
          && !e.closest(".unseen, .skip, .grid-text")
          && e.getBoundingClientRect().right > innerWidth + 1);
        return [document.documentElement.scrollWidth > innerWidth ? "the page" : "", ...wide.map(
          e => `${e.tagName}#${e.id}.${e.className}`)].filter(Boolean);
        """
        return list(self.look(script))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
