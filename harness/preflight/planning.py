"""The plan of a run, made before anything is loaded: `harness train RECIPE --dry-run`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gymnasium as gym

from agentgyms.core.errors import AgentGymsError
from agentgyms.registration import find_maker
from harness import annotators
from harness.config import Config, RolloutConfig, methods
from harness.credit.registry import layers
from harness.model.learning_mode import has_own_dropout
from harness.model.packing import num_mini_batches
from harness.preflight import defaults, memory, shared_prefixes, small_trial, step_time
from harness.preflight.machine import PASSES, Machine, Precision, precision_name
from harness.preflight.missing import missing, no_room
from harness.preflight.model_shapes import Shape, max_sequence_length, shape_of
from harness.preflight.teacher_model import settings_of_teacher, shape_of_teacher
from harness.rollouts.build import make_eval_pool, make_pool
from harness.rollouts.groups import CollectOptions
from harness.rollouts.search import preferences
from harness.rollouts.task_sampling.dynamic_sampling import MAX_DRAWS
from harness.types.errors import ConfigError

_CAPABLE = "this CPU computes in bfloat16"
_HALF = 0.5
"""Estimated share of the turn limit that episodes take, and of the token limit of sequences."""

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
    """The plan of a run: lines of text by title, and what is `missing`, if anything is.

    `checkpoint` is the size of one in bytes, `kept` the number of them that stay when the run has
    ended.
    """

    sections: Mapping[str, Sequence[str]]
    missing: Sequence[str]
    checkpoint: float = 0
    kept: int = 0

    def text(self) -> str:
        """Return the plan as text."""
        return f"{self.needs()}\n\n{self.verdict()}"

    def verdict(self, runs: str = "the run") -> str:
        """Return what is missing, as text."""
        if not self.missing:
            return f"nothing is missing: {runs} can start"
        return "\n".join([f"{runs} cannot start:", *(f"- {line}" for line in self.missing)])

    def needs(self) -> str:
        """Return the sections as text."""
        shown = []
        for title, lines in self.sections.items():
            shown += textwrap.wrap(
                lines[0], _WIDTH, initial_indent=f"{title:{_INDENT}}", **_HANGING
            )
            for line in lines[1:]:
                shown += textwrap.wrap(line, _WIDTH, initial_indent=" " * _INDENT, **_HANGING)
        return "\n".join(shown)


def plan(
    config: Config, gpus: int | None = None, gpu_memory: int | None = None, *, tries: bool = False
) -> Plan:
    """Return the plan of an unresolved run, for `gpus` GPUs of `gpu_memory` bytes or this machine.

    With `tries` it compares the paths that the run takes on a small random model, which takes a
    second. Raises `ConfigError` if a name or a setting of the method is unknown.
    """
    machine = Machine.of(config, gpus, gpu_memory)
    config = defaults.resolve(config, machine.kind)
    lacking: list[str] = []
    shape: Shape | None = None
    try:
        shape = shape_of(config.policy)
    except ConfigError as e:
        lacking.append(str(e))
    turns, checkpoint, kept = max_turns(config), 0.0, memory.kept_checkpoints(config) - 1
    sections = {
        "run": [f"{config.run.name}: {config.run.steps} steps, seed {config.run.seed}"],
        "method": list(_method(config)),
        "environment": list(_environment(config, turns)),
        "rollouts": list(_rollouts(config, machine)),
        "a step": list(_step(config, shape, turns)),
    }
    if shape is not None:
        sections["model"] = list(_model(config, shape, machine))
        if tries:
            tried = small_trial.try_paths(config, shape)
            sections["model"].append(tried.line)
            lacking += tried.refused
        sections["memory"] = list(_memory(config, shape, machine))
        if machine.kind == "cuda":
            sections["seconds"] = list(_seconds(config, shape, machine, turns))
        precision = Precision.of(config, machine, shape.parameters)
        checkpoint = memory.checkpoint_bytes(config, shape, precision)
        sections["disk"] = [
            f"{gigabytes(checkpoint)} a checkpoint, every {config.checkpoint.every} steps",
            f"{gigabytes((kept + 1) * checkpoint)} for {kept + 1} of them, one being written",
        ]
    lacking += missing(config, shape, machine)
    lacking += no_room(config.run.output, (kept + 1) * checkpoint)
    return Plan(sections, list(dict.fromkeys(lacking)), checkpoint, kept)


def _seconds(config: Config, shape: Shape, machine: Machine, turns: int) -> Iterator[str]:
    played = max(1.0, _HALF * turns)
    spent = step_time.step_time(config, shape, machine, rows(config, turns).likely, played)
    yield from step_time.lines(spent, machine)
    if config.agent.context == "window" and played > 1:
        update = step_time.transcript_update(config, shape, machine, played)
        yield f"with agent.context = 'transcript' the update would take {update:,.0f} s"


def max_turns(config: Config) -> int:
    """Return the turn limit of training episodes."""
    if config.env.max_turns is not None:
        return config.env.max_turns
    maker, registered = find_maker(config.env.id)
    own = getattr(maker, "default_max_turns", None)  # none of a function
    limit = {**registered, **config.env.kwargs}.get("max_turns") or own
    if not isinstance(limit, int):
        raise ConfigError(f"the turn limit of {config.env.id!r} is unknown: set env.max_turns")
    return limit


def rows(config: Config, turns: int) -> Range:
    """Return the number of training sequences of a step, given the turn limit of an episode."""
    episodes = config.rollout.tasks_per_step * config.rollout.group_size
    if config.agent.context == "transcript" and config.agent.thoughts == "keep":
        return Range(episodes, episodes, episodes)
    return Range(episodes, episodes * max(1.0, _HALF * turns), episodes * turns)


def _method(config: Config) -> Iterator[str]:
    row, given = methods.get(config.method.name), config.method
    yield f"{row.name} ({row.reference})"
    over = " over ".join(name for name, _ in layers(row.estimator, given.credit))
    yield f"credit: {over}; {_settings_text(given.credit)}"
    yield f"loss: {row.loss}; {_settings_text(given.loss)}"
    yield f"reward: {given.reward} x {given.reward_scale:g}"
    for name, values in given.annotators.items():
        columns = ", ".join(annotators.columns(name))
        yield f"column {columns}: filled by {name}; {_settings_text(values)}"
    yield f"reference policy: {'yes' if defaults.needs_reference(config) else 'no'}"
    if row.actor != "policy" and config.rollout.is_live:
        yield f"rollouts are played by the {row.actor}"


def _settings_text(values: Mapping[str, Any]) -> str:
    given = {k: v for k, v in values.items() if v not in (None, "")}
    return ", ".join(f"{k} {v:g}" if type(v) is float else f"{k} {v}" for k, v in given.items())


def _environment(config: Config, turns: int) -> Iterator[str]:
    yield f"{config.env.id}, {turns} turns at most"
    yield f"training on {_split_text(config, config.env.train_split, training=True)}"
    own = config.eval
    count = _task_count(own.count(str(own.split), final=False))
    yield f"{count} of {_split_text(config, str(own.split))} every {own.every} steps"
    for name in own.final_splits:
        count = _task_count(own.count(name, final=True))
        yield f"before and after, {count} of {_split_text(config, name)}"


def _task_count(most: int | None) -> str:
    return "all tasks" if most is None else f"{most} tasks"


def _split_text(config: Config, name: str, *, training: bool = False) -> str:
    size = split_size(config, name, training=training)
    return name if size is None else f"{name} ({size} tasks)"


def split_size(config: Config, name: str, *, training: bool = False) -> int | None:
    """Return the number of tasks of a split of evaluation or of training; None without its data."""
    try:
        pool = make_pool(config, name, 1) if training else make_eval_pool(config, name)
        size = len(pool.tasks())
        pool.close()
    except (AgentGymsError, gym.error.Error, TypeError, ImportError):
        return None
    return size


def header(config: Config, folder: Path) -> str:
    """Return the lines that a resolved run begins with: method, tasks, model, folder."""
    try:
        shape: Shape | None = shape_of(config.policy)
    except ConfigError:
        shape = None
    size = f", {_count(shape.parameters)} parameters" if shape else ""
    is_mixed = shape is not None and _is_mixed_by_itself(config, shape, Machine.of(config))
    mixed = f", mixed precision ({_CAPABLE})" * is_mixed
    own = config.eval
    splits = dict.fromkeys((str(own.split), *own.final_splits))
    evaluated = " and ".join(_split_text(config, split) for split in splits)
    trained = _split_text(config, config.env.train_split, training=True)
    lines = {
        "method": next(_method(config)),
        "tasks": f"{config.env.id}: trained on {trained}, evaluated on {evaluated}",
        "model": f"{config.policy.model}{size}{mixed}{_dropout(shape)}",
        "answers": _answers(config),
        "folder": str(folder),
    }
    return "\n".join(f"{name:{_INDENT}}{text}" for name, text in lines.items())


def _answers(config: Config) -> str:
    return f"up to {config.agent.answer_tokens} tokens each (agent.max_tokens)"


def _is_mixed_by_itself(config: Config, shape: Shape, machine: Machine) -> bool:
    """Return whether a CPU computes in bfloat16 and no setting says so."""
    usual = precision_name(config, machine, shape.parameters) == "mixed"
    return machine.kind == "cpu" and config.policy.precision is None and usual


def _dropout(shape: Shape | None) -> str:
    """Return the effect of training on the model's dropout, "" if it has none."""
    dropped = shape is not None and shape.text and has_own_dropout(json.loads(shape.text))
    return "; its own dropout is off" if dropped else ""


def _rollouts(config: Config, machine: Machine) -> Iterator[str]:
    rollout = config.rollout
    episodes = rollout.tasks_per_step * rollout.group_size
    if not rollout.is_live:
        what = f"recorded groups a step, of {len(rollout.recorded)} files"
        if all(map(preferences.is_file_of, rollout.recorded)):
            what = f"preferences a step, of {', '.join(rollout.recorded)}"
        yield f"{rollout.tasks_per_step} {what}: no environment steps"
        return
    yield (
        f"{rollout.tasks_per_step} tasks x {rollout.group_size} = {episodes} episodes a step, "
        f"{memory.live_episodes(config)} under way at once"
    )
    if rollout.dynamic_sampling:
        yield f"groups with equal returns are drawn again, up to {MAX_DRAWS} times"
    if rollout.enough_share is not None or rollout.enough_members is not None:
        yield _enough(rollout, machine)
    local = {"hf": "the policy itself", "vllm": "vLLM in this process"}
    servers = f"servers at {', '.join(rollout.urls)}"
    each = f", one for each of {machine.processes} processes" * (machine.processes > 1)
    yield f"generated by {local[rollout.backend] + each if rollout.backend in local else servers}"
    yield f"answers {_answers(config)}"
    if rollout.ahead:
        yield "played while the policy learns from the step before" + ", in part" * (
            rollout.ahead == "partial"
        )


def _enough(rollout: RolloutConfig, machine: Machine) -> str:
    """Return when a step's collection ends early, in the numbers that collecting counts by."""
    options = CollectOptions(rollout.enough_members, rollout.enough_share)
    size, groups = rollout.group_size, rollout.tasks_per_step
    several = f" of all {machine.processes} processes" * (machine.processes > 1)
    return (
        f"enough are {options.num_members(size)} of the {size} episodes of a group and "
        f"{options.num_groups(groups)} of the {groups} groups{several}, from turn "
        f"{rollout.enough_turns or 0} on"
    )


def _step(config: Config, shape: Shape | None, turns: int) -> Iterator[str]:
    sequences = rows(config, turns)
    what = "turns" if config.agent.context == "window" else "transcripts"
    yield f"{_bounds(sequences)} rows ({what})"
    if shape is not None:
        limit = max_sequence_length(config, shape)
        tokens = Range(sequences.low, sequences.likely * limit * _HALF, sequences.high * limit)
        yield f"{tokens.likely:,.0f} tokens, {tokens.high:,.0f} at most ({limit:,} a row)"
        if config.optimizer.packing == "shared":
            left = shared_prefixes.tokens_left(config)
            known = "as measured on two groups of eight" if left < 1 else "no share was measured"
            yield f"{left:.0%} of them pass through the model, equal beginnings once ({known})"
        played = max(1.0, _HALF * turns)
        if config.agent.context == "window" and played > 1:
            episodes = config.rollout.tasks_per_step * config.rollout.group_size
            whole = episodes * step_time.transcript_tokens(config, shape, played)
            yield (
                f"each window repeats its prompt: as transcripts about {whole:,.0f} tokens, if "
                "observations are as long as answers"
            )
    epochs = config.optimizer.epochs or 1
    low, likely, high = (
        epochs * num_mini_batches(config.optimizer, round(n))
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
    size = _count(shape.parameters)
    precision = precision_name(config, machine, shape.parameters)
    if _is_mixed_by_itself(config, shape, machine):
        precision += f" ({_CAPABLE})"
    checkpointing = " with checkpointing" * config.policy.gradient_checkpointing
    lora = config.policy.lora
    yield f"{config.policy.model}: {size} parameters, {precision}{checkpointing}{_dropout(shape)}"
    if lora.rank:
        yield f"adapters of rank {lora.rank}: {_count(shape.adapter_parameters(lora))} parameters"
    for name, (own, is_copy) in memory.trained_beside(config, shape).items():
        what = "a copy" if is_copy else f"a model of {_count(own.parameters)} parameters"
        yield f"{name}: {what} that learns"
    for name, parameters in memory.scorer_parameters(config).items():
        yield f"{name}: {_count(parameters)} parameters, frozen"
    teacher, known = settings_of_teacher(config), shape_of_teacher(config)
    if teacher is not None:
        size = f": {_count(known.parameters)} parameters, frozen" if known else ""
        yield f"teacher: {teacher.name}{size}"


def _count(parameters: float) -> str:
    return f"{parameters / 1e9:.2f} B" if parameters >= 1e8 else f"{parameters / 1e6:.2f} M"


def _memory(config: Config, shape: Shape, machine: Machine) -> Iterator[str]:
    allocations = memory.memory(config, shape, machine)
    where = {"cuda": "GPU", "cpu": "process"}[machine.kind]
    yield (
        f"of each of {machine.processes} {where}s:" if machine.processes > 1 else f"of the {where}:"
    )
    for one in allocations:
        pre = "in the" if one.when in PASSES else "while"
        when = "" if one.when == "always" else f", {pre} {one.when}"
        yield f"{gigabytes(one.size):>10}  {one.name}{when}"
    has = f"; it has {gigabytes(machine.memory)}" if machine.memory else ""
    yield f"{gigabytes(memory.peak(allocations)):>10}  at most at once{has}"
    if machine.kind == "cuda":
        read, saved = memory.main_memory(config, shape, machine)
        also = f", {gigabytes(saved)} while a checkpoint is written" if saved else ""
        held = memory.offloaded(config, shape, machine)
        always = f", {gigabytes(held)} of what is offloaded" if held else ""
        yield (
            f"main memory: {gigabytes(read)} while the model is read{also}{always}, environments "
            "beside"
        )
    if config.rollout.backend == "server":
        episodes = memory.live_episodes(config)
        cache = memory.cache_size(config, shape, Machine(machine.kind), episodes)
        precision = Precision.of(config, machine, shape.parameters)
        yield (
            f"servers beside: {gigabytes(shape.parameters * precision.compute)} of weights, "
            f"{gigabytes(cache)} of keys and values if all episodes are at full length"
        )


def gigabytes(size: float) -> str:
    """Return a number of bytes in words."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
