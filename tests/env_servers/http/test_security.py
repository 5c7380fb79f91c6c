"""Attacks on the routes: what each is answered with, and that nothing leaks."""

from __future__ import annotations

import base64
import json
import secrets
import socket
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from server_faults import CORRIDOR, FAULTY, TOKEN, Api, code, importable_environments

from agentgyms import registration
from agentgyms.core import arguments, images
from agentgyms.core.errors import BadOption
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.envs.searchqa.sources import closed_world_retriever
from agentgyms.serving.addresses import is_loopback
from env_servers import create_app
from env_servers.retriever.app import create_retriever_app
from env_servers.webshop_site.app import create_site

# --- what is told to a server that listens -------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Basic " + base64.b64encode(f"x:{TOKEN}".encode()).decode()},
        {"Authorization": f"bearer {TOKEN}"},
        {"Authorization": f"Bearer  {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN.upper()}"},
        {"Authorization": f"Bearer {TOKEN}, Bearer {TOKEN}"},
        {"Authorization": "Bearer \xe4"},
        {"Authorization": "Bearer " + "a" * 100_000},
        {"Cookie": f"token={TOKEN}"},
        {"X-Api-Key": TOKEN},
        {"Agentgyms-Protocol": "1", "Cookie": f"agentgyms_play_80={TOKEN}"},
    ],
    ids=lambda given: str(given)[:50],
)
def test_who_has_no_token_gets_nothing(given):
    api = Api(create_app(CORRIDOR, token=TOKEN))
    for path in ("/v1/info", f"/v1/info?token={TOKEN}", "/v1/sessions/x", "/v1/nowhere"):
        assert code(api.get(path, headers=given)) == (401, "unauthorized")
        assert TOKEN not in api.response.get_data(as_text=True)


def _nested(depth: int) -> bytes:
    return b'{"kwargs": ' + b'{"a": ' * depth + b"1" + b"}" * depth + b"}"


BODIES: Final = {
    "nothing but blanks": (b" ", 400),
    "cut off": (b'{"kwargs": {', 400),
    "more than one value": (b"{}{}", 400),
    "no JSON": (b"kwargs=1", 400),
    "NaN": (b'{"kwargs": {"length": NaN}}', 400),
    "Infinity": (b'{"kwargs": {"length": -Infinity}}', 400),
    "a number beyond floats": (b'{"kwargs": {"length": 1e400}}', 422),
    "an integer of 10000 digits": (b'{"kwargs": {"length": ' + b"1" * 10_000 + b"}}", 400),
    "an integer of 4300 digits": (b'{"kwargs": {"max_turns": ' + b"1" * 4_300 + b"}}", 422),
    "nested 100000 deep": (_nested(100_000), 400),
    "nested 900 deep": (_nested(900), 422),
    "a list": (b"[]", 422),
    "null": (b"null", 422),
    "a string": (b'"kwargs"', 422),
    "UTF-16": ('{"kwargs": {}}'.encode("utf-16"), 201),
    "no Unicode": (b'{"request_id": "\xff"}', 400),
    "a lone surrogate": (b'{"kwargs": {"split": "\\ud800"}}', 422),
    "an unknown field": (b'{"token": "x"}', 422),
    "a prototype": (b'{"__proto__": {"split": "test"}}', 422),
    "an attribute": (b'{"kwargs": {"__class__": "x"}}', 422),
    "the method's own argument": (b'{"kwargs": {"self": 1}}', 422),
    "another class's argument": (b'{"kwargs": {"env_id": "x", "url": "http://x"}}', 422),
    "kwargs that are no object": (b'{"kwargs": [["split", "train"]]}', 422),
    "a long request_id": (b'{"request_id": "' + b"x" * 65 + b'"}', 422),
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies(api, name):
    body, expected = BODIES[name]
    status, reply = api.post("/v1/sessions", data=body, content_type="application/json")
    assert status == expected, reply
    assert len(api.response.get_data()) < 10_000, "what was sent is sent back at length"


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "x"])
def test_a_compressed_body_is_refused(api, encoding):
    reply = api.post(
        "/v1/sessions",
        data=b"{}",
        content_type="application/json",
        headers={"Content-Encoding": encoding},
    )
    assert code(reply) == (415, "unsupported_media_type")


def test_batches_of_batches_and_of_nothing(api):
    inner = {"items": [{"items": [{}]}, [], None, 1, "x", {"session_id": ["x"]}]}
    for operation in ("create", "reset", "step", "close"):
        status, reply = api.post(f"/v1/batch/{operation}", inner)
        assert status == 200
        assert {result["error"]["code"] for result in reply["results"]} == {"bad_request"}
    assert code(api.post("/v1/batch/step", {"items": {"0": {}}})) == (422, "bad_request")


# --- sessions of others --------------------------------------------------------------------------


def test_names_of_sessions_cannot_be_guessed(api):
    """Neither the order of opening nor any other name tells one; a guess learns nothing."""
    names = [api.open().rpartition("/")[2] for _ in range(64)]
    bits = [int.from_bytes(base64.urlsafe_b64decode(name + "==")) for name in names]
    assert bits != sorted(bits)
    ones = sum(number.bit_count() for number in bits)
    assert abs(ones - 64 * 64) < 6 * (64 * 128 / 4) ** 0.5, "far from 128 random bits each"
    guesses = [secrets.token_urlsafe(16), names[0][:-1], names[0] + "A", names[0].swapcase(), "0"]
    for guess in guesses:
        for method, path in (
            ("GET", ""),
            ("DELETE", ""),
            ("POST", "/step"),
            ("GET", "/trajectory"),
        ):
            body = {"action": "x", "turn": 1} if path == "/step" else None
            assert code(api.call(method, f"/v1/sessions/{guess}{path}", body)) == (
                404,
                "unknown_session",
            )
    for name in names:
        api.call("DELETE", f"/v1/sessions/{name}")


def test_no_reply_names_another_session(api):
    mine, theirs = api.begun(), api.begun()
    name = theirs.rpartition("/")[2]
    seen = ""
    for path in (mine, f"{mine}/trajectory", "/v1/info", "/v1/tasks", "/metrics", "/readyz"):
        api.get(path)
        seen += api.response.get_data(as_text=True)
    seen += str(api.post(f"{mine}/snapshot")) + str(api.post(f"{mine}/fork"))
    assert name not in seen


# --- browsers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "origin", "allowed"),
    [
        ("127.0.0.1:8000", None, True),
        ("127.0.0.1:8000", "http://127.0.0.1:8000", True),
        ("[::1]:8000", "http://[::1]:8000", True),
        ("localhost:8000", "http://localhost:8000", True),
        ("alfworld:8000", "http://alfworld:8000", True),
        ("LOCALHOST", None, True),
        ("known.example:8000", None, True),
        ("known.example.", None, True),
        ("Known.Example:8000", "http://Known.Example:8000", True),
        ("node.cluster.example:8000", None, False),
        ("127.0.0.1.evil.example", None, False),
        ("[", None, False),
        ("localhost.", None, False),
        ("127.0.0.1:8000", "https://evil.example", False),
        ("127.0.0.1:8000", "http://127.0.0.1:9000", False),
        ("127.0.0.1:8000", "null", False),
        ("127.0.0.1:8000", "http://[", False),
        ("evil.example:8000", "http://evil.example:8000", False),
    ],
)
def test_pages_of_other_sites_cannot_use_a_server_without_a_token(host, origin, allowed):
    api = Api(create_app(CORRIDOR, token="", hosts=["known.example"]))
    headers = {"Host": host} | ({"Origin": origin} if origin else {})
    status, _ = api.post("/v1/sessions", headers=headers)
    assert status == (201 if allowed else 401)
    assert "Access-Control-Allow-Origin" not in api.response.headers


READABLE = ("/v1/info", "/v1/tasks", "/metrics", "/openapi.json", "/play", "/", "/nowhere")


@pytest.mark.parametrize("path", READABLE)
def test_a_name_that_is_made_to_lead_here_reads_nothing(path):
    """A page of a site whose name is bound to this server's address (DNS rebinding)."""
    foreign = {"Host": "evil.example:8000"}
    api = Api(create_app(CORRIDOR, token=""))
    assert code(api.get(path, headers=foreign)) == (401, "unauthorized")
    assert "AGENTGYMS_ALLOWED_HOSTS" in api.response.get_data(as_text=True)
    assert api.get("/healthz", headers=foreign)[0] == api.get("/readyz", headers=foreign)[0] == 200
    with_token = Api(create_app(CORRIDOR, token=TOKEN))
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert with_token.get(path, headers=foreign | bearer)[0] != 401


def test_the_search_server_reads_nothing_to_other_sites():
    app = create_retriever_app(closed_world_retriever(), hosts=["known.example"])
    api, body = Api(app), {"query": "x"}
    assert api.post("/retrieve", body)[0] == 200
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert code(api.post("/retrieve", body, headers=headers)) == (401, "unauthorized")
    assert api.post("/retrieve", body, headers={"Host": "known.example:1"})[0] == 200


def test_the_shop_shows_nothing_to_other_sites():
    api = Api(create_site(None, hosts=["known.example"]))
    for host, status in (("evil.example", 401), ("known.example", 404), ("127.0.0.1", 404)):
        assert api.get("/", headers={"Host": host})[0] == status
    assert "does not know" not in api.response.get_data(as_text=True)


def test_a_form_of_another_site_does_nothing(api):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        reply = api.post("/v1/sessions", data=b'{"kwargs":{}}', content_type=kind)
        assert code(reply) == (415, "unsupported_media_type")


# --- arguments, options and snapshots ------------------------------------------------------------


class Watch:
    """Notes which files under a folder that does not exist are opened, and which port is called."""

    def __init__(self) -> None:
        self.folder = f"/canary-{secrets.token_hex(4)}"
        self.seen: list[str] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.on = True
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on and event in ("open", "os.listdir", "os.scandir", "socket.connect", "import"):
            told = repr(arguments)
            if self.folder in told or str(self.port) in told:
                self.seen.append(f"{event} {told}")

    def close(self) -> None:
        self.on = False  # a hook cannot be taken away
        self._listening.close()


@pytest.fixture(scope="module")
def watch() -> Iterator[Watch]:
    watching = Watch()
    yield watching
    watching.close()


@pytest.mark.parametrize("env_id", importable_environments(browser=False))
def test_no_argument_names_a_file_or_an_address(env_id, watch):
    """Every argument is given a path and an address: none is opened, and no answer is a 500."""
    api = Api(create_app(env_id, token="", split="sample"))
    url = f"http://127.0.0.1:{watch.port}/x"
    file = f"{watch.folder}/x"
    values = [file, f"file://{file}", url, {"model": "m", "url": url, "base_url": url}, [file]]
    for name in arguments.defaults(registration.env_class(env_id)):
        for value in values:
            status, reply = api.post("/v1/sessions", {"kwargs": {name: value}})
            if status == 201:  # a beginning of ids, of which there is none
                path = f"/v1/sessions/{reply['session_id']}"
                status, reply = api.post(f"{path}/reset", {"seed": 1})
                api.call("DELETE", path)
            assert status == 422, (name, value, reply)
    path = api.open()
    for task_id in (file, f"../..{file}", f"train/../..{file}", "\0"):
        reply = api.post(f"{path}/reset", {"options": {"task_id": task_id}})
        assert code(reply) == (422, "unknown_task")
    assert watch.seen == []


@pytest.mark.parametrize(("name", "most"), [("rooms", 1_000), ("max_turns", 10_000)])
def test_arguments_that_cost_time_have_limits(name, most):
    api = Api(create_app("agentgyms/Sokoban-v0", token=""))
    assert api.post("/v1/sessions", {"kwargs": {name: most}})[0] == 201
    reply = api.post("/v1/sessions", {"kwargs": {name: most + 1}})
    assert code(reply) == (422, "bad_option")
    assert f"at most {most}" in reply[1]["error"]["message"]


def test_the_watch_sees_what_it_is_to_see(watch):
    with pytest.raises(OSError, match="canary"):
        Path(f"{watch.folder}/y").read_bytes()
    socket.create_connection(("127.0.0.1", watch.port)).close()
    assert len(watch.seen) == 2
    watch.seen.clear()


def test_a_snapshot_runs_and_unpacks_nothing(api):
    path = api.begun()
    taken = json.loads(api.post(f"{path}/snapshot")[1]["snapshot"])
    pickled = base64.b64encode(b"cos\nsystem\n(S'false'\ntR.").decode()
    side = 2000
    bomb = _png(side, zlib.compress(bytes(side * (1 + 3 * side)), 9))
    forged = [
        pickled,
        json.dumps(taken | {"engine": {"__reduce__": "os.system"}}),
        json.dumps(taken | {"observation": {str(i): {"png": bomb} for i in range(12)}}),
        json.dumps(taken | {"observation": {"a": {"png": _png(1, zlib.compress(bytes(10**7)))}}}),
        json.dumps(taken | {"actions": ["left"] * 100_000}),
        json.dumps(taken | {"kind": {"env": "other"}}),
    ]
    before = _peak_kib()
    for snapshot in forged:
        reply = api.post(f"{path}/restore", {"snapshot": snapshot})
        assert reply[0] in (413, 422), snapshot[:80]
        assert reply[1]["error"]["code"] in ("bad_snapshot", "too_large")
    assert _peak_kib() - before < 110_000, "the images were all unpacked at once"


def _png(side: int, rows: bytes) -> str:
    head = images._HEADER.pack(side, side, *images._RGB_8_BIT, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", rows), (b"IEND", b""))
    png = images._SIGNATURE + b"".join(images._chunk(*part) for part in parts)
    return base64.b64encode(png).decode()


def _peak_kib() -> int:
    status = Path("/proc/self/status").read_text("ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


# --- errors --------------------------------------------------------------------------------------


def test_an_error_does_not_tell_where_the_servers_files_are(monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", "/srv/secret folder/data")
    api = Api(create_app("agentgyms/ALFWorld-v0", token="", source="official"))
    for reply in (api.get("/readyz"), api.get("/v1/info"), api.post("/v1/sessions")):
        assert code(reply) == (503, "data_missing")
        assert "agentgyms data fetch alfworld" in reply[1]["error"]["message"]
        assert "secret" not in reply[1]["error"]["message"]


def test_many_who_want_in_are_told_when_to_come_back():
    api = Api(create_app(CORRIDOR, token="", max_sessions=3))
    opened = [api.begun() for _ in range(3)]
    for _ in range(20):
        assert code(api.post("/v1/sessions")) == (429, "server_full")
        assert 1 <= int(api.response.headers["Retry-After"]) <= 5
    assert all(api.get(path)[0] == 200 for path in opened)


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("localhost", True),
        ("", False),
        ("0.0.0.0", False),
        ("0", False),
        ("::", False),
        ("::ffff:0.0.0.0", False),
        ("192.168.0.1", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.nip.io", False),
        ("*", False),
    ],
)
def test_which_addresses_only_this_machine_can_reach(host, alone):
    assert is_loopback(host) is alone


def test_a_server_of_a_faulty_environment_tells_nothing(faulty):
    path = faulty.begun()
    assert code(faulty.step(path, "crash", 1)) == (500, "internal")
    text = faulty.response.get_data(as_text=True)
    assert not any(word in text for word in ("Traceback", "RuntimeError", "/srv", ".py", FAULTY))


SITE = "https://site.example"


def test_pages_of_an_allowed_site_may_use_the_server():
    for token in ("", "x"):
        api = Api(create_app(CORRIDOR, token=token, cors_origins=[SITE]))
        asked = {"Origin": SITE, "Access-Control-Request-Method": "POST"}
        assert api.call("OPTIONS", "/v1/sessions", headers=asked)[0] == 204, "asked without a token"
        told = api.response.headers
        assert told["Access-Control-Allow-Origin"] == SITE
        assert "Authorization" in told["Access-Control-Allow-Headers"]
        assert "Access-Control-Allow-Credentials" not in told
        sent = {"Origin": SITE, "Authorization": f"Bearer {token}"}
        assert api.call("POST", "/v1/sessions", {}, headers=sent)[0] == 201
        assert api.response.headers["Access-Control-Allow-Origin"] == SITE
        assert "Origin" in api.response.headers["Vary"]


def test_pages_of_other_sites_may_not():
    api = Api(create_app(CORRIDOR, token="", cors_origins=[SITE]))
    for other in ("https://other.example", "http://site.example", f"{SITE}.example", "null"):
        assert api.call("POST", "/v1/sessions", {}, headers={"Origin": other})[0] == 401
        assert "Access-Control-Allow-Origin" not in api.response.headers
    closed = Api(create_app(CORRIDOR, token="x", cors_origins=[SITE]))
    assert closed.call("POST", "/v1/sessions", {}, headers={"Origin": SITE})[0] == 401
    plain = Api(create_app(CORRIDOR, token="x"))
    asked = {"Origin": SITE, "Access-Control-Request-Method": "POST"}
    assert plain.call("OPTIONS", "/v1/sessions", headers=asked)[0] == 401
    assert "Vary" not in plain.response.headers


@pytest.mark.parametrize("bad", ["*", "site.example", "https://site.example/", "ftp://a", ""])
def test_what_is_no_origin_is_refused(bad):
    with pytest.raises(BadOption, match="is no origin: expected a scheme and a host"):
        create_app(CORRIDOR, cors_origins=[bad])


# --- the atoms of a goal -------------------------------------------------------------------------

CANARY: Final = "canary-8e7b1f0d"


@pytest.fixture
def told(monkeypatch) -> Api:
    """A server of corridors whose atoms have a name that nothing else has."""
    outcome_of = CorridorEnv._outcome
    planted = lambda *args, **kwargs: outcome_of(*args, **kwargs)._replace(atoms={CANARY: False})
    monkeypatch.setattr(CorridorEnv, "_outcome", planted)
    return Api(create_app(CORRIDOR, token=TOKEN), Authorization=f"Bearer {TOKEN}")


def test_who_may_see_rewards_sees_atoms(told):
    path = told.begun()
    status, reply = told.step(path, "right", 1)
    assert (status, reply["reward"], reply["info"]["atoms"]) == (200, 0.0, {CANARY: False})


def test_who_has_no_token_sees_no_atoms(told):
    path = told.begun()
    told.step(path, "right", 1)
    for method, end, body in (
        ("GET", "", None),
        ("GET", "/render", None),
        ("GET", "/trajectory", None),
        ("POST", "/step", {"action": "right", "turn": 2}),
        ("POST", "/reset", {"seed": 0}),
        ("POST", "/snapshot", {}),
        ("POST", "/fork", {}),
    ):
        status, _ = told.call(method, f"{path}{end}", body, headers={})
        assert status == 401, end
        assert CANARY not in told.response.get_data(as_text=True)
    for page in ("/metrics", "/healthz", "/readyz", "/openapi.json", "/play"):
        told.get(page, headers={})
        assert CANARY not in told.response.get_data(as_text=True)
