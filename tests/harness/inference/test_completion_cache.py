"""Answers on disk: what is taken from there, what is not, and files that are not what they were."""

import asyncio
import base64
import contextlib
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from chat_server import ChatServer, empty, status
from server_calls import ASK, GREEDY, answering

from agentgyms.core.images import encode_png
from agentgyms.models.answer_store import AnswerStore
from agentgyms.models.cache import default_path, key_of
from harness.config import ServiceConfig
from harness.inference.completers import Sampling
from harness.inference.completers.openai import OpenAICompleter
from harness.types.errors import ConfigError, ModelUnavailable
from harness.types.messages import shared_image

KEPT = {"text": "go north", "finished": True, "usage": [3, 2, 1]}
ROOT = Path(__file__).parents[3]


def using(server, path, work, **settings):
    """Run `work(completer)` with a cached completer for the server, and close it."""

    async def run():
        retries = settings.pop("retries", 1)
        service = ServiceConfig(retries=retries, timeout_s=20.0, cache_path=str(path))
        settings.setdefault("url", server.url)
        completer = OpenAICompleter(
            server.model, service=service, **settings, cached=True, first_pause_s=0.01
        )
        try:
            return await work(completer)
        finally:
            await completer.close()

    return asyncio.run(run())


def ask(server, path, messages=ASK, sampling=GREEDY, seed=7, **settings):
    return using(server, path, lambda it: it.complete(messages, sampling, seed), **settings)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made" / "answers.sqlite"


def counting():
    """Return a function that answers with how often it was asked."""
    asked = []

    def answer(messages):
        asked.append(messages)
        return f"answer {len(asked)}"

    return answer


def test_an_equal_request_is_answered_from_the_file_with_its_usage(path):
    with ChatServer(counting()) as server:
        first, second = ask(server, path), ask(server, path)
        assert len(server.requests) == 1
    assert first == second
    assert first.usage.prompt == 2
    assert first.text == "answer 1"


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 8},
        {"sampling": Sampling(0.4, 50)},
        {"sampling": Sampling(0.0, 51)},
        {"sampling": Sampling(0.0, 50, 0.9)},
        {"messages": [{"role": "user", "content": "Where to? "}]},
        {"messages": [{"role": "system", "content": "Where to?"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Where to?"}]}]},
        {"extra": {"top_k": 1}},
    ],
)
def test_another_request_is_not(path, change):
    with ChatServer(counting()) as server:
        texts = [ask(server, path).text, ask(server, path, **change).text]
    assert texts == ["answer 1", "answer 2"]


def test_another_server_may_have_another_model_of_that_name(path):
    with ChatServer(answering("left")) as one, ChatServer(answering("right")) as other:
        assert [ask(server, path).text for server in (one, other, one)] == ["left", "right", "left"]
        assert [len(server.requests) for server in (one, other)] == [1, 1]


def test_a_server_that_loaded_something_else_is_another_one(path):
    async def work(completer):
        await completer.check()
        return await completer.complete(ASK, GREEDY, 0)

    texts = []
    with ChatServer(counting()) as server:
        for root in ("step-20", "step-40", "step-20"):
            server.listed = [{"id": "scripted", "root": root}]
            texts.append(using(server, path, work).text)
    assert texts == ["answer 1", "answer 2", "answer 1"]


def test_images_count_by_what_they_show(path):
    def seen(value):
        image = shared_image(np.full((2, 2, 3), value, np.uint8))
        return [{"role": "user", "content": [{"type": "image", "image": image}]}]

    with ChatServer(counting()) as server:
        completions = [ask(server, path, seen(value)) for value in (1, 2, 1)]
    assert [completion.text for completion in completions] == ["answer 1", "answer 2", "answer 1"]
    assert completions[0] == completions[2]
    assert completions[2].images[0].digest == seen(1)[0]["content"][0]["image"].digest


def test_keys_stay_what_they_are_or_every_kept_answer_is_lost():
    """As the first version of format 1 computed them."""
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    address = "data:image/png;base64," + base64.b64encode(encode_png(pixels)).decode()
    messages = [
        {"role": "system", "content": "Play ü."},
        {"role": "assistant", "content": "left"},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": address}},
                {"type": "text", "text": "Now?"},
            ],
        },
    ]
    scope = {"backend": "openai", "name": "m", "root": "org/m", "url": "http://h/v1"}
    scope |= {"extra": {"top_k": 20, "stop": ["\n"]}}
    assert key_of(scope, messages, Sampling(0.4, 33, 0.9), 2**62 + 5) == (
        "7bc42426b6a229352028811e9f032ae8b93085c206222dd96b2adc65b5c23a1f"
    )
    assert key_of({}, ASK, GREEDY, 7) == (
        "c4592abd598085cc7fa55c401eb0eba06a3f6f62fea6ce8b393fbf2e6de66388"
    )


@pytest.mark.parametrize(
    "address", ["https://h/a.png", "data:image/png;base64,???", "data:image/png;base64,AAAA"]
)
def test_an_image_that_is_elsewhere_or_damaged_counts_by_its_address(address):
    def asking(url):
        return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]

    keys = {key_of({}, asking(url), GREEDY, 0) for url in (address, address, f"{address}b")}
    assert len(keys) == 2


def test_token_ids_of_answers_change_no_key():
    said = {"role": "assistant", "content": "left"}
    keys = {key_of({}, [message], GREEDY, 0) for message in (said, said | {"token_ids": (1, 2)})}
    assert len(keys) == 1


def test_what_failed_is_asked_again(path):
    faults = [empty(), status(500)]  # the first one asks the function, too
    with ChatServer(counting(), faults=faults) as server:
        for _ in range(2):
            with pytest.raises(ModelUnavailable):
                ask(server, path, retries=0)
        assert ask(server, path, retries=0).text == "answer 2"
        assert ask(server, path, retries=0).text == "answer 2"
    refusals = [status(400, "bad"), None]
    with ChatServer(counting(), faults=refusals) as server:
        with pytest.raises(ConfigError):
            ask(server, path)
        assert ask(server, path).text == "answer 1"


def test_an_answer_that_was_cut_is_kept_as_one(path):
    with ChatServer(lambda _: {"content": None, "finish_reason": "length"}) as server:
        completions = [ask(server, path), ask(server, path)]
        assert len(server.requests) == 1
    assert [(it.text, it.finished) for it in completions] == [("", False)] * 2


def test_equal_requests_at_once_are_asked_once(path):
    async def work(completer):
        same = [completer.complete(ASK, GREEDY, 1) for _ in range(8)]
        others = [completer.complete(ASK, GREEDY, seed) for seed in range(2, 6)]
        return await asyncio.gather(*same, *others), completer.report()

    with ChatServer(counting(), latency_s=0.1) as server:
        completions, report = using(server, path, work)
        assert len(server.requests) == 5
    assert len({completion.text for completion in completions[:8]}) == 1
    assert report["cache"] == {"hits": 7, "misses": 5, "damaged": 0}
    assert report["requests"] == 5


def test_whoever_waits_for_an_equal_request_that_is_cancelled_asks_itself(path):
    async def work(completer):
        first = asyncio.create_task(completer.complete(ASK, GREEDY, 1))
        while not server.requests:
            await asyncio.sleep(0.005)
        second = asyncio.create_task(completer.complete(ASK, GREEDY, 1))
        await asyncio.sleep(0.02)
        first.cancel()
        return await second

    with ChatServer(answering(), latency_s=0.2) as server:
        assert using(server, path, work).text == "go north"
        assert len(server.requests) == 2


def test_the_file_holds_no_prompt_and_no_key(path):
    with ChatServer(answering(), key="sk-sesame") as server:
        ask(server, path, key="sk-sesame")
    content = path.read_bytes()
    assert b"go north" in content
    assert b"Where to" not in content
    assert b"sesame" not in content


def test_a_folder_gets_a_file_of_its_own(tmp_path):
    with ChatServer(counting()) as server:
        assert ask(server, tmp_path) == ask(server, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [default_path().name]


def test_the_file_is_in_the_cache_folder_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path().name == "answers.sqlite"
    if sys.platform == "linux":
        assert default_path().is_relative_to(tmp_path)


# Files that fail


def stored(path, *keys):
    store = AnswerStore(path)
    try:
        return [store.get(key) for key in keys]
    finally:
        store.close()


def filled(path, count=200):
    store = AnswerStore(path)
    for i in range(count):
        store.put(f"key {i}", KEPT | {"text": f"text {i} " * 20})
    store.close()


def test_the_first_answer_under_a_key_stays(path):
    store = AnswerStore(path)
    assert store.put("key", KEPT) == KEPT
    assert store.put("key", KEPT | {"text": "another"}) == KEPT
    store.close()
    assert stored(path, "key", "unknown") == [KEPT, None]


@pytest.mark.parametrize("damage", ["text", "half", "middle"])
def test_a_damaged_file_is_moved_aside_and_work_goes_on(path, damage, caplog):
    filled(path)
    whole = path.read_bytes()
    if damage == "text":
        path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    elif damage == "half":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    broken = path.read_bytes()

    async def work(completer):
        return [await completer.complete(ASK, GREEDY, seed) for seed in (1, 2, 2)]

    with ChatServer(answering()) as server:
        completions = using(server, path, work)
    assert [completion.text for completion in completions] == ["go north"] * 3
    aside = list(path.parent.glob("*.damaged-*"))
    assert [file.read_bytes() for file in aside] == [broken]
    assert "is damaged" in caplog.text
    with contextlib.closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_an_answer_that_was_altered_is_asked_for_again(path):
    with ChatServer(counting()) as server:
        ask(server, path)
        file = sqlite3.connect(path)
        file.execute("UPDATE answers SET answer = replace(answer, 'answer 1', 'answer 9')")
        file.commit()
        file.close()
        assert ask(server, path).text == "answer 2"
        assert ask(server, path).text == "answer 2"


def test_a_folder_that_cannot_be_made_is_said_once(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")

    async def work(completer):
        return [await completer.complete(ASK, GREEDY, seed) for seed in (1, 1)]

    with ChatServer(counting()) as server:
        completions = using(server, tmp_path / "file" / "answers.sqlite", work)
    assert [completion.text for completion in completions] == ["answer 1", "answer 2"]
    assert caplog.text.count("answers are not kept") == 1


def opened_with(monkeypatch):
    """Return the seconds for which each connection waits for a locked file, as they are opened."""
    waits, connect = [], sqlite3.connect

    def opened(*words, **options):
        waits.append(options["timeout"])
        return connect(*words, **options)

    monkeypatch.setattr(sqlite3, "connect", opened)
    return waits


def test_a_file_that_stays_locked_is_waited_for_once(path, monkeypatch, caplog):
    monkeypatch.setattr("agentgyms.models.answer_store._BUSY_S", 0.5)
    store = AnswerStore(path)
    store.put("a", KEPT)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    waits = opened_with(monkeypatch)
    assert store.get("a") is None
    assert [store.get("a"), store.put("b", KEPT), store.get("b")] == [None, KEPT, None]
    assert waits == [0.05] * 3
    assert caplog.text.count("answers are not kept") == 1
    other.close()
    assert store.get("a") == KEPT
    store.close()


def test_a_full_disk_keeps_nobody_from_working(path, caplog):
    filled(path, 5)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def work(completer):
        # No file may grow beyond what this one has: writing fails as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
        try:
            big = [{"role": "user", "content": "much"}]
            return [await completer.complete(big, Sampling(0.0, 9000), s) for s in (1, 1)]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with ChatServer(answering("x" * 100_000)) as server:
        completions = using(server, path, work)
        assert len(server.requests) == 2
        assert len(completions[1].text) == 100_000
        assert caplog.text.count("answers are not kept") == 1
    with ChatServer(answering()) as server:
        ask(server, path)
        ask(server, path)
        assert len(server.requests) == 1
    assert stored(path, "key 1")[0] is not None


WRITER = """
import sys
from pathlib import Path
from agentgyms.models.answer_store import AnswerStore

store, name = AnswerStore(Path(sys.argv[1])), sys.argv[2]
for i in range(int(sys.argv[3])):
    kept = store.put(f"key {i}", {"text": f"{name} {i} " * 50})
    print(kept["text"].split()[0], flush=True)
print(store.damaged)
"""


def writer(path, name, count):
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def test_two_evaluations_write_at_once_and_agree(path):
    both = [writer(path, name, 150) for name in ("one", "other")]
    said = [process.communicate(timeout=120)[0].split() for process in both]
    assert said[0][:150] == said[1][:150]
    assert said[0][-1] == said[1][-1] == "0"
    texts = [row["text"].split()[0] for row in stored(path, *(f"key {i}" for i in range(150)))]
    assert texts == said[0][:150]


def test_a_kill_loses_no_answer_that_was_kept(path):
    process = writer(path, "one", 100_000)
    for _ in range(40):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    said = process.stdout.read().split()
    process.stdout.close()
    process.wait(60)
    rows = stored(path, *(f"key {i}" for i in range(40 + len(said))))
    assert [row["text"].split()[:2] for row in rows] == [["one", str(i)] for i in range(len(rows))]
    assert not list(path.parent.glob("*.damaged-*"))
