"""Models asked from threads and forked processes: a real server, which fails as it is told to."""

import json
import math
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chat_server import (
    ChatServer,
    body,
    choice,
    cut_body,
    hang_up,
    huge,
    stall,
    status,
)
from hypothesis import given
from hypothesis import strategies as st

from agentgyms.core.errors import BadOption, EnvUnavailable, ModelUnavailable, PromptTooLong
from agentgyms.core.imports import install
from agentgyms.models import loop_thread
from agentgyms.models.sync_client import Model, SyncChatClient, read_model
from agentgyms.models.types import Answer, Sampling, Service

ROOT = Path(__file__).parents[3]
QUICK = Service(timeout_s=5.0, retries=2)
SAMPLING = Sampling(0.7, 512)


def says(text):
    return [{"role": "user", "content": str(text)}]


def echo(messages):
    return f"you said {messages[0]['content']}"


@pytest.fixture
def asking(tmp_path):
    """Return a function that makes askers, which are closed in the end."""
    made = []

    def make(server, **changes):
        fields = {"service": QUICK, "cache": False, "cache_path": str(tmp_path / "answers.sqlite")}
        made.append(SyncChatClient(Model(server.model, server.url, **(fields | changes))))
        return made[-1]

    yield make
    for asker in made:
        asker.close()


def until(holds):
    """Wait until something holds, 10 s at most."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_an_answer_with_its_tokens_and_what_it_costs(asking):
    with ChatServer(echo) as server:
        asker = asking(server, price_prompt=2.0, price_response=10.0, sampling=Sampling(0.5, 9))
        answer = asker.complete(says("well then"), seed=2**40 + 3)
        sent = server.requests[0].body
    assert answer == Answer("you said well then", finished=True, prompt=2, response=5)
    assert asker.model.cost(answer) == pytest.approx((2 * 2.0 + 5 * 10.0) / 1e6)
    assert (sent["temperature"], sent["max_tokens"], sent["seed"]) == (0.5, 9, 3)


@pytest.mark.parametrize("prices", [{}, {"price_prompt": 1.0}, {"price_response": 0.0}])
def test_without_prices_the_cost_is_unknown_and_not_nothing(prices):
    answer = Answer("yes", prompt=10, response=10)
    assert math.isnan(Model("m", "http://h", **prices).cost(answer))
    assert Model("m", "http://h", price_prompt=0, price_response=0).cost(answer) == 0


def test_tokens_that_a_server_does_not_tell_are_not_free():
    model = Model("m", "http://h", price_prompt=1.0, price_response=1.0)
    assert math.isnan(model.cost(Answer("yes")))
    assert model.cost(Answer("", finished=False)) == 0  # a filter let nobody answer


FAULTS = {
    "429": status(429, retry_after="0"),
    "500": status(500),
    "garbage": body(b"<html>Welcome</html>", "text/html"),
    "an empty answer": choice(content=None),
    "a huge answer": huge(2_000_000),
    "a connection that ends": hang_up(),
    "a body that breaks off": cut_body(),
    "silence": stall(),
}


def test_faults_that_pass_are_tried_again_and_those_that_stay_are_no_answer(asking):
    def passes(name):
        service = Service(timeout_s=0.6 if name == "silence" else 20.0, retries=1)
        with ChatServer(echo, faults=[FAULTS[name]]) as server:
            asker = asking(server, service=service)
            assert asker.complete(says("hello"), 1).text == "you said hello"
            assert sum(asker.report()["retries"].values()) == 1

    def stays(name):
        service = Service(timeout_s=0.4 if name == "silence" else 20.0, retries=1)
        with ChatServer(echo, faults=lambda *_: FAULTS[name]) as server:
            with pytest.raises(ModelUnavailable, match="after 2 attempts; the last") as caught:
                asking(server, service=service).complete(says("hello"), 1)
            assert len(server.requests) == 2
        assert isinstance(caught.value, EnvUnavailable)

    with ThreadPoolExecutor(2 * len(FAULTS)) as pool:  # each waits for half a second
        for done in [pool.submit(check, name) for name in FAULTS for check in (passes, stays)]:
            done.result()


def test_what_a_server_refuses_raises_at_once_in_the_words_of_this_argument(asking):
    for refusal, error, hint in (
        (status(401, "who?"), BadOption, "environment variable that the model's key_variable"),
        (status(404, "what?"), BadOption, "check the model's name and the model's url, which"),
        (status(400, "prompt is too long"), PromptTooLong, "scripted: prompt is too long"),
    ):
        with ChatServer(echo, faults=[refusal] * 5) as server:
            with pytest.raises(error, match=hint):
                asking(server).complete(says("hello"), 1)
            assert len(server.requests) == 1


def test_a_prompt_that_a_filter_refuses_gets_the_empty_answer(asking):
    refusal = status(400, "The prompt was filtered", code="content_filter")
    with ChatServer(echo, faults=[refusal]) as server:
        assert asking(server).complete(says("hello"), 1) == Answer("", finished=False)


# Threads


def test_many_threads_wait_at_once_and_each_gets_its_own_answer(asking):
    gathered = threading.Barrier(64, timeout=20)

    def answer(messages):
        gathered.wait()  # all are under way, or nobody is answered
        return echo(messages)

    with ChatServer(answer) as server, ThreadPoolExecutor(64) as pool:
        asker = asking(server, service=Service(timeout_s=30.0, retries=0))
        answers = list(pool.map(lambda i: asker.complete(says(i), i).text, range(64)))
    assert answers == [f"you said {i}" for i in range(64)]


def test_equal_requests_at_once_are_asked_once(asking):
    with ChatServer(echo, latency_s=0.2) as server, ThreadPoolExecutor(16) as pool:
        one, other = asking(server, cache=True), asking(server, cache=True)
        askers = [one, other] * 8
        texts = list(pool.map(lambda asker: asker.complete(says("hello"), 7).text, askers))
        assert len(server.requests) == 1
        assert one.report()["cache"] == {"hits": 15, "misses": 1, "damaged": 0}
    assert set(texts) == {"you said hello"}


def test_models_that_differ_in_sampling_alone_share_the_limits_of_their_server(asking):
    limited = Service(timeout_s=5.0, requests_per_minute=600.0)
    with ChatServer(echo) as server, ThreadPoolExecutor(4) as pool:
        partner = asking(server, service=limited, sampling=Sampling(0.7))
        judge = asking(server, service=limited, sampling=Sampling(0.0), price_prompt=1.0)
        list(pool.map(lambda i: (partner, judge)[i % 2].complete(says(i), i), range(4)))
        times = [asked.at for asked in server.requests]
    assert times[-1] - times[0] >= 3 * 0.1 - 0.05
    assert judge.report()["answers"] == 4


INTERRUPTED = """
import asyncio, os, signal, sys, threading, time
from agentgyms.models import loop_thread
from agentgyms.models.sync_client import SyncChatClient, Model

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start jobs with it ignored
sys.setswitchinterval(1e-5)  # the interrupt comes at any line
asker = SyncChatClient(Model("scripted", sys.argv[1], cache=False))
ask = lambda text: asker.complete([{"role": "user", "content": text}], 1).text

def interrupt(before):
    while asker.report()["requests"] == before:
        time.sleep(1e-5)
    os.kill(os.getpid(), signal.SIGINT)

for i in range(40):
    before = asker.report()["requests"]
    threading.Thread(target=interrupt, args=(before,)).start()
    try:
        ask("hello")
    except KeyboardInterrupt:
        while asyncio.all_tasks(loop_thread.current()._loop):
            time.sleep(0.001)
print(ask("again"), asker.report()["requests"])
"""


def test_a_thread_that_is_interrupted_ends_its_request():
    def stalls(number, asked):
        return stall() if asked["messages"] == says("hello") else None

    with ChatServer(echo, faults=stalls) as server:
        assert program(INTERRUPTED, server.url) == "you said again 41"


def test_an_exit_in_the_loop_does_not_end_it(asking):
    async def leave():
        raise SystemExit

    with ChatServer(echo, faults=[stall(0.3)]) as server, ThreadPoolExecutor(1) as pool:
        asker = asking(server)
        waiting = pool.submit(asker.complete, says("hello"), 1)
        until(lambda: server.requests)
        with pytest.raises(SystemExit):
            loop_thread.current().submit(leave()).result(10)
        assert waiting.result(10).text == "you said hello"


def test_an_answer_that_is_forgotten_is_asked_for_again(asking):
    with ChatServer(echo) as server:
        kept, not_kept = asking(server, cache=True), asking(server)
        for asker in (kept, kept, not_kept):
            asker.complete(says("hello"), 7)
        assert len(server.requests) == 2
        for asker in (kept, not_kept):
            asker.forget(says("hello"), 7)
            asker.forget(says("never asked"), 7)
        kept.complete(says("hello"), 7)
        assert len(server.requests) == 3


def test_what_is_closed_while_a_thread_waits_is_no_answer(asking):
    with ChatServer(echo, faults=[stall()]) as server, ThreadPoolExecutor(1) as pool:
        asker = asking(server)
        waiting = pool.submit(asker.complete, says("hello"), 1)
        until(lambda: server.requests)
        asker.close()
        with pytest.raises(ModelUnavailable, match="'scripted' gave no answer"):
            waiting.result(10)
        assert asker.complete(says("again"), 1).text == "you said again"


def test_one_of_those_who_wait_can_be_interrupted(asking):
    stalls = lambda number, asked: stall(1.0) if number < 2 else None
    with ChatServer(echo, faults=stalls) as server, ThreadPoolExecutor(2) as pool:
        one, other = asking(server), asking(server)
        waiting = [pool.submit(it.complete, says(i), i) for i, it in enumerate((one, other))]
        until(lambda: len(server.requests) == 2)
        one.interrupt()
        with pytest.raises(ModelUnavailable, match="was cancelled"):
            waiting[0].result(0.9)
        assert waiting[1].result(10).text == "you said 1"
        assert one.complete(says("again"), 1).text == "you said again"


def test_a_client_is_closed_when_nobody_has_it(asking):
    with ChatServer(echo) as server:
        one, other = asking(server), asking(server, sampling=Sampling(0.1))
        one.complete(says("hello"), 1)
        one.close()
        one.close()
        other.complete(says("hello"), 1)
        assert server.connections == 1
        other.close()
        another = asking(server)
        another.complete(says("hello"), 1)
        assert server.connections == 2


def test_what_was_forgotten_and_never_closed_does_not_stay(asking):
    with ChatServer(echo) as server:
        before = len(loop_thread.current().resources)
        for i in range(20):
            SyncChatClient(Model("scripted", server.url, cache=False, extra={"top_k": i}))
        assert len(loop_thread.current().resources) <= before + 1


def test_a_server_that_hangs_leaves_nothing_behind(asking):
    with ChatServer(echo, faults=lambda *_: stall()) as server, ThreadPoolExecutor(32) as pool:
        asker = asking(server, service=Service(timeout_s=0.3, retries=0))

        def fails(i):
            with pytest.raises(ModelUnavailable, match="nothing came|no connection"):
                asker.complete(says("x" * 10_000), i)

        list(pool.map(fails, range(32)))
        assert not asker._connection().pending


# Processes


def program(code, *arguments, **environment):
    """Return what a program prints; it must end well and say nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        env=os.environ | environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


FORKING = """
import os, sys, threading, time
from agentgyms.models.sync_client import SyncChatClient, Model
from agentgyms.models.types import Service

model = Model("scripted", sys.argv[1], service=Service(30.0, 0), cache_path=sys.argv[2])
asker = SyncChatClient(model)
ask = lambda text, seed: asker.complete([{"role": "user", "content": text}], seed).text
first = ask("hello", 1)
waiting = [threading.Thread(target=ask, args=(f"slow {i}", i)) for i in range(8)]
for thread in waiting:
    thread.start()
while asker.report()["cache"]["misses"] + len(asker._connection().pending) < 9:
    time.sleep(0.005)
read, write = os.pipe()
if os.fork() == 0:
    said = [ask("hello", 1), ask("from the child", 2), str(asker.report()["requests"])]
    asker.close()
    os.write(write, ", ".join(said).encode())
    os._exit(0)
os.wait()
print(os.read(read, 1000).decode())
for thread in waiting:
    thread.join()
print(first, ask("from the child", 2), ask("from the parent", 3), asker.report()["requests"])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_amid_requests_asks_for_itself_and_harms_no_one(tmp_path):
    def answer(messages):
        text = messages[0]["content"]
        time.sleep(0.5 * text.startswith("slow"))
        return f"{text}!"

    with ChatServer(answer) as server:
        quiet = "ignore::DeprecationWarning"  # of newer Pythons, about forks amid threads
        path = str(tmp_path / "answers.sqlite")
        said = program(FORKING, server.url, path, PYTHONWARNINGS=quiet)
        assert said.splitlines() == [
            "hello!, from the child!, 1",
            "hello! from the child! from the parent! 10",
        ]
        assert len(server.requests) == 11


ENDING = """
import sys, threading, time
from contextlib import suppress
from agentgyms.models.sync_client import SyncChatClient, Model
from agentgyms.core.errors import ModelUnavailable

asker = SyncChatClient(Model("scripted", sys.argv[1], cache_path=sys.argv[2]))

def ask():
    with suppress(ModelUnavailable):
        asker.complete([{"role": "user", "content": "hello"}], 1)

asker.complete([{"role": "user", "content": "hello"}], 0)
threading.Thread(target=ask, daemon=True).start()
while asker.report()["requests"] < 2:
    time.sleep(0.005)
print("over")
"""


def test_a_process_ends_at_once_and_quietly_though_a_thread_waits(tmp_path):
    begin = time.monotonic()
    with ChatServer(echo, faults=[None, stall()]) as server:
        path = str(tmp_path / "answers.sqlite")
        assert program(ENDING, server.url, path) == "over"
    assert time.monotonic() - begin < 20


def test_the_key_is_read_from_its_variable_and_told_to_nobody(asking, monkeypatch, tmp_path):
    key = "sk-sesame-1234"
    with ChatServer(echo, key=key) as server:
        with pytest.raises(BadOption, match="key_variable"):
            asking(server, key_variable="NO_SUCH_KEY").complete(says("hello"), 1)
        monkeypatch.setenv("PARTNER_KEY", key)
        asker = asking(server, key_variable="PARTNER_KEY", cache=True)
        assert asker.complete(says("hello"), 1).text == "you said hello"
        told = json.dumps(asker.report()) + repr(asker) + repr(asker.model)
    assert key not in told
    assert key.encode() not in (tmp_path / "answers.sqlite").read_bytes()


# How an argument names a model


def test_a_model_in_one_text():
    model = read_model(" org/m:7b@http://127.0.0.1:8000/v1 ", "partner", SAMPLING)
    assert model == Model("org/m:7b", "http://127.0.0.1:8000/v1", sampling=SAMPLING)
    assert read_model("@cf/m@https://h", "judge", SAMPLING).name == "@cf/m"


def test_a_model_with_all_that_can_be_said_of_it():
    said = {
        "name": "m",
        "url": "https://h/v1",
        "key_variable": "KEY",
        "temperature": 0,
        "top_p": 0.9,
        "max_tokens": 33,
        "timeout_s": 9,
        "retries": 0,
        "requests_per_minute": 60,
        "tokens_per_minute": None,
        "cache": False,
        "cache_path": "/tmp/a",
        "price_prompt": 2.5,
        "price_response": 10,
        "extra": {"top_k": 1},
    }
    model = read_model(said, "judge", SAMPLING)
    assert model == Model(
        "m",
        "https://h/v1",
        "KEY",
        Sampling(0.0, 33, 0.9),
        Service(9.0, 0, 60.0),
        cache=False,
        cache_path="/tmp/a",
        price_prompt=2.5,
        price_response=10,
        extra={"top_k": 1},
    )
    # 0 and 0.0 would be two keys of the cache.
    assert type(model.sampling.temperature) is float
    assert read_model({"name": "m", "url": "http://h"}, "judge", SAMPLING).sampling == SAMPLING


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (None, "partner must be"),
        (7, "got int"),
        ("gpt-4o", r"partner 'gpt-4o' has no address.*name@http://host:8000/v1"),
        ("gpt-4o@h:80", "partner 'gpt-4o' has no address"),
        ("@http://h", "no address"),
        ("m@http://", "url.*no address"),
        ("m@http://me:sesame@h/v1", "more than a server and a path"),
        ("m@http://me:sesame@h:port/v1", "url is no address"),
        ({"name": "m", "url": "sk-sesame"}, "url is no address of a server"),
        ({"name": "m"}, "partner has no url"),
        ({"url": "http://h"}, "partner has no name"),
        ({"name": "", "url": "http://h"}, "partner's name must be a text"),
        ({"name": "m", "url": 3}, "partner's url must be a text, got 3"),
        ({"name": "m", "url": "http://h", "key": "sesame"}, "'key'.*key_variable"),
        ({"name": "m", "url": "http://h", "key_variable": "sk-sesame"}, "environment variable"),
        ({"name": "m", "url": "http://h", "temperature": -1}, "at least 0, got -1"),
        ({"name": "m", "url": "http://h", "temperature": math.nan}, "got nan"),
        ({"name": "m", "url": "http://h", "top_p": 0}, r"in \(0, 1\], got 0"),
        ({"name": "m", "url": "http://h", "max_tokens": 5.0}, "positive integer, got 5.0"),
        ({"name": "m", "url": "http://h", "max_tokens": True}, "positive integer, got True"),
        ({"name": "m", "url": "http://h", "timeout_s": 0}, "greater than 0"),
        ({"name": "m", "url": "http://h", "retries": -1}, "at least 0"),
        ({"name": "m", "url": "http://h", "requests_per_minute": 0}, "greater than 0 or None"),
        ({"name": "m", "url": "http://h", "cache": "no"}, "True or False"),
        ({"name": "m", "url": "http://h", "price_prompt": "2"}, "at least 0 or None"),
        ({"name": "m", "url": "http://h", "extra": ["a"]}, "a mapping"),
        ({"name": "m", "url": "http://h", "extra": {"seed": 1}}, "extra.seed is set elsewhere"),
        ({"name": "m", "url": "http://h", "extra": {"x": object()}}, "written as JSON"),
        ({"name": "m", "url": "http://h", 3: 4}, "'3'"),
    ],
)
def test_what_names_no_model(value, wrong):
    with pytest.raises(BadOption, match=wrong) as caught:
        read_model(value, "partner", SAMPLING)
    assert "sesame" not in str(caught.value)
    assert "partner" in str(caught.value)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = ["name", "url", "temperature", "top_p", "max_tokens", "retries", "extra", "cache_path"]


@given(
    st.dictionaries(st.sampled_from(NAMES), PLAIN)
    | PLAIN
    | st.builds("{}@http://{}".format, st.text(), st.text())
)
def test_whatever_is_given_it_is_a_model_that_can_be_asked_or_a_bad_option(value):
    try:
        model = read_model(value, "partner", SAMPLING)
    except BadOption as e:
        said = str(e)
    else:
        said = "partner"
        SyncChatClient(model).close()
    assert said.startswith("partner")


def test_the_extra_that_is_missing_is_named(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['httpx2'] = None\n")
    code = """
from gymnasium.error import DependencyNotInstalled
from agentgyms.models.sync_client import SyncChatClient, Model, read_model
from agentgyms.models.types import Sampling
for begin in (
    lambda: read_model("m@http://h", "judge", Sampling()),
    lambda: SyncChatClient(Model("m", "http://h")),
):
    try:
        begin()
    except DependencyNotInstalled as e:
        print(e)
"""
    path = os.pathsep.join([str(tmp_path), *sys.path])
    said = program(code, PYTHONPATH=path).splitlines()
    assert len(said) == 2
    for line in said:
        assert f"httpx2 is not installed, run: {install('sotopia')}" in line
