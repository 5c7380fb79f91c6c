"""Every documented error: its status, its code, a message that helps, and nothing that leaks."""

from __future__ import annotations

import logging
import threading

import pytest
from server_faults import CORRIDOR, FAULTY, Api, FaultyEnv, code

from agentgyms.core.errors import BadOption, DataMissing
from env_servers import create_app

SECRET = "s3cret-tøken"
NOBODY = "/v1/sessions/AAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture(scope="module")
def locked() -> Api:
    return Api(create_app(CORRIDOR, token=SECRET))


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer wrong", "Basic s3cret", f"bearer {SECRET}", f"Bearer {SECRET} "],
)
@pytest.mark.parametrize("path", ["/v1/info", "/v1/tasks", f"{NOBODY}", "/v1", "/v1/no/such/route"])
def test_a_wrong_token_opens_nothing(locked, given, path):
    header = {"Authorization": given.encode().decode("latin-1")} if given else {}
    assert code(locked.get(path, headers=header)) == (401, "unauthorized")
    assert locked.response.headers["WWW-Authenticate"] == "Bearer"
    assert SECRET not in locked.response.get_data(as_text=True)


def test_the_right_token_opens_and_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("AGENTGYMS_TOKEN", "from-the-shell")
    api = Api(create_app(CORRIDOR))
    assert code(api.get("/v1/info")) == (401, "unauthorized")
    assert api.get("/v1/info", headers={"Authorization": "Bearer from-the-shell"})[0] == 200
    assert Api(create_app(CORRIDOR, token="")).get("/v1/info")[0] == 200


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not valid JSON"),
        (b'{"seed": NaN}', "NaN is not JSON"),
        (b"\xff\xfe{", "not valid JSON"),
        (b"[" * 200_000, "not valid JSON"),
    ],
)
def test_a_body_that_is_no_json(api, body, says):
    path = api.open()
    reply = api.post(f"{path}/reset", data=body, content_type="application/json")
    assert code(reply) == (400, "bad_json")
    assert says in reply[1]["error"]["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_of_another_content_type(api, kind):
    reply = api.post("/v1/sessions", data=b"{}", content_type=kind)
    assert code(reply) == (415, "unsupported_media_type")
    assert "application/json" in reply[1]["error"]["message"]


@pytest.mark.parametrize(
    ("operation", "body", "names"),
    [
        ("step", {"turn": 1}, "'action'"),
        ("step", {"action": "left"}, "'turn'"),
        ("step", {"action": 3, "turn": 1}, "'action'"),
        ("step", {"action": "left", "turn": "1"}, "'turn'"),
        ("step", {"action": "left", "turn": 1.5}, "'turn'"),
        ("step", {"action": "left", "turn": True}, "'turn'"),
        ("step", {"action": "left", "turn": 1, "step_index": 1}, "'step_index'"),
        ("step", {"action": "left", "turn": 1, "episode": "one"}, "'episode'"),
        ("step", ["left", 1], "object"),
        ("reset", {"seed": "7"}, "'seed'"),
        ("reset", {"seed": -1}, "'seed'"),
        ("reset", {"seed": 1, "options": ["task"]}, "'options'"),
        ("restore", {}, "'snapshot'"),
        ("restore", {"snapshot": 3}, "'snapshot'"),
        ("snapshot", {"all": True}, "'all'"),
        ("fork", {"request_id": 5}, "'request_id'"),
        ("fork", {"request_id": "x" * 65}, "'request_id'"),
    ],
)
def test_a_wrong_field_is_named(api, operation, body, names):
    reply = api.post(f"{api.begun()}/{operation}", body)
    assert code(reply) == (422, "bad_request")
    assert names in reply[1]["error"]["message"]


@pytest.mark.parametrize(
    ("kwargs", "expected", "says"),
    [
        ({"split": "test"}, "unknown_split", "valid_unseen"),
        ({"max_turns": 0}, "bad_option", "max_turns"),
        ({"max_turns": 10**9}, "bad_option", "10000"),
        ({"no_such": 1}, "type_error", "no_such"),
        ({"render_mode": "human"}, "bad_option", "human"),
        ({"folder": "/etc"}, "bad_option", "'folder'"),
        ({"length": 0}, "value_error", "length must be positive, got 0"),
        ({"broken": 3, "url": "http://x"}, "type_error", "url"),
    ],
)
def test_wrong_arguments_are_refused_with_the_environments_message(faulty, kwargs, expected, says):
    reply = faulty.post("/v1/sessions", {"kwargs": kwargs})
    assert code(reply) == (422, expected)
    assert says in reply[1]["error"]["message"]
    assert len(faulty.app.extensions["agentgyms"].sessions) == 0


def test_wrong_reset_options(api):
    path = api.begun()
    assert code(api.post(f"{path}/reset", {"options": {"no_such": 1}})) == (422, "bad_option")
    reply = api.post(f"{path}/reset", {"options": {"task_id": "train/free-999"}})
    assert code(reply) == (422, "unknown_task")
    assert api.step(path, "left", 1)[0] == 200, "the running episode goes on"


def test_wrong_snapshots(api):
    path = api.begun()
    assert code(api.post(f"{path}/restore", {"snapshot": "no"})) == (422, "bad_snapshot")
    other = api.post(f"{api.begun(split='sample')}/snapshot")[1]
    assert code(api.post(f"{path}/restore", other)) == (422, "bad_snapshot")
    assert api.step(path, "left", 1)[0] == 200, (
        "a snapshot of another kind must not end the episode"
    )


def test_an_unknown_split_of_the_tasks(api):
    assert code(api.get("/v1/tasks?split=test")) == (422, "unknown_split")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", NOBODY),
        ("DELETE", NOBODY),
        ("GET", f"{NOBODY}/render"),
        ("GET", f"{NOBODY}/tasks"),
        ("GET", f"{NOBODY}/trajectory"),
        *(("POST", f"{NOBODY}/{name}") for name in ("reset", "snapshot", "fork")),
    ],
)
def test_an_unknown_session(api, method, path):
    assert code(api.call(method, path)) == (404, "unknown_session")


def test_a_closed_session_is_gone(api):
    path = api.begun()
    api.call("DELETE", path)
    for reply in (api.step(path, "left", 1), api.call("DELETE", path), api.get(path)):
        assert code(reply) == (410, "session_expired")
        assert "closed" in reply[1]["error"]["message"]


def test_routes_and_methods_that_do_not_exist(api):
    for path in ("/v1/info/", "//v1/info", "/v1//info", "/V1/info", "/v1/%2e%2e/healthz"):
        assert code(api.get(path)) == (404, "not_found"), path
    assert code(api.get("/v1/sessionz")) == (404, "not_found")
    assert code(api.get("/v1/sessions")) == (405, "method_not_allowed")
    assert "POST" in api.response.headers["Allow"]
    assert code(api.call("PATCH", api.open())) == (405, "method_not_allowed")


@pytest.mark.parametrize("operation", ["snapshot", "trajectory"])
def test_before_the_first_reset(api, operation):
    path = api.open()
    method = "POST" if operation == "snapshot" else "GET"
    assert code(api.call(method, f"{path}/{operation}")) == (409, "reset_needed")
    assert code(api.step(path, "left", 1)) == (409, "reset_needed")


def test_after_the_end(api):
    path = api.begun(max_turns=1)
    assert api.step(path, "left", 1)[1]["truncated"] is True
    assert code(api.step(path, "left", 2)) == (409, "reset_needed")
    assert api.step(path, "left", 1)[1]["truncated"] is True, "the stored reply is still there"


def test_a_body_that_is_too_large(api):
    path = api.begun()
    reply = api.step(path, "x" * 2**20, 1)
    assert code(reply) == (413, "too_large")
    assert str(2**20) in reply[1]["error"]["message"]
    assert api.step(path, "x" * (2**20 - 100), 1)[0] == 200


def test_a_batch_that_is_too_large(api):
    assert code(api.post("/v1/batch/close", {"items": [{}] * 1025})) == (413, "too_large")


def test_another_protocol(api):
    reply = api.get("/v1/info", headers={"Agentgyms-Protocol": "99"})
    assert code(reply) == (400, "protocol_mismatch")
    assert "'99'" in reply[1]["error"]["message"]


def test_an_unexpected_error_is_logged_and_not_told(faulty, caplog):
    path = faulty.begun()
    with caplog.at_level(logging.ERROR):
        reply = faulty.step(path, "crash", 1)
    assert code(reply) == (500, "internal")
    assert "secret" not in faulty.response.get_data(as_text=True)
    incident = reply[1]["error"]["message"].rpartition(" ")[2]
    assert incident in caplog.text
    assert "secret path" in caplog.text
    assert code(faulty.step(path, "left", 1)) == (410, "session_expired"), (
        "nobody goes on from there"
    )


@pytest.mark.parametrize(
    ("action", "expected"), [("lose worker", "worker_lost"), ("lose engine", "env_unavailable")]
)
def test_a_failed_engine(faulty, action, expected):
    path = faulty.begun()
    reply = faulty.step(path, action, 1)
    assert code(reply) == (503, expected)
    assert reply[1]["error"]["retryable"] is True
    assert code(faulty.step(path, action, 1)) == (410, "session_expired")
    assert FaultyEnv.open_ones == 0, "its environment was not closed"


def test_a_session_in_use_for_too_long(faulty):
    faulty.app.extensions["agentgyms"].sessions.busy_s = 0.05
    path = faulty.begun()
    first = threading.Thread(target=Api(faulty.app).step, args=(path, "wait", 1))
    first.start()
    assert FaultyEnv.waiting.wait(60)
    reply = faulty.step(path, "wait", 1)
    FaultyEnv.go_on.set()
    first.join()
    assert code(reply) == (504, "timeout")
    assert reply[1]["error"]["retryable"] is True
    assert faulty.step(path, "wait", 1)[0] == 200


def test_missing_data(monkeypatch):
    api = Api(create_app(FAULTY, broken="making"))
    for reply in (api.get("/readyz"), api.get("/v1/info"), api.post("/v1/sessions")):
        assert code(reply) == (503, "data_missing")
        assert "agentgyms data fetch" in reply[1]["error"]["message"]


@pytest.mark.parametrize("broken", ["resetting", "warming"])
def test_not_ready_until_an_environment_could_be_reset(caplog, broken):
    before = FaultyEnv.open_ones
    api = Api(create_app(FAULTY, broken=broken))
    with caplog.at_level(logging.CRITICAL):
        assert code(api.get("/readyz")) == (500, "internal")
        assert api.get("/healthz")[0] == 200
    assert before == FaultyEnv.open_ones, "what was made to try is not closed"


def test_a_draining_server_begins_nothing():
    api = Api(create_app(CORRIDOR))
    path = api.begun()
    api.app.extensions["agentgyms"].draining = True
    for reply in (api.post("/v1/sessions"), api.step(path, "left", 1)):
        assert code(reply) == (503, "draining")
        assert reply[1]["error"]["retryable"] is True
    assert code(api.get("/readyz")) == (503, "not_ready")
    assert api.get("/healthz")[0] == 200


def test_an_id_that_nobody_registered():
    with pytest.raises(BadOption, match="did you mean Corridor"):
        create_app("agentgyms/Coridor-v0")
    with pytest.raises(BadOption, match="TextEnv"):
        create_app("CartPole-v1")


def test_data_errors_are_not_the_callers():
    assert not issubclass(DataMissing, ValueError)
