"""The attacks, in this process, through a server, and on the real engine.

`AGENTGYMS_ATTACK_URL` names a server, such as a container's, to run them against too, and
`AGENTGYMS_ATTACK_TOKEN` what it asks for.
"""

from __future__ import annotations

import json
import os
import socket
import sysconfig
from pathlib import Path

import gymnasium as gym
import pytest
from appworld_episodes import children, settled
from attacks import BREAKING, READING, UNGUARDED

from agentgyms.envs.appworld.env import AppWorldEnv
from agentgyms.envs.appworld.sandbox import code_check, executors
from agentgyms.serving.server import Server
from env_servers import create_app

SECRET = "sesame-7f3a91"
ATTACKS = {**READING, **BREAKING}
QUICK_ONES = (
    *("this package's tasks", "open", "frames", "subclasses", "/proc", "network"),
    *("memory of the parent", "other people's accounts", "forged ends"),
    *("forged calls", "C that cannot be interrupted", "abort", "fork bomb", "memory bomb"),
    *("killing the parent", "endless calls", "os._exit", "writing files"),
)
"""What `make test` has; `-m slow` has all."""

ON_THE_REAL_ENGINE = (
    *("appworld's own loader", "open", "walking the folder", "modules", "requester", "/proc"),
    *("other people's accounts", "private names", "forged calls", "swallowed timeout", "abort"),
    *("fork bomb", "memory bomb", "huge output", "os._exit", "writing files"),
)
"""What differs there, and one of each kind: the walls are the same."""

URL = os.environ.get("AGENTGYMS_ATTACK_URL")
TOKEN = os.environ.get("AGENTGYMS_ATTACK_TOKEN", "")
HURRIED = {"timeout_s": 0.3, "max_api_calls": 50}
PASSWORDS = "print([a['password'] for a in apis.supervisor.show_account_passwords()])"


class Arena:
    """An environment to attack from, another episode beside it, and what must not be read."""

    def __init__(self, make, folder, port):
        self.env, self.victim = make(), make()
        _, info = self.env.reset(seed=1)
        self.task_id = info["task_id"]
        _, other = self.victim.reset(seed=2)
        assert other["task_id"] != self.task_id
        passwords = json.loads(self.victim.step(PASSWORDS)[0])
        own = json.loads(self.env.step(PASSWORDS)[0])
        other_email = self.victim.step("print(apis.supervisor.show_profile()['email'])")[0].strip()
        self.victim.step("mine = 'untouched'")
        file = folder / "answers.txt"
        self.file = file
        self.secrets = {SECRET, *filter(None, [TOKEN]), *passwords} - set(own)
        self.names = {
            "{task_id!r}": repr(self.task_id),
            "{root!r}": repr(str(Path(__file__).parents[4])),
            "{site!r}": repr(sysconfig.get_path("purelib")),
            "{folder!r}": repr(str(folder)),
            "{file!r}": repr(str(file)),
            "{written!r}": repr(str(folder / "written")),
            "{other!r}": repr(other_email),
            "{port}": str(port),
            "{pid}": str(os.getpid()),
            "{{": "{",
            "}}": "}",
        }

    def fill(self, code):
        for name, value in self.names.items():
            code = code.replace(name, value)
        return code


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A folder with a secret in a file, which this process has in its environment too."""
    folder = tmp_path_factory.mktemp("secret")
    (folder / "answers.txt").write_text(SECRET)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTGYMS_TOKEN", SECRET)
        patch.setattr(executors, "GRACE_S", 0.3)
        patch.setattr(executors.Executor, "run", told_whole(executors.Executor.run))
        yield folder


WHOLE: list[str] = []
"""Outputs as they came, before they were cut."""


def told_whole(run):
    def wrapped(self, *args, **kwargs):
        execution = run(self, *args, **kwargs)
        WHOLE.append(execution.output)
        return execution

    return wrapped


@pytest.fixture(scope="module")
def port():
    """The port of a listener; whoever connects reads the secret."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:
        yield listener.getsockname()[1]
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def local(engine):
    executors.fork_server(engine).close()  # the next one starts with the secret around it
    hurried = HURRIED | ({"timeout_s": 1} if engine == "appworld" else {})
    yield lambda: AppWorldEnv(split="sample", engine=engine, **hurried)


def served():
    with Server(create_app("agentgyms/AppWorld-v0", token="")) as server:
        yield (
            lambda: (
                gym.make(
                    "agentgyms/AppWorld-v0", url=server.url, token="", split="sample", **HURRIED
                ).unwrapped
            )
        )


def elsewhere():
    yield (
        lambda: (
            gym.make(
                "agentgyms/AppWorld-v0",
                url=URL,
                token=TOKEN,
                split="sample",
                timeout_s=2,
                max_api_calls=50,
            ).unwrapped
        )
    )


PLACES = {
    "local": lambda: local("mini"),
    "served": served,
    "appworld": lambda: local("appworld"),
    "elsewhere": elsewhere,
}


@pytest.fixture(
    scope="module",
    params=[
        "local",
        pytest.param("served", marks=pytest.mark.slow),
        pytest.param("elsewhere", marks=pytest.mark.skipif(not URL, reason="no server is named")),
    ],
)
def arena(request, planted, port):
    yield from arena_at(request.param, planted, port)


@pytest.fixture(scope="module")
def real_arena(generated_roots, planted, port):
    yield from arena_at("appworld", planted, port)


def arena_at(place, planted, port):
    makers = PLACES[place]()
    make = next(makers)
    arena = Arena(make, planted, port)
    arena.place = place
    yield arena
    arena.env.close()
    arena.victim.close()
    next(makers, None)


@pytest.fixture(params=["unchecked", pytest.param("checked", marks=pytest.mark.slow)])
def guard(request, monkeypatch):
    """With the check of the code before it runs, and without: the walls behind it must hold."""
    if request.param == "unchecked":
        monkeypatch.setattr(code_check, "refusal", lambda code: None)
    return request.param


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in QUICK_ONES else pytest.mark.slow) for n in ATTACKS],
)
def test_attack(arena, guard, name):
    attack(arena, name)


@pytest.mark.appworld
@pytest.mark.parametrize("name", ON_THE_REAL_ENGINE)
def test_attack_on_the_real_engine(real_arena, monkeypatch, name):
    monkeypatch.setattr(code_check, "refusal", lambda code: None)
    attack(real_arena, name)


def attack(arena, name):
    env = arena.env
    _, start = env.reset(options={"task_id": arena.task_id})
    assert env.step("mine = 6 * 7")[4]["feedback"] == "ok"
    beside = len(children())
    WHOLE.clear()
    observation, reward, terminated, truncated, info = env.step(
        UNGUARDED + arena.fill(ATTACKS[name])
    )
    assert_nothing_learned(arena, name, observation + info["feedback_text"] + "".join(WHOLE))
    assert (reward, info["success"]) == (0, False)
    assert info["feedback"] in ("ok", "failed")
    if truncated:
        assert info["feedback"] == "failed"
        assert "The episode is over." in observation
        assert info["feedback_text"]
    elif not terminated:
        assert_goes_on(arena, env)
    assert arena.victim.step("print(mine)")[0] == "untouched\n"
    assert arena.file.read_text() == SECRET
    assert not (arena.file.parent / "written").exists()
    assert settled(beside) <= beside
    _, again = env.reset(options={"task_id": arena.task_id})
    assert again["state_key"] == start["state_key"]
    assert env.step("print(6 * 7)")[0] == "42\n"
    # So that no episode beside reaches its last turn.
    if arena.victim.step("x = 1")[4]["turn"] > 30:
        arena.victim.reset(seed=2)
        arena.victim.step("mine = 'untouched'")


def assert_nothing_learned(arena, name, text):
    found = [secret for secret in arena.secrets if secret in text]
    assert not found, f"{name} read {found}: {text[:500]}"
    assert "IN {" not in text, f"{name} logged in: {text[:500]}"
    assert "DONE" not in text or name != "writing files", f"{name} wrote: {text[:500]}"


def assert_goes_on(arena, env):
    """Check that the next turn is answered: as ever, or with what the code made of itself."""
    observation, reward, terminated, truncated, info = env.step("print(mine)")
    assert_nothing_learned(arena, "the turn after", observation)
    assert (reward, terminated, info["success"]) == (0, False, False)
    assert observation == "42\n" or info["feedback"] == "failed" or "42" not in observation
    assert not truncated or info["feedback_text"]
