"""The pictures of `/play` in the documentation: `python tests/env_servers/play_pictures.py
docs`."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

import gymnasium as gym
from PIL import Image
from play_window import PlayWindow
from selenium.webdriver.common.keys import Keys

import agentgyms
from agentgyms.recording import recorder
from env_servers import Server, create_app

SEED, SHOP_SEED = 2, 8
DESKTOP, PHONE = (1280, 860), (390, 844)


def solution(env_id: str, seed: int = SEED) -> list[str]:
    """Return what the expert does."""
    env = gym.make(env_id)
    expert, actions, over = agentgyms.expert(env), [], False
    observation, info = env.reset(seed=seed)
    while not over:
        actions.append(expert(observation, info))
        observation, _, terminated, truncated, info = env.step(actions[-1])
        over = terminated or truncated
    env.close()
    return actions


def begin(
    window: PlayWindow, url: str, size: tuple[int, int], *, seed: int = SEED, dark: bool = False
) -> None:
    window.begin(url, width=size[0], dark=dark)
    window.size(*size)
    window.push("new")
    window.look("document.getElementById('seed-field').value = arguments[0]", str(seed))
    window.push("begin")
    window.wait("return !document.getElementById('setup').open")


def save(window: PlayWindow, path: Path) -> None:
    """Save what the window shows."""
    window.look("document.activeElement.blur(); scrollTo(0, 0)")
    window.wait("return [...document.querySelectorAll('img')].every(e => e.complete)")
    picture = Image.open(io.BytesIO(window.driver.get_screenshot_as_png())).convert("RGB")
    picture.save(path, optimize=True)


def draw(folder: Path) -> None:
    """Draw them all."""
    with tempfile.TemporaryDirectory() as place:
        window = PlayWindow(Path(place))
        try:
            _household(window, folder, Path(place) / "expert.jsonl")
            _room(window, folder)
            _shop(window, folder)
        finally:
            window.driver.quit()


def _household(window: PlayWindow, folder: Path, recorded: Path) -> None:
    env_id = "agentgyms/ALFWorld-v0"
    with Server(create_app(env_id, token="")) as server:
        begin(window, server.url, DESKTOP)
        actions = [*solution(env_id)[:3], "put mug on moon", *solution(env_id)[3:5]]
        for turn, action in enumerate(actions, 1):
            window.act(action, turn)
        save(window, folder / "play-alfworld.png")
        with recorder.RecordEpisodes(gym.make(env_id), recorded, actor="expert") as env:
            env.reset(seed=SEED)
            for action in solution(env_id):
                env.step(action)
        window.begin(server.url)
        window.size(*DESKTOP)
        window.push("to-replay")
        window.give_file(recorded)
        window.push("verify")
        window.wait_text("verified", "are the same")
        window.press(Keys.END)
        save(window, folder / "play-replay.png")


def _room(window: PlayWindow, folder: Path) -> None:
    env_id = "agentgyms/VisualSokoban-v0"
    with Server(create_app(env_id, token="")) as server:
        begin(window, server.url, DESKTOP, dark=True)
        for turn, action in enumerate(solution(env_id)[:3], 1):
            window.act(action, turn)
        save(window, folder / "play-sokoban.png")


def _shop(window: PlayWindow, folder: Path) -> None:
    env_id = "agentgyms/WebShop-v0"
    with Server(create_app(env_id, token="")) as server:
        begin(window, server.url, PHONE, seed=SHOP_SEED)
        for turn, action in enumerate(solution(env_id, SHOP_SEED)[:2], 1):
            window.act(action, turn)
        save(window, folder / "play-webshop.png")


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
