"""Targets: TOML files of settings, overrides of the command lines, and their JSON."""

from __future__ import annotations

import json
from typing import Any

from fuzz_target import Broken, target, written

from agentgyms.cli.settings import parsed
from agentgyms.core.errors import BadOption
from harness.config import (
    RECIPES,
    Config,
    EvaluationConfig,
    build,
    check,
    check_evaluation,
    digest,
    from_dict,
    list_recipes,
    load,
    overridden,
    to_dict,
)
from harness.types.errors import ConfigError


def _file_seeds() -> list[bytes]:
    names = ("corridor-tiny", "alfworld-gigpo-1.5b", "sotopia-oprl-tiny", "webshop-scpo-1.5b")
    return [(RECIPES / f"{name}.toml").read_bytes() for name in names]


@target(ConfigError, seeds=_file_seeds, kind="text", steps_per_byte=8_000)
def recipes(data: bytes) -> Any:
    """A file is a configuration, the same when its values are read again, or is refused."""
    config = load(written(data, "recipe.toml"))
    values = to_dict(config)
    if from_dict(values) != config and json.dumps(values, default=str).count("NaN") == 0:
        raise Broken("a configuration is not read as it was written")
    check(config)
    return digest(config)


def _override_seeds() -> list[bytes]:
    return [
        b'run.seed=3\nenv.kwargs.rooms="large"\noptimizer.learning_rate=1e-6',
        b'method.name="gigpo"\nrollout.group_size=4\nenv.id=agentgyms/ALFWorld-v0',
        b"policy.lora.rank=8\nrun.output=/x y\neval.every=0\nenv.kwargs={a = 1, b = [1, 2]}",
    ]


@target(ConfigError, seeds=_override_seeds, kind="text", steps_per_byte=8_000)
def overrides(data: bytes) -> Any:
    """Overrides of a recipe are taken or refused."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    config = load("corridor-tiny", lines)
    check(config)
    return digest(config)


def _evaluation_seeds() -> list[bytes]:
    return [
        b"run.name=a\nenv.id=agentgyms/Corridor-v0\nmodel.name=m\nmodel.url=http://h:1/v1",
        b'agent.kind="react"\nrun.seeds=[1, 2]\nsampling.temperature=0.4\nservice.retries=3',
    ]


@target(ConfigError, seeds=_evaluation_seeds, kind="text", steps_per_byte=8_000)
def evaluation_overrides(data: bytes) -> Any:
    """Settings of an evaluation are taken or refused."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    config = build(EvaluationConfig, overridden({}, lines))
    check_evaluation(config)
    return to_dict(config)


def _json_seeds() -> list[bytes]:
    names = sorted(list_recipes())[:2]
    return [json.dumps(to_dict(load(name))).encode() for name in names]


@target(ConfigError, seeds=_json_seeds, steps_per_byte=4_000)
def settings_json(data: bytes) -> Any:
    """The configuration that a run keeps is read or refused."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    config = build(Config, value)
    check(config)
    return digest(config)


@target(BadOption, seeds=lambda: [b'size=[6, 6]\nboxes=2\nname=a b\nx={"a": [1, null]}'],
    kind="text")  # fmt: skip
def environment_settings(data: bytes) -> Any:
    """Arguments of `agentgyms` after `--set` are taken or refused."""
    return parsed(tuple(data.decode("utf-8", "surrogateescape").split("\n")))
