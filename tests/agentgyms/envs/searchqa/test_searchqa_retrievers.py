"""Retrievers over HTTP: the real server on a socket, faults included, and who shares them."""

import itertools
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import gymnasium as gym
import pytest
import requests
from flask import Flask, Response, request

import agentgyms
from agentgyms.core.errors import BadOption, EnvUnavailable, ServerUnavailable
from agentgyms.envs.searchqa.env import SearchQAEnv
from agentgyms.envs.searchqa.http_retriever import (
    TOKEN_VARIABLE,
    HttpRetriever,
    _pause_s,
    shared_retriever,
)
from agentgyms.envs.searchqa.sources import closed_world_retriever
from agentgyms.remote import InProcessTransport, RemoteEnv
from agentgyms.remote.transport import Reply
from agentgyms.serving.served import EXTENSION, Connected, State
from agentgyms.serving.server import Server
from agentgyms.serving.token_access import Access
from env_servers import create_app
from env_servers.retriever.app import create_retriever_app

ENV_ID = "agentgyms/SearchQA-v0"
HURRIED = {"patience_s": 0.6, "timeout_s": (1, 5)}


@pytest.fixture(autouse=True)
def _no_ambient_token(monkeypatch):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)


@pytest.fixture(scope="module")
def live():
    """The address of a search server on a socket, over the closed world."""
    with Server(create_retriever_app(closed_world_retriever())) as server:
        yield f"{server.url}/retrieve"


def ids(hits):
    return [hit.document.doc_id for hit in hits]


# --- over HTTP ---


@pytest.mark.parametrize("form", ["queries", "query"])
def test_episodes_over_http_equal_those_in_memory(live, form):
    here = SearchQAEnv(split="test")
    there = SearchQAEnv(split="test", retriever=live, request_form=form)
    assert there.blocking
    for seed in range(12):
        assert here.reset(seed=seed) == there.reset(seed=seed)
        act, over = agentgyms.expert(here), False
        while not over:
            action = act()
            one, two = here.step(action), there.step(action)
            assert one == two
            over = one[2] or one[3]
        assert one[1] == 1
        assert json.loads(here.snapshot())["engine"] == json.loads(there.snapshot())["engine"]
    there.close()


def test_a_vector_and_a_group_over_http(live):
    with agentgyms.make_group(ENV_ID, 3, retriever=live) as group:
        infos = group.reset(seed=2)[1]
        results = group.step(["search[the river]"] * 3)
        assert len({info["state_key"] for info in infos}) == 1
        assert len({result[0] for result in results}) == 1
    envs = gym.make_vec(ENV_ID, num_envs=2, retriever=live, vectorization_mode="async")
    envs.reset(seed=1)
    assert all("Doc 3" in text for text in envs.step(["search[the river]"] * 2)[0])
    envs.close()


def post(url, body, **kwargs):
    kwargs = {"timeout": 5, "data": body if isinstance(body, bytes) else json.dumps(body), **kwargs}
    return requests.post(url, **kwargs)


def test_both_forms_of_requests_and_replies(live):
    both = post(live, {"queries": ["the river", "the poet"], "topk": 2, "return_scores": True})
    result = both.json()["result"]
    assert [len(hits) for hits in result] == [2, 2]
    assert set(result[0][0]) == {"document", "score"}
    assert set(result[0][0]["document"]) == {"id", "contents"}
    one = post(live, {"query": "the river", "topk": 2, "return_scores": True}).json()["result"]
    assert one == result[:1]
    plain = post(live, {"query": "the river", "topk": 2}).json()["result"]
    assert plain == [[hit["document"] for hit in result[0]]]
    assert len(post(live, {"query": "the river"}).json()["result"][0]) == 3
    assert post(live, {"queries": []}).json() == {"result": []}
    assert post(live, {"query": "qqqq", "extra": 1}).json() == {"result": [[]]}
    health = requests.get(live.replace("/retrieve", "/healthz"), timeout=60)
    assert (health.status_code, health.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "bad_json"),
        (b"{", 400, "bad_json"),
        (b"\xff", 400, "bad_json"),
        ([1], 400, "bad_json"),
        ({}, 422, "bad_request"),
        ({"query": "x", "queries": ["x"]}, 422, "bad_request"),
        ({"queries": "x"}, 422, "bad_request"),
        ({"queries": [1]}, 422, "bad_request"),
        ({"query": None}, 422, "bad_request"),
        ({"queries": ["x"] * 1025}, 422, "bad_request"),
        ({"query": "x", "topk": 0}, 422, "bad_request"),
        ({"query": "x", "topk": 101}, 422, "bad_request"),
        ({"query": "x", "topk": True}, 422, "bad_request"),
        ({"query": "x", "return_scores": "yes"}, 422, "bad_request"),
        (b'{"query": "' + b"x" * 2**20 + b'"}', 413, "too_large"),
    ],
)
def test_bad_bodies_get_an_error_of_ours(live, body, status, code):
    reply = post(live, body)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (status, code)
    assert error["message"]


def test_routes_that_are_not_there(live):
    assert requests.get(live, timeout=60).json()["error"]["code"] == "method_not_allowed"
    assert requests.get(live, timeout=60).headers["Allow"]
    assert post(live + "/x", {}).json()["error"]["code"] == "not_found"


def test_hints_are_of_this_server():
    with Server(create_retriever_app(closed_world_retriever(), token="s3cret")) as server:
        url = f"{server.url}/retrieve"
        errors = [
            requests.get(url, timeout=60),
            post(url + "/x", {}),
            post(url, b"{", headers={"Authorization": "Bearer s3cret"}),
            post(url, {}, headers={"Authorization": "Bearer s3cret"}),
            post(url, {}),
        ]
    hints = [error.json()["error"]["hint"] for error in errors]
    assert all("POST /retrieve takes" in hint for hint in hints[:-1])
    assert TOKEN_VARIABLE in hints[-1]
    assert not any("openapi" in hint or "AGENTGYMS_TOKEN" in hint for hint in hints)


def test_a_token_is_asked_for_and_sent(monkeypatch):
    with Server(create_retriever_app(closed_world_retriever(), token="s3cret")) as server:
        url = f"{server.url}/retrieve"
        assert post(url, {"query": "x"}).status_code == 401
        assert requests.get(f"{server.url}/healthz", timeout=60).status_code == 200
        monkeypatch.setenv("AGENTGYMS_TOKEN", "s3cret")
        with pytest.raises(ServerUnavailable, match=f"status 401.*{TOKEN_VARIABLE}"):
            HttpRetriever(url, **HURRIED).search("river", 1)
        monkeypatch.setenv(TOKEN_VARIABLE, "s3cret")
        assert len(HttpRetriever(url, **HURRIED).search("river", 1)) == 1


# --- servers that fail ---


class Faulty:
    """A server on a socket that answers a request with what a function of its number returns."""

    def __init__(self, answer):
        app = Flask("faulty")
        self.seen, self.ports, numbers = [], [], itertools.count(1)

        @app.post("/retrieve")
        def retrieve():
            self.seen.append(request.get_json())
            self.ports.append(request.environ["REMOTE_PORT"])
            return answer(next(numbers))

        app.extensions[EXTENSION] = State(Access("", "search"), 2**20, Connected(8))
        self.server = Server(app)

    def __enter__(self):
        self.server.start()
        self.url = f"{self.server.url}/retrieve"
        return self

    def __exit__(self, *error):
        self.server.stop()


FOUND = {"result": [[{"document": {"id": "7", "contents": '"T"\ntext'}, "score": 2.5}]]}


def test_what_the_client_sends():
    with Faulty(lambda number: FOUND) as faulty:
        HttpRetriever(faulty.url).search("naïve \ud800", 4)
        HttpRetriever(faulty.url, request_form="query").search("b", 2)
    assert faulty.seen == [
        {"queries": ["naïve \ud800"], "topk": 4, "return_scores": True},
        {"query": "b", "topk": 2, "return_scores": True},
    ]


def test_failures_that_pass_are_waited_out():
    def answer(number):
        if number == 1:
            return Response("gateway", status=502)
        if number == 2:
            time.sleep(0.8)
        return Response("busy", status=429) if number == 3 else FOUND

    with Faulty(answer) as faulty:
        retriever = HttpRetriever(faulty.url, patience_s=10, timeout_s=(1, 0.4))
        (hit,) = retriever.search("x", 3)
        assert (hit.document.doc_id, hit.score) == ("7", 2.5)
        assert len(faulty.seen) == 4
        retriever.search("x", 3)
        assert len(faulty.seen) == 4, "an answered query is not asked again"
        retriever.close()


def test_failures_that_last_are_told():
    with Faulty(lambda number: Response("broken", status=500)) as faulty:
        with pytest.raises(
            ServerUnavailable, match=r"status 500, \d attempts in 0.6 s.*env_servers"
        ):
            HttpRetriever(faulty.url, **HURRIED).search("x", 3)
        assert 2 <= len(faulty.seen) <= 6
        with pytest.raises(ServerUnavailable, match="1 attempt in 0 s"):
            HttpRetriever(faulty.url, patience_s=0).search("x", 3)
    with pytest.raises(ServerUnavailable, match="refused"):
        HttpRetriever(faulty.url, **HURRIED).search("x", 3)
    with Faulty(lambda number: Response("no", status=422)) as faulty:
        with pytest.raises(ServerUnavailable, match=r"refused a search \(status 422\)"):
            HttpRetriever(faulty.url, **HURRIED).search("x", 3)
        assert len(faulty.seen) == 1, "a refusal is final"


def test_the_server_says_when_to_come_back(monkeypatch):
    def answer(number):
        return FOUND if number == 2 else Response(status=503, headers={"Retry-After": "1"})

    pauses = []
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append)
    monkeypatch.setattr("agentgyms.envs.searchqa.http_retriever.time", clock)
    with Faulty(answer) as faulty:
        assert ids(HttpRetriever(faulty.url).search("x", 3)) == ["7"]
        assert pauses == [1]
        with pytest.raises(ServerUnavailable, match="status 503, 1 attempt in 0.9 s"):
            HttpRetriever(faulty.url, patience_s=0.9).search("x", 3)
        assert pauses == [1], "it would come back too late"


def test_pauses_grow_to_ten_seconds_and_never_end_in_a_busy_loop():
    assert 0.125 <= _pause_s(None, 1) <= 0.25
    assert all(5 <= _pause_s(None, attempts) <= 10 for attempts in (7, 40, 10_000))
    for asked, pause in (("0", 0.25), ("12", 12), ("9" * 400, math.inf)):
        assert _pause_s(Reply(429, {"Retry-After": asked}, b""), 1) == pause
    for odd in ("-1", "soon", "²", "nan", ""):
        assert _pause_s(Reply(429, {"Retry-After": odd}, b""), 1) <= 0.25


# --- one retriever for many environments ---


def test_environments_of_a_process_share_one_retriever(monkeypatch):
    with Faulty(lambda number: FOUND) as faulty:
        envs = [SearchQAEnv(retriever=faulty.url) for _ in range(3)]
        envs.append(envs[0].fork())
        for env in envs:
            env.reset(seed=1)
            assert env.step("search[x]")[0] == 'Doc 1 (Title: "T") text'
            env.close()
        assert len(faulty.seen) == 1, "one asked, the others were answered from the cache"
        assert len({id(env._retriever) for env in envs}) == 1
        one = shared_retriever(faulty.url, "queries", 60.0)
        assert one is envs[0]._retriever
        assert one is not shared_retriever(faulty.url, "query", 60.0)
        assert one is not shared_retriever(faulty.url, "queries", 61.0)
        monkeypatch.setenv(TOKEN_VARIABLE, "t")
        assert one is not shared_retriever(faulty.url, "queries", 60.0)
        one.search("after the envs were closed", 3)


def test_threads_share_a_retriever(live):
    bm25, shared = closed_world_retriever(), HttpRetriever(live)
    queries = [f"the {word} {n}" for n in range(15) for word in ("river", "poet", "lake", "bridge")]
    with ThreadPoolExecutor(12) as threads:
        found = list(threads.map(lambda query: shared.search(query, 3), queries))
    assert found == [bm25.search(query, 3) for query in queries]
    (idle,) = shared._idle.values()
    assert 1 <= len(idle) <= 12
    shared.close()
    assert not idle


def test_forked_processes_do_not_share_connections(monkeypatch):
    with Faulty(lambda number: FOUND) as faulty:
        retriever = HttpRetriever(faulty.url)
        retriever.search("a", 1)
        retriever.search("b", 1)
        monkeypatch.setattr("os.getpid", lambda: -1)
        retriever.search("c", 1)
        first, second, third = faulty.ports
        assert first == second != third
        retriever.close()
        monkeypatch.undo()
        retriever.search("d", 1)
        assert faulty.ports[-1] == first, "a child that closes leaves its parent's connections"
        retriever.close()


@pytest.mark.parametrize(
    "reply",
    [
        "<html>",
        "[]",
        "{}",
        '{"result": []}',
        '{"result": [[], []]}',
        '{"result": [{"id": "1"}]}',
        '{"result": [[3]]}',
        '{"result": [[{"id": "1"}]]}',
        '{"result": [[{"document": 3, "score": 1}]]}',
        '{"result": [[{"document": {"id": [], "contents": "x"}}]]}',
        '{"result": [[{"document": {"id": "1", "contents": "x"}, "score": "high"}]]}',
        '{"result": [[{"document": {"id": "1", "contents": "x"}, "score": NaN}]]}',
    ],
)
def test_replies_that_are_none_are_told(reply):
    with (
        Faulty(lambda number: Response(reply)) as faulty,
        pytest.raises(ServerUnavailable, match="does not answer as a retriever does"),
    ):
        HttpRetriever(faulty.url, **HURRIED).search("x", 3)


def test_documents_without_scores_or_ids_and_more_than_asked_for():
    documents = [{"id": 3, "contents": "a"}, {"contents": "b"}, {"contents": "c"}]
    with Faulty(lambda number: {"result": [documents]}) as faulty:
        hits = HttpRetriever(faulty.url).search("x", 2)
        assert ids(hits) == ["3", ""]
        assert all(math.isnan(hit.score) for hit in hits)
        env = SearchQAEnv(retriever=faulty.url)
        env.reset(seed=1)
        observation, *_, info = env.step("search[x]")
        assert observation == 'Doc 1 (Title: "a")\nDoc 2 (Title: "b")\nDoc 3 (Title: "c")'
        assert len(set(json.loads(env.snapshot())["engine"]["retrieved"])) == 3
        assert info["feedback"] == "ok"
        env.close()


def test_a_lost_retriever_spares_the_episode_and_reaches_remote_clients():
    fail = [True]
    broken = Response("broken", status=503)
    with Faulty(lambda number: broken if fail[0] else FOUND) as faulty:
        arguments = {"retriever": faulty.url, "retriever_patience_s": 0.1}
        app = create_app(ENV_ID, token="", **arguments)
        transport = InProcessTransport({"http://server": app})
        for name, env in (
            ("local", SearchQAEnv(**arguments)),
            ("remote", RemoteEnv(ENV_ID, url="http://server", transport=transport)),
        ):
            fail[0] = True
            env.reset(seed=1)
            with pytest.raises(EnvUnavailable, match=r"no retriever answers.*in 0.1 s"):
                env.step(f"search[{name}]")
            fail[0] = False
            assert env.reset(seed=1)[1]["turn"] == 0
            assert env.step(f"search[{name}]")[0] == 'Doc 1 (Title: "T") text'
            env.close()


def test_a_wrong_address_is_told_at_once():
    for url in ("ftp://x", "", None):
        with pytest.raises(BadOption, match="is no address"):
            HttpRetriever(url)
