"""The routes of `/play`: the token for people, what the page is made of, and what guards it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib import resources

import pytest
from server_faults import CORRIDOR, TOKEN, Api, code

from agentgyms.recording import recorder
from agentgyms.remote.protocol import framing
from env_servers import create_app

PAGE = resources.files("env_servers.play") / "page"
FILES = {entry.name: entry.read_text() for entry in PAGE.iterdir()}
PARTS = sorted(name for name in FILES if not name.endswith(".html"))
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}
HEADER = {framing.PROTOCOL_HEADER: framing.PROTOCOL}


@pytest.fixture(scope="module")
def guarded():
    return create_app(CORRIDOR, token=TOKEN)


@pytest.fixture(scope="module")
def admitted(guarded):
    client = guarded.test_client()
    assert client.post("/play", data={"token": f" {TOKEN} "}).status_code == 303
    return client


# --- the page -----------------------------------------------------------------------------------


def test_without_a_token_the_page_is_there(api):
    client = api.app.test_client()
    page = client.get("/play")
    assert page.status_code == 200
    assert page.mimetype == "text/html"
    assert client.get("/").headers["Location"] == "play"
    assert client.post("/play").status_code == 303


@pytest.mark.parametrize("name", PARTS)
def test_its_parts_come_with_their_types_and_guards(api, name):
    part = api.app.test_client().get(f"/play/{name}")
    assert part.status_code == 200
    types = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    assert part.mimetype == types[name[name.rindex(".") :]]
    assert part.text == FILES[name]
    assert part.headers["X-Content-Type-Options"] == "nosniff"
    assert part.headers["Referrer-Policy"] == "no-referrer"
    policy = dict(
        rule.split(" ", 1) for rule in part.headers["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"


@pytest.mark.parametrize(
    "name", ["access.html", "page.html", "none.js", "..%2froutes.py", "%2e%2e/routes.py", "a/b.js"]
)
def test_nothing_else_is_given(api, name):
    assert code(api.get(f"/play/{name}")) == (404, "not_found")


class Elements(HTMLParser):
    """Collects the ids and attributes of a page, and what stands in its scripts and styles."""

    def __init__(self):
        super().__init__()
        self.ids, self.attributes, self.inline, self._open = [], [], [], ""

    def handle_starttag(self, tag, attrs):
        self._open = tag
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open in ("script", "style") and data.strip():
            self.inline.append(data)


def read(name):
    elements = Elements()
    elements.feed(FILES[name])
    return elements


@pytest.mark.parametrize("name", ["access.html", "page.html"])
def test_nothing_is_inline_and_ids_are_unique(name):
    elements = read(name)
    assert elements.inline == []
    assert not [n for n, _ in elements.attributes if n == "style" or n.startswith("on")]
    assert len(elements.ids) == len(set(elements.ids))
    addresses = [value for n, value in elements.attributes if n in ("src", "href", "action")]
    assert all(re.fullmatch(r"play(/[\w.]+)?|#\w+", address) for address in addresses)


def test_scripts_find_what_the_page_has():
    asked = {
        name
        for text in SCRIPTS.values()
        for name in re.findall(r'\b(?:find|fill|show)\("([\w-]+)"', text)
    }
    assert len(asked) > 40
    assert asked <= set(read("page.html").ids)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_make_no_markup_and_ask_no_other_server(name):
    text = SCRIPTS[name]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", text
    )
    assert not re.search(r"https?://", text)
    assert text.count("\n") < 300
    imported = re.findall(r'from "\./([\w.]+)"', text)
    assert set(imported) <= SCRIPTS.keys()
    assert max(map(len, text.splitlines())) <= 150


# --- the token ----------------------------------------------------------------------------------


def test_a_token_is_asked_for(guarded):
    client = guarded.test_client()
    refused = client.get("/play")
    assert refused.status_code == 401
    assert refused.mimetype == "text/html"
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert 'type="password"' in refused.text
    assert "not the token" not in refused.text
    for name in PARTS:
        expected = 200 if name in ("access.css", "icon.svg") else 401
        assert client.get(f"/play/{name}").status_code == expected, name


@pytest.mark.parametrize("wrong", ["", "a", TOKEN.upper(), "é", "\0", "x" * 3000, "\ud800"])
def test_a_wrong_token(guarded, wrong):
    client = guarded.test_client()
    data = {"token": wrong.encode("utf-8", "surrogatepass")}
    refused = client.post("/play", data=data)
    assert refused.status_code == 401
    assert "Set-Cookie" not in refused.headers
    assert "not the token" in refused.text
    client.set_cookie("agentgyms_play_http", re.sub(r"[^\w]", "", wrong) or "x")
    assert client.get("/play").status_code == 401
    assert client.get("/v1/info", headers=HEADER).status_code == 401


def test_a_form_that_is_too_long_is_refused(guarded):
    api = Api(guarded)
    status, _ = api.post("/play", data={"token": "x" * (framing.MAX_BODY_BYTES + 1)})
    assert status == 413


def test_the_right_token(guarded):
    client = guarded.test_client()
    entered = client.post("/play", data={"token": TOKEN}, base_url="http://host:8001")
    assert entered.headers["Location"] == "play?entered"
    kept_none = guarded.test_client().get("/play?entered")
    assert kept_none.status_code == 401
    assert "kept no cookie" in kept_none.text
    cookie = entered.headers["Set-Cookie"]
    assert cookie.startswith("agentgyms_play_8001=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Secure" not in cookie
    assert TOKEN not in cookie
    assert client.get("/play", base_url="http://host:8001").status_code == 200
    assert client.get("/play", base_url="http://host:8002").status_code == 401
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.test_client().get("/play", headers=bearer).status_code == 200


def test_over_https_the_cookie_stays_there(guarded):
    entered = guarded.test_client().post("/play", data={"token": TOKEN}, base_url="https://host")
    assert entered.headers["Set-Cookie"].startswith("agentgyms_play_https=")
    assert "Secure" in entered.headers["Set-Cookie"]


@pytest.mark.parametrize("host", ["[::1]:8001", "host:80000000000", "host:x; a=b", "", ":", "[::1"])
def test_odd_hosts(guarded, host):
    entered = guarded.test_client().post("/play", data={"token": TOKEN}, headers={"Host": host})
    assert entered.status_code in (303, 400)
    assert re.match(r"agentgyms_play_(8001|http)=\w+;", entered.headers["Set-Cookie"])


def test_the_cookie_admits_the_page_alone(admitted):
    assert admitted.get("/v1/info", headers=HEADER).status_code == 200
    assert admitted.post("/v1/sessions", json={}, headers=HEADER).status_code == 201
    # What another site can make a browser send: forms, pictures, requests without own headers.
    assert admitted.get("/v1/info").status_code == 401
    assert admitted.post("/v1/sessions", data="{}", content_type="text/plain").status_code == 401
    asked = admitted.options("/v1/sessions", headers={"Origin": "http://evil.example"})
    assert not [name for name, _ in asked.headers if name.startswith("Access-Control")]


def test_the_cookie_of_another_token_is_none(guarded):
    other = create_app(CORRIDOR, token="another-token").test_client()
    cookie = other.post("/play", data={"token": "another-token"}).headers["Set-Cookie"]
    value = cookie.partition("=")[2].partition(";")[0]
    client = guarded.test_client()
    client.set_cookie("agentgyms_play_http", value)
    assert client.get("/play").status_code == 401


def test_a_server_that_is_about_to_stop_says_so_to_the_page():
    app = create_app(CORRIDOR, token="")
    app.extensions["agentgyms"].draining = True
    client = app.test_client()
    assert client.get("/play").status_code == 200
    assert client.get("/v1/info", headers=HEADER).status_code == 503


# --- who acted ----------------------------------------------------------------------------------


def test_a_recording_tells_who_acted(api, tmp_path):
    path = api.begun(seed=3)
    api.step(path, "right", 1)
    told = tmp_path / "told.jsonl"
    for actor in ("person", 'a "person" \u2028é'):
        told.write_text(
            api.app.test_client().get(f"{path}/trajectory", query_string={"actor": actor}).text
        )
        [played] = recorder.read(told)
        assert played.header["provenance"]["actor"] == actor
        assert recorder.replay(played) == 2
    assert "actor" not in api.app.test_client().get(f"{path}/trajectory").text
    assert code(api.get(f"{path}/trajectory?actor={'x' * 201}")) == (422, "bad_request")
