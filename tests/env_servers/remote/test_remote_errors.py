"""Errors arrive as the class, and with the text, that a local environment raises."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, DependencyNotInstalled, ResetNeeded
from server_faults import CORRIDOR, FAULTY, HURRIED, Api, FaultyEnv, code
from snapshot_damage import DAMAGES, damaged

from agentgyms.core import errors
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.remote import InProcessTransport, Patience, RemoteEnv, RemoteVectorEnv, Reply
from agentgyms.remote.protocol import error_codes
from env_servers import Server, create_app


def _raised(call: Callable[[], Any]) -> tuple[type[BaseException], str]:
    with pytest.raises(Exception) as caught:
        call()
    return caught.type, str(caught.value)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"split": "nowhere"},
        {"split": 3},
        {"max_turns": 0},
        {"max_turns": "many"},
        {"max_turns": True},
        {"oracle": 1},
        {"oracle": "no"},
        {"render_mode": "human"},
        {"length": 0},
        {"length": "x"},
        {"broken": "making"},
    ],
    ids=str,
)
def test_wrong_arguments(remote, kwargs):
    app = create_app(FAULTY)
    assert _raised(lambda: remote(app, **kwargs)) == _raised(lambda: FaultyEnv(**kwargs))
    assert len(app.extensions["agentgyms"].sessions) == 0


def test_an_argument_that_there_is_not(remote):
    """The server names its environment; Python's own error names a class."""
    app = create_app(FAULTY)
    kind, message = _raised(lambda: remote(app, no_such_argument=1))
    assert (kind, message) == (
        TypeError,
        "tests/Faulty-v0 takes no argument 'no_such_argument': leave it out",
    )
    assert _raised(lambda: FaultyEnv(no_such_argument=1))[0] is kind
    assert len(app.extensions["agentgyms"].sessions) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"task_id": "no such task"},
        {"task_id": "train/free-01"},
        {"task_id": 7},
        {"task_id": ["train/free-000"]},
        {"task_id": object},
        {"other": 1},
        {1: 2, "x": 3},
        ["task_id"],
    ],
    ids=str,
)
def test_wrong_options(remote, options):
    local, there = CorridorEnv(), remote(create_app(CORRIDOR))
    for env in (local, there):
        env.reset(seed=0)
    expected = _raised(lambda: local.reset(options=options))
    assert _raised(lambda: there.reset(options=options)) == expected
    for method in ("snapshot", "render"):
        assert _outcome(there, method) == _outcome(local, method)
    assert there.step("left") == local.step("left"), "the running episode goes on"
    assert there.reset(seed=4) == local.reset(seed=4)


def _outcome(env: Any, method: str) -> Any:
    try:
        return getattr(env, method)()
    except Exception as e:
        return type(e), str(e)


@pytest.mark.parametrize("seed", [-1, "1", 1.5])
def test_wrong_seeds(remote, seed):
    local, there = CorridorEnv(), remote(create_app(CORRIDOR))
    assert _raised(lambda: there.reset(seed=seed)) == _raised(lambda: local.reset(seed=seed))


def test_steps_at_the_wrong_time_or_of_the_wrong_kind(remote):
    local, there = CorridorEnv(max_turns=1), remote(create_app(CORRIDOR), max_turns=1)
    assert _raised(lambda: there.step("left")) == _raised(lambda: local.step("left"))
    assert _raised(there.snapshot) == _raised(local.snapshot)
    assert _raised(lambda: there.episode_source) == _raised(lambda: local.episode_source)
    for env in (local, there):
        env.reset(seed=0)
    for action in (None, 3, b"left", ["left"]):
        assert _raised(partial(there.step, action)) == _raised(partial(local.step, action))
    for env in (local, there):
        env.step("left")
    assert _raised(lambda: there.step("left")) == _raised(lambda: local.step("left"))


def test_a_step_after_the_end_asks_nobody():
    apps = {"http://server": create_app(CORRIDOR)}
    env = RemoteEnv(CORRIDOR, url="http://server", transport=InProcessTransport(apps), max_turns=1)
    env.reset(seed=0)
    env.step("left")
    apps.clear()
    with pytest.raises(ResetNeeded):
        env.step("left")


def test_wrong_snapshots(remote):
    local, there = CorridorEnv(), remote(create_app(CORRIDOR))
    for env in (local, there):
        env.reset(seed=0)
    other = CorridorEnv(split="sample")
    other.reset(seed=0)
    wrong = (b"", b"{}", b"\xff", "text", other.snapshot())
    for snapshot in wrong:
        expected = _raised(partial(local.restore, snapshot))
        assert _raised(partial(there.restore, snapshot)) == expected
    assert there.step("right")[4]["turn"] == local.step("right")[4]["turn"] == 1
    damaged = local.snapshot().replace(b'"engine": [', b'"engine": ["x", ')
    assert _raised(lambda: there.restore(damaged)) == _raised(lambda: local.restore(damaged))
    assert _raised(lambda: there.step("right")) == _raised(lambda: local.step("right"))


@pytest.mark.parametrize(("path", "value"), DAMAGES, ids=str)
def test_damaged_snapshots_are_refused_and_spare_the_episode(remote, path, value):
    app = create_app(CORRIDOR, max_sessions=1)
    local, there = CorridorEnv(), remote(app)
    for env in (local, there):
        env.reset(seed=1)
        env.step("right")
    bad = damaged(local.snapshot(), path, value)
    assert _raised(lambda: there.restore(bad)) == _raised(lambda: local.restore(bad))
    session_id = there.lease.session_id
    reply = Api(app).post(f"/v1/sessions/{session_id}/restore", {"snapshot": bad.decode()})
    assert code(reply) == (422, "bad_snapshot")
    assert tuple(there.step("right")) == local.step("right")
    assert there.lease.session_id == session_id


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_snapshot_in_other_letters_than_ascii(remote, encoding):
    local, there = CorridorEnv(), remote(create_app(CORRIDOR))
    for env in (local, there):
        env.reset(seed=1)
        env.step("tür öffnen")
    snapshot = json.dumps(json.loads(local.snapshot()), ensure_ascii=False).encode(encoding)
    assert there.restore(snapshot) == local.restore(snapshot)
    assert there.snapshot() == local.snapshot()


class _Garbled(InProcessTransport):
    """Spoils a field of the replies to one operation."""

    def __init__(self, app: Any, operation: str, *path: str) -> None:
        super().__init__({"http://server": app})
        self.operation, self.path = operation, path

    def send(self, method: str, url: str, **rest: Any) -> Reply:
        reply = super().send(method, url, **rest)
        if method != "POST" or not url.endswith(self.operation):
            return reply
        value = json.loads(reply.body)
        for place in value.get("results", [value]):
            for key in self.path[:-1]:
                place = place[key]
            place[self.path[-1]] = {"unknown": 1}
        return reply._replace(body=json.dumps(value).encode())


@pytest.mark.parametrize("operation", ["reset", "step", "restore"])
@pytest.mark.parametrize("field", ["turn", "progress", "admissible_actions"])
def test_an_unreadable_reply_is_no_lost_session(operation, field):
    app = create_app(CORRIDOR, max_sessions=2)
    transport = _Garbled(app, f"/{operation}", "info", field)
    env = RemoteEnv(CORRIDOR, url="http://server", transport=transport, patience=HURRIED)
    transport.operation = "nothing"
    env.reset(seed=0)
    snapshot, session_id = env.snapshot(), env.lease.session_id
    transport.operation = f"/{operation}"
    call = {
        "reset": lambda: env.reset(seed=1),
        "step": lambda: env.step("right"),
        "restore": lambda: env.restore(snapshot),
    }[operation]
    for _ in range(3):
        with pytest.raises(errors.ServerUnavailable, match="does not answer as a server of"):
            call()
    assert list(app.extensions["agentgyms"].sessions._open) == [session_id]
    transport.operation = "nothing"
    assert env.step("right")[4]["turn"] == 1


@pytest.mark.parametrize("path", [("environment", "oracle"), ("environment", "action_space")])
@pytest.mark.parametrize("made", [RemoteEnv, partial(RemoteVectorEnv, num_envs=3)])
def test_a_session_that_cannot_be_read_is_closed(made, path):
    app = create_app(CORRIDOR)
    transport = _Garbled(app, "create" if made is not RemoteEnv else "/sessions", *path)
    with pytest.raises(errors.ServerUnavailable, match="does not answer as a server of"):
        made(CORRIDOR, url="http://server", transport=transport, patience=HURRIED)
    assert len(app.extensions["agentgyms"].sessions) == 0


def test_a_session_that_is_given_up_is_closed(remote):
    app = create_app(CORRIDOR)
    env = remote(app)
    env.reset(seed=0)
    env.lease.episode = 7  # its next step is refused, and the session taken for lost
    assert env.step("right")[4]["turn"] == 1
    assert len(app.extensions["agentgyms"].sessions) == 1


def test_an_argument_that_json_does_not_hold(remote):
    for value in (object(), float("nan"), np.zeros(2), {1, 2}):
        with pytest.raises(errors.BadOption, match="folder="):
            remote(create_app(FAULTY), folder=value)


def test_the_private_arguments_of_the_server(remote):
    with pytest.raises(errors.BadOption, match="'folder' is the server's to set"):
        remote(create_app(FAULTY), folder="/etc")


def test_solutions_stay_on_the_server(remote):
    env = remote(create_app(CORRIDOR))
    env.reset(seed=0)
    with pytest.raises(errors.BadOption, match="oracle=True"):
        env.expert_actions()


def test_a_wrong_token(remote):
    app = create_app(CORRIDOR, token="right")
    for token in (None, "", "wrong"):
        with pytest.raises(errors.Unauthorized, match="AGENTGYMS_TOKEN") as caught:
            remote(app, token=token)
        assert isinstance(caught.value, PermissionError)
    remote(app, token="right").close()


def test_white_space_around_a_token_does_not_count(monkeypatch):
    with Server(create_app(CORRIDOR, token=" s3cret-tøken\n")) as server:
        RemoteEnv(CORRIDOR, url=server.url, token="s3cret-tøken").close()
        monkeypatch.setenv("AGENTGYMS_TOKEN", "s3cret-tøken\r\n")
        RemoteEnv(CORRIDOR, url=server.url).close()
        with pytest.raises(errors.Unauthorized):
            RemoteEnv(CORRIDOR, url=server.url, token="s3cret")


@pytest.mark.parametrize("token", ["s3cret\nx: y", "s3cret\x00", "s3cret-中", "s3cret\x85x", " \n"])
def test_a_token_that_cannot_be_sent(monkeypatch, token):
    makers = [
        lambda: create_app(CORRIDOR, token=token),
        lambda: RemoteEnv(CORRIDOR, url="http://127.0.0.1:9", token=token),
    ]
    for make in makers:
        with pytest.raises(errors.BadOption, match=r"token (cannot be sent|is blank)") as caught:
            make()
        assert "s3cret" not in str(caught.value)
    with pytest.raises(errors.BadOption, match="a token is a string, got bytes"):
        RemoteEnv(CORRIDOR, url="http://127.0.0.1:9", token=b"s3cret")


def test_another_environment_than_expected():
    transport = InProcessTransport({"http://server": create_app(CORRIDOR)})
    with pytest.raises(errors.BadOption, match=f"serves {CORRIDOR}, not agentgyms/ALFWorld-v0"):
        RemoteEnv("agentgyms/ALFWorld-v0", url="http://server", transport=transport)


@pytest.mark.parametrize("url", ["", [], "localhost:8000", ["ftp://x"], [None]])
def test_what_is_no_address(url):
    with pytest.raises(errors.BadOption, match="url"):
        RemoteEnv(CORRIDOR, url=url)


def test_patience_is_numbers_by_their_names_too():
    transport = InProcessTransport({"http://server": create_app(CORRIDOR)})
    given = {"lost_s": 300, "attempts": 2}
    with gym.make(CORRIDOR, url="http://server", transport=transport, patience=given) as env:
        env.reset(seed=0)
        assert env.unwrapped._connection.patience == Patience(lost_s=300, attempts=2)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"lost": 1}, "expected connect_s, .*; did you mean lost_s"),
        ({"lost_s": "9"}, "a number of seconds from 0 on, got '9'"),
        ({"lost_s": -1}, "from 0 on, got -1"),
        ({"read_s": float("inf")}, "got inf"),
        ({"read_s": True}, "got True"),
        ({"attempts": 0}, "a whole number from 1 on, got 0"),
        (60, "numbers by names, got 60"),
        ({"attempts": 1.5}, "a whole number from 1 on, got 1.5"),
    ],
)
def test_what_is_no_patience(given, why):
    with pytest.raises(errors.BadOption, match=f"patience.*{why}"):
        RemoteEnv(CORRIDOR, url="http://127.0.0.1:9", patience=given)


def test_nobody_answers():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    started = time.monotonic()
    with pytest.raises(errors.ServerUnavailable) as caught:
        gym.make(CORRIDOR, url=f"http://127.0.0.1:{port}")
    assert time.monotonic() - started < 5
    assert f"http://127.0.0.1:{port}" in str(caught.value)
    assert f"python -m env_servers {CORRIDOR} --port {port}" in str(caught.value)
    assert "refused" in str(caught.value)
    assert isinstance(caught.value, ConnectionError)


def test_a_password_in_an_address_is_sent_and_not_shown():
    apps = {"http://me:s3cret@server": create_app(CORRIDOR)}
    kwargs = {"transport": InProcessTransport(apps), "patience": HURRIED}
    env = RemoteEnv(CORRIDOR, url=list(apps), **kwargs).fork()
    env.reset(seed=0)
    apps.clear()
    with pytest.raises(errors.ServerUnavailable, match="http://server ") as caught:
        env.step("right")
    assert "s3cret" not in str(caught.value)


def test_an_address_given_twice_is_one():
    transport = InProcessTransport({"http://server": create_app(CORRIDOR)})
    env = RemoteEnv(CORRIDOR, url=["http://server", "http://server"], transport=transport)
    env.reset(seed=0)
    env.fork().step("left")


def test_none_of_several_answers():
    transport = InProcessTransport({})
    with pytest.raises(errors.ServerUnavailable) as caught:
        RemoteEnv(CORRIDOR, url=["http://one", "http://two"], transport=transport, patience=HURRIED)
    assert "http://one" in str(caught.value)
    assert "http://two" in str(caught.value)


def test_a_full_server(remote):
    app = create_app(CORRIDOR, max_sessions=1)
    first = remote(app)
    with pytest.raises(errors.ServerFull, match=r"http://server: .* 1 sessions"):
        remote(app)
    first.close()
    remote(app).close()


def test_waiting_for_a_place():
    app = create_app(CORRIDOR, max_sessions=1)
    transport = InProcessTransport({"http://server": app})
    make = lambda: RemoteEnv(
        CORRIDOR, url="http://server", transport=transport, patience=Patience(full_s=20)
    )
    first = make()
    app.extensions["agentgyms"].sessions.ttl_s = 1  # so that Retry-After is one second
    threading.Timer(0.3, first.close).start()
    started = time.monotonic()
    make().close()
    assert time.monotonic() - started >= 1, "Retry-After was not honoured"


def test_a_fork_waits_for_a_place_too():
    app = create_app(CORRIDOR, max_sessions=2)
    app.extensions["agentgyms"].sessions.ttl_s = 1
    transport = InProcessTransport({"http://server": app})
    make = lambda full_s: RemoteEnv(
        CORRIDOR, url="http://server", transport=transport, patience=Patience(full_s=full_s)
    )
    env, other = make(20), make(0)
    with pytest.raises(errors.ServerFull):
        other.fork()
    threading.Timer(0.1, other.close).start()
    env.fork().reset(seed=0)


def test_a_failed_engine_is_no_verdict_on_the_agent(remote):
    env = remote(create_app(FAULTY))
    env.reset(seed=0)
    with pytest.raises(errors.EnvUnavailable, match="does not answer"):
        env.step("lose engine")
    assert env.reset(seed=0)[1]["turn"] == 0, "the next episode gets a new session"
    with pytest.raises(errors.EnvUnavailable, match="logged on the server"):
        env.step("crash")
    env.reset(seed=0)
    with pytest.raises(errors.WorkerLost):
        env.step("lose worker")
    assert FaultyEnv.open_ones <= 2


def test_an_action_longer_than_a_message_may_be(remote):
    env = remote(create_app(CORRIDOR, max_body_bytes=5_000))
    env.reset(seed=0)
    with pytest.raises(errors.BadRequest, match="--max-body"):
        env.step("x" * 20_000)
    assert env.step("x" * 4_000)[4]["turn"] == 1


@pytest.mark.parametrize("action", ["x" * 2**21, "right" + " " * 2**21, " " * 2**21 + "right"])
def test_endless_actions(remote, action):
    app = create_app(CORRIDOR)
    transport = InProcessTransport({"http://server": app})
    vector = RemoteVectorEnv(CORRIDOR, 1, url="http://server", transport=transport)
    local, there = CorridorEnv(), remote(app)
    for env in (local, there, vector):
        env.reset(seed=0)
    assert tuple(there.step(action)) == local.step(action)
    vector.step([action])
    assert there.snapshot() == local.snapshot()
    assert json.loads(vector.envs[0].snapshot())["actions"] == local._episode.actions


def test_a_closed_client(remote):
    env = remote(create_app(CORRIDOR))
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (lambda: env.step("left"), env.fork, env.snapshot, env.reset):
        with pytest.raises(ClosedEnvironmentError):
            call()


class _Answers(BaseHTTPRequestHandler):
    """Answers everything with what the test has put into `reply`."""

    reply: tuple[int, dict[str, str], bytes] = (200, {}, b"")

    def do_GET(self) -> None:
        status, headers, body = self.reply
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    """The address of a web server that is none of ours."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "reply",
    [
        (200, {}, b"<html>hello</html>"),
        (200, {}, b'{"env_id": "agentgyms/Corridor-v0"}'),
        (200, {"Agentgyms-Protocol": "1"}, b'{"env_id": "agentgyms/Corridor-v0"}'),
        (
            200,
            {"Agentgyms-Protocol": "1"},
            b'{"protocol": "1", "agentgyms": "0", "env_id": "agentgyms/Corridor-v0", '
            b'"environment": {}, "limits": {"max_body_bytes": "many"}}',
        ),
        (200, {"Agentgyms-Protocol": "2"}, b"{}"),
        (200, {"Agentgyms-Protocol": "1"}, b"[1]"),
        (204, {}, b""),
        (302, {"Location": "/elsewhere"}, b""),
        (404, {}, b"not here"),
        (404, {}, b'{"error": "not here"}'),
        (500, {}, b"oops"),
        (502, {}, b"bad gateway"),
    ],
    ids=str,
)
def test_a_server_that_is_none_of_ours(stranger, reply):
    _Answers.reply = reply
    with pytest.raises(errors.ServerUnavailable, match=stranger):
        RemoteEnv(CORRIDOR, url=stranger, patience=HURRIED)


def test_a_server_of_another_protocol(stranger):
    body = error_codes.body("protocol_mismatch", "this server speaks protocol 2")
    _Answers.reply = (400, {"Agentgyms-Protocol": "2"}, json.dumps(body).encode())
    with pytest.raises(errors.BadRequest, match="speaks protocol 2"):
        RemoteEnv(CORRIDOR, url=stranger, patience=HURRIED)


ESCAPES = "\x1b]0;mine\x07\x1b[2J\x9b1A\rhidden\x7f"


@pytest.mark.parametrize("code", ["bad_request", "server_full", "unauthorized", "new"])
@pytest.mark.parametrize("field", ["message", "hint"])
def test_a_server_cannot_write_to_the_terminal(stranger, code, field):
    body = error_codes.body("bad_request", "wrong")
    body["error"] |= {"code": code, field: f"one\ntwo\t{ESCAPES}"}
    _Answers.reply = (429, {"Agentgyms-Protocol": "1"}, json.dumps(body).encode())
    _, text = _raised(lambda: RemoteEnv(CORRIDOR, url=stranger, patience=HURRIED))
    assert not set(text) & set(ESCAPES) - set("0;mine]2J1Ahidden[")
    assert field == "hint" or "one\ntwo\t\\x1b]0;mine\\x07\\x1b[2J\\x9b1A\\x0dhidden\\x7f" in text


def test_a_server_cannot_write_its_id_to_the_terminal(stranger):
    info = create_app(CORRIDOR, token="").test_client().get("/v1/info").json
    body = json.dumps(info | {"env_id": ESCAPES}).encode()
    _Answers.reply = (200, {"Agentgyms-Protocol": "1"}, body)
    _, text = _raised(lambda: RemoteEnv(CORRIDOR, url=stranger, patience=HURRIED))
    assert "serves \\x1b]0;mine" in text
    assert text.isprintable()


@pytest.mark.parametrize(
    ("told", "waited"),
    [
        ("2.5", 2.5),
        ("0", 0.1),
        ("-3", 1.0),
        ("nan", 1.0),
        ("inf", 1.0),
        ("-inf", 1.0),
        ("soon", 1.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 1.0),
        (None, 1.0),
    ],
)
@pytest.mark.parametrize("status_code", [(429, "server_full"), (503, "overloaded")], ids=str)
def test_how_long_a_server_lets_wait(stranger, monkeypatch, told, waited, status_code):
    status, code = status_code
    if told is None and status == 503:
        pytest.skip("without the header it is not waited for")
    headers = {"Agentgyms-Protocol": "1"} | ({} if told is None else {"Retry-After": told})
    _Answers.reply = (status, headers, json.dumps(error_codes.body(code, "no")).encode())
    pauses: list[float] = []
    ours = SimpleNamespace(**vars(time) | {"sleep": pauses.append})  # other threads sleep, too
    monkeypatch.setattr("agentgyms.remote.endpoint.time", ours)
    patience = Patience(attempts=2, pause_s=0, full_s=0)
    with pytest.raises(errors.ServerFull) as caught:
        RemoteEnv(CORRIDOR, url=stranger, patience=patience)
    assert caught.value.retry_after_s == waited
    assert pauses == ([waited] if status == 503 else [])


def test_a_server_that_never_answers():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        patience = Patience(connect_s=0.2, read_s=0.2, attempts=4, pause_s=0.01)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(errors.ServerUnavailable, match=r"no reply within 0\.2 s"):
            RemoteEnv(CORRIDOR, url=url, patience=patience)
        assert time.monotonic() - started < 2


def test_the_shell_s_proxies_are_ignored(live, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    RemoteEnv(CORRIDOR, url=live, token="a-token").close()


@pytest.mark.parametrize("code", sorted(error_codes.CODES))
def test_the_table_leads_back_to_the_class(code):
    row = error_codes.CODES[code]
    rebuilt = error_codes.exception(code, "the text", row.status)
    assert (type(rebuilt), str(rebuilt)) == (row.raises, "the text")
    again = error_codes.code_of(rebuilt)
    assert again == "internal" or error_codes.CODES[again].raises in type(rebuilt).__mro__


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UnknownTask("x"), "unknown_task"),
        (errors.DataMissing("x"), "data_missing"),
        (errors.GroupMismatch("x"), "group_mismatch"),
        (errors.Unauthorized("of another service"), "env_unavailable"),
        (errors.ServerFull("another service"), "env_unavailable"),
        (errors.AgentGymsError("x"), "internal"),
        (DependencyNotInstalled("x"), "dependency_missing"),
        (TypeError("x"), "internal"),
        (ValueError("x"), "internal"),
        (KeyError("x"), "internal"),
    ],
    ids=repr,
)
def test_the_code_of_an_exception(error, code):
    assert error_codes.code_of(error) == code


def test_codes_of_later_versions_are_judged_by_their_status():
    assert type(error_codes.exception("teapot", "x", 418)) is errors.BadRequest
    assert type(error_codes.exception("new", "x", 599)) is errors.EnvUnavailable


def test_a_vector_of_no_environments():
    for number in (0, -1, 2.0):
        with pytest.raises(errors.BadOption, match="num_envs"):
            RemoteVectorEnv(CORRIDOR, number, url="http://x")
