"""Several runs of one recipe, at other seeds and swept values; and a run that is made longer."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.config.files import from_dict, load, overridden
from harness.config.schema import Config
from harness.config.section import replace, to_dict, without_seed
from harness.types.errors import ConfigError

_OPENING: Final = {"[": "]", "{": "}", '"': '"', "'": "'"}
_UNUSUAL: Final = re.compile(r"[^\w.+-]+", re.ASCII)


def vary(
    recipe: str,
    overrides: Sequence[str],
    sweeps: Sequence[str] = (),
    seeds: int = 1,
    methods: Sequence[str] = (),
) -> list[Config]:
    """Return the configurations of a recipe by every method, combination of swept values and seed.

    A run is named `NAME-METHOD-KEY=VALUE-seedN`: NAME is `run.name`, METHOD one of `methods` if
    there are some, and N the seed: `run.seed`, `run.seed` + 1, ... KEY is the last part of a swept
    setting's key, or all of it if two end alike. A sweep is such as `method.credit.alpha=0.3,0.5`;
    commas in brackets and quotes part nothing. With methods, all runs of a seed stand before those
    of the next, so that pairs are whole early. Raises `ConfigError` if a key or value is wrong, a
    key is swept twice, or two combinations are equal.
    """
    if methods:
        made = [_of_method(one, recipe, overrides, sweeps, seeds) for one in methods]
        if len({one[0].method.name for one in made}) < len(made):
            raise ConfigError("--methods has a method twice")
        return sorted((config for one in made for config in one), key=lambda c: c.run.seed)
    swept = dict(_parsed(sweep) for sweep in sweeps)
    if len(swept) < len(sweeps):
        raise ConfigError("a setting is swept twice: give all its values in one --sweep")
    found: dict[str, Config] = {}
    known: list[dict[str, Any]] = []
    for values in itertools.product(*swept.values()):
        chosen = dict(zip(swept, values, strict=True))
        changes = [f"{key}={value}" for key, value in chosen.items()]
        config = load(recipe, [*overrides, *changes])
        for seed in range(config.run.seed, config.run.seed + seeds):
            name = f"{config.run.name}{_suffix(chosen)}-seed{seed}"
            run = replace(config.run, name=name, seed=seed)
            one = replace(config, run=run, swept=tuple(chosen))
            settings = {"seed": seed, **without_seed(to_dict(one))}
            if name in found or settings in known:
                raise ConfigError(f"--sweep has a value twice: {name} would repeat another run")
            found[name] = one
            known.append(settings)
    return list(found.values())


def _of_method(
    method: str, recipe: str, overrides: Sequence[str], sweeps: Sequence[str], seeds: int
) -> list[Config]:
    """Return the configurations of a recipe by one method."""
    if any(sweep.partition("=")[0].strip() == "method.name" for sweep in sweeps):
        raise ConfigError("method.name is swept, and --methods are given: leave one")
    changes = [*overrides, f"method.name={method}"]
    name = f"{load(recipe, changes).run.name}-{_UNUSUAL.sub('_', method)}"
    return vary(recipe, [*changes, f"run.name={json.dumps(name)}"], sweeps, seeds)


def lengthened(config: Config, overrides: Sequence[str]) -> Config:
    """Return a run's configuration with the last `run.steps` of its overrides.

    Raises `ConfigError` for another setting, or a wrong number.
    """
    for override in overrides:
        if override.partition("=")[0].strip() != "run.steps":
            raise ConfigError(
                f"a resumed run keeps its settings, got --set {override}: only run.steps can be "
                "changed, to train it longer; for others begin a new run"
            )
    return from_dict(overridden(to_dict(config), overrides))


def _suffix(chosen: dict[str, str]) -> str:
    """Return the part of a run's name with its swept values."""
    last = {key: key.rpartition(".")[2] for key in chosen}
    short = len(set(last.values())) == len(last)
    return "".join(
        f"-{last[key] if short else key}={_UNUSUAL.sub('_', value.strip())}"
        for key, value in chosen.items()
    )


def _parsed(sweep: str) -> tuple[str, list[str]]:
    key, equals, text = sweep.partition("=")
    values = [value.strip() for value in _parts(text)]
    if not equals or not key.strip() or not all(values):
        raise ConfigError(f"--sweep has the form section.key=value,value,..., got {sweep!r}")
    overridden({}, [f"{key}={values[0]}"])
    if key.strip() in ("run.seed", "run.name", "run.output"):
        raise ConfigError(f"--sweep cannot vary {key.strip()}: for other seeds take --seeds")
    return key.strip(), values


def _parts(text: str) -> Iterator[str]:
    """Yield the parts of a text between its commas, but for those in brackets and quotes."""
    closing: list[str] = []
    part = ""
    for character in text:
        if closing and character == closing[-1]:
            closing.pop()
        elif character in _OPENING and not (closing and closing[-1] in "\"'"):
            closing.append(_OPENING[character])
        if character == "," and not closing:
            yield part
            part = ""
        else:
            part += character
    yield part
