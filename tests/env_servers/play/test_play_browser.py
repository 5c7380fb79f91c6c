"""`/play` in Chromium: a person plays, by mouse and by keyboard, and recordings are replayed."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from play_window import READY, PlayWindow, lines
from server_faults import CORRIDOR, FAULTY, TOKEN, FaultyEnv

from agentgyms.core import keys
from agentgyms.core.env import Outcome, TextEnv
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.recording import recorder
from agentgyms.serving.served import EXTENSION
from agentgyms.serving.server import Server
from env_servers import create_app
from tests.contrast import LOW_CONTRAST

pytestmark = pytest.mark.browser

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
TELLING = "tests/Telling-v0"
PAGE_TEXTS = "return [...document.querySelectorAll('.page p')].map(e => e.textContent)"
MOVES = {"left": ("#key-left",), "right": ("#key-right",)}


class TellingEnv(TextEnv):
    """Says whatever it is told to, asks for words, and shows a picture; all of it is hostile."""

    splits = ("train",)

    def __init__(self, *, pictures: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._pictures = pictures
        if pictures:
            parts = {
                "text": self.observation_space,
                "image": gym.spaces.Box(0, 255, (8, 8, 3), "uint8"),
            }
            self.observation_space = gym.spaces.Dict(parts)

    def load_tasks(self) -> TaskSet:
        names = [f"{HOSTILE}-{i:03d}" for i in range(120)]
        return TaskSet("train", [Task(name, f"family {HOSTILE}") for name in names])

    def begin(self, task: Task, rng: Any) -> Outcome:
        self._said: list[str] = []
        return self._outcome("say something")

    def goal(self, task: Task) -> str:
        return f"goal {HOSTILE}"

    def act(self, action: str) -> Outcome:
        self._said.append(action)
        return self._outcome(f"you said {action}")

    def _outcome(self, text: str) -> Outcome:
        shown: Any = f"{text} {HOSTILE}"
        if self._pictures:
            shown = {"text": shown, "image": np.full((8, 8, 3), 8 * len(self._said), np.uint8)}
        return Outcome(
            observation=shown,
            state_key=keys.state_key("telling", self._said),
            admissible=["say[<words>]", HOSTILE, *(f"word {i}" for i in range(30))],
            feedback_text=HOSTILE,
            terminated=len(self._said) == 3,
            metrics={HOSTILE: 1.0},
        )


gym.register(TELLING, entry_point=TellingEnv)


@pytest.fixture(scope="module")
def window(tmp_path_factory) -> Iterator[PlayWindow]:
    window = PlayWindow(tmp_path_factory.mktemp("downloads"))
    yield window
    window.driver.quit()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Serves an environment on a real socket: `serve(env_id, **options).url`."""
    servers: list[Server] = []

    def make(env_id: str = CORRIDOR, **options: Any) -> Server:
        server = Server(create_app(env_id, **{"token": "", **options}))
        server.start()
        servers.append(server)
        return server

    yield make
    FaultyEnv.go_on.set()
    for server in servers:
        server.stop()


def held(server: Server) -> Any:
    return server._service.sessions


def solve(window: PlayWindow, press: Callable[[str], None]) -> int:
    """Open the corridor's door, and return the number of turns it took."""
    turn = 0
    while not window.seen("result"):
        legal = window.actions()
        best = next(a for a in ("open door", "take key", "right") if a in legal)
        press(best)
        turn += 1
        window.wait_turn(turn)
    return turn


@pytest.mark.parametrize("by", ["mouse", "numbers", "typing"])
def test_an_episode_is_played_to_its_end(window, serve, by):
    window.begin(serve().url)

    def press(action: str) -> None:
        if by == "mouse":
            window.click(*MOVES.get(action, ("#actions button", action)))
        elif by == "numbers":
            window.press(str(window.actions().index(action) + 1))
        else:
            window.push("action")
            window.press(action, "\ue007")

    turns = solve(window, press)
    assert window.text("verdict") == "Solved"
    assert window.text("score") == window.text("reward") == "1"
    assert window.text("progress-figure") == "100 %"
    assert len(window.turns()) == turns + 1
    assert not window.seen("controls")
    path = window.downloaded()
    [played] = recorder.read(path)
    assert recorder.replay(played) == turns + 1
    assert played.header["provenance"]["actor"] == "person"
    assert path.name.startswith("Corridor-v0_train-")
    assert window.errors() == []


def test_generated_tasks_are_named_in_play_and_in_replay(window, serve, tmp_path):
    """The corridor is no benchmark's, and is not named so."""
    household = serve("agentgyms/ALFWorld-v0").url
    window.begin(household)
    assert window.seen("whose")
    assert window.text("whose") == "generated tasks, not the benchmark"
    path = tmp_path / "played.jsonl"
    with recorder.RecordEpisodes(gym.make("agentgyms/ALFWorld-v0"), path) as env:
        env.reset(seed=0)
        env.step("look")
    to_replay(window, household, path)
    assert window.seen("whose")
    window.begin(serve().url)
    assert not window.seen("whose")


def test_what_is_shown_is_what_the_environment_says(window, serve):
    server = serve()
    window.begin(server.url)
    env = gym.make(CORRIDOR)
    split, seed = window.text("seed").split(", ")
    assert split == "train"
    observation, info = env.reset(seed=int(seed))
    for turn, action in enumerate(["right", "sing", "left"], 1):
        assert window.text("observation") == observation
        assert (
            window.look("return document.getElementById('state-key').dataset.key")
            == info["state_key"]
        )
        assert window.text("goal") == info["goal"]
        assert window.text("task-id") == info["task_id"]
        assert window.actions() == info["admissible_actions"]
        observation, _, _, _, info = env.step(action)
        window.act(action, turn)
    window.click("#history button", "sing")
    assert window.text("marks") == "malformed"
    assert window.text("feedback-text") == "unknown command"
    assert window.seen("past")
    assert not window.seen("controls")
    window.push("now")
    assert window.seen("controls")
    assert window.text("visited") == "as in turn 0"


def test_a_double_click_acts_once(window, serve):
    from selenium.webdriver import ActionChains

    window.begin(serve(TELLING).url)
    for pause in (0.0, 0.15):  # the second click comes before the reply, or after it
        turns = window.turns()
        word = window.look("return document.querySelectorAll('#actions button')[2]")
        ActionChains(window.driver).click(word).pause(pause).click().perform()
        window.wait_turn(len(turns))
        time.sleep(0.5)
        assert window.turns() == [*turns, "word 0"]


def test_slow_replies_act_once(window, serve):
    FaultyEnv.go_on.clear()
    FaultyEnv.waiting.clear()
    window.begin(serve(FAULTY).url)
    window.look("document.getElementById('action').value = 'wait'")
    window.push("send")
    assert FaultyEnv.waiting.wait(60)
    for _ in range(3):
        window.push("send")
        window.press("\ue00c", "2")
    window.wait("return !document.getElementById('waiting').hidden")
    FaultyEnv.go_on.set()
    window.wait_turn(1)
    time.sleep(0.2)
    assert window.turns() == ["start", "wait"]


def lose_replies(app: Any, statuses: list[str]) -> None:
    """Let the server do what it is asked to and lose its answers to steps, as a proxy would."""
    inner = app.wsgi_app

    def answer(environ: Any, start_response: Any) -> Any:
        if not (statuses and environ["PATH_INFO"].endswith("/step")):
            return inner(environ, start_response)
        for _ in inner(environ, lambda *_: lambda _: None):
            pass
        start_response(statuses.pop(), [("Content-Type", "text/html")])
        return [b"<h1>Bad gateway</h1>"]

    app.wsgi_app = answer


def test_a_lost_reply_is_asked_for_again_before_anything_else(window):
    app = create_app(CORRIDOR, token="")
    lose_replies(app, ["502 Bad Gateway"])
    with Server(app) as server:
        window.begin(server.url)
        window.press("2")
        window.wait_text("notice-text", "HTTP 502")
        assert window.turns() == ["start"]
        assert len(recorder.read(window.downloaded())[0].turns) == 2
        assert not window.seen("notice")
        window.press("\ue00c", "1")  # another action is not taken before this one is known
        window.wait_turn(1)
        assert window.turns() == ["start", "right"]
        assert not window.seen("notice")
        window.act("left", 2)


def test_who_is_turned_away_learns_nothing_of_the_lost_reply(window):
    app = create_app(CORRIDOR, token="")
    lose_replies(app, ["502 Bad Gateway"])
    with Server(app) as server:
        window.begin(server.url)
        window.press("2")
        window.wait_text("notice-text", "HTTP 502")
        app.extensions[EXTENSION].draining = True
        window.press("\ue00c", "1")
        window.wait_text("notice-text", "about to stop")
        app.extensions[EXTENSION].draining = False
        window.press("\ue00c", "1")
        window.wait_turn(1)
        assert window.turns() == ["start", "right"]


def test_without_a_network_nothing_is_lost(window, serve):
    window.begin(serve().url)
    window.offline(True)
    window.press("2")
    window.wait_text("notice-text", "does not answer")
    window.offline(False)
    window.click("#notice-actions button", "Try again")
    window.wait_turn(1)
    assert window.turns() == ["start", "right"]


def test_an_expired_session_goes_on(window, serve, clock):
    server = serve(clock=clock)
    window.begin(server.url)
    window.press("2")
    window.wait_turn(1)
    window.press("1")
    window.wait_turn(2)
    clock.now += 700
    window.push("action")
    window.press("right", "\ue007")
    window.wait_text("notice-text", "is gone")
    assert window.look("return document.getElementById('action').value") == "right"
    window.click("#notice-actions button", "go on")
    window.wait_text("notice-text", "goes on")
    assert window.turns() == ["start", "right", "left"]
    window.push("send")
    window.wait_turn(3)
    assert not window.seen("notice")
    assert len(held(server)) == 1
    assert recorder.replay(recorder.read(window.downloaded())[0]) == 4


def test_a_broken_environment_is_left_behind(window, serve):
    window.begin(serve(FAULTY).url)
    window.press("2")
    window.wait_turn(1)
    window.look("document.getElementById('action').value = 'crash'")
    window.push("send")
    window.wait_text("notice-text", "an unexpected error")
    assert "secret" not in window.look("return document.body.innerText")
    window.click("#notice-actions button", "go on")
    window.wait_text("notice-text", "goes on")
    window.act("right", 2)


def test_a_reload_goes_on(window, serve):
    server = serve()
    window.begin(server.url)
    window.press("2")
    window.wait_turn(1)
    before = window.text("seed")
    window.driver.refresh()
    window.wait(READY)
    window.wait_turn(1)
    assert window.text("seed") == before
    window.press("1")
    window.wait_turn(2)
    assert len(held(server)) == 1  # the first one was given back


def test_leaving_closes_the_session(window, serve):
    server = serve()
    window.begin(server.url)
    assert len(held(server)) == 1
    window.driver.get("about:blank")
    deadline = time.monotonic() + 5
    while len(held(server)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(held(server)) == 0


def test_a_task_is_searched_for_and_begun(window, serve):
    server = serve()
    window.begin(server.url)
    window.press("n")
    window.wait_text("tasks-told", "40 of 40")
    window.look(
        "document.getElementById('split').value = 'valid_seen';"
        "document.getElementById('split').dispatchEvent(new Event('change'))"
    )
    window.wait_text("tasks-told", "8 of 8")
    window.push("task")
    window.press("LOCKED")
    window.wait_text("tasks-told", "4 of 8")
    window.click("#tasks button", "locked-003")
    window.push("seed-field")
    window.press("12", "\ue007")
    window.wait_text("task-id", "valid_seen/locked-003")
    assert window.text("seed") == "valid_seen, 12"
    assert len(held(server)) == 1


def test_arguments_are_given_and_wrong_ones_explained(window, serve):
    window.begin(serve().url)
    before = window.text("seed")
    window.push("new")
    window.look(
        "document.getElementById('options').open = true;"
        "document.getElementById('max-turns').value = '2';"
        "document.getElementById('oracle-field').checked = true;"
        "document.getElementById('kwargs').value = '{'"
    )
    window.push("begin")
    window.wait_text("setup-wrong", "no JSON object")
    window.look("document.getElementById('kwargs').value = '{\"colour\": 1}'")
    window.push("begin")
    window.wait_text("setup-wrong", "colour")
    assert window.text("seed") == before
    window.look("document.getElementById('kwargs').value = ''")
    window.push("begin")
    window.wait_text("turn-title", "of 2")
    window.wait("return !document.getElementById('setup').open")
    window.click("#oracle summary")
    assert "right" in window.text("oracle-text")
    window.act("left", 1)
    window.act("left", 2)
    assert window.text("verdict") == "Out of turns"


def test_a_list_of_tasks_comes_in_pages(window, serve):
    window.begin(serve(TELLING).url)
    window.push("new")
    window.wait_text("tasks-told", "50 of 120 tasks shown")
    window.click("#tasks .more")
    window.wait_text("tasks-told", "100 of 120 tasks shown")
    window.click("#tasks .more")
    window.wait_text("tasks-told", "120 of 120 tasks")
    assert window.look("return document.querySelectorAll('#tasks button').length") == 120


def test_text_stays_text(window, serve, tmp_path):
    window.begin(serve(TELLING).url)
    assert window.text("observation") == f"say something {HOSTILE}"
    window.push("new")
    window.wait_text("tasks-told", "50 of 120")
    window.press("\ue00c")
    window.click("#actions button", "<img")  # what is between angles is to be filled in
    window.push("send")
    window.wait_turn(1)
    assert window.text("taken-action") == HOSTILE
    window.act(f"a page [SEP] {HOSTILE} [SEP] say", 2)
    assert HOSTILE in window.look(PAGE_TEXTS)
    assert window.look("return document.querySelectorAll('main img, main script').length") == 0
    path = window.downloaded()
    assert "<" not in path.name
    header, *turns = lines(path)
    header["provenance"]["actor"] = HOSTILE
    turns[1]["agent"] = {HOSTILE: HOSTILE}
    turns[1]["observation"] = {HOSTILE: {"png": '" onerror="window.hacked=1'}, "text": HOSTILE}
    hostile = tmp_path / "hostile.jsonl"
    hostile.write_text("\n".join(json.dumps(line) for line in (header, *turns)))
    window.push("to-replay")
    window.give_file(hostile)
    window.wait_text("actor", HOSTILE)
    window.push("next")
    window.wait_turn(1)
    assert window.look("return window.hacked") is None
    assert window.look("return document.querySelectorAll('main img, main script').length") == 0
    assert HOSTILE in window.text("metrics")
    assert window.errors() == []


def test_actions_with_something_open_are_written_out(window, serve):
    window.begin(serve(TELLING).url)
    assert len(window.actions()) == 32
    window.press("1")
    window.press("hello")
    assert window.look("return document.getElementById('action').value") == "say[hello]"
    window.press("\ue007")
    window.wait_turn(1)
    window.push("filter")
    window.press("word 29", "\ue007")
    window.wait_turn(2)
    assert window.turns() == ["start", "say[hello]", "word 29"]


def test_several_lines_are_sent_with_control(window, serve):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    window.begin(serve(TELLING).url)
    window.push("action")
    window.press("one")
    chain = ActionChains(window.driver)
    chain.key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).send_keys("two").perform()
    window.press("\ue007", "three")
    ActionChains(window.driver).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(
        Keys.CONTROL
    ).perform()
    window.wait_turn(1)
    assert window.text("taken-action") == "one\ntwo\nthree"


def test_pictures_are_shown_to_the_pixel(window, serve):
    window.begin(serve(TELLING, pictures=True).url)
    size = """const image = document.querySelector("#observation img");
      return image.complete && [image.naturalWidth, image.width, image.alt]"""
    natural, width, alt = window.wait(size)
    assert natural == 8
    assert width % 8 == 0
    assert width > 300
    assert "image" in alt


def test_a_token_is_asked_for(window, serve):
    window.open(serve(token=TOKEN).url)
    window.push("token")
    window.press("wrong", "\ue007")
    window.wait("return document.querySelector('.wrong') !== null")
    window.push("token")
    window.press(TOKEN, "\ue007")
    window.wait(READY)
    window.press("2")
    window.wait_turn(1)
    assert TOKEN not in window.look("return document.cookie + document.documentElement.outerHTML")
    window.driver.delete_all_cookies()
    window.press("1")
    window.wait_text("notice-text", "token is missing or wrong")
    again = (
        "return fetch('play', {method: 'POST', body: new URLSearchParams({token: arguments[0]})})"
    )
    window.look(again, TOKEN)
    window.click("#notice-actions button", "Try again")
    window.wait_turn(2)


def test_a_full_server_is_waited_for(window, serve):
    server = serve(max_sessions=1)
    other = held(server).create({}, "")
    window.open(server.url)
    window.wait_text("notice-text", "as many as it may")
    held(server).close(other.session_id)
    window.click("#notice-actions button", "Try again")
    window.wait_turn(0)
    assert window.seen("observation")


@pytest.fixture
def recorded(tmp_path) -> Any:
    """Two episodes of the corridor's expert."""
    path = tmp_path / "expert.jsonl"
    with recorder.RecordEpisodes(gym.make(CORRIDOR), path, actor="expert") as env:
        for seed in (3, 4):
            _, _ = env.reset(seed=seed)
            over = False
            while not over:
                best = env.unwrapped.expert_actions()["best"]
                _, _, terminated, truncated, _ = env.step(best)
                over = terminated or truncated
    return path


def to_replay(window: PlayWindow, url: str, path: Any) -> None:
    window.begin(url)
    window.push("to-replay")
    window.give_file(path)
    window.wait_turn(0)


def test_a_recording_is_read_step_by_step(window, serve, recorded):
    to_replay(window, serve().url, recorded)
    first, second = recorder.read(recorded)
    assert window.text("actor") == "Played by expert"
    for turn in first.turns:
        window.wait_turn(turn.turn)
        assert window.text("observation") == turn.observation
        assert window.text("taken-action") == turn.action
        window.press("\ue014")
    window.press("\ue011")
    window.wait_turn(0)
    window.press("\ue010")
    window.wait_turn(len(first.turns) - 1)
    window.look(
        "const which = document.getElementById('which'); which.value = '1';"
        "which.dispatchEvent(new Event('change'))"
    )
    window.wait_turn(0)
    assert window.text("task-id") == second.turns[0].info["task_id"]
    window.look("document.activeElement.blur()")
    window.press(" ")
    window.wait_text("run", "Pause")
    window.wait_turn(1)
    window.press(" ")
    window.wait_text("run", "Run")
    assert window.errors() == []


def test_a_recording_is_verified(window, serve, recorded, tmp_path):
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(recorded.read_bytes()))
    server = serve()
    to_replay(window, server.url, packed)
    window.push("verify")
    window.wait_text("verified", "are the same on this server")
    assert window.look("return document.querySelectorAll('[data-result=same]').length") == len(
        window.turns()
    )

    header, *turns = [json.loads(line) for line in recorded.read_text().splitlines()]
    turns[2]["info"]["state_key"] = "0" * 32
    changed = tmp_path / "changed.jsonl"
    changed.write_text("\n".join(json.dumps(line) for line in (header, *turns)))
    window.give_file(changed)
    window.push("verify")
    window.wait_text("verified", "Turn 2: state_key was")
    window.wait_turn(2)
    assert window.look("return document.querySelectorAll('[data-result=differs]').length") == 1


def test_a_person_goes_on_from_an_agents_turn(window, serve, recorded):
    to_replay(window, serve().url, recorded)
    window.press("\ue014", "\ue014")
    window.wait_turn(2)
    window.push("take-over")
    window.wait("return !document.getElementById('controls').hidden")
    assert window.text("observation") == recorder.read(recorded)[0].turns[2].observation
    window.act("left", 3)
    [played] = recorder.read(window.downloaded())
    assert recorder.replay(played) == 4
    assert played.header["provenance"]["actor"] == "expert, person from turn 3"


def test_recordings_of_other_servers_and_broken_ones(window, serve, recorded, tmp_path):
    text = recorded.read_text()
    other = tmp_path / "other.jsonl"
    other.write_text(text.replace("agentgyms/Corridor-v0", "agentgyms/Other-v0"))
    to_replay(window, serve().url, other)
    window.push("verify")
    window.wait_text("verified", "agentgyms/Other-v0")
    broken = tmp_path / "broken.jsonl"
    broken.write_text(text.replace('"turn":1', '"turn":7', 1))
    window.give_file(broken)
    window.wait_text("notice-hint", "Line 3 is not a line of a recording: turn 7, expected turn 1")
    assert window.seen("transport")  # the one before is still there


@pytest.mark.parametrize(
    ("given", "odd"),
    [
        ('"metrics":{', '"metrics":null,"ignored":{'),
        ('"progress":', '"progress":1e999,"ignored":'),
        ('"format":', '"parties":null,"format":'),
    ],
)
def test_odd_values_in_a_recording_break_nothing(window, serve, recorded, tmp_path, given, odd):
    text = recorded.read_text()
    assert given in text
    file = tmp_path / "odd.jsonl"
    file.write_text(text.replace(given, odd))
    to_replay(window, serve().url, file)
    assert not window.seen("notice")


def test_ones_own_episode_is_stepped_through(window, serve):
    window.begin(serve().url)
    turns = solve(window, lambda action: window.press(str(window.actions().index(action) + 1)))
    window.driver.refresh()
    window.wait(READY)
    window.wait_turn(turns)  # nobody loses it before it is saved
    window.push("look-back")
    window.wait_turn(0)
    window.push("verify")
    window.wait_text("verified", f"All {turns + 1} states are the same")


@pytest.mark.parametrize("dark", [False, True])
def test_phones_and_contrast(window, serve, recorded, dark):
    server = serve()
    window.begin(server.url, width=360, dark=dark)
    window.press("2")
    window.wait_turn(1)
    assert window.overflow() == []
    assert window.look(LOW_CONTRAST) == []
    small = """return [...document.querySelectorAll("button, select, #action")].filter(e =>
      e.checkVisibility() && e.getBoundingClientRect().height < 28).map(e => e.id)"""
    assert window.look(small) == []
    window.push("new")
    window.wait_text("tasks-told", "40 of 40")
    assert window.overflow() == []
    assert window.look(LOW_CONTRAST) == []
    window.press("\ue00c")
    window.push("to-replay")
    window.give_file(recorded)
    window.wait_turn(0)
    window.push("verify")
    window.wait_text("verified", "are the same")
    assert window.overflow() == []
    assert window.look(LOW_CONTRAST) == []
    held(server).close_all()


def test_everything_is_reached_by_keyboard(window, serve):
    window.begin(serve().url)
    reached = set()
    for _ in range(40):
        window.press("\ue004")
        reached.add(
            window.look("return document.activeElement.closest('[id]:not(main)')?.id ?? ''")
        )
    expected = {
        "to-play",
        "to-replay",
        "new",
        "help",
        "key-left",
        "key-right",
        "action",
        "send",
        "state-key",
        "history",
        "download",
    }
    assert expected <= reached
    window.look("document.activeElement.blur()")
    window.press("?")
    window.wait("return document.getElementById('key-help').open")
    window.press("\ue00c")
    window.wait("return !document.getElementById('key-help').open")
