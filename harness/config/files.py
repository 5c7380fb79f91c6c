"""Settings in TOML files: recipes that extend others, and overrides from the command line."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import did_you_mean
from agentgyms.data.users_files import read_text
from harness.config.schema import Config
from harness.config.section import build
from harness.config.toml_values import parse_value
from harness.types import plugins
from harness.types.errors import ConfigError

RECIPES: Final = Path(__file__).parent / "recipes"
"""Folder of the built-in recipes; those in its folder `bases/` are only for `extends`."""

MODELS: Final = RECIPES / "models"
"""Folder of the models that a recipe's name can end with: `alfworld-gigpo-1.5b+qwen3-4b`."""

SOURCES: Final = Path(__file__).parent / "sources.toml"
"""Where recipes' settings come from: `source` tables with `name`, `recipes`, `settings`."""

COMPARISONS: Final = Path(__file__).parent / "comparisons.toml"
"""The settings that belong to methods, and those that the papers' tables vary."""

DEPARTURES: Final = "departures"
"""Section of a recipe: settings that differ from its sources, `section.key`, each with why."""

_MOST_KEYS: Final = 16
"""Most keys in a row of an override's path."""


def load(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a recipe, a TOML file or a built-in name, and import its plug-ins.

    A name followed by `+` and one of `MODELS` trains that model, in a run whose name ends with it.
    Overrides are such as `run.seed=3` or `env.kwargs.rooms="large"`; values are TOML, else text.
    Raises `ConfigError` if the file is missing or not TOML, or a key or value is wrong.
    """
    values = _with_model(path)
    values.pop(DEPARTURES, None)
    config = build(Config, overridden(values, overrides))
    plugins.load(config.run.plugins)
    return config


def departures(path: str | Path) -> dict[str, str]:
    """Return the settings in which a recipe departs from its source on purpose, with reasons."""
    return dict(_with_model(path).get(DEPARTURES, {}))


def from_dict(values: Mapping[str, Any]) -> Config:
    """Return the training configuration of nested dictionaries; see `build`."""
    return build(Config, values)


def list_recipes() -> dict[str, str]:
    """Return the built-in recipes by name, each with its first comment line."""
    return _first_lines(RECIPES)


def list_models() -> dict[str, str]:
    """Return the models that a recipe's name can end with, each with its first comment line."""
    return _first_lines(MODELS)


def _first_lines(folder: Path) -> dict[str, str]:
    return {
        file.stem: file.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
        for file in sorted(folder.glob("*.toml"))
    }


def _with_model(path: str | Path) -> dict[str, Any]:
    """Return the settings of a recipe, with the model that its name ends with."""
    recipe, plus, model = str(path).rpartition("+")
    if not plus or "/" in model or Path(path).exists():
        return read(_find(path, Path()))
    known = list_models()
    if model not in known:
        raise ConfigError(
            f"there is no model {model!r:.60} for a recipe: expected one of {', '.join(known)}; "
            "any other goes by --set policy.model=..."
        )
    values = merged(read(_find(recipe, Path())), read(MODELS / f"{model}.toml"))
    name = values.get("run", {}).get("name", Path(recipe).stem)
    return merged(values, {"run": {"name": f"{name}-{model}"}})


def _find(path: str | Path, folder: Path) -> Path:
    """Return a file by its path relative to a folder, or by the name of a recipe."""
    for candidate in (folder / path, RECIPES / f"{path}.toml", RECIPES / path):
        try:
            if candidate.is_file():
                return candidate
        except OSError:  # its name is too long
            continue
    known = [file.stem for file in RECIPES.glob("*.toml")]
    hint = did_you_mean(str(path).removesuffix(".toml"), known)
    raise ConfigError(
        f"there is no recipe {path!s:.100}: expected a TOML file or one that `harness recipes` "
        f"lists{hint}"
    )


def read(file: Path) -> dict[str, Any]:
    """Return the settings of a TOML file merged onto those of the file that it extends.

    Raises `ConfigError` if a file is missing, not TOML, or extends itself in a circle.
    """
    return _read(file, ())


def _read(file: Path, extended_by: tuple[Path, ...]) -> dict[str, Any]:
    chain = (*extended_by, file.resolve())
    if file.resolve() in extended_by:
        circle = " extends ".join(str(one) for one in chain)
        raise ConfigError(f"recipes extend each other in a circle: {circle}")
    values = _parse(file)
    base = values.pop("extends", None)
    if base is None:
        return values
    if not isinstance(base, str):
        raise ConfigError(f"extends of {file} must be one recipe's name or path, got {base!r}")
    try:
        found = _find(base, file.parent)
    except ConfigError as e:
        raise ConfigError(f"{file} extends {base!r}, but {e}") from None
    return merged(_read(found, chain), values)


def _parse(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(file))
    except OSError as e:
        raise ConfigError(f"{file} cannot be read: {e.strerror}") from None
    except ValueError as e:  # also bytes that are no text, and an integer of too many digits
        raise ConfigError(f"{file} is not valid TOML: {e}") from None
    except RecursionError:
        raise ConfigError(f"{file} has values that are nested too deeply") from None


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with changes applied: tables are merged, other values replaced."""
    result = dict(values)
    for key, value in changes.items():
        before = result.get(key)
        nested = isinstance(before, Mapping) and isinstance(value, Mapping)
        result[key] = merged(before, value) if nested else value  # type: ignore[arg-type]
    return result


def overridden(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return nested settings with overrides such as `run.seed=3`; the value is TOML, else text."""
    changed = copy.deepcopy(dict(values))
    for override in overrides:
        dotted, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"an override has the form section.key=value, got {override!r}")
        *sections, key = dotted.strip().split(".", _MOST_KEYS)
        if "." in key:
            raise ConfigError(f"{dotted!r:.60}: a setting has at most {_MOST_KEYS} keys in a row")
        inner = changed
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"{dotted!r}: {section!r} is no section")
        inner[key] = parse_value(text, dotted.strip())
    return changed
