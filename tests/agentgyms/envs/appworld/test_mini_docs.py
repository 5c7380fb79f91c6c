"""The documentation that agents of MiniAppWorld read."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from agentgyms.envs.appworld.mini.api import TOKEN, Api
from agentgyms.envs.appworld.mini.apps import APPS
from agentgyms.envs.appworld.mini.docs import Documentation
from agentgyms.envs.appworld.mini.records import ACCOUNTS
from tests.agentgyms.envs.appworld.small_town import ask, value, world

APIS = [api for app in APPS.values() for api in app.apis.values()]


def _doc(**arguments: Any) -> Any:
    return value(ask(world(), "api_docs", "show_api_doc", **arguments))


@pytest.mark.parametrize("api", APIS, ids=lambda api: f"{api.app}.{api.name}")
def test_documentation_has_every_parameter_of_the_function(api: Api) -> None:
    doc = _doc(app_name=api.app, api_name=api.name)
    names = [parameter["name"] for parameter in doc["parameters"]]
    if api.app in ACCOUNTS and api.name != "login":
        assert names.pop(0) == "access_token"
        assert api.parameters[0] is TOKEN
    _, *taken = inspect.signature(api.run).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in taken):
        taken = [each for each in taken if each.kind is not each.VAR_KEYWORD]
        assert {each.name for each in taken} < set(names)
    else:
        assert [each.name for each in taken] == names
    for parameter in doc["parameters"]:
        assert parameter["type"]
        assert parameter["description"].endswith(".")
        assert not (parameter["required"] and parameter["default"] is not None)
    assert doc["description"].endswith(".")
    assert doc["response_schemas"]["success"]
    assert doc["response_schemas"]["failure"] == {"message": "string"}


@pytest.mark.parametrize("api", APIS, ids=lambda api: f"{api.app}.{api.name}")
def test_defaults_are_values_that_the_api_takes(api: Api) -> None:
    for parameter in api.parameters:
        if not parameter.required:
            assert parameter.parse(parameter.default) == parameter.default


def test_descriptions_list_apps_and_apis_in_order() -> None:
    town = world()
    shown = value(ask(town, "api_docs", "show_app_descriptions"))
    assert [each["name"] for each in shown] == list(APPS)
    shown = value(ask(town, "api_docs", "show_api_descriptions", app_name="Purse "))
    assert [each["name"] for each in shown] == list(APPS["purse"].apis)


def test_documents_can_be_changed_by_who_gets_them() -> None:
    docs = Documentation(APPS)
    first = docs.api_doc("purse", "top_up")
    assert first is not None
    first["parameters"].clear()
    again = docs.api_doc("purse", "top_up")
    assert again is not None
    assert len(again["parameters"]) == 3


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("send money to somebody", ("purse", "send_payment")),
        ("create a playlist", ("jukebox", "create_playlist")),
        ("complete_task", ("supervisor", "complete_task")),
        ("DELETE note", ("notebook", "delete_note")),
        ("log in to the rolodex", ("rolodex", "login")),
        ("delete a note", ("notebook", "delete_note")),
        ("search songs", ("jukebox", "search_songs")),
        ("mark a to-do as done", ("planner", "complete_todo")),
        ("how do I pay a request", ("purse", "approve_request")),
        ("birthday of a contact", ("rolodex", "search_contacts")),
    ],
)
def test_search_finds_the_api_that_is_meant_first(query: str, name: tuple[str, str]) -> None:
    found = value(ask(world(), "api_docs", "search_api_docs", query=query))
    assert (found[0]["app_name"], found[0]["api_name"]) == name


def test_a_search_without_words_pages_through_all_and_one_without_matches_finds_nothing() -> None:
    town = world()
    found: list[Any] = []
    while rows := value(
        ask(town, "api_docs", "search_api_docs", page_index=len(found) // 20, page_limit=20)
    ):
        found += rows
        if len(rows) < 20:
            break
    assert len(found) == len(APIS)
    assert value(ask(town, "api_docs", "search_api_docs", query="zebra")) == []
