"""The protocol between client and server: its version, and messages to JSON and back.

A request with an unknown field, a missing field or a wrong type is rejected with a message that
names the field. Floats that JSON cannot represent become null.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, fields
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Final,
    NamedTuple,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from gymnasium.spaces import Box, Dict, Space

from agentgyms.core import serialization
from agentgyms.core.errors import BadOption, BadRequest
from agentgyms.core.images import MAX_PIXELS
from agentgyms.core.spaces import UnicodeText
from agentgyms.core.tasks import Task
from agentgyms.core.tools import ANY_ACTION, Tools
from agentgyms.remote.protocol.messages import MAX_OFFSET, Description, Tasks

PROTOCOL: Final = "1"
PROTOCOL_HEADER: Final = "Agentgyms-Protocol"
TOKEN_VARIABLE: Final = "AGENTGYMS_TOKEN"  # noqa: S105
MAX_BODY_BYTES: Final = 2**20


_LAST_LATIN_1: Final = "\xff"


def check_token(token: Any) -> str:
    """Return a bearer token without surrounding white space; "" means no token.

    Raises `BadOption`, without the token in it, if it cannot be the value of an HTTP header.
    """
    if not isinstance(token, str):
        raise BadOption(f"a token is a string, got {type(token).__name__}")
    secret = token.strip()
    if token and not secret:
        raise BadOption("the token is blank: give one that can be sent, or none at all")
    if not secret.isprintable() or max(secret, default="") > _LAST_LATIN_1:
        raise BadOption(
            "the token cannot be sent in an HTTP header: expected printable Latin-1 characters "
            "without line breaks"
        )
    return secret


class _Message(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


M = TypeVar("M", bound=_Message)


def read(kind: type[M], value: Any, what: str) -> M:
    """Parse a message from the JSON value `value`; `what` names it in errors.

    Raises `BadRequest` if a field is missing, unknown or has the wrong type.
    """
    known = _fields(kind)
    for name in value if isinstance(value, dict) else ():
        if name not in known:
            expected = f"expected only {', '.join(known)}" if known else "expected none"
            raise BadRequest(f"the {what} has an unknown field {name!r}: {expected}")
    return read_reply(kind, value, what)


def read_reply(kind: type[M], value: Any, what: str) -> M:
    """Parse a reply, unknown fields ignored; `BadRequest` for a missing or wrong field."""
    if not isinstance(value, dict):
        raise BadRequest(f"the {what} must be a JSON object, got {_json_type(value)}")
    found = {}
    for name, field in _fields(kind).items():
        if name not in value:
            if field.required:
                raise BadRequest(f"the {what} has no field {name!r} ({_name(field.hint)})")
            continue
        given = found[name] = _as_integer(value[name], field.types)
        if field.types and type(given) not in field.types:
            wanted = _name(field.hint)
            raise BadRequest(f"{name!r} in the {what} must be {wanted}, got {_json_type(given)}")
        if field.hint == list[str] and not all(type(item) is str for item in given):
            raise BadRequest(f"{name!r} in the {what} must have strings alone, got {given!r:.80}")
    return kind(**found)


def _as_integer(value: Any, types: frozenset[type]) -> Any:
    """Return 780 for 780.0 where only integers are taken: JSON Schema does not tell them apart."""
    wanted = int in types and float not in types
    return int(value) if wanted and type(value) is float and value.is_integer() else value


def write(message: Any) -> dict[str, Any]:
    """Return a message as a JSON value."""
    value = {name: getattr(message, name) for name in _fields(message.__class__)}
    if "observation" in value:
        value["observation"] = serialization.encode_observation(value["observation"])
        value["info"] = serialization.encode_info(value["info"])
    if value.get("render") is not None:
        value["render"] = serialization.encode_part(value["render"])
    if value.get("reward") is not None:
        value["reward"] = serialization.encode_number(value["reward"])
    return value


def describe(env: Any) -> dict[str, Any]:
    """Return the `Description` of an environment as a JSON value."""
    return asdict(
        Description(
            split=env.split,
            splits=list(env.splits),
            max_turns=env.max_turns,
            oracle=env.oracle,
            render_modes=list(env.metadata["render_modes"]),
            data_version=env.data_version,
            observation_space=write_space(env.observation_space),
            action_space=write_space(env.action_space),
            parties=dict(env.parties),
            data_source=env.data_source,
            stochastic=env.stochastic,
            tools=env.tools.plain,
        )
    )


def read_tools(env_id: str, description: Description) -> Tools:
    """Return the tools; `ANY_ACTION` if an older server has none; `BadRequest` if damaged."""
    if description.tools in ([], ANY_ACTION.plain):
        return ANY_ACTION
    try:
        return Tools.from_plain(description.tools)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as e:
        raise BadRequest(f"the server's tools of {env_id} are damaged: {e}") from e


def write_space(space: Space[Any]) -> dict[str, Any]:
    """Return a space of texts and images (uint8 [H, W, 3], any colour) as JSON, or `TypeError`."""
    if isinstance(space, UnicodeText):
        return {"type": "UnicodeText", "max_length": space.max_length}
    if isinstance(space, Box) and _holds_any_image(space):
        return {"type": "Box", "dtype": "uint8", "low": 0, "high": 255, "shape": list(space.shape)}
    if isinstance(space, Dict) and not any(isinstance(part, Dict) for part in space.values()):
        return {"type": "Dict", "spaces": {k: write_space(part) for k, part in space.items()}}
    raise TypeError(
        f"no wire form for the space {space}: expected UnicodeText, an image, which is "
        f"Box(0, 255, (H, W, 3), uint8) of at most {MAX_PIXELS} pixels, or a Dict of them"
    )


def _holds_any_image(space: Box) -> bool:
    shape = [int(size) for size in space.shape]
    if space.dtype != np.uint8 or not _is_image_shape(shape):
        return False
    return bool(np.all(space.low == 0) and np.all(space.high == 255))


def _is_image_shape(shape: Any) -> bool:
    if not isinstance(shape, list) or [type(size) for size in shape] != [int, int, int]:
        return False
    height, width, channels = shape
    return bool(channels == 3 and min(height, width) > 0 and height * width <= MAX_PIXELS)


def read_space(value: Any) -> Space[Any]:
    """Return the space that `write_space` wrote; raise `BadRequest` if it is invalid."""
    match value:
        case {"type": "UnicodeText", "max_length": int(length)} if length > 0:
            return UnicodeText(length)
        case {"type": "Box", "dtype": "uint8", "low": 0, "high": 255, "shape": shape}:
            if _is_image_shape(shape):
                return Box(0, 255, tuple(shape), np.uint8)
        case {"type": "Dict", "spaces": dict(parts)} if parts and not any(
            isinstance(part, dict) and part.get("type") == "Dict" for part in parts.values()
        ):
            return Dict([(name, read_space(part)) for name, part in parts.items()])
    raise BadRequest(f"no space of this client: {value!r:.200}; install the server's agentgyms")


def read_tasks(message: Tasks) -> list[Task]:
    """Return a message's tasks; `BadRequest` if one is no pair of strings, or `total` is wrong."""
    if not 0 <= message.total <= MAX_OFFSET:
        raise BadRequest(f"total must be from 0 to {MAX_OFFSET}, got {message.total!r:.80}")
    for pair in message.tasks:
        if not (isinstance(pair, list) and [type(part) for part in pair] == [str, str]):
            raise BadRequest(f"a task is a pair of id and family, got {pair!r:.80}")
    return [Task(*pair) for pair in message.tasks]


class _Field(NamedTuple):
    """The declared type of a message's field and the JSON types it may have; () allows any."""

    hint: Any
    types: frozenset[type]
    required: bool


@cache
def _fields(kind: type[Any]) -> dict[str, _Field]:
    hints = get_type_hints(kind)
    return {
        f.name: _Field(
            hints[f.name],
            _types(hints[f.name]),
            f.default is MISSING and f.default_factory is MISSING,
        )
        for f in fields(kind)
    }


def _types(hint: Any) -> frozenset[type]:
    """Return the allowed types of a JSON value for a hint; a boolean is not a number."""
    if isinstance(hint, UnionType):
        return frozenset().union(*map(_types, get_args(hint)))
    if hint is Any:
        return frozenset()
    return frozenset({int, float} if hint is float else {get_origin(hint) or hint})


_NAMES: Final = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    dict: "an object",
    list: "a list",
    NoneType: "null",
}


def _name(hint: Any) -> str:
    if isinstance(hint, UnionType):
        return " or ".join(_name(option) for option in get_args(hint))
    return _NAMES.get(get_origin(hint) or hint, "any value")


def _json_type(value: Any) -> str:
    return _NAMES.get(type(value), type(value).__name__)
