"""What an evaluation's configuration comes to: the papers' settings where it says nothing."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import gymnasium as gym

from agentgyms.arguments import OF_CONNECTIONS
from agentgyms.group import GroupEnv
from agentgyms.registration import ENVIRONMENTS
from harness.agent import CONTEXTS
from harness.completers.opening import backend_of
from harness.errors import ConfigError
from harness.evaluation.config import (
    AGENTS,
    EvalAgentConfig,
    EvalEnvConfig,
    EvaluationConfig,
    ModelConfig,
    SamplingConfig,
)


@dataclass(frozen=True, slots=True)
class Row:
    """How the papers evaluate on an environment.

    Attributes:
        split: The one that results are reported on; None takes the first of `_REPORTED` there is.
        official: The one of the data that `source="official"` names, where it has another name.
        temperature: Of evaluation.
        window: Past turns in a prompt.
        context: How the agent sees its episode.
        max_tokens: Longest response.
        source: Where these come from.
        max_turns: Turn limit of evaluation; None leaves it to the environment.
    """

    split: str | None
    temperature: float
    window: int
    context: str
    source: str
    max_tokens: int = 512
    max_turns: int | None = None
    official: str | None = None


ROWS: Final = {
    "alfworld": Row("valid_seen", 0.4, 2, "window", "SCPO, hyperparameters; GiGPO's scripts"),
    "webshop": Row("test", 0.4, 2, "window", "ECPO, hyperparameters for WebShop; OPRL 4.1"),
    "webshopbrowser": Row("test", 0.4, 2, "window", "as WebShop"),
    "sokoban": Row("test", 0.4, 2, "window", "GiGPO's scripts: 0.4 in validation"),
    "visualsokoban": Row("test", 0.4, 0, "window", "OPRL 4.1: 0.4; GiGPO's prompt: no history"),
    "searchqa": Row("test", 0.4, 4, "window", "GiGPO's scripts; ECPO validates with 0"),
    "appworld": Row(
        "test_normal",
        0.0,
        2,
        "transcript",
        "GVPO, table 4 (40 turns in training); SALT evaluates with temperature 1",
        max_turns=50,
    ),
    "sotopia": Row(
        "test",
        0.7,
        2,
        "transcript",
        "OPRL 4.1 and appendix C: 0.7 for agents, responses of 2048 tokens",
        max_tokens=2048,
        official="all",
    ),
    "corridor": Row("valid_seen", 0.0, 2, "window", "of this package alone; nobody reports on it"),
}
"""By the environment's name in small letters; 512 tokens a response, as in the papers' tables, but
where the row says so."""

GENERAL: Final = Row(None, 0.0, 2, "window", "any other environment: the most likely answer")
_REPORTED: Final = ("test", "valid_unseen", "valid_seen", "valid", "sample", "train")

_BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "run.tasks": (1, math.inf),
    "run.concurrency": (1, math.inf),
    "env.max_turns": (1, math.inf),
    "model.max_batch": (1, math.inf),
    "agent.window": (0, math.inf),
    "agent.max_prompt": (1, math.inf),
    "agent.examples": (0, math.inf),
    "agent.trials": (1, math.inf),
    "agent.memory": (1, math.inf),
    "sampling.temperature": (0, math.inf),
    "sampling.max_tokens": (1, math.inf),
    "service.retries": (0, math.inf),
    "service.price_prompt": (0, math.inf),
    "service.price_response": (0, math.inf),
}
_FREE: Final = ("env.kwargs", "model.engine", "model.extra")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_POSITIVE: Final = (
    "sampling.top_p",
    "service.timeout_s",
    "service.requests_per_minute",
    "service.tokens_per_minute",
)


def resolve(config: EvaluationConfig, trained: Mapping[str, Any] | None = None) -> EvaluationConfig:
    """Return the configuration with everything written out that it leaves open.

    The folder of an evaluation keeps this one, so that it goes on unchanged when a default changes.
    `env.max_turns` (the environment's own, unless the papers have another), `agent.max_prompt` (no
    limit), `run.tasks` (all) and what a server is not asked for stay None.

    Args:
        config: As given.
        trained: The configuration of the training run that the model comes from, if it is one's.

    Raises:
        ConfigError: A name is unknown, a number is out of its range, or settings contradict each
            other; the message names the key.
    """
    env = _environment(config, trained)
    row = ROWS.get(_name(env.id).lower(), GENERAL)
    official = env.kwargs.get("source") == "official"
    config = replace(
        config,
        env=replace(
            env,
            split=env.split or (official and row.official) or row.split,
            max_turns=row.max_turns if env.max_turns is None else env.max_turns,
        ),
        model=_model(config.model),
        agent=_agent(config.agent, row, trained),
        sampling=_sampling(config, row, trained),
    )
    check(config)
    if config.env.split is None:
        config = replace(config, env=replace(config.env, split=_reported(config)))
    if not config.run.name:
        config = replace(config, run=replace(config.run, name=_slug(config)))
    return config


def find(env_id: str) -> str:
    """Return the full id of an environment, given as `ALFWorld`, `alfworld` or in full.

    Raises:
        ConfigError: There is none; the message lists those there are.
    """
    if env_id in gym.registry or ":" in env_id:
        return env_id
    short = env_id.lower().removeprefix("agentgyms/")
    for known in ENVIRONMENTS:
        if short in (known.partition("/")[2].lower(), _name(known).lower()):
            return known
    names = [_name(known) for known in ENVIRONMENTS]
    near = difflib.get_close_matches(env_id, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(
        f"env.id {env_id!r} is no environment: expected one of {', '.join(names)}, or "
        f"module:id of one of yours{hint}"
    )


def _name(env_id: str) -> str:
    """Return the name in an id: `ALFWorld` of `agentgyms/ALFWorld-v0`."""
    return env_id.rpartition("/")[2].rpartition(":")[2].partition("-v")[0]


def _reported(config: EvaluationConfig) -> str:
    """Return the split on which results of an environment without a row are reported."""
    with GroupEnv(config.env.id, 1, **config.env.kwargs) as group:
        splits = group.envs[0].splits
    return next((split for split in _REPORTED if split in splits), splits[-1])


def _environment(config: EvaluationConfig, trained: Mapping[str, Any] | None) -> EvalEnvConfig:
    """Return the environment by its full id; that of a run as its own evaluations had it."""
    env, of_run = config.env, dict((trained or {}).get("env", {}))
    if not env.id and "id" not in of_run:
        raise ConfigError("env.id is missing: give an environment with --env, such as ALFWorld")
    env = replace(env, id=find(env.id or of_run["id"]))
    if config.agent.kind not in (None, "trained") or of_run.get("id") != env.id:
        return env
    kwargs = {k: v for k, v in of_run.get("kwargs", {}).items() if k not in OF_CONNECTIONS}
    evaluated = (trained or {}).get("eval", {})
    limits = (env.max_turns, evaluated.get("max_turns"), of_run.get("max_turns"))
    return replace(
        env,
        max_turns=next((limit for limit in limits if limit is not None), None),
        kwargs={**kwargs, **evaluated.get("kwargs", {}), **env.kwargs},
    )


def _model(model: ModelConfig) -> ModelConfig:
    backend = backend_of(model)
    name = model.name or (backend if backend in ("expert", "random") else "")
    return replace(model, backend=backend, name=name)


def _agent(agent: EvalAgentConfig, row: Row, trained: Mapping[str, Any] | None) -> EvalAgentConfig:
    kind = agent.kind or ("trained" if trained else "react")
    _one_of("agent.kind", kind, AGENTS)
    of_run: Mapping[str, Any] = {}
    if kind == "trained":
        if not trained:
            raise ConfigError(
                "agent.kind is 'trained', but the model is no training run's: give the run's "
                "folder as model.name, or another agent.kind"
            )
        of_run = trained.get("agent", {})
    if kind != "reflexion" and agent.trials not in (None, 1):
        raise ConfigError(
            f"agent.trials is {agent.trials} and agent.kind {kind!r}: only reflexion tries a task "
            "again"
        )
    style = agent.style or of_run.get("style") or ("direct" if kind == "direct" else "think")
    window = agent.window if agent.window is not None else of_run.get("window", row.window)
    return replace(
        agent,
        kind=kind,
        style=style,
        context=_one_of(
            "agent.context", agent.context or of_run.get("context") or row.context, CONTEXTS
        ),
        window=window,
        trials=agent.trials or (3 if kind == "reflexion" else 1),
    )


def _sampling(
    config: EvaluationConfig, row: Row, trained: Mapping[str, Any] | None
) -> SamplingConfig:
    sampling, kind = config.sampling, config.agent.kind
    of_run = (trained or {}).get("agent", {}) if kind in (None, "trained") else {}
    temperature, max_tokens = sampling.temperature, sampling.max_tokens
    return replace(
        sampling,
        temperature=row.temperature if temperature is None else temperature,
        max_tokens=of_run.get("max_tokens", row.max_tokens) if max_tokens is None else max_tokens,
    )


def check(config: EvaluationConfig) -> None:
    """Raise `ConfigError` if a number is out of its range or settings contradict each other."""
    for dotted, (low, high) in _BOUNDS.items():
        value = _get(config, dotted)
        if value is not None and not (low <= value <= high and math.isfinite(value)):
            raise ConfigError(f"{dotted} must be a number of at least {low:g}, got {value}")
    for dotted in _POSITIVE:
        value = _get(config, dotted)
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise ConfigError(f"{dotted} must be a number above 0, got {value}")
    _check_run(config)
    _check_names(config)
    for dotted in _FREE:
        _check_plain(dotted, _get(config, dotted))


def _check_run(config: EvaluationConfig) -> None:
    if config.sampling.top_p > 1:
        raise ConfigError(f"sampling.top_p must be in (0, 1], got {config.sampling.top_p}")
    seeds = config.run.seeds
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ConfigError(f"run.seeds must be different numbers from 0 up, got {list(seeds)}")
    if (config.service.price_prompt is None) != (config.service.price_response is None):
        raise ConfigError("give both service.price_prompt and service.price_response, or neither")


def _check_names(config: EvaluationConfig) -> None:
    if not _VARIABLE.fullmatch(config.model.key_variable):
        raise ConfigError(  # what is there may be the key itself: it is not repeated
            "model.key_variable is no name of an environment variable: put the key into one, such "
            "as OPENAI_API_KEY, and give its name here"
        )
    own = sorted({"split", "max_turns"} & config.env.kwargs.keys())
    if own:
        raise ConfigError(f"env.kwargs has {own[0]!r}: set env.{own[0]} instead")
    if not re.fullmatch(r"[\w.+=@ -]{0,200}", config.run.name) or config.run.name in (".", ".."):
        raise ConfigError(
            f"run.name {config.run.name!r} is no plain name: use at most 200 letters, digits, "
            "'.', '_' and '-', and run.output for the folder it is in"
        )


def _check_plain(key: str, values: dict[str, Any]) -> None:
    try:
        json.dumps(values, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise ConfigError(f"{key} {values!r} cannot be written down as JSON: {e}") from None


def _get(config: Any, dotted: str) -> Any:
    for key in dotted.split("."):
        config = getattr(config, key)
    return config


def _one_of(key: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        near = difflib.get_close_matches(value, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{key} {value!r} is unknown: expected one of {', '.join(known)}{hint}")
    return value


def _slug(config: EvaluationConfig) -> str:
    """Return environment, split, agent and model as the name of a folder."""
    parts = [part for part in config.model.name.split("/") if part]
    if len(parts) > 2 and parts[-2] == "checkpoints":
        parts = [f"{parts[-3]}-{parts[-1]}"]
    words = [_name(config.env.id).lower(), config.env.split, config.agent.kind, *parts[-1:]]
    return re.sub(r"[^\w.]+", "-", "-".join(str(word) for word in words)).strip("-.")[:200]
