"""The routes of the page in the OpenAPI document."""

from __future__ import annotations

from typing import Any, Final

from env_servers.http.openapi.json_schema import Schema, object_of

_TEXT: Final[Schema] = {"type": "string"}
_ENTERED: Final[list[dict[str, list[str]]]] = [{"bearer": []}, {"page": []}]
_NAME: Final = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[a-z_-]+[.](css|js|svg)$"},
    "description": "A file of the page.",
}


def paths() -> dict[str, Any]:
    """Return the paths of the page."""
    start = {"302": _redirect("To /play.")}
    page = {"200": _html("The page."), "401": _html("A form that asks for the token.")}
    entered = {
        "303": _redirect("To /play, with a cookie."),
        "401": _html("It is not the token: the form again."),
        "413": {"$ref": "#/components/responses/RequestEntityTooLarge"},
    }
    file = {
        "200": _texts("The file.", "text/css", "text/javascript", "image/svg+xml"),
        "401": {"$ref": "#/components/responses/Unauthorized"},
        "404": {"$ref": "#/components/responses/NotFound"},
    }
    form = {"schema": {**object_of({"token": _TEXT}), "additionalProperties": True}}
    body = {"required": True, "content": {"application/x-www-form-urlencoded": form}}
    enter = _operation("enterPage", "Takes the token that somebody typed.", [], entered)
    load = _operation("playFile", "A file of the page.", [*_ENTERED, {}], file)
    return {
        "/": {"get": _operation("start", "Leads to the page.", [], start)},
        "/play": {
            "get": _operation("playPage", "The page on which a person plays.", _ENTERED, page),
            "post": {**enter, "requestBody": body},
        },
        "/play/{name}": {"get": {**load, "parameters": [_NAME]}},
    }


def _operation(name: str, summary: str, security: Any, responses: dict[str, Any]) -> dict[str, Any]:
    described = {"operationId": name, "summary": summary, "tags": ["page"]}
    return {**described, "security": security, "responses": responses}


def _texts(description: str, *media: str) -> dict[str, Any]:
    return {"description": description, "content": {name: {"schema": _TEXT} for name in media}}


def _html(description: str) -> dict[str, Any]:
    return _texts(description, "text/html")


def _redirect(description: str) -> dict[str, Any]:
    headers = {"Location": {"required": True, "schema": _TEXT}}
    return {"description": description, "headers": headers}
