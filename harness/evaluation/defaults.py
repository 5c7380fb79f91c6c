"""The papers' settings, for keys that an evaluation's configuration leaves open."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.core.arguments import CONNECTION_ARGUMENTS, private_names
from agentgyms.core.outcome import shown
from agentgyms.registration import GroupEnv, find_maker, short_name
from harness import prompts
from harness.config import (
    SEARCHES,
    EvalAgentConfig,
    EvalEnvConfig,
    EvaluationConfig,
    SamplingConfig,
    SearchConfig,
    check_evaluation,
    replace,
)
from harness.evaluation.open_model import backend_of
from harness.prompts import answer_limits
from harness.prompts.tool_formats import choose
from harness.types import plugins
from harness.types.errors import ConfigError

_PARTS: Final = ("episode", "examples", "memory", "reflect", "scratchpad", "summarise", "summary")
"""Parts of prompts that evaluations may use."""


@dataclass(frozen=True, slots=True)
class Row:
    """The papers' settings of evaluation on an environment."""

    split: str | None  # None takes the first of `_REPORTED` that exists
    temperature: float
    window: int  # past turns in a prompt
    context: str
    source: str  # the paper or code that has these settings
    max_tokens: int = answer_limits.USUAL  # of a response
    max_turns: int | None = None  # None takes the environment's limit
    official: str | None = None  # the split's name with `source="official"`
    answers: bool = False  # the last action is an answer, so a majority can decide


ROWS: Final = {
    "alfworld": Row("valid_seen", 0.4, 2, "window", "SCPO, hyperparameters; GiGPO's scripts"),
    "webshop": Row("test", 0.4, 2, "window", "ECPO, hyperparameters for WebShop; OPRL 4.1"),
    "webshopbrowser": Row("test", 0.4, 2, "window", "as WebShop"),
    "sokoban": Row("test", 0.4, 2, "window", "GiGPO's scripts: 0.4 in validation"),
    "visualsokoban": Row("test", 0.4, 0, "window", "OPRL 4.1: 0.4; GiGPO's prompt: no history"),
    "searchqa": Row(
        "test", 0.4, 4, "window", "GiGPO's scripts; ECPO validates with 0", answers=True
    ),
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
    "tau2": Row(
        "test", 0.0, 2, "transcript", "of tau2-bench: its command line's temperature for agents"
    ),
    "corridor": Row("valid_seen", 0.0, 2, "window", "of this package alone; nobody reports on it"),
}
"""By the environment's name in small letters; 512 tokens a response, as in the papers' tables, but
where the row says so, and fewer on a CPU."""

GENERAL: Final = Row(None, 0.0, 2, "window", "any other environment: the most likely answer")
_AS_TRAINED: Final = (None, "trained", *SEARCHES)
"""Kinds of agents that a training run's model plays as it was trained."""

_REPORTED: Final = ("test", "valid_unseen", "valid_seen", "valid", "sample", "train")


def resolve(
    config: EvaluationConfig,
    trained: Mapping[str, Any] | None = None,
    tool_format: str | None = "auto",
) -> EvaluationConfig:
    """Return the configuration with everything written out that it leaves open.

    The folder keeps the result, so that an evaluation resumes unchanged when a default changes.
    `env.max_turns` (the environment's, unless the papers have another), `agent.max_prompt` (no
    limit), `run.tasks` (all) and options of other backends stay None. `trained` is the
    configuration of the training run that the model comes from, `tool_format` that of its chat
    template; `"auto"` leaves it open. Raises `ConfigError`, which names the key, if a name is
    unknown, a number is out of its range, or settings contradict each other.
    """
    env = _environment(config, trained)
    row = ROWS.get(short_name(env.id).lower(), GENERAL)
    official = env.kwargs.get("source") == "official"
    backend = backend_of(config.model)
    without_model = backend if backend in ("expert", "random") else ""
    agent = _agent(config.agent, row, trained, tool_format)
    on_cpu = backend == "hf" and _is_cpu(config.model.device)
    usual = answer_limits.limit(str(agent.style), env.id, on_cpu=on_cpu, usual=row.max_tokens)
    config = replace(
        config,
        env=replace(
            env,
            split=env.split or (official and row.official) or row.split,
            max_turns=row.max_turns if env.max_turns is None else env.max_turns,
        ),
        model=replace(config.model, backend=backend, name=config.model.name or without_model),
        agent=agent,
        sampling=_sampling(config, row.temperature, usual, trained),
        search=_search(config, row),
    )
    check_evaluation(config)
    if config.env.split is None:
        with GroupEnv(config.env.id, 1, **config.env.kwargs) as group:
            splits = group.envs[0].splits
        split = next((split for split in _REPORTED if split in splits), splits[-1])
        config = replace(config, env=replace(config.env, split=split))
    if not config.run.name:
        config = replace(config, run=replace(config.run, name=_slug(config)))
    return config


def _environment(config: EvaluationConfig, trained: Mapping[str, Any] | None) -> EvalEnvConfig:
    """Return the environment by its full id; a run's as in the run's evaluations."""
    env, run_env = config.env, dict((trained or {}).get("env", {}))
    if not env.id and "id" not in run_env:
        raise ConfigError("env.id is missing: give an environment with --env, such as ALFWorld")
    env = replace(env, id=plugins.find_environment(env.id or _recorded_id(run_env["id"])))
    if config.agent.kind not in _AS_TRAINED or run_env.get("id") != env.id:
        return env
    evaluated = (trained or {}).get("eval", {})
    kwargs = _kwargs(trained or {})
    _check_untrusted(env.id, {k: v for k, v in kwargs.items() if k not in env.kwargs})
    limits = (env.max_turns, evaluated.get("max_turns"), run_env.get("max_turns"))
    return replace(
        env,
        max_turns=next((limit for limit in limits if limit is not None), None),
        kwargs={**kwargs, **env.kwargs},
    )


def words_to_give(trained: Mapping[str, Any]) -> list[str]:
    """Return the words that `harness eval` needs beside `--model` for a run of one's own.

    They are settings that a run's folder may not decide, see `resolve`. The environment's module is
    imported.
    """
    env_id, agent = trained["env"]["id"], trained.get("agent", {})
    words = ["--env", env_id] if ":" in env_id else []
    kwargs = _kwargs(trained)
    for name in private_names(find_maker(plugins.find_environment(env_id))[0], kwargs):
        words += ["--env-arg", f"{name}={json.dumps(kwargs[name])}"]
    if ":" in (called := agent.get("tool_format", "auto")):
        words += ["--set", f"agent.tool_format={called}"]
    return words


def _kwargs(trained: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the environments of a run's evaluations, but for where they are."""
    sections = (trained.get(name, {}).get("kwargs", {}) for name in ("env", "eval"))
    merged = {name: value for kwargs in sections for name, value in kwargs.items()}
    return {name: value for name, value in merged.items() if name not in CONNECTION_ARGUMENTS}


def _recorded_id(env_id: str) -> str:
    if ":" in env_id:
        raise ConfigError(
            f"the model's run was trained on {env_id!r}, which would import a module: if you trust "
            f"it, give the environment yourself, with --env {env_id}"
        )
    return env_id


def _check_untrusted(env_id: str, run_env: Mapping[str, Any]) -> None:
    """Raise `ConfigError` if a run's folder gives arguments that only the user may give."""
    if names := private_names(find_maker(env_id)[0], run_env):
        given = ", ".join(f"{name}={shown(run_env[name])}" for name in names)
        options = " ".join(f"--env-arg {name}=..." for name in names)
        raise ConfigError(
            f"the model's run was trained with {given}, which decides what is read or connected "
            f"to, and which servers get your keys: give it yourself, with {options}"
        )


def _agent(
    agent: EvalAgentConfig, row: Row, trained: Mapping[str, Any] | None, tool_format: str | None
) -> EvalAgentConfig:
    kind = agent.kind or ("trained" if trained else "react")
    run_agent: Mapping[str, Any] = {}
    if kind == "trained" and not trained:
        raise ConfigError(
            "agent.kind is 'trained', but the model is no training run's: give the run's folder as "
            "model.name, or another agent.kind"
        )
    if kind in _AS_TRAINED:
        run_agent = (trained or {}).get("agent", {})
    if kind != "reflexion" and agent.trials not in (None, 1):
        raise ConfigError(
            f"agent.trials is {agent.trials} and agent.kind {kind!r}: only reflexion tries a task "
            "again"
        )
    style = agent.style or run_agent.get("style") or ("direct" if kind == "direct" else "think")
    called = agent.tool_format
    if called == "auto":
        called = _recorded_format(run_agent.get("tool_format", "auto"))
    if style == "tools":
        called = choose(called, tool_format)
    usual = {"window": row.window, "summary_tokens": 4096, "scratchpad": 0, "thoughts": "keep"}
    as_run = {**usual, "context": row.context, "max_thought_tokens": None, "max_observation": None}
    taken = {
        name: run_agent.get(name, default)
        for name, default in as_run.items()
        if getattr(agent, name) is None
    }
    trials = agent.trials or (3 if kind == "reflexion" else 1)
    return replace(agent, kind=kind, style=style, tool_format=called, trials=trials, **taken)


def _recorded_format(name: str) -> str:
    if ":" in name:
        raise ConfigError(
            f"the model's run was trained with agent.tool_format {name:.80}, which would import a "
            "module: if you trust it, give agent.tool_format yourself"
        )
    return name


def _is_cpu(device: str | None) -> bool:
    import torch

    return (device or ("cuda" if torch.cuda.is_available() else "cpu")) == "cpu"


def _sampling(
    config: EvaluationConfig, usual: float, longest: int, trained: Mapping[str, Any] | None
) -> SamplingConfig:
    run_agent = (trained or {}).get("agent", {}) if config.agent.kind in _AS_TRAINED else {}
    temperature, max_tokens = config.sampling.temperature, config.sampling.max_tokens
    if temperature is None:
        temperature = usual
    if max_tokens is None:
        max_tokens = run_agent.get("max_tokens", longest)
    return replace(config.sampling, temperature=temperature, max_tokens=max_tokens)


def _search(config: EvaluationConfig, row: Row) -> SearchConfig:
    search, kind = config.search, config.agent.kind
    if kind == "best-of-n" and search.select is None:
        return replace(search, select="majority" if row.answers else "likelihood")
    if kind == "mcts" and search.backup is None:
        return replace(search, backup="max" if search.value == "solver" else "mean")
    return search


def step_name(checkpoint: str) -> str:
    """Return a checkpoint as a part of a folder's name: `best`, or `step000100` of `100`."""
    return f"step{int(checkpoint):06d}" if checkpoint.isdigit() else checkpoint


def _slug(config: EvaluationConfig) -> str:
    """Return environment, split, agent and model as the name of a folder."""
    parts = [part for part in config.model.name.split("/") if part]
    if len(parts) > 2 and parts[-2] == "checkpoints":
        parts = [f"{parts[-3]}-{parts[-1]}"]
    checkpoint = config.model.checkpoint
    if checkpoint != "newest":
        parts.append(f"{parts.pop()}-{step_name(checkpoint)}")
    words = [short_name(config.env.id).lower(), config.env.split, config.agent.kind, *parts[-1:]]
    return re.sub(r"[^\w.]+", "-", "-".join(str(word) for word in words)).strip("-.")[:200]


def template_versions(env_id: str, style: str) -> dict[str, str]:
    """Return this version's template hashes by name, of the style's and the environment's parts."""
    found = {template.name: template.version for template in [prompts.load(style, env_id)]}
    for name in _PARTS:
        try:
            part = prompts.load_part(name, env_id)
        except ConfigError:
            continue
        found[part.name] = part.version
    return found
