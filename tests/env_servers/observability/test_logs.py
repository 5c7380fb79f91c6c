"""The log: one record is one line, nothing in it is a secret, and what went wrong is there."""

import json
import logging
import sys

import click
import pytest
from click.testing import CliRunner
from server_faults import CORRIDOR, FAULTY, TOKEN, Api, code

from agentgyms.data import progress_bar
from env_servers import create_app
from env_servers.observability import logs, requests

EVIL = 'look\n2026-01-01T00:00:00.000Z INFO forged\r\x1b[2J\u2028\x00"\ud800'


def record(message, *args, level=logging.WARNING, error=None, **fields):
    made = logging.LogRecord("env_servers.x", level, "f.py", 1, message, args, error)
    made.created = 1_780_000_000.25
    made.__dict__.update(logs.fields(**fields))
    return made


def test_a_line_of_json_has_its_fields():
    line = json.loads(logs.JsonLines().format(record("took %d", 3, route="/x", ms=1.5, code=None)))
    assert line == {
        "time": "2026-05-28T20:26:40.250Z",
        "level": "warning",
        "logger": "env_servers.x",
        "message": "took 3",
        "route": "/x",
        "ms": 1.5,
    }


def test_a_line_of_text_has_its_fields():
    line = logs.TextLines().format(record("took %d", 3, route="/x <y>", ms=1.5))
    assert line == '2026-05-28T20:26:40.250Z WARNING env_servers.x took 3 route="/x <y>" ms=1.5'


@pytest.mark.parametrize("lines", [logs.TextLines(), logs.JsonLines()])
def test_no_message_forges_a_line(lines):
    line = lines.format(record("%s", EVIL, action=EVIL))
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert line.encode()


def test_no_exception_forges_a_line():
    try:
        raise ValueError(EVIL)
    except ValueError:
        error = sys.exc_info()
    line = logs.JsonLines().format(record("failed", error=error))
    assert len(line.splitlines()) == 1
    assert json.loads(line)["exception"].startswith("Traceback")
    first, *others = logs.TextLines().format(record("failed", error=error)).split("\n")
    assert first.endswith("failed")
    assert len(others) > 2
    assert all(line.startswith("    ") and line.isprintable() for line in others)


def test_fields_do_not_replace_what_every_line_has():
    line = json.loads(logs.JsonLines().format(record("m", level=logging.INFO, time="forged")))
    assert line["time"].startswith("2026")


@pytest.fixture
def said(caplog):
    """Give a function that returns (level, message, fields) of what the server logged since."""

    def of(level):
        caplog.clear()
        caplog.set_level(level, "env_servers")

        def seen():
            return [(r.levelname, r.getMessage(), r.fields) for r in caplog.records]

        return seen

    return of


def test_a_request_is_logged_at_debug_alone_and_without_secrets(said, caplog):
    api = Api(create_app(CORRIDOR, token=TOKEN), Authorization=f"Bearer {TOKEN}")
    path = api.begun()
    seen = said(logging.INFO)
    api.step(path, "a secret thought", 1)
    assert seen() == []
    seen = said(logging.DEBUG)
    api.step(path, "a secret thought", 2)
    session_id = path.rpartition("/")[2]
    ((level, message, fields),) = seen()
    assert (level, message) == ("DEBUG", "request")
    assert fields.pop("ms") > 0
    assert fields == {
        "method": "POST",
        "route": "/v1/sessions/<session_id>/step",
        "status": 200,
        "session": logs.digest(session_id),
    }
    api.call("DELETE", path)
    text = "".join(logs.JsonLines().format(r) + logs.TextLines().format(r) for r in caplog.records)
    assert not any(secret in text for secret in (session_id, TOKEN, "secret thought"))


def test_sessions_are_told_at_debug(said, clock):
    app = create_app(CORRIDOR, ttl_s=5, clock=clock)
    api = Api(app)
    seen = said(logging.DEBUG)
    name = logs.digest(api.open().rpartition("/")[2])
    clock.now += 6
    app.extensions["agentgyms"].sessions.sweep()
    told = [(m, f) for _, m, f in seen() if m.startswith("session")]
    assert told == [
        ("session opened", {"session": name}),
        ("session closed", {"session": name, "reason": "expired"}),
    ]


def test_refusals_failures_and_slow_requests_are_always_told(said, monkeypatch):
    api = Api(create_app(FAULTY))
    seen = said(logging.INFO)
    assert code(api.get("/v1/sessions/none")) == (404, "unknown_session")
    ((level, message, fields),) = seen()
    assert (level, message) == ("INFO", "request refused")
    assert (fields["status"], fields["code"]) == (404, "unknown_session")
    path = api.begun()
    seen = said(logging.INFO)
    status, body = api.step(path, "crash", 1)
    assert status == 500
    (first, _, incident), (second, message, fields) = seen()
    assert (first, second, message) == ("ERROR", "WARNING", "request failed")
    assert incident["incident"] in body["error"]["message"]
    assert fields["code"] == "internal"
    monkeypatch.setattr(requests, "SLOW_S", 0.0)
    seen = said(logging.INFO)
    api.get("/healthz")
    assert [(level, message) for level, message, _ in seen()] == [("INFO", "slow request")]


def test_the_options_choose_form_and_level(monkeypatch):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    before = {name: logging.getLogger(name).level for name in ("agentgyms", "env_servers")}

    @click.command
    @logs.options
    def program():
        logs.set_up()
        logging.getLogger("env_servers.x").debug("ours")
        logging.getLogger("urllib3").debug("not ours")
        with progress_bar.working("rooms") as bar:
            bar("rooms, more")

    monkeypatch.setattr(progress_bar, "EVERY_S", 0.0)
    monkeypatch.setattr(progress_bar.ProgressBar, "_next_line", None)
    monkeypatch.setattr(progress_bar.ProgressBar, "say", None)
    try:
        environment = {"AGENTGYMS_LOG_FORMAT": "json"}
        result = CliRunner().invoke(program, ["--log-level", "debug"], env=environment)
        assert result.exit_code == 0, result.output
        line, *bars = map(json.loads, result.stderr.splitlines())
        assert line["message"] == "ours"
        assert any(one["message"].startswith("rooms, more: 00:0") for one in bars)
        refused = CliRunner().invoke(program, env={"AGENTGYMS_LOG_FORMAT": "xml"})
        assert refused.exit_code == 2
    finally:
        logging.captureWarnings(capture=False)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
