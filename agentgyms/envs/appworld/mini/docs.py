"""The documentation that `api_docs` shows, made from the declarations of the APIs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any

from agentgyms.envs.appworld.mini.api import App
from agentgyms.envs.appworld.mini.parameters import Parameter

_READS = ("show_", "search_")
_WEIGHTS = (4, 2, 1)
_FILLERS = frozenset(
    re.findall(
        r"\w+",
        """a all an and any are as at be by can do does for from get have how i in into is it me
        my of on or out please that the their this to up want what which who with you your""",
    )
)
"""Words of a query that say nothing about what is looked for."""


class Documentation:
    """The documentation of apps; it is made at its first use."""

    def __init__(self, apps: Mapping[str, App]) -> None:
        self._apps = apps

    def app_descriptions(self) -> list[dict[str, str]]:
        """Return name and description of each app."""
        return [{"name": app.name, "description": app.description} for app in self._apps.values()]

    def api_descriptions(self, app_name: str) -> list[dict[str, str]] | None:
        """Return name and description of each API of an app; None if there is no such app."""
        app = self._apps.get(app_name)
        if app is None:
            return None
        return [{"name": api.name, "description": api.description} for api in app.apis.values()]

    def api_doc(self, app_name: str, api_name: str) -> dict[str, Any] | None:
        """Return the documentation of an API; None if there is no such API."""
        text = self._texts.get((app_name, api_name))
        return None if text is None else dict(json.loads(text))

    def search(self, query: str) -> list[tuple[str, str]]:
        """Return the app and API names that a query finds, those with most of its words first.

        Words match in any case, in the singular or the plural. Names of the app and the API count
        most, then the description, then names of parameters and of returned fields.
        """
        words = _split(query) - _FILLERS
        if not words:
            return list(self._docs)
        scores = {name: _score(words, texts) for name, texts in self._words.items()}
        found = [name for name, score in scores.items() if score]
        return sorted(found, key=lambda name: -scores[name])

    @cached_property
    def _docs(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {
            (app.name, api.name): {
                "app_name": api.app,
                "api_name": api.name,
                "path": f"/{api.app}/{api.name}",
                "method": "GET" if api.name.startswith(_READS) else "POST",
                "description": api.description,
                "parameters": [_parameter(each) for each in api.parameters],
                "response_schemas": {"success": api.returns, "failure": {"message": "string"}},
            }
            for app in self._apps.values()
            for api in app.apis.values()
        }

    @cached_property
    def _texts(self) -> dict[tuple[str, str], str]:
        # Reading text is the fastest way to a copy that the caller may change.
        return {name: json.dumps(doc) for name, doc in self._docs.items()}

    @cached_property
    def _words(self) -> dict[tuple[str, str], tuple[frozenset[str], ...]]:
        return {
            name: (
                _split(" ".join(name).replace("_", " ")),
                _split(doc["description"]),
                _split(" ".join(_names(doc)).replace("_", " ")),
            )
            for name, doc in self._docs.items()
        }


def _score(words: AbstractSet[str], texts: Sequence[AbstractSet[str]]) -> int:
    return sum(
        weight * any(_alike(word, other) for other in text)
        for word in words
        for weight, text in zip(_WEIGHTS, texts, strict=True)
    )


def _alike(one: str, other: str) -> bool:
    """Return whether words are equal but for an ending, as `song` and `songs` or `log`, `login`."""
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= 3 and longer.startswith(shorter))


def _split(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", text.lower().replace("to-do", "todo")))


def _names(doc: dict[str, Any]) -> list[str]:
    returned = doc["response_schemas"]["success"]
    fields = returned[0] if isinstance(returned, list) else returned
    return [*(parameter["name"] for parameter in doc["parameters"]), *fields]


def _parameter(parameter: Parameter) -> dict[str, Any]:
    default = None if parameter.required else parameter.default
    return {
        "name": parameter.name,
        "type": parameter.kind,
        "required": parameter.required,
        "description": parameter.description,
        "default": list(default) if isinstance(default, tuple) else default,
        "constraints": parameter.constraints(),
    }
