"""`/play` in Chromium: pages as pages, the cross of keys, and what stays in its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
from play_window import PlayWindow
from selenium.webdriver.common.keys import Keys

import agentgyms
from env_servers import Server, create_app
from tests.contrast import LOW_CONTRAST

pytestmark = pytest.mark.browser

SHOP, ROOM, HOUSE = "agentgyms/WebShop-v0", "agentgyms/Sokoban-v0", "agentgyms/ALFWorld-v0"
ARROWS = {"up": Keys.UP, "down": Keys.DOWN, "left": Keys.LEFT, "right": Keys.RIGHT}
WIDTHS = (390, 1280)
PLACE = """const place = document.getElementById(arguments[0]).getBoundingClientRect();
return [place.left, place.top, place.width]"""
TEXTS = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
SEED = 8


@pytest.fixture(scope="module")
def window(tmp_path_factory) -> Iterator[PlayWindow]:
    window = PlayWindow(tmp_path_factory.mktemp("downloads"))
    yield window
    window.driver.quit()


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    servers = {env_id: Server(create_app(env_id, token="")) for env_id in (SHOP, ROOM, HOUSE)}
    for server in servers.values():
        server.start()
    yield {env_id: server.url for env_id, server in servers.items()}
    for server in servers.values():
        server.stop()


def begin(
    window: PlayWindow, url: str, *, seed: int = SEED, kwargs: str = "", **options: Any
) -> None:
    window.begin(url, **options)
    window.push("new")
    window.look(
        "document.getElementById('seed-field').value = arguments[0];"
        "document.getElementById('kwargs').value = arguments[1]",
        str(seed),
        kwargs,
    )
    window.push("begin")
    window.wait("return !document.getElementById('setup').open")


def episode(env_id: str, seed: int = SEED, **kwargs: Any) -> Iterator[tuple[str, Any]]:
    """Yield what the expert does, each action with the observation and info that it leads to."""
    env = gym.make(env_id, **kwargs)
    expert, over = agentgyms.expert(env), False
    observation, info = env.reset(seed=seed)
    while not over:
        action = expert(observation, info)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        yield action, (observation, info)
    env.close()


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_a_shops_pages_are_pages(window, urls, mode):
    begin(window, urls[SHOP], kwargs=f'{{"observation_mode": "{mode}"}}')
    (search, (observation, _)), (opened, _), *_ = episode(SHOP, observation_mode=mode)
    window.act(search, 1)
    if mode == "text":
        instruction, goal, back, count, _, code, title, price, *_ = observation.split(" [SEP] ")
        assert (instruction, goal) == ("Instruction:", window.text("goal"))
        assert window.look(TEXTS, ".page .label") == [count]
        assert window.look(TEXTS, ".page .press")[0] == back
        assert window.look(TEXTS, ".page .press b")[0] == title
        assert window.look(TEXTS, ".page .press:has(b) small")[0] == price + code
    assert len(window.look(TEXTS, ".page .press b")) == 10
    assert "SEP" not in window.look("return document.getElementById('observation').innerText")
    assert window.look(TEXTS, "[data-part=text]") == [observation]  # what agents read is there too
    assert not window.look("return document.querySelector('[data-part=text]').checkVisibility()")
    title = window.look(TEXTS, ".page .press b")[0]
    window.click(".page button.press", title)
    window.wait_turn(2)
    assert window.text("taken-action") == opened
    assert title in window.look(TEXTS, ".page p")
    assert window.look(TEXTS, ".page .label") == ["color", "size"]
    window.click(".page button.press", "black")
    window.wait_turn(3)
    chosen = window.look(TEXTS, ".page [aria-pressed]")
    assert chosen == (["black"] if mode == "text_rich" else [])
    window.press(Keys.ESCAPE)
    window.click("#history button", "search")
    assert window.seen("past")
    assert window.look("return document.querySelectorAll('.page button').length") == 0
    assert len(window.look(TEXTS, ".page .press b")) == 10
    assert window.errors() == []


def test_buttons_say_what_their_codes_stand_for(window, urls):
    begin(window, urls[SHOP])
    (search, (observation, info)), *_ = episode(SHOP)
    window.act(search, 1)
    assert window.actions() == info["admissible_actions"]
    parts = observation.split(" [SEP] ")
    shown = "#actions button:has(b)"
    titled = zip(
        window.look(TEXTS, f"{shown} b"), window.look(TEXTS, f"{shown} > span"), strict=True
    )
    for title, action in titled:
        code = action.removeprefix("click[").removesuffix("]").upper()
        assert title == parts[parts.index(code) + 1]
    assert len(window.look(TEXTS, f"{shown} b")) == 10
    window.look("document.getElementById('filter').focus()")
    window.press("milanese")
    assert len(window.actions()) == 1
    window.press(Keys.ENTER)
    window.wait_turn(2)
    assert "Milanese" in window.look("return document.querySelector('.page').innerText")


def test_the_first_page_searches(window, urls):
    begin(window, urls[SHOP])
    window.click(".page button.press", "Search")
    assert window.look("return document.getElementById('action').value") == "search[<query>]"
    assert window.look("return document.activeElement.id") == "action"


@pytest.mark.parametrize("width", WIDTHS)
def test_the_cross_stays_in_its_place(window, urls, width):
    begin(window, urls[ROOM], width=width)
    keys = [f"key-{name}" for name in ARROWS]
    places, lasting = {}, 0
    moves = [action for action, _ in episode(ROOM)]
    for turn, action in enumerate(moves[:-1], 1):
        lasting += len(window.moves()) < len(ARROWS)
        if turn % 2:
            window.press(ARROWS[action])
        else:
            window.push(f"key-{action}")
        window.wait_turn(turn)
        for name in filter(window.seen, keys):
            assert window.look(PLACE, name) == places.setdefault(name, window.look(PLACE, name))
    assert window.turns() == ["start", *moves[:-1]]
    assert len(places) == len(ARROWS)
    assert lasting  # some turn had a key without a move
    left, top = zip(*(places[name][:2] for name in keys), strict=True)
    assert left[2] < left[0] == left[1] < left[3]
    assert top[0] < top[1] == top[2] == top[3]
    closed = window.look(
        "return [...document.querySelectorAll('#cross [aria-disabled=true]')].map(e => e.ariaLabel)"
    )
    for name in closed:
        window.press(ARROWS[name])
        window.push(f"key-{name}")
    assert window.turns() == ["start", *moves[:-1]]
    assert window.overflow() == []


def test_a_deadlock_is_said(window, urls):
    env = gym.make(ROOM).unwrapped
    for seed in range(100):
        _, info = env.reset(seed=seed)
        taken = []
        while info["metrics"].get("deadlocked") != 1 and len(taken) < 8:
            taken.append(info["admissible_actions"][-1])
            *_, terminated, _, info = env.step(taken[-1])
            if terminated:
                break
        if info["metrics"].get("deadlocked") == 1:
            break
    begin(window, urls[ROOM], seed=seed)
    for turn, action in enumerate(taken, 1):
        assert not window.seen("deadlocked")
        window.act(action, turn)
    assert window.seen("deadlocked")
    assert "can no longer be reached" in window.text("deadlocked")
    assert "deadlocked" in window.text("marks")
    assert window.look(LOW_CONTRAST) == []
    window.click("#history button", "start")
    assert not window.seen("deadlocked")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("env_id", [SHOP, HOUSE])
def test_the_line_for_actions_does_not_jump(window, urls, env_id, width):
    begin(window, urls[env_id], width=width)
    place, heights = window.look(PLACE, "own"), set()
    moves = [action for action, _ in episode(env_id)][:-1]
    for turn, action in enumerate(["put mug on moon", *moves], 1):
        window.act(action, turn)
        assert window.look(PLACE, "own") == place
        heights.add(window.look("return document.getElementById('turn').offsetHeight"))
        assert window.overflow() == []
    assert len(heights) > 1


@pytest.mark.parametrize("dark", [False, True])
def test_pages_can_be_read(window, urls, dark):
    begin(window, urls[SHOP], width=390, dark=dark)
    for turn, (action, _) in enumerate(list(episode(SHOP))[:2], 1):
        window.act(action, turn)
        assert window.look(LOW_CONTRAST) == []
        assert window.overflow() == []
    assert window.errors() == []
