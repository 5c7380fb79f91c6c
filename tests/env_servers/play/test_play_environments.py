"""`/play` in Chromium for every environment: played by a person, an agent's recording replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from click.testing import CliRunner
from play_window import PlayWindow
from selenium.webdriver.common.keys import Keys

import agentgyms
from agentgyms.cli.main import main
from agentgyms.core import serialization
from agentgyms.recording import recorder
from env_servers import Server, create_app

pytestmark = pytest.mark.browser

SEED = 2
NAMES = (
    "Corridor",
    "ALFWorld",
    "WebShop",
    "Sokoban",
    "VisualSokoban",
    "SearchQA",
    "SOTOPIA",
    "Tau2",
    "AppWorld",
    "WebShopBrowser",
)
DIRECTIONS = ("up", "down", "left", "right")
ARROWS = dict(
    zip(
        DIRECTIONS, (Keys.ARROW_UP, Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.ARROW_RIGHT), strict=True
    )
)
SHOWN = """
const part = (name) => document.getElementById(name);
return {
  texts: [...part("observation").querySelectorAll("[data-part]")].map((e) => e.textContent),
  pictures: [...part("observation").querySelectorAll("img")].map((e) => e.src),
  loaded: [...document.querySelectorAll("#observation img")].every((e) => e.naturalWidth > 0),
  state_key: part("state-key").dataset.key,
  task_id: part("task-id").textContent,
  goal: part("goal").textContent,
  progress: part("progress-figure").textContent,
  score: part("score").textContent,
  feedback: part("feedback-text").textContent,
};
"""


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    window = PlayWindow(tmp_path_factory.mktemp("downloads"))
    yield window
    window.driver.quit()


@pytest.fixture(scope="module", params=NAMES)
def server(request):
    with Server(create_app(f"agentgyms/{request.param}-v0", token="")) as server:
        server.env_id = f"agentgyms/{request.param}-v0"
        yield server


@pytest.fixture(scope="module")
def agents_file(server, tmp_path_factory) -> Path:
    """What the expert did, by `agentgyms record`."""
    path = tmp_path_factory.mktemp("recorded") / "expert.jsonl"
    words = ["record", server.env_id, str(path), "--seed", str(SEED)]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return path


def begin(window: PlayWindow, url: str, seed: int) -> None:
    window.begin(url)
    window.push("new")
    window.push("seed-field")
    window.press(str(seed), Keys.ENTER)
    window.wait("return !document.getElementById('setup').open")
    assert window.text("seed").endswith(f", {seed}")


def act(window: PlayWindow, action: str, turn: int) -> None:
    """Take an action in the shortest way a person has: an arrow, a number, or typing."""
    legal = window.actions()
    if action in DIRECTIONS and action in legal:
        window.press(ARROWS[action])
    elif action in legal[:9]:
        window.press(str(legal.index(action) + 1))
    else:
        window.push("action")
        window.press(action.replace("\n", Keys.SHIFT + Keys.ENTER + Keys.SHIFT))
        window.push("send")
    window.wait_turn(turn)


def check_shown(window: PlayWindow, observation: Any, info: dict[str, Any]) -> None:
    """The page says what the environment says."""
    window.wait("return [...document.querySelectorAll('#observation img')].every(e => e.complete)")
    seen = window.look(SHOWN)
    parts = {"text": observation} if isinstance(observation, str) else observation
    assert seen["texts"] == [p or "(nothing is said)" for p in parts.values() if isinstance(p, str)]
    encoded = serialization.encode_observation(observation)
    if not isinstance(encoded, str):
        wanted = [p["png"] for p in encoded.values() if not isinstance(p, str)]
        assert [src.partition(",")[2] for src in seen["pictures"]] == wanted
    assert seen["loaded"]
    assert seen["state_key"] == info["state_key"]
    assert seen["task_id"] == info["task_id"]
    assert seen["goal"] == info["goal"]
    assert seen["feedback"] == info["feedback_text"]
    known = info["progress"] == info["progress"]
    assert seen["progress"] == (f"{100 * info['progress']:.3g} %" if known else "not measured")


def test_a_person_plays_it(window, server):
    begin(window, server.url, SEED)
    env = gym.make(server.env_id)
    expert = agentgyms.expert(env)
    observation, info = env.reset(seed=SEED)
    over, turn, taken = False, 0, []
    while not over:
        check_shown(window, observation, info)
        assert window.actions() == info["admissible_actions"]
        turn, action = turn + 1, expert(observation, info)
        if turn == 2:
            action = "no such thing as this"  # is a turn with feedback
        taken.append(action)
        act(window, action, turn)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    check_shown(window, observation, info)
    assert window.seen("result")
    assert (window.text("verdict") == "Solved") == info["success"]
    assert [told[:150] for told in window.turns()] == ["start", *(a[:150] for a in taken)]
    env.close()
    (played,) = recorder.read(window.downloaded())
    assert played.header["seed"] == SEED
    assert played.header["provenance"]["actor"] == "person"
    assert recorder.replay(played) == turn + 1
    assert window.errors() == []


def test_an_agents_recording_is_stepped_through(window, server, agents_file):
    (recorded,) = recorder.read(agents_file)
    window.begin(server.url)
    window.push("to-replay")
    window.give_file(agents_file)
    window.wait_text("actor", "Played by expert")
    for turn in recorded.turns:
        if turn.turn:
            window.press(Keys.ARROW_RIGHT)
        window.wait_turn(turn.turn)
        check_shown(window, turn.observation, turn.info)
        assert window.text("taken-action") == turn.action
    assert window.look("return document.getElementById('slider').value") == str(turn.turn)
    window.push("verify")
    window.wait_text("verified", f"All {len(recorded.turns)} states are the same")
    assert window.text("history").count("✓") == len(recorded.turns)
    window.press(Keys.HOME)
    window.wait_turn(0)
    window.push("take-over")
    window.wait_turn(0)
    window.wait("return document.getElementById('controls').checkVisibility()")
    act(window, recorded.turns[1].action, 1)
    state = window.look(SHOWN)
    assert state["state_key"] == recorded.turns[1].info["state_key"]
    assert window.errors() == []
