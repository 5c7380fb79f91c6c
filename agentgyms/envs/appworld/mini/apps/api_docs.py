"""The api_docs app: what apps and APIs there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from agentgyms.envs.appworld.mini.api import PAGE, ApiError, App, Plain, Session, page
from agentgyms.envs.appworld.mini.docs import Documentation
from agentgyms.envs.appworld.mini.parameters import Text, shown

_APP_NAME: Final = Text("app_name", "Name of the app.")
_DESCRIPTION: Final = {"name": "string", "description": "string"}
_DOC: Final = {
    "app_name": "string",
    "api_name": "string",
    "path": "string",
    "method": "string",
    "description": "string",
    "parameters": [
        {
            "name": "string",
            "type": "string",
            "required": True,
            "description": "string",
            "default": None,
            "constraints": ["string"],
        }
    ],
    "response_schemas": {"success": {}, "failure": {}},
}


def make_api_docs(others: Iterable[App]) -> App:
    """Return the app that documents itself and the `others`."""
    app = App("api_docs", "Tells which apps and APIs there are and how to call them.")
    docs = Documentation({each.name: each for each in (app, *others)})

    @app.api("List the apps.", returns=[_DESCRIPTION])
    def show_app_descriptions(_session: Session) -> Plain:
        return docs.app_descriptions()

    @app.api("List the APIs of an app.", _APP_NAME, returns=[_DESCRIPTION])
    def show_api_descriptions(_session: Session, app_name: str) -> Plain:
        described = docs.api_descriptions(app_name.lower())
        if described is None:
            raise ApiError(404, _no_app(docs, app_name))
        return described

    @app.api(
        "Show an API: its parameters and what it returns.",
        _APP_NAME,
        Text("api_name", "Name of the API."),
        returns=_DOC,
    )
    def show_api_doc(_session: Session, app_name: str, api_name: str) -> Plain:
        doc = docs.api_doc(app_name.lower(), api_name.lower())
        if doc is not None:
            return doc
        if docs.api_descriptions(app_name.lower()) is None:
            raise ApiError(404, _no_app(docs, app_name))
        raise ApiError(404, f"The {app_name.lower()} app has no API named {shown(api_name)}.")

    @app.api(
        "Search the documentation; what has most of the words comes first.",
        Text("query", "Words to look for; without any, everything is found.", default=""),
        *PAGE,
        returns=[_DOC],
    )
    def search_api_docs(_session: Session, query: str, page_index: int, page_limit: int) -> Plain:
        return [docs.api_doc(*name) for name in page(docs.search(query), page_index, page_limit)]

    return app


def _no_app(docs: Documentation, name: str) -> str:
    known = ", ".join(each["name"] for each in docs.app_descriptions())
    return f"There is no app named {shown(name)}; the apps are {known}."
