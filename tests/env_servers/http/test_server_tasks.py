"""Lists of tasks in pages: of a few tasks, and of eight million that nobody holds in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from server_faults import Api, code

from agentgyms.core.env import Outcome
from agentgyms.core.errors import SessionLost, UnknownTask
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.envs.corridor import CorridorEnv
from env_servers import create_app
from env_servers.sessions import task_pages

MILLIONS = 8_000_000
MANY = "tests/Many-v0"


class Numbers(TaskSet):
    """Tasks that are numbers; none is made before it is asked for."""

    def __init__(self, split: str, count: int) -> None:
        self.split, self._count = split, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        places = range(self._count)[index]
        return f"n{places:07d}" if isinstance(places, int) else tuple(map(self.__getitem__, places))

    def __iter__(self) -> Iterator[str]:
        return map(self.__getitem__, range(self._count))

    def __contains__(self, task_id: object) -> bool:
        return (
            isinstance(task_id, str) and task_id[1:].isdigit() and self[int(task_id[1:])] == task_id
        )

    def find(self, task_id: str) -> Task:
        return Task(task_id, "even" if int(task_id[1:]) % 2 == 0 else "odd")

    def part(self, first: int, last: int) -> list[Task]:
        return [self.find(self[place]) for place in range(first, min(last, self._count))]


class ManyEnv(CorridorEnv):
    """A corridor with as many tasks as WebShop's whole catalogue has.

    Args:
        count: How many.
        **kwargs: As for every environment.
    """

    def __init__(self, *, count: int = MILLIONS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._count = count

    def load_tasks(self) -> TaskSet:
        return Numbers(self.split, self._count)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        return super().begin(Task(task.task_id, "free"), rng)


gym.register(MANY, entry_point=ManyEnv)


@pytest.fixture(scope="module")
def many() -> Api:
    return Api(create_app(MANY, token=""))


def _walk(api: Api, path: str) -> list[list[str]]:
    found: list[list[str]] = []
    place = 0
    for _ in range(1000):
        status, reply = api.get(f"{path}&offset={place}")
        assert status == 200, reply
        found += reply["tasks"]
        if reply["next"] is None:
            return found
        assert reply["next"] > place
        place = reply["next"]
    raise AssertionError("the list does not end")


@pytest.mark.parametrize("limit", [1, 3, 39, 40, 41, 10_000])
def test_pages_make_up_the_list(api, limit):
    whole = api.get("/v1/tasks")[1]
    assert (len(whole["tasks"]), whole["total"], whole["next"]) == (40, 40, None)
    assert _walk(api, f"/v1/tasks?limit={limit}") == whole["tasks"]
    assert _walk(api, f"{api.open()}/tasks?limit={limit}") == whole["tasks"]


def test_a_place_behind_the_end(api):
    reply = api.get("/v1/tasks?offset=40")[1]
    assert (reply["tasks"], reply["total"], reply["next"]) == ([], 40, None)


@pytest.mark.parametrize("limit", [1, 7, 100])
@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("prefix=train/free-01", lambda i, f: i.startswith("train/free-01")),
        ("prefix=train/", lambda i, f: True),
        ("prefix=valid", lambda i, f: False),
        ("prefix=z", lambda i, f: False),
        ("contains=LOCKED", lambda i, f: "locked" in i),
        ("contains=01", lambda i, f: "01" in i),
        ("prefix=train/locked&contains=2", lambda i, f: "locked" in i and "2" in i),
        ("contains=%F0%9F%98%80", lambda i, f: False),
    ],
)
def test_a_search_finds_what_fits(api, query, fits, limit):
    tasks = api.get("/v1/tasks")[1]["tasks"]
    expected = [task for task in tasks if fits(*task)]
    assert _walk(api, f"/v1/tasks?{query}&limit={limit}") == expected


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=-1", "limit=10001", "limit=x", "limit=1.0", "limit=1e3", "limit="),
        *("offset=-1", "offset=x", "offset=%2B1", "offset=" + "9" * 5000, "offset=%D9%A1"),
        *("limit=1&limit=2", "split=train&split=sample", "page=2", "prefix=" + "x" * 257),
    ],
)
def test_a_wrong_query_is_refused(api, query):
    name = query.partition("=")[0]
    for path in ("/v1/tasks", f"{api.open()}/tasks"):
        reply = api.get(f"{path}?{query}")
        assert code(reply) == (422, "bad_request")
        assert repr(name) in reply[1]["error"]["message"]


def test_a_session_lists_its_own_split(api):
    path = api.open(split="sample")
    assert len(api.get(f"{path}/tasks?split=sample")[1]["tasks"]) == 4
    assert code(api.get(f"{path}/tasks?split=train")) == (422, "bad_request")


def test_eight_million_tasks_come_in_pages(many):
    begun = time.process_time()
    reply = many.get("/v1/tasks")[1]
    assert (len(reply["tasks"]), reply["total"], reply["next"]) == (10_000, MILLIONS, 10_000)
    assert len(many.response.get_data()) < 2**20
    last = many.get(f"/v1/tasks?offset={MILLIONS - 1}")[1]
    assert (last["tasks"], last["next"]) == ([["n7999999", "odd"]], None)
    typed = many.get("/v1/tasks?prefix=n4123&limit=5")[1]
    assert [name for name, _ in typed["tasks"]] == [f"n412300{i}" for i in range(5)]
    assert time.process_time() - begun < 2


def test_a_search_in_eight_million_tasks_ends_in_time(many):
    begun = time.process_time()
    reply = many.get("/v1/tasks?contains=nowhere")[1]
    assert (reply["tasks"], reply["next"]) == ([], 50_000)
    assert time.process_time() - begun < 2


def test_a_remote_environment_holds_a_page_of_eight_million(many, remote):
    env = remote(many.app)
    tasks = env.tasks
    assert len(tasks) == MILLIONS
    assert (tasks[0], tasks[-1], tasks[4_000_000]) == ("n0000000", "n7999999", "n4000000")
    assert tasks[999:1001] == ("n0000999", "n0001000")
    assert tasks.find("n6543210") == Task("n6543210", "even")
    assert "n0000007" in tasks
    assert "n8000000" not in tasks
    assert 7 not in tasks
    with pytest.raises(UnknownTask, match="n8000000"):
        tasks.find("n8000000")
    with pytest.raises(IndexError):
        tasks[MILLIONS]
    some = iter(tasks)
    assert [next(some) for _ in range(1002)][-1] == "n0001001"
    _, info = env.reset(seed=1, options={"task_id": "n5000000"})
    assert info["task_id"] == "n5000000"
    twin = env.fork()
    env.close()
    assert tasks[3_000_000] == "n3000000", "it is there after the environment is closed"
    assert twin.tasks[3_000_001] == "n3000001"
    twin.close()
    assert len(many.app.extensions["agentgyms"].sessions) == 0


def test_a_long_list_is_the_local_one(monkeypatch, remote):
    monkeypatch.setattr(task_pages, "MAX_TASKS", 1000)
    local = gym.make(MANY, count=2345).unwrapped.tasks
    env = remote(create_app(MANY, token=""), count=2345)
    assert list(env.tasks) == list(local)
    assert env.tasks.families() == {"even": 1173, "odd": 1172}
    assert env.tasks.part(995, 1005) == local.part(995, 1005)
    env.close()


def test_a_server_with_other_tasks_is_noticed(monkeypatch, remote):
    app = create_app(MANY, token="")
    env = remote(app, count=20_000)
    assert len(env.tasks) == 20_000
    monkeypatch.setattr(Numbers, "__len__", lambda tasks: 15_000)
    with pytest.raises(SessionLost, match="different versions or data"):
        env.tasks[12_345]
    env.close()
