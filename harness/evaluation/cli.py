"""Command line: `harness eval`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentgyms import extras
from harness.errors import ConfigError

if TYPE_CHECKING:
    from harness.evaluation.config import EvaluationConfig

_KEYS = {
    "env": "env.id",
    "split": "env.split",
    "agent": "agent.kind",
    "model": "model.name",
    "url": "model.url",
    "backend": "model.backend",
    "seeds": "run.seeds",
    "tasks": "run.tasks",
    "trials": "agent.trials",
    "examples": "agent.examples",
    "temperature": "sampling.temperature",
    "name": "run.name",
}
"""Options and the settings that they are short for."""


@click.command("eval")
@click.argument("config_file", required=False, type=click.Path(path_type=Path), metavar="[CONFIG]")
@click.option("--env", help="Environment, such as ALFWorld or agentgyms/ALFWorld-v0.")
@click.option("--split", help="Tasks to play; by default those that results are reported on.")
@click.option("--agent", help="direct, react, reflexion, or trained for a training run's model.")
@click.option(
    "--model", help="Name at its server, folder, hub name, training run; or expert, random."
)
@click.option("--url", help="Of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1.")
@click.option("--backend", help="openai, vllm, hf, expert or random.")
@click.option("--seeds", metavar="A,B,...", help="Every task is played once per seed.")
@click.option("--tasks", type=int, help="So many tasks, spread over the families.")
@click.option("--trials", type=int, help="Attempts at a task, with reflection between them.")
@click.option("--examples", type=int, help="Worked examples of the expert in the prompt.")
@click.option("--temperature", type=float, help="By default the papers' for the environment.")
@click.option("--name", help="Of the folder, in run.output (evaluations).")
@click.option(
    "--env-arg", "env_args", multiple=True, metavar="KEY=VALUE", help="Argument of the environment."
)
@click.option(
    "--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="Change a setting."
)
@click.option(
    "--resume", type=click.Path(path_type=Path), help="Play what this folder's evaluation lacks."
)
@click.option("--print-config", is_flag=True, help="Print the resolved configuration and stop.")
@extras.needed("eval")
def evaluate(
    config_file: Path | None,
    env_args: tuple[str, ...],
    overrides: tuple[str, ...],
    resume: Path | None,
    print_config: bool,
    **options: Any,
) -> None:
    """Play every task of a split with a model, and write down what came of it.

    CONFIG is a TOML file with the sections run, env, model, agent, sampling and service; options
    come after it. Episodes are kept as they end, so an interrupted evaluation goes on with
    --resume FOLDER.
    """
    from harness.evaluation import running

    changes = [*overrides, *(f"env.kwargs.{argument}" for argument in env_args)]
    given = _values(config_file, options, changes)
    if resume is None:
        config = _new(given)
        if print_config:
            _print_config(config)
            return
        folder = _run(lambda: running.run(config))
    else:
        if print_config:
            raise click.UsageError("--print-config shows a new evaluation: leave --resume")
        config = _resumed(resume, given)
        folder = _run(lambda: running.resume(resume, config))
    sys.exit(_report(folder))


def _values(
    file: Path | None, options: Mapping[str, Any], changes: Sequence[str]
) -> dict[str, Any]:
    """Return the settings given: those of a file, then options, then `--set` and `--env-arg`."""
    from harness import sections

    values = _checked({} if file is None else sections.read(file))
    for option, value in options.items():
        if value is not None:
            section, key = _KEYS[option].split(".")
            values.setdefault(section, {})[key] = _numbers(value) if option == "seeds" else value
    return _checked(sections.overridden(values, changes))


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    for section, inner in values.items():
        if not isinstance(inner, dict):
            raise ConfigError(f"{section} must be a section, got {inner!r}")
    return values


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--seeds must be numbers such as 0,1,2, got {text!r}") from None


def _new(given: Mapping[str, Any]) -> EvaluationConfig:
    from harness import sections
    from harness.evaluation.config import EvaluationConfig

    name = str(given.get("model", {}).get("name", ""))
    of_run = bool(name) and Path(name).is_dir()
    if not given.get("env", {}).get("id") and not of_run:
        raise click.UsageError("give an environment with --env, or env.id in a file")
    if not {"name", "backend"} & given.get("model", {}).keys():
        raise click.UsageError("give a model with --model, or model.name in a file")
    return sections.build(EvaluationConfig, given)


def _resumed(folder: Path, given: Mapping[str, Any]) -> EvaluationConfig:
    """Return the settings of an evaluation's folder with those given on top."""
    from harness import sections
    from harness.evaluation import defaults, results
    from harness.evaluation.config import EvaluationConfig
    from harness.evaluation.folders import read_config

    values = _merged(results.written(read_config(folder)), given)
    if "id" in given.get("env", {}):
        values["env"]["id"] = defaults.find(given["env"]["id"])
    return sections.build(EvaluationConfig, values)


def _merged(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings with those given on top."""
    merged = dict(values)
    for key, value in given.items():
        before = merged.get(key)
        nested = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(before, value) if nested else value  # type: ignore[arg-type]
    return merged


def _print_config(config: EvaluationConfig) -> None:
    from harness.completers.opening import backend_of
    from harness.evaluation import defaults, results

    trained = None
    if backend_of(config.model) in ("hf", "vllm") and config.model.name:
        from harness.completers import sources

        trained = sources.find(config.model.name).trained
    click.echo(json.dumps(results.written(defaults.resolve(config, trained)), indent=1))


def _run(work: Callable[[], Path]) -> Path:
    try:
        return work()
    except KeyboardInterrupt as e:
        click.echo(f"\n{e}", err=True)
        sys.exit(130)


def _report(folder: Path) -> int:
    """Print an evaluation's table, and return the status: 1 if episodes are missing."""
    from harness.evaluation import results
    from harness.evaluation.running import PAGE, TABLE

    click.echo(f"\n{(folder / TABLE).read_text(encoding='utf-8')}")
    click.echo(f"result: {folder / results.RESULT}\npage:   {folder / PAGE}")
    result = results.read_json(folder / results.RESULT)
    missing, planned = result["episodes"]["missing"], result["episodes"]["planned"]
    if missing:
        click.echo(
            f"{missing} of {planned} episodes are missing, the first for "
            f"{result['missing'][0]['error']}\nplay them with: harness eval --resume {folder}",
            err=True,
        )
    return 1 if missing else 0
