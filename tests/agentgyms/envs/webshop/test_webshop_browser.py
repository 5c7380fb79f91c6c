"""The shop in a real browser: by a person's hand, and as an environment."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadOption, EnvUnavailable, WorkerLost
from agentgyms.envs.webshop.browser import driver as browser_driver
from agentgyms.envs.webshop.browser import launch
from agentgyms.envs.webshop.browser import site as browser_site
from agentgyms.envs.webshop.browser.driver import shared_browser
from agentgyms.envs.webshop.browser.env import WebShopBrowserEnv
from agentgyms.envs.webshop.browser.launch import find_binaries
from agentgyms.envs.webshop.env import WebShopEnv
from agentgyms.processes import workers
from agentgyms.remote import InProcessTransport, RemoteEnv
from agentgyms.serving.server import Server
from env_servers import create_app
from env_servers.webshop_site.app import Offer, create_site
from tests.contrast import LOW_CONTRAST

ENV_ID = "agentgyms/WebShopBrowser-v0"
LAMP = "B0TEST0001/0"  # color: walnut, size: small
PHONE = (390, 844)

in_browser = pytest.mark.browser


@pytest.fixture(scope="module", autouse=True)
def nothing_left():
    yield
    browser_driver.close_browsers()
    browser_site.close_site()


# --- a person -----------------------------------------------------------------------------------


class Hand:
    """A person's keyboard and eyes, in a tab."""

    def __init__(self, url):
        self.browser = shared_browser(find_binaries(None, None, True))
        self.tab = self.browser.open_tab()
        self.browser.show(self.tab, url)
        self.turn = 0
        self.wait()

    def wait(self):
        script = """
        const root = document.documentElement;
        return root.dataset.turn === arguments[0] && document.readyState === "complete" || null;
        """
        self.browser.read(self.tab, script, str(self.turn))

    def send(self, keys):
        from selenium.webdriver import ActionChains

        self.browser._in_tab(
            self.tab, lambda driver: ActionChains(driver).send_keys(keys).perform()
        )

    def press(self, keys):
        self.send(keys)
        self.turn += 1
        self.wait()

    def tab_to(self, label):
        """Press Tab until what is labelled so has the focus, which must be seen there."""
        for _ in range(60):
            self.send("\ue004")
            words, outline = self.look(
                "const e = document.activeElement;"
                "return [e.textContent.trim(), getComputedStyle(e).outlineStyle]"
            )
            if words == label:
                assert outline != "none", f"the focus on {label} cannot be seen"
                return
        raise AssertionError(f"no {label} can be reached with the keyboard")

    def look(self, script):
        return self.browser.read(self.tab, script)

    def words(self):
        return self.look("return document.body.innerText")

    def width(self, width, height):
        size = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": True}
        self.emulate("Emulation.setDeviceMetricsOverride", size)

    def theme(self, name):
        feature = {"name": "prefers-color-scheme", "value": name}
        self.emulate("Emulation.setEmulatedMedia", {"features": [feature]})

    def emulate(self, command, values):
        request = {"cmd": command, "params": values}
        self.browser._in_tab(self.tab, lambda driver: driver.execute("executeCdpCommand", request))

    def put_down(self):
        self.emulate("Emulation.clearDeviceMetricsOverride", {})
        self.browser.close_tab(self.tab)


@pytest.fixture
def hand(small_shop):
    from agentgyms.core.tasks import Task, TaskSet

    offer = Offer(small_shop, TaskSet("lamp", [Task(LAMP, "garden")]))
    with Server(create_site(offer)) as server:
        hand = Hand(f"{server.url}/")
        yield hand
        hand.put_down()


@in_browser
def test_a_person_buys_with_the_keyboard_alone(hand):
    hand.press("walnut desk lamp\n")  # the search box has the focus at once
    hand.tab_to("B0TEST0001")
    hand.press("\n")
    for label in ("walnut", "small"):
        hand.tab_to(label)
        hand.press(" ")
    assert "Chosen: color: walnut, size: small" in hand.words()
    hand.tab_to("Buy Now")
    hand.press("\n")
    assert "Thank you for shopping with us!" in hand.words()
    assert "100 of 100" not in hand.words()
    hand.tab_to("How did I do?")
    hand.send("\n")
    assert "100 of 100" in hand.words()


@in_browser
def test_every_page_fits_a_phone(hand):
    hand.width(*PHONE)
    for label in ("", "lamp", "B0TEST0001", "walnut", "Features", "< Prev", "Buy Now"):
        if label == "lamp":
            hand.press("lamp\n")
        elif label:
            hand.tab_to(label)
            hand.press("\n")
        assert hand.look("return innerWidth") == PHONE[0]
        assert hand.look("return document.documentElement.scrollWidth") <= PHONE[0]
        small = hand.look(
            "return [...document.querySelectorAll('.button, .chip')]"
            ".map(e => e.getBoundingClientRect()).filter(r => r.height < 40 || r.width < 24).length"
        )
        assert small == 0, "a finger cannot hit a button"


@in_browser
def test_the_browsers_own_way_back(hand):
    hand.press("lamp\n")
    hand.tab_to("B0TEST0001")
    hand.press("\n")
    hand.browser._in_tab(hand.tab, lambda driver: driver.back())
    hand.turn = 1
    hand.wait()
    hand.tab_to("B0TEST0002")
    hand.press("\n")
    assert "Oak Desk Lamp" in hand.words()


def brightness(hand, selector):
    """Return the mean of a background's three channels, 0 to 255."""
    colour = hand.look(
        f"return getComputedStyle(document.querySelector('{selector}')).backgroundColor"
    )
    return np.mean([int(channel) for channel in re.findall(r"\d+", colour)[:3]])


@in_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_read_can_be_read(hand, theme):
    hand.theme(theme)
    for selector in ("body", ".card", "#query", ".task"):
        assert (brightness(hand, selector) < 64) == (theme == "dark")
    assert hand.look(LOW_CONTRAST) == []
    hand.press("lamp\n")
    assert hand.look(LOW_CONTRAST) == []
    for label in ("B0TEST0001", "walnut", "walnut", "Buy Now"):
        hand.tab_to(label)
        hand.press("\n")
        assert hand.look(LOW_CONTRAST) == []


# --- the environment ----------------------------------------------------------------------------


@in_browser
def test_environment():
    testing.check_env(lambda: gym.make(ENV_ID, split="sample", max_turns=3))


@in_browser
def test_snapshots():
    testing.check_snapshot(lambda: gym.make(ENV_ID, split="sample", max_turns=3))


@in_browser
def test_group():
    testing.check_group(lambda: agentgyms.make_group(ENV_ID, 3, split="sample"))


@in_browser
def test_remote_equals_local():
    arguments = {"split": "sample", "max_turns": 3}
    transport = InProcessTransport({"http://server": create_app(ENV_ID)})
    testing.check_remote_parity(
        lambda: gym.make(ENV_ID, **arguments),
        lambda: RemoteEnv(ENV_ID, url="http://server", transport=transport, **arguments),
    )


def twins(**arguments):
    return WebShopEnv(**arguments), WebShopBrowserEnv(**arguments)


def play_both(env, browser_env, seed):
    """Play one episode in both environments with equal actions, and compare all they return."""
    rng = np.random.default_rng(seed)
    assert testing.playing.plain(env.reset(seed=seed)) == testing.playing.plain(
        browser_env.reset(seed=seed)
    )
    info = env._episode.last.info
    turns = 0
    while True:
        listed = info["admissible_actions"]
        action = str(rng.choice([*listed, "click[nothing]", "search", "CLICK[ back to  search ]"]))
        words = env.session.goal.query.split()
        query = rng.choice([env.session.goal.query, f"{words[-1]} 漆黒 😀", "<b>&amp;", "zzz"])
        action = action.replace("<query>", str(query))
        one, two = env.step(action), browser_env.step(action)
        turns += 1
        assert testing.playing.plain(one) == testing.playing.plain(two), action
        info = one[4]
        if one[2] or one[3]:
            return turns


@in_browser
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"observation_mode": "text_rich", "show_attributes": True},
        {"compat": True, "observation_mode": "text_rich"},
    ],
    ids=["default", "rich", "compat"],
)
def test_it_agrees_with_the_text_environment(arguments):
    env, browser_env = twins(**arguments)
    for seed in range(2):
        play_both(env, browser_env, seed)
    browser_env.close()


@in_browser
@pytest.mark.slow
def test_it_keeps_the_contract_in_processes_and_from_seed_to_seed():
    testing.check_vector(ENV_ID, num_envs=2, max_turns=4)
    testing.check_determinism(lambda: gym.make(ENV_ID, split="sample", max_turns=3))


@in_browser
@pytest.mark.slow
def test_random_sessions_agree_with_the_text_environment():
    env, browser_env = twins(split="test")
    assert sum(play_both(env, browser_env, seed) for seed in range(100, 112)) > 100
    browser_env.close()


@in_browser
def test_the_expert_buys_in_the_browser():
    env = WebShopBrowserEnv(split="sample", oracle=True)
    _, info = env.reset(seed=3)
    while True:
        _, reward, terminated, _, info = env.step(json.loads(info["oracle"])["best"])
        if terminated:
            break
    assert reward == 1.0
    assert info["success"]
    env.close()


@in_browser
@pytest.mark.parametrize(
    "action",
    ["search[a\x00b]", "search[\ud800]", "search[tab\there]", "search[\ue007\ue006]", "click[\r]"],
    ids=ascii,
)
@pytest.mark.parametrize("compat", [False, True], ids=["default", "compat"])
def test_text_that_is_hard_to_type(action, compat):
    env, browser_env = twins(split="sample", compat=compat)
    env.reset(seed=0)
    browser_env.reset(seed=0)
    assert testing.playing.plain(env.step(action)) == testing.playing.plain(
        browser_env.step(action)
    )
    browser_env.close()


@in_browser
def test_a_picture_of_the_tab():
    env = WebShopBrowserEnv(split="sample", render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.dtype == np.uint8
    assert first.ndim == 3
    assert first.shape[2] == 3
    env.step("search[lamp]")
    assert not np.array_equal(first, env.render())
    env.close()


@in_browser
def test_a_snapshot_of_one_tab_is_gone_on_from_in_another():
    env = WebShopBrowserEnv(split="sample")
    env.reset(seed=0)
    env.step(f"search[{env.session.goal.query}]")
    snapshot = env.snapshot()
    other = WebShopBrowserEnv(split="sample")
    other.restore(snapshot)
    action = env.session.admissible()[-1]
    assert testing.playing.plain(other.step(action)) == testing.playing.plain(env.step(action))
    env.close()
    other.close()


@in_browser
def test_a_closed_environment_that_is_used_again_takes_another_tab():
    env = WebShopEnv(split="sample")
    browser_env = WebShopBrowserEnv(split="sample", render_mode="rgb_array")
    env.reset(seed=0)
    browser_env.reset(seed=0)
    browser_env.close()
    assert testing.playing.plain(env.step("search[lamp]")) == testing.playing.plain(
        browser_env.step("search[lamp]")
    )
    browser_env.close()
    assert browser_env.render().ndim == 3
    browser_env.close()


@in_browser
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_browser_of_its_own():
    env = WebShopBrowserEnv(split="sample", render_mode="rgb_array")
    env.reset(seed=0)
    code = os.fork()
    if code == 0:
        try:
            parents = env._page._browser._driver_process.url
            seen = env.render().ndim == 3 and env._page._browser._driver_process.url != parents
            browser_driver.close_browsers()
            browser_site.close_site()
        except BaseException:
            seen = False
        os._exit(0 if seen else 1)
    assert os.waitpid(code, 0)[1] == 0
    assert env.render().ndim == 3
    env.close()


# --- what is lost -------------------------------------------------------------------------------


def lose_driver(env):
    guard = env._page._browser._driver_process.process.pid
    children = Path(f"/proc/{guard}/task/{guard}/children").read_text().split()
    for child in map(int, children):
        if "chromedriver" in Path(f"/proc/{child}/cmdline").read_text():
            os.kill(child, signal.SIGKILL)


def lose_site(env):
    env._page._site._child._process.kill()
    env._page._site._child._process.wait()


def lose_visit(env):
    env._page._site.request({"end": env._page._visit})


def lose_tab(env):
    env._page._browser._in_tab(env._page._tab, lambda driver: driver.close())


@in_browser
@pytest.mark.parametrize("lose", [lose_driver, lose_site, lose_visit, lose_tab])
def test_what_is_lost_is_replaced_and_the_episode_goes_on(lose):
    env, browser_env = twins(split="sample")
    env.reset(seed=1)
    browser_env.reset(seed=1)
    query = f"search[{env.session.goal.query}]"
    env.step(query)
    browser_env.step(query)
    lose(browser_env)
    browser_env.draw()
    lose(browser_env)
    for action in (env.session.admissible()[-1], "click[< prev]"):
        assert testing.playing.plain(env.step(action)) == testing.playing.plain(
            browser_env.step(action)
        )
    browser_env.close()


@in_browser
def test_a_browser_is_replaced_between_episodes_and_none_notices(monkeypatch):
    monkeypatch.setattr(browser_driver, "_OPENING_S", 0.0)
    browser_driver.close_browsers()
    before = workers.counts()[browser_driver.KIND]
    env, browser_env = twins(split="sample")
    staying = WebShopBrowserEnv(split="sample")
    staying.reset(seed=9)
    first = staying._page._browser
    browser_env._page._episodes_per_browser = 2
    for seed in range(4):  # the second one is the first browser's third
        assert env.reset(seed=seed)[0] == browser_env.reset(seed=seed)[0]
        action = f"search[{env.session.goal.query}]"
        assert env.step(action)[0] == browser_env.step(action)[0]
    assert browser_env._page._browser is not first
    assert first.alive, "somebody was in the middle of an episode in it"
    staying.step("search[lamp]")
    assert staying._page._browser is first
    staying.close()
    assert not first.alive, "it waits for no later episode"
    browser_env.close()
    after = workers.counts()[browser_driver.KIND]
    assert after.starts - before.starts == 3
    assert after.recycled - before.recycled >= 1
    assert after.alive - before.alive == len(browser_driver._browsers) + len(
        browser_driver._retired
    )


@in_browser
def test_a_browser_that_cannot_be_replaced(monkeypatch):
    env = WebShopBrowserEnv(split="sample")
    env.reset(seed=1)
    lose_driver(env)
    monkeypatch.setattr(launch, "_SUPERVISOR", 'exec > /dev/null; cat; rm -rf "$2"')
    with pytest.raises(WorkerLost):
        env.step("search[lamp]")
    env.close()


@in_browser
def test_nothing_outlives_the_process():
    code = """
import time
from agentgyms.envs.webshop.browser.env import WebShopBrowserEnv
env = WebShopBrowserEnv(split="sample")
env.reset(seed=0)
site = env._page._site._child._process.pid
print(env._page._browser._driver.capabilities["chrome"]["userDataDir"], site, flush=True)
time.sleep(60)
"""
    root = str(Path(browser_site.__file__).parents[4])
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=root
    ) as process:
        profile, site = process.stdout.readline().decode().split()
        assert running(profile)
        process.kill()
    deadline = time.monotonic() + 15
    while running(profile) or Path(f"/proc/{site}").exists() or Path(profile).exists():
        assert time.monotonic() < deadline, "the browser or the site is left over"
        time.sleep(0.05)


def running(profile):
    """Return the processes whose command line names a browser's profile."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if profile in file.read_text(errors="replace"):
                found.append(file.parent.name)
        except OSError:
            continue
    return found


# --- what is missing ----------------------------------------------------------------------------


def test_a_wrong_program():
    with pytest.raises(BadOption, match="browser_binary"):
        WebShopBrowserEnv(browser_binary="/nowhere/chromium", driver_binary=sys.executable)
    with pytest.raises(BadOption, match="episodes_per_browser"):
        WebShopBrowserEnv(episodes_per_browser=0)
    with pytest.raises(BadOption, match="headless"):
        WebShopBrowserEnv(headless=1, browser_binary=sys.executable, driver_binary=sys.executable)


def test_no_browser_on_the_path(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvUnavailable, match="install Chromium"):
        WebShopBrowserEnv()


@pytest.mark.parametrize("package", ["selenium", "flask", "env_servers"])
def test_no_package(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DependencyNotInstalled, match=r"pip install .*\[browser\]"):
        WebShopBrowserEnv(browser_binary=sys.executable, driver_binary=sys.executable)


def test_a_program_that_is_no_driver(monkeypatch):
    env = WebShopBrowserEnv(
        browser_binary=sys.executable, driver_binary=shutil.which("true"), split="sample"
    )
    with pytest.raises(WorkerLost, match="does not start"):
        env.reset(seed=0)
    env.close()
