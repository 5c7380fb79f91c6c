"""The settings of a model on a server, parsed from an environment's argument."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from gymnasium.error import DependencyNotInstalled

from agentgyms.core import imports
from agentgyms.core.errors import BadOption
from agentgyms.models.types import Answer, Sampling, Service


@dataclass(frozen=True, slots=True)
class Model:
    """A model on a server, with its request settings; prices are per million tokens.

    `key_variable` is the environment variable with the bearer token. `cache_path` is a file or a
    folder; None means the user's cache folder. `extra` are further fields of each request.
    """

    name: str
    url: str
    key_variable: str = "OPENAI_API_KEY"
    sampling: Sampling = field(default_factory=Sampling)
    service: Service = field(default_factory=Service)
    cache: bool = True
    cache_path: str | None = None
    price_prompt: float | None = None
    price_response: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def cost(self, answer: Answer) -> float:
        """Return the cost of an answer; nan if prices or tokens are unknown."""
        unknown = bool(answer.text) and not (answer.prompt and answer.response)
        if self.price_prompt is None or self.price_response is None or unknown:
            return math.nan
        return (answer.prompt * self.price_prompt + answer.response * self.price_response) / 1e6


class _Check(NamedTuple):
    """A condition on a value, with its description for errors."""

    description: str
    holds: Callable[[Any], bool]


def _number(holds: Callable[[float], bool]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        try:
            return type(value) in (int, float) and math.isfinite(value) and holds(value)
        except OverflowError:  # an integer beyond every float
            return False

    return check


def _integer(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


def _or_none(check: _Check) -> _Check:
    return _Check(f"{check.description} or None", lambda value: value is None or check.holds(value))


_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_AT_ADDRESS: Final = re.compile(r"(.+?)@(https?://.*)", re.IGNORECASE | re.DOTALL)
_TEXT: Final = _Check("a text", lambda value: isinstance(value, str) and bool(value.strip()))
_POSITIVE: Final = _Check("a number greater than 0", _number(lambda value: value > 0))
_NOT_NEGATIVE: Final = _Check("a number of at least 0", _number(lambda value: value >= 0))

_SAMPLING: Final = {
    "temperature": _NOT_NEGATIVE,
    "top_p": _Check("a number in (0, 1]", _number(lambda value: 0 < value <= 1)),
    "max_tokens": _Check("a positive integer", _integer(1)),
}
_SERVICE: Final = {
    "timeout_s": _POSITIVE,
    "retries": _Check("an integer of at least 0", _integer(0)),
    "requests_per_minute": _or_none(_POSITIVE),
    "tokens_per_minute": _or_none(_POSITIVE),
}
_OWN: Final = {
    "name": _TEXT,
    "url": _TEXT,
    "key_variable": _Check(
        "the name of an environment variable that has the key",
        lambda value: isinstance(value, str) and bool(_VARIABLE.fullmatch(value)),
    ),
    "cache": _Check("True or False", lambda value: isinstance(value, bool)),
    "cache_path": _or_none(_TEXT),
    "price_prompt": _or_none(_NOT_NEGATIVE),
    "price_response": _or_none(_NOT_NEGATIVE),
    "extra": _Check("a mapping", lambda value: isinstance(value, Mapping)),
}
_CHECKS: Final[Mapping[str, _Check]] = _OWN | _SAMPLING | _SERVICE
_FORM: Final = '"name@http://host:8000/v1", or a mapping with name and url'


def read_model(value: Any, what: str, sampling: Sampling) -> Model:
    """Return the model that an argument names: `"name@http://host:8000/v1"`, or a mapping.

    A mapping has `name`, `url` and any of the names in `_CHECKS`; `sampling` has the defaults.
    Raises `BadOption`, which names the part (`what` is the argument) and never repeats keys, and
    `DependencyNotInstalled` without the HTTP client.
    """
    fields = _fields(value, what)
    unknown = [key for key in fields if key not in _CHECKS]
    if unknown:
        known = ", ".join(_CHECKS)
        hint = " (a key's place is the environment variable that key_variable names)"
        raise BadOption(
            f"{what} has a part that no model has, {_preview(unknown[0])}: expected {known}"
            f"{hint if 'key' in str(unknown[0]).lower() else ''}"
        )
    for name, check in _CHECKS.items():
        if name in fields and not check.holds(fields[name]):
            raise BadOption(f"{what}'s {name} must be {check.description}{_given(fields[name])}")
    _check_sendable(fields, what)
    return Model(
        **{name: fields[name] for name in _OWN if name in fields},
        sampling=_updated(sampling, fields, _SAMPLING),
        service=_updated(Service(), fields, _SERVICE),
    )


def _fields(value: Any, what: str) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        fields = dict(value)
        missing = next((name for name in ("name", "url") if name not in fields), None)
        if missing:
            raise BadOption(f"{what} has no {missing}: expected {_FORM}")
        return fields
    if not isinstance(value, str):
        raise BadOption(f"{what} must be {_FORM}, got {type(value).__name__}")
    found = _AT_ADDRESS.fullmatch(value.strip())
    if found is None:
        shown = _preview(value.partition("@")[0])
        raise BadOption(f"{what} {shown} has no address of a server: expected {_FORM}")
    return {"name": found[1], "url": found[2]}


def _check_sendable(fields: Mapping[str, Any], what: str) -> None:
    try:
        from agentgyms.models.endpoint import base_url
        from agentgyms.models.requests import check_extra
    except ModuleNotFoundError as e:
        advice = imports.advice(e, "sotopia")
        if not advice:
            raise
        raise DependencyNotInstalled(f"{what} is a model behind a server: {advice}") from None
    try:
        base_url(fields["url"])
        check_extra(fields.get("extra", {}))
    except BadOption as e:
        raise BadOption(f"{what}: {e}") from None


def _updated(settings: Any, fields: Mapping[str, Any], checks: Mapping[str, _Check]) -> Any:
    """Return the settings updated with their fields; numbers get the field's type."""
    own = {name: fields[name] for name in checks if name in fields}
    whole = ("max_tokens", "retries")
    # An int instead of a float would change the cache key.
    numbers = {k: v if k in whole or v is None else float(v) for k, v in own.items()}
    return replace(settings, **numbers)


def _given(value: Any) -> str:
    """Return the given value for errors, if it cannot be a secret."""
    if type(value) is int and value.bit_length() > 64:
        return ", got an integer beyond 64 bits"
    return f", got {value!r}" if type(value) in (int, float, bool) else ""


def _preview(value: Any) -> str:
    """Return the beginning of a text: the whole might be a misplaced secret."""
    text = str(value)
    return repr(text if len(text) <= 24 else f"{text[:12]}...")
