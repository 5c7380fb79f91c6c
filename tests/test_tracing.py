"""Spans of OpenTelemetry: real ones of an episode over HTTP, and nothing while they are off."""

import json
import math
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from agentgyms.core import tracing
from agentgyms.core.errors import BadOption
from agentgyms.core.imports import install
from env_servers.__main__ import main as serve
from harness.cli.main import main as harness

ROOT = Path(__file__).parents[1]
PATH = os.pathsep.join([str(ROOT), str(ROOT / "tests")])


def by_peer(*words, **variables):
    """Run the Python that has OpenTelemetry's SDK."""
    return subprocess.run(
        [os.environ["AGENTGYMS_ADAPTERS_PYTHON"], *words],
        env={**os.environ, "PYTHONPATH": PATH, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def found():
    done = by_peer(ROOT / "tests/traced_episodes.py")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def named(spans, name):
    return [span for span in spans if span["name"].startswith(name)]


@pytest.mark.adapters
def test_an_episode_has_turns_with_an_answer_and_a_step_each(found):
    spans = found["on"]
    episodes, turns = named(spans, "invoke_agent"), named(spans, "turn")
    assert len(episodes) == 2
    for episode in episodes:
        own = [turn for turn in turns if turn["parent"] == episode["id"]]
        assert [turn["attributes"] for turn in own] == [{"agentgyms.turn": n} for n in (1, 2)]
        for turn in own:
            children = [span for span in spans if span["parent"] == turn["id"]]
            assert [span["name"] for span in children] == ["chat scripted", "execute_tool step"]
            (request,) = [span for span in spans if span["parent"] == children[1]["id"]]
            assert request["name"] == "POST /v1/sessions/<session_id>/step"
            assert {s["trace"] for s in (turn, request, *children)} == {episode["trace"]}
        assert (episode["kind"], episode["parent"]) == ("INTERNAL", None)
        wanted = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "Agent",
            "agentgyms.env_id": "agentgyms/Corridor-v0",
            "agentgyms.task_id": "train/free-000",
            "agentgyms.turns": 2,
            "agentgyms.success": False,
            "agentgyms.stop_reason": "turn_limit",
        }
        assert wanted.items() <= episode["attributes"].items()
    names = {episode["attributes"]["gen_ai.conversation.id"] for episode in episodes}
    assert names == {"train/free-000/7/0/0", "train/free-000/7/0/1"}


@pytest.mark.adapters
def test_answers_tell_their_model_and_tokens(found):
    first, *_ = named(found["on"], "chat")
    wanted = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "scripted",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 32,
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.response.finish_reasons": ["stop"],
        "server.address": "127.0.0.1",
    }
    assert wanted.items() <= first["attributes"].items()
    assert (first["kind"], len(named(found["on"], "chat"))) == ("CLIENT", 4)  # one was sent twice
    local = named(found["local"], "chat")
    assert [span["name"] for span in local] == ["chat policy"] * 2
    assert local[0]["attributes"]["gen_ai.provider.name"] == "transformers"
    assert local[0]["kind"] == "INTERNAL"


@pytest.mark.adapters
def test_requests_have_routes_and_no_names_of_sessions(found):
    requests = [span for span in found["on"] if span["kind"] == "SERVER"]
    assert {span["name"] for span in requests} >= {"GET /v1/info", "POST /v1/sessions"}
    allowed = {"http.request.method", "http.route", "http.response.status_code"}
    assert all(span["attributes"].keys() == allowed for span in requests)


@pytest.mark.adapters
def test_errors_are_marked_and_nothing_is_said_while_off(found):
    assert found["off"] == []
    failed = {span["name"]: span for span in found["failed"] if span["status"] == "ERROR"}
    assert set(failed) == {"chat scripted", "turn", "invoke_agent Agent"}
    assert failed["chat scripted"]["attributes"]["error.type"] == "BadOption"


SPAN = """
from agentgyms.core import tracing
tracing.set_up("mine")
with tracing.span("outer", {"agentgyms.turn": 1, "agentgyms.score": None}):
    assert tracing.headers()["traceparent"]
"""


@pytest.mark.adapters
def test_programs_send_spans_to_the_exporter_that_the_variable_names():
    done = by_peer("-c", SPAN, AGENTGYMS_TRACES="console")
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert (told["name"], told["attributes"]) == ("outer", {"agentgyms.turn": 1})
    assert told["resource"]["attributes"]["service.name"] == "mine"
    done = by_peer("-c", SPAN, AGENTGYMS_TRACES="nowhere")
    assert "names no exporter that is installed: expected one of console" in done.stderr


class Collector(BaseHTTPRequestHandler):
    """Keeps what exporters post."""

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posted.append((self.path, self.headers["Content-Encoding"], content))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.mark.adapters
def test_a_collector_gets_spans_in_opentelemetrys_own_protocol():
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        server.posted = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"http://127.0.0.1:{server.server_port}"
        exporter = {"AGENTGYMS_TRACES": "otlp_proto_http", "OTEL_EXPORTER_OTLP_ENDPOINT": where}
        done = by_peer("-c", SPAN, **exporter)
        server.shutdown()
    assert done.returncode == 0, done.stderr[-3000:]
    ((path, encoding, content),) = server.posted
    assert (path, encoding) == ("/v1/traces", None)
    assert all(words in content for words in (b"outer", b"mine", b"agentgyms.turn"))


def test_attributes_that_are_no_finite_number_are_left_out():
    kept = {}
    span = tracing.Span(SimpleNamespace(set_attributes=kept.update))
    span.set({"reward": math.nan, "score": -math.inf, "seat": None, "turn": 2, "name": "nan"})
    assert kept == {"turn": 2, "name": "nan"}


def test_without_the_variable_nothing_is_imported():
    code = (
        "import sys, agentgyms\nfrom agentgyms.core import tracing\ntracing.set_up('x')\n"
        "with tracing.span('a', {}) as span: span.set({'b': 1}); span.fail('c')\n"
        "assert tracing.span('a', {}) is not None and tracing.headers() == {}\n"
        "tracing.current().answered(1, 1, finished=True)\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    kept = {k: v for k, v in os.environ.items() if k != tracing.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", code], env=kept, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_programs_ask_for_the_package_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)  # as if it were not installed
    with pytest.raises(BadOption, match="opentelemetry is not installed"):
        tracing.enable()
    monkeypatch.setenv(tracing.VARIABLE, "console")
    done = CliRunner().invoke(harness, ["methods"])
    assert f"{install('otel')}, or unset AGENTGYMS_TRACES" in str(done.exception)
    done = CliRunner().invoke(serve, ["agentgyms/Corridor-v0"])
    assert done.exit_code == 2
    assert install("otel") in done.output
