"""Retrievers: BM25 in memory, and the real server on a socket, faults included."""

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time

import gymnasium as gym
import pytest
import requests
from click.testing import CliRunner
from flask import Flask, Response, request

import agentgyms
from agentgyms.errors import BadOption, DataCorrupt, EnvUnavailable, ServerUnavailable
from agentgyms.remote import InProcessTransport, Patience, RemoteEnv
from agentgyms.searchqa.corpus import Document
from agentgyms.searchqa.env import SearchQAEnv
from agentgyms.searchqa.http_retriever import TOKEN_VARIABLE, HttpRetriever
from agentgyms.searchqa.retriever import BM25Retriever
from agentgyms.searchqa.sources import closed_world_retriever
from env_servers import create_app
from env_servers.retriever import main
from env_servers.retriever_app import SearchService, create_retriever_app
from env_servers.service import EXTENSION
from env_servers.serving import Server

ENV_ID = "agentgyms/SearchQA-v0"
HURRIED = Patience(connect_s=1, read_s=5, attempts=3, pause_s=0.01)


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


# --- in memory ---


def test_bm25_ranks_by_score_then_by_place_in_the_corpus():
    texts = ["red fox", "blue fox", "red red dog", "blue fox", "green cat", "red fox"]
    bm25 = BM25Retriever([Document(str(i), text) for i, text in enumerate(texts)])
    assert ids(bm25.search("fox", 10)) == ["0", "1", "3", "5"]
    assert ids(bm25.search("Fox!", 2)) == ["0", "1"]
    assert ids(bm25.search("red FOX", 10))[:2] == ["0", "5"]
    assert ids(bm25.search("cat unknown", 3)) == ["4"]
    assert ids(bm25.search("unknown", 3)) == ids(bm25.search("?!", 3)) == []
    scores = [hit.score for hit in bm25.search("red fox blue", 10)]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    assert len(bm25) == 6


def test_documents_without_a_word_are_never_found():
    bm25 = BM25Retriever([Document("1", "?!"), Document("2", "ok")])
    assert ids(bm25.search("ok ?!", 3)) == ["2"]
    with pytest.raises(DataCorrupt, match="no word to search for in 1 documents"):
        BM25Retriever([Document("1", "?!")])


def test_bm25_scores_by_hand():
    """Lucene's: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), tf / (tf + k1 (1 - b + b len / mean))."""
    texts = ["apple banana", "apple apple cherry date", "egg fig"]
    bm25 = BM25Retriever([Document(str(i), text) for i, text in enumerate(texts)])
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    mean = 8 / 3
    expected = [idf * tf / (tf + 0.9 * (0.6 + 0.4 * n / mean)) for tf, n in ((2, 4), (1, 2))]
    hits = bm25.search("apple", 3)
    assert ids(hits) == ["1", "0"]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-4)


def test_bm25_answers_again_from_a_cache():
    bm25 = closed_world_retriever()
    first = bm25.search("The bridge of something", 3)
    assert bm25.search("the  BRIDGE, of something", 3) is first
    assert len(bm25.search("the bridge of something", 2)) == 2


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
    health = requests.get(live.replace("/retrieve", "/healthz"), timeout=5)
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
    assert requests.get(live, timeout=5).json()["error"]["code"] == "method_not_allowed"
    assert post(live + "/x", {}).json()["error"]["code"] == "not_found"


def test_a_token_is_asked_for_and_sent(monkeypatch):
    with Server(create_retriever_app(closed_world_retriever(), token="s3cret")) as server:
        url = f"{server.url}/retrieve"
        assert post(url, {"query": "x"}).status_code == 401
        assert requests.get(f"{server.url}/healthz", timeout=5).status_code == 200
        monkeypatch.setenv("AGENTGYMS_TOKEN", "s3cret")
        with pytest.raises(ServerUnavailable, match=f"status 401.*{TOKEN_VARIABLE}"):
            HttpRetriever(url, patience=HURRIED).search("river", 1)
        monkeypatch.setenv(TOKEN_VARIABLE, "s3cret")
        assert len(HttpRetriever(url, patience=HURRIED).search("river", 1)) == 1


# --- servers that fail ---


class Faulty:
    """A server on a socket that answers a request with what a function of its number returns."""

    def __init__(self, answer):
        app = Flask("faulty")
        self.seen, numbers = [], itertools.count(1)

        @app.post("/retrieve")
        def retrieve():
            self.seen.append(request.get_json())
            return answer(next(numbers))

        app.extensions[EXTENSION] = SearchService(2**20, 8)
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

    patience = Patience(connect_s=1, read_s=0.4, attempts=5, pause_s=0.01)
    with Faulty(answer) as faulty:
        retriever = HttpRetriever(faulty.url, patience=patience)
        (hit,) = retriever.search("x", 3)
        assert (hit.document.doc_id, hit.score) == ("7", 2.5)
        assert len(faulty.seen) == 4
        retriever.search("x", 3)
        assert len(faulty.seen) == 4, "an answered query is not asked again"
        retriever.close()


def test_failures_that_last_are_told():
    with Faulty(lambda number: Response("broken", status=500)) as faulty:
        with pytest.raises(ServerUnavailable, match=r"status 500, 3 attempts.*env_servers.retr"):
            HttpRetriever(faulty.url, patience=HURRIED).search("x", 3)
        assert len(faulty.seen) == 3
    with pytest.raises(ServerUnavailable, match="refused"):
        HttpRetriever(faulty.url, patience=HURRIED).search("x", 3)
    with Faulty(lambda number: Response("no", status=422)) as faulty:
        with pytest.raises(ServerUnavailable, match=r"refused a search \(status 422\)"):
            HttpRetriever(faulty.url, patience=HURRIED).search("x", 3)
        assert len(faulty.seen) == 1, "a refusal is final"


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
        HttpRetriever(faulty.url, patience=HURRIED).search("x", 3)


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


def test_a_lost_retriever_spares_the_episode_and_reaches_remote_clients(monkeypatch):
    monkeypatch.setattr("agentgyms.searchqa.http_retriever._PATIENCE", HURRIED)
    fail = [True]
    broken = Response("broken", status=503)
    with Faulty(lambda number: broken if fail[0] else FOUND) as faulty:
        app = create_app(ENV_ID, token="", retriever=faulty.url)
        transport = InProcessTransport({"http://server": app})
        for env in (
            SearchQAEnv(retriever=faulty.url),
            RemoteEnv(ENV_ID, url="http://server", transport=transport),
        ):
            fail[0] = True
            env.reset(seed=1)
            with pytest.raises(EnvUnavailable, match="no retriever answers"):
                env.step("search[x]")
            fail[0] = False
            assert env.reset(seed=1)[1]["turn"] == 0
            assert env.step("search[x]")[0] == 'Doc 1 (Title: "T") text'
            env.close()


# --- the program ---


def start(*arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AGENTGYMS_")}
    return subprocess.Popen(
        [sys.executable, "-m", "env_servers.retriever", "--port", "0", *arguments],
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_program_serves_a_corpus_and_sigterm_ends_it(tmp_path, monkeypatch):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"id": "a", "contents": "\\"Heron\\"\\na bird"}\n')
    process = start("--corpus", str(corpus), **{TOKEN_VARIABLE: "tok"})
    try:
        said = process.stdout.readline()
        assert said.startswith("1 documents at http://127.0.0.1:")
        monkeypatch.setenv(TOKEN_VARIABLE, "tok")
        (hit,) = HttpRetriever(said.split()[-1]).search("bird", 3)
        assert hit.document == Document("a", '"Heron"\na bird')
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0"], "--insecure"),
        (["--host", "0.0.0.0", "--token", " "], "--insecure"),
        (["--corpus", "/no/such.jsonl"], "no file"),
        (["--token", "a\nb"], "cannot be sent"),
    ],
)
def test_the_program_refuses_to_start(arguments, says):
    result = CliRunner().invoke(main, ["--port", "0", *arguments])
    assert (result.exit_code, type(result.exception)) == (2, SystemExit)
    assert says in result.output


def test_a_wrong_address_is_told_at_once():
    for url in ("ftp://x", "", None):
        with pytest.raises(BadOption, match="is no address"):
            HttpRetriever(url)
