"""Starts Chromium and ChromeDriver; a shell process ends both with this one, however it ends."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentgyms.core.errors import BadOption, EnvUnavailable, WorkerLost

if TYPE_CHECKING:
    from selenium.webdriver import Remote

LIMIT_S: Final = 30.0
"""Longest time that the browser may take to answer or to show a page, in seconds."""

WINDOW: Final = (1280, 900)
"""Width and height of a tab, in pixels."""

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Names of browsers; the first one on the path is used."""

DRIVERS: Final = ("chromedriver",)

ADVICE: Final = (
    "install Chromium and ChromeDriver of one version (Debian and Ubuntu: apt-get install chromium "
    "chromium-driver), or pass browser_binary=... and driver_binary=..."
)

_SUPERVISOR: Final = """
"$1" --port="$3" --log-path=/dev/null &
exec > /dev/null
cat
kill -9 "$!"
wait "$!"
lock=$(readlink "$2/SingletonLock") && { kill -9 "${lock##*-}"; sleep 1; }
rm -rf "$2" || { sleep 1; rm -rf "$2"; }
"""
_STARTED: Final = b"started successfully"
_TRIES: Final = 3
_SWITCHES: Final = (
    "--remote-debugging-pipe",  # ends Chromium together with ChromeDriver
    "--no-proxy-server",
    "--no-first-run",
    "--process-per-site",  # tabs are used one at a time; one renderer saves memory
    # Features that take time on every page and are not needed.
    "--blink-settings=preferredColorScheme=1",  # light: pictures do not depend on the desktop
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-features=AutofillServerCommunication,MediaRouter,OptimizationHints,Translate",
    "--disable-gpu",
    "--disable-renderer-backgrounding",
    "--disable-sync",
    "--metrics-recording-only",
    "--password-store=basic",
)


class Binaries(NamedTuple):
    """The programs of a browser, and whether it runs without a window."""

    browser: str
    driver: str
    headless: bool


def find_binaries(browser: str | None, driver: str | None, headless: bool) -> Binaries:
    """Return the given programs, or else those on the path; `EnvUnavailable` if one is missing."""
    if not isinstance(headless, bool):
        raise BadOption(f"headless must be True or False, got {headless!r:.60}")
    return Binaries(
        _find("browser_binary", browser, BROWSERS),
        _find("driver_binary", driver, DRIVERS),
        headless,
    )


def _find(argument: str, given: Any, defaults: tuple[str, ...]) -> str:
    if given is not None:
        found = shutil.which(given) if isinstance(given, str) else None
        if found is None:
            raise BadOption(f"{argument} must name a program, got {given!r:.200}: {ADVICE}")
        return found
    found = next(filter(None, map(shutil.which, defaults)), None)
    if found is None:
        raise EnvUnavailable(f"no {' or '.join(defaults)} on this machine: {ADVICE}")
    return found


class DriverProcess(NamedTuple):
    """A running ChromeDriver, the shell process that ends it, and the browser's profile folder."""

    process: subprocess.Popen[bytes]
    url: str
    profile: str

    def end(self) -> None:
        """End ChromeDriver; Chromium ends with it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def start_driver(driver: str) -> DriverProcess:
    """Start ChromeDriver; raise `WorkerLost` if it does not start."""
    for _ in range(_TRIES):  # another process may take the free port first
        if driver_process := _try_driver(driver, _free_port()):
            return driver_process
    raise WorkerLost(f"{driver} does not start: {ADVICE}")


def _free_port() -> int:
    """Return a free port; ChromeDriver cannot choose one itself without IPv6."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _try_driver(driver: str, port: int) -> DriverProcess | None:
    profile = tempfile.mkdtemp(prefix="agentgyms-browser-")
    process = subprocess.Popen(
        ["sh", "-c", _SUPERVISOR, "guard", driver, profile, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # or Ctrl-C would end it before its environments are closed
    )
    timer = threading.Timer(LIMIT_S, process.kill)
    timer.daemon = True
    timer.start()
    assert process.stdout is not None
    with process.stdout as output:  # the start message alone, as its log is discarded
        started = any(_STARTED in line for line in output)
    timer.cancel()
    driver_process = DriverProcess(process, f"http://127.0.0.1:{port}", profile)
    if started:
        return driver_process
    driver_process.end()
    return None


def start_browser(binaries: Binaries, driver_process: DriverProcess) -> Remote:
    """Start Chromium with one tab, and return its driver."""
    from selenium.webdriver import Remote
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.remote_connection import ChromeRemoteConnection

    options = Options()
    options.binary_location = binaries.browser
    options.page_load_strategy = "none"  # `read` waits for the expected page
    switches = [
        f"--user-data-dir={driver_process.profile}",
        f"--window-size={WINDOW[0]},{WINDOW[1]}",
        *_SWITCHES,
    ]
    if binaries.headless:
        switches.append("--headless=new")
    if os.geteuid() == 0:  # Chromium's sandbox refuses to run as root
        switches.append("--no-sandbox")
    for switch in switches:
        options.add_argument(switch)
    connection = ChromeRemoteConnection(driver_process.url, keep_alive=True, ignore_proxy=True)
    driver = Remote(command_executor=connection, options=options)
    driver.set_page_load_timeout(LIMIT_S)
    return driver
