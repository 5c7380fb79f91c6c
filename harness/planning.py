"""What a run would do, told before anything is loaded: `harness train RECIPE --dry-run`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import gymnasium as gym

from agentgyms.errors import AgentGymsError
from agentgyms.registration import ENVIRONMENTS, env_class
from harness import annotators, footprint, methods, settings
from harness.config import Config
from harness.credit.registry import layers
from harness.errors import ConfigError
from harness.footprint import Machine
from harness.missing import missing
from harness.optimizing import num_parts
from harness.playing import make_eval_pool, make_pool, tasks_of
from harness.shapes import Shape, shape_of

_HALF = 0.5
"""Of their turns, and of the longest sequence: what estimates take episodes to need."""

_WIDTH, _INDENT = 100, 13
_HANGING: Final[Any] = {
    "subsequent_indent": " " * (_INDENT + 2),
    "break_on_hyphens": False,
    "break_long_words": False,
}


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a number and an estimate between them."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do.

    Attributes:
        sections: Lines of text under their titles.
        missing: Why it could not start; empty if it could.
    """

    sections: Mapping[str, Sequence[str]]
    missing: Sequence[str]

    def text(self) -> str:
        """Return all of it."""
        shown = []
        for title, lines in self.sections.items():
            shown += textwrap.wrap(
                lines[0], _WIDTH, initial_indent=f"{title:{_INDENT}}", **_HANGING
            )
            for line in lines[1:]:
                shown += textwrap.wrap(line, _WIDTH, initial_indent=" " * _INDENT, **_HANGING)
        shown.append("")
        if not self.missing:
            return "\n".join([*shown, "nothing is missing: the run can start"])
        return "\n".join([*shown, "the run cannot start:", *(f"- {line}" for line in self.missing)])


def plan(config: Config, gpus: int | None = None) -> Plan:
    """Return what a run would do.

    Args:
        config: As it was read.
        gpus: Plan for so many GPUs; None takes this machine.

    Raises:
        ConfigError: A name or a setting of the method is unknown.
    """
    config = settings.resolve(config)
    machine = Machine.of(config, gpus)
    lacking: list[str] = []
    shape: Shape | None = None
    try:
        shape = shape_of(config.policy)
    except ConfigError as e:
        lacking.append(str(e))
    turns = max_turns(config)
    sections = {
        "run": [f"{config.run.name}: {config.run.steps} steps, seed {config.run.seed}"],
        "method": list(_method(config)),
        "environment": list(_environment(config, turns)),
        "rollouts": list(_rollouts(config, machine)),
        "a step": list(_step(config, shape, turns)),
    }
    if shape is not None:
        sections["model"] = list(_model(config, shape, machine))
        sections["memory"] = list(_memory(config, shape, machine))
        sections["disk"] = list(_disk(config, shape, machine))
    return Plan(sections, [*lacking, *missing(config, shape, machine)])


def max_turns(config: Config) -> int:
    """Return the turn limit of training episodes."""
    if config.env.max_turns is not None:
        return config.env.max_turns
    if config.env.id in ENVIRONMENTS:
        return env_class(config.env.id).default_max_turns
    raise ConfigError(
        f"the turn limit of {config.env.id!r} is not known without making it: set env.max_turns"
    )


def rows(config: Config, turns: int) -> Range:
    """Return how many training sequences a step has.

    In the context "window" each turn is one, in "transcript" each episode.

    Args:
        config: Resolved.
        turns: Limit of an episode.
    """
    episodes = config.rollout.tasks_per_step * config.rollout.group_size
    if config.agent.context == "transcript":
        return Range(episodes, episodes, episodes)
    return Range(episodes, episodes * max(1.0, _HALF * turns), episodes * turns)


def _method(config: Config) -> Iterator[str]:
    row, given = methods.get(config.method.name), config.method
    yield f"{row.name} ({row.reference})"
    over = " over ".join(name for name, _ in layers(row.estimator, given.credit))
    yield f"credit: {over}; {_said(given.credit)}"
    yield f"loss: {row.loss}; {_said(given.loss)}"
    yield f"reward: {given.reward} x {given.reward_scale:g}"
    for name, values in given.annotators.items():
        yield f"column {', '.join(annotators.columns(name))}: filled by {name}; {_said(values)}"
    yield f"reference policy: {'yes' if settings.needs_reference(config) else 'no'}"
    if row.actor != "policy":
        yield f"rollouts are played by the {row.actor}"


def _said(values: Mapping[str, Any]) -> str:
    told = {k: v for k, v in values.items() if v is not None}
    return ", ".join(f"{k} {v:g}" if type(v) is float else f"{k} {v}" for k, v in told.items())


def _environment(config: Config, turns: int) -> Iterator[str]:
    yield f"{config.env.id}, {turns} turns at most"
    yield f"training on {_split(config, config.env.train_split, training=True)}"
    own = config.eval
    count = "all tasks" if own.tasks is None else f"{own.tasks} tasks"
    yield f"{count} of {_split(config, own.split)} every {own.every} steps"
    for name in own.final_splits:
        yield f"before and after, all of {_split(config, name)}"


def _split(config: Config, name: str, *, training: bool = False) -> str:
    """Return a split's name and, where its data is here, its size."""
    try:
        pool = make_pool(config, name, 1) if training else make_eval_pool(config, name)
        size = len(tasks_of(pool))
        pool.close()
    except (AgentGymsError, gym.error.Error, TypeError, ImportError):
        return name
    return f"{name} ({size} tasks)"


def _rollouts(config: Config, machine: Machine) -> Iterator[str]:
    rollout = config.rollout
    episodes = rollout.tasks_per_step * rollout.group_size
    yield (
        f"{rollout.tasks_per_step} tasks x {rollout.group_size} = {episodes} episodes a step, "
        f"{footprint.live_episodes(config)} under way at once"
    )
    if rollout.dynamic_sampling:
        yield f"groups with equal returns are drawn again, up to {rollout.max_draws} times"
    if rollout.enough_share is not None or rollout.enough_members is not None:
        yield (
            f"enough are {rollout.enough_members or rollout.group_size} of a group and "
            f"{rollout.enough_share or 1:.0%} of the groups, from turn {rollout.enough_turns} on"
        )
    who = {"hf": "the policy itself", "vllm": "vLLM in this process"}
    place = f"servers at {', '.join(rollout.urls)}"
    each = f", one for each of {machine.processes} processes" * (machine.processes > 1)
    yield f"generated by {who[rollout.backend] + each if rollout.backend in who else place}"


def _step(config: Config, shape: Shape | None, turns: int) -> Iterator[str]:
    sequences = rows(config, turns)
    what = "turns" if config.agent.context == "window" else "transcripts"
    yield f"{_bounds(sequences)} rows ({what})"
    if shape is not None:
        most = footprint.longest(config, shape)
        tokens = Range(sequences.low, sequences.likely * most * _HALF, sequences.high * most)
        yield f"{tokens.likely:,.0f} tokens, {tokens.high:,.0f} at most ({most:,} a row)"
    epochs = config.optimizer.epochs or 1
    low, likely, high = (
        epochs * num_parts(config.optimizer, round(n))
        for n in (sequences.low, sequences.likely, sequences.high)
    )
    yield f"{_bounds(Range(low, likely, high))} optimizer steps"
    if sequences.low < sequences.high:
        yield "(estimates: episodes take half of their turns, rows half of the longest)"


def _bounds(r: Range) -> str:
    if r.low == r.high:
        return f"{r.low:,.0f}"
    return f"about {r.likely:,.0f}, from {r.low:,.0f} to {r.high:,.0f}"


def _model(config: Config, shape: Shape, machine: Machine) -> Iterator[str]:
    size = _count(shape.parameters())
    usual = "mixed" if machine.kind == "cuda" else "float32"
    kept = " with checkpointing" * config.policy.gradient_checkpointing
    lora = config.policy.lora
    yield f"{config.policy.model}: {size} parameters, {config.policy.precision or usual}{kept}"
    if lora.rank:
        yield f"adapters of rank {lora.rank}: {_count(shape.adapter_parameters(lora))} parameters"
    for name in footprint.copies(config):
        yield f"{name}: a copy that learns"
    for name, parameters in footprint.scorers(config).items():
        yield f"{name}: {_count(parameters)} parameters, frozen"


def _count(parameters: float) -> str:
    return f"{parameters / 1e9:.2f} B" if parameters >= 1e8 else f"{parameters / 1e6:.2f} M"


def _memory(config: Config, shape: Shape, machine: Machine) -> Iterator[str]:
    held = footprint.memory(config, shape, machine)
    where = {"cuda": "GPU", "cpu": "process"}[machine.kind]
    yield (
        f"of each of {machine.processes} {where}s:" if machine.processes > 1 else f"of the {where}:"
    )
    for one in held:
        when = "" if one.when == "always" else f", while {one.when}"
        yield f"{_gigabytes(one.size):>10}  {one.name}{when}"
    has = f"; it has {_gigabytes(machine.memory)}" if machine.memory else ""
    yield f"{_gigabytes(footprint.peak(held)):>10}  at most at once{has}"
    if config.rollout.backend == "server":
        cache = footprint.cache(config, shape, Machine(machine.kind))
        numbers = footprint.Numbers.of(config, machine)
        yield (
            f"servers beside: {_gigabytes(shape.parameters() * numbers.work)} of weights, "
            f"{_gigabytes(cache)} of keys and values if all episodes are at full length"
        )


def _disk(config: Config, shape: Shape, machine: Machine) -> Iterator[str]:
    numbers = footprint.Numbers.of(config, machine)
    one = footprint.checkpoint_bytes(config, shape, numbers)
    kept = footprint.kept_checkpoints(config)
    yield f"{_gigabytes(one)} a checkpoint, every {config.checkpoint.every} steps"
    yield f"{_gigabytes(kept * one)} for {kept} of them, one being written"


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
