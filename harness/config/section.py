"""A section of settings: a frozen pydantic model whose errors name the dotted key."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from harness.config.allowed_values import describe
from harness.types.errors import ConfigError

_T = TypeVar("_T")
_S = TypeVar("_S", bound="Section")

_WITHOUT_EFFECT: Final = ("name", "seed", "output", "threads")
_FOLDER_NAME: Final = re.compile(r"[\w.+=@ -]{0,200}")


class Section(BaseModel):
    """Base of all sections. Refuses unknown keys, values of another type, nan and infinity.

    An int is accepted for a float; nothing else is converted.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def _json_plain(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse values that JSON cannot represent."""
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise ValueError(f"{values!r} cannot be written down as JSON: {e}") from None
    return values


NonNegativeInt = Annotated[int, Ge(0)]
PositiveInt = Annotated[int, Ge(1)]
NonNegativeFloat = Annotated[float, Ge(0)]
PositiveFloat = Annotated[float, Gt(0)]
LearningRate = Annotated[float, Gt(0), Le(10)]
"""A step of AdamW changes each weight by about so much."""
Fraction = Annotated[float, Ge(0), Lt(1)]
Share = Annotated[float, Ge(0), Le(1)]
FROM_LIST = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
"""Takes a list for a tuple: TOML and JSON have no tuples."""
List = Annotated[tuple[_T, ...], FROM_LIST]
Pair = Annotated[tuple[_T, _T], FROM_LIST]
Table = Annotated[dict[str, Any], AfterValidator(_json_plain)]
"""Free settings that other code checks, such as the arguments of an environment."""


def folder_name(name: str) -> str:
    """Return the name of a folder; raises `ValueError` for a path, or if it is too long."""
    if not _FOLDER_NAME.fullmatch(name) or name in (".", ".."):
        raise ValueError(
            f"{name[:60]!r} is no plain name: use at most 200 letters, digits, '.', '_' and '-', "
            "and run.output for the folder it is in"
        )
    return name


def build(kind: type[_S], values: Mapping[str, Any]) -> _S:
    """Return a section or a configuration of nested dictionaries; missing keys take their defaults.

    Raises `ConfigError`, which lists all errors, if a key is unknown, or a value has the wrong type
    or is out of its range.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as e:
        raise ConfigError(describe(kind, e)) from None


def replace(section: _S, **changes: Any) -> _S:
    """Return a section with some settings changed, checked as by `build`."""
    return build(type(section), {**dict(section), **changes})


def to_dict(section: Section) -> dict[str, Any]:
    """Return all settings as nested dictionaries."""
    return section.model_dump()


def digest(config: Section) -> str:
    """Return the first 12 hex characters of the configuration's SHA-256."""
    return digest_values(to_dict(config))


def digest_values(values: Mapping[str, Any]) -> str:
    """Return the first 12 hex characters of the SHA-256 of JSON values."""
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def without_seed(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's configuration without the keys that change figures only by chance.

    These are seed, name, output folder, number of threads, and the names of swept settings. Runs
    that repeat each other with different seeds have equal results here.
    """
    kept = {k: v for k, v in run["run"].items() if k not in _WITHOUT_EFFECT}
    return {**{key: part for key, part in run.items() if key != "swept"}, "run": kept}
