"""The OpenAPI document agrees with the routes, the table of errors and live replies."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from server_faults import CORRIDOR, Api

from agentgyms import testing
from agentgyms.remote.protocol import error_codes, messages
from env_servers import create_app
from env_servers.http.openapi.document import document_text

DOCUMENT = json.loads(document_text())
UNLISTED = {"HEAD", "OPTIONS"}


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def _followed(described: dict[str, Any]) -> dict[str, Any]:
    """Return a response, or the one that a reference leads to."""
    name = described.get("$ref", "").removeprefix("#/components/responses/")
    return DOCUMENT["components"]["responses"][name] if name else described


def _operation(method: str, path: str) -> dict[str, Any]:
    return DOCUMENT["paths"][path][method.lower()]


def test_routes_and_description_list_the_same():
    app = create_app(CORRIDOR)
    routes = {
        (method, re.sub(r"<(\w+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - UNLISTED
    }
    described = {
        (method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods
    }
    assert routes == described


def test_error_codes_are_those_of_the_table():
    error = DOCUMENT["components"]["schemas"]["Error"]["properties"]["error"]
    assert error["properties"]["code"]["enum"] == sorted(error_codes.CODES)


def test_info_keys_are_those_of_the_contract():
    schema = DOCUMENT["components"]["schemas"]["TurnInfo"]
    assert sorted(schema["required"]) == sorted(testing.INFO_TYPES)
    assert set(schema["properties"]) == {*testing.INFO_TYPES, "oracle"}


def test_all_schemas_are_valid_and_all_references_lead_somewhere():
    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(DOCUMENT)):
        found = DOCUMENT
        for part in reference.split("/"):
            found = found[part]


def test_code_generators_can_read_the_document():
    schemas, parameters = DOCUMENT["components"]["schemas"], DOCUMENT["components"]["parameters"]
    assert all("$ref" in option for option in schemas["Space"]["oneOf"]), "an unnamed schema"
    assert schemas["Create"]["properties"]["kwargs"]["additionalProperties"] is True
    assert schemas["Reset"]["properties"]["options"]["additionalProperties"] is True
    assert parameters["Protocol"]["schema"] == {"type": "string"}
    for methods in DOCUMENT["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                for link in response.get("links", {}).values():
                    assert set(link) == {"operationId", "parameters"}


def test_only_a_server_with_a_token_declares_security():
    closed = Api(create_app(CORRIDOR, token="x")).get("/openapi.json")[1]
    assert closed == DOCUMENT
    assert closed["security"] == [{"bearer": []}, {"page": [], "pageHeader": []}]
    opened = Api(create_app(CORRIDOR, token="")).get("/openapi.json")[1]
    assert '"security"' not in json.dumps(opened)
    assert "securitySchemes" not in opened["components"]
    assert set(opened["paths"]) == set(closed["paths"])


def test_requests_and_replies_have_the_fields_of_their_messages():
    for name, schema in DOCUMENT["components"]["schemas"].items():
        kind = getattr(messages, name, None)
        if dataclasses.is_dataclass(kind):
            assert list(schema["properties"]) == [field.name for field in dataclasses.fields(kind)]


class Checked(Api):
    """Validates every request and reply against the description, and notes what it has seen."""

    seen: set[tuple[str, str, int]]

    def call(self, method: str, path: str, json: Any = None, **options: Any) -> tuple[int, Any]:
        status, body = super().call(method, path, json, **options)
        template = re.sub(r"/sessions/[^/?]+", "/sessions/{session_id}", path).partition("?")[0]
        template = re.sub(r"^/play/.+", "/play/{name}", template)
        operation = _operation(method, template)
        self.seen.add((method, template, status))
        if json is not None and status < 400:
            content = operation["requestBody"]["content"]["application/json"]
            _validator(content["schema"]).validate(json)
        described = operation["responses"][str(status)]
        described = _followed(described)
        for header in described.get("headers", ()):
            assert header in self.response.headers
        content_of = described.get("content", {})
        assert not content_of or self.response.mimetype in content_of
        for media, content in content_of.items():
            if media == "application/json":
                _validator(content["schema"]).validate(body)
        return status, body


def _play(api: Api) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/info", "/v1/tasks"):
        api.get(path)
    for path in ("/", "/play", "/play/icon.svg"):
        api.get(path)
    api.post("/play", data={"token": ""})
    api.get("/v1/tasks?split=sample&offset=1&limit=2&prefix=train&contains=LOCKED")
    path = api.open(render_mode="ansi", oracle=True, max_turns=3)
    api.get(path)
    api.post(f"{path}/reset", {"seed": 1, "options": {"task_id": "train/locked-001"}})
    api.step(path, "right", 1)
    api.step(path, "nonsense", 2, episode=1)
    _, saved = api.post(f"{path}/snapshot", {})
    api.post(f"{path}/restore", saved)
    _, forked = api.post(f"{path}/fork", {})
    for name in ("render", "tasks", "trajectory"):
        api.get(f"{path}/{name}")
    _, created = api.post("/v1/batch/create", {"items": [{}, {"kwargs": {"split": "no"}}]})
    one = {"session_id": created["results"][0]["session_id"]}
    api.post("/v1/batch/reset", {"items": [{**one, "seed": 0}]})
    api.post("/v1/batch/step", {"items": [{**one, "action": "left", "turn": 1}]})
    api.post("/v1/batch/close", {"items": [one, {"session_id": forked["session_id"]}]})
    api.call("DELETE", path)


def _stumble(api: Api) -> None:
    path = api.open()
    api.step(path, "left", 7)
    api.post(f"{path}/reset", {"seed": "x"})
    api.post(f"{path}/reset", data=b"{", content_type="application/json")
    api.post(f"{path}/reset", data=b"{}", content_type="text/plain")
    api.post(f"{path}/reset", data=b"x" * (2**20 + 1), content_type="application/json")
    api.post("/v1/sessions")
    api.get("/v1/sessions/nobody")
    api.get("/v1/tasks?split=no")
    api.call("DELETE", path)
    api.get(path)


@pytest.fixture
def checked() -> Checked:
    Checked.seen = set()
    return Checked(create_app(CORRIDOR))


def test_live_replies_are_as_described(checked):
    _play(checked)
    described = {
        (method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods
    }
    done = {(method, path) for method, path, status in checked.seen if status < 400}
    assert done == described, "an operation was not tried"


def test_live_errors_are_as_described():
    Checked.seen = set()
    api = Checked(create_app(CORRIDOR, max_sessions=1))
    _stumble(api)
    assert {status for *_, status in api.seen} >= {400, 404, 409, 410, 413, 415, 422, 429}
    locked = Checked(create_app(CORRIDOR, token="x"))
    assert locked.get("/v1/info")[0] == 401
