"""Command line: `harness eval`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentgyms.cli.printing import echo
from agentgyms.core import imports
from harness.cli.getting_ready import getting_ready
from harness.types.errors import ConfigError

if TYPE_CHECKING:
    from harness.config import EvaluationConfig

_SETTING_OF_OPTION = {
    "env": "env.id",
    "split": "env.split",
    "agent": "agent.kind",
    "model": "model.name",
    "url": "model.url",
    "checkpoint": "model.checkpoint",
    "backend": "model.backend",
    "seeds": "run.seeds",
    "tasks": "run.tasks",
    "trials": "agent.trials",
    "examples": "agent.examples",
    "temperature": "sampling.temperature",
    "name": "run.name",
}
"""The setting of each option."""


@click.command("eval")
@click.argument("config_file", required=False, type=click.Path(path_type=Path), metavar="[CONFIG]")
@click.option("--env", help="Environment, such as ALFWorld or agentgyms/ALFWorld-v0.")
@click.option("--split", help="Tasks to play; by default those that results are reported on.")
@click.option(
    "--agent", help="direct, react, reflexion, best-of-n, mcts, or trained: as a training run did."
)
@click.option(
    "--model", help="Name at its server, folder, hub name, training run; or expert, random."
)
@click.option(
    "--checkpoint",
    metavar="newest|best|STEP|last-N",
    help="Of a training run; last-N plays the newest N with an evaluation, for their mean.",
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
@click.option("--help-config", is_flag=True, help="List all settings with their words and stop.")
@imports.needed("eval")
def evaluate(
    config_file: Path | None,
    env_args: tuple[str, ...],
    overrides: tuple[str, ...],
    resume: Path | None,
    print_config: bool,
    help_config: bool,
    **options: Any,
) -> None:
    """Play every task of a split with a model, and write the results.

    CONFIG is a TOML file with the sections run, env, model, agent, sampling, search and service;
    options
    come after it. Episodes are kept as they end, so an interrupted evaluation continues with
    --resume FOLDER.
    """
    if help_config:
        from harness.config import evaluation, reference

        echo(reference.as_text(evaluation.EvaluationConfig))
        return
    with getting_ready():
        from harness.reporting import run_and_report

    changes = [*overrides, *(f"env.kwargs.{argument}" for argument in env_args)]
    given = values_of(config_file, options, changes)
    if resume is None:
        from harness.reporting.results.training_runs import count_of_last

        last = count_of_last(str(given.get("model", {}).get("checkpoint", "")))
        if last:
            sys.exit(_evaluate_last(given, last, print_config=print_config))
        config = new_config(given)
        if print_config:
            _print_config(config)
            return
        folder = _run(lambda: run_and_report.run(config))
    else:
        if print_config:
            raise click.UsageError("--print-config shows a new evaluation: leave --resume")
        config = _resumed_config(resume, given)
        folder = _run(lambda: run_and_report.resume(resume, config))
    sys.exit(_report(folder))


def values_of(
    file: Path | None, options: Mapping[str, Any], changes: Sequence[str]
) -> dict[str, Any]:
    """Return the settings given: those of a file, then options, then `--set` and `--env-arg`."""
    from harness import config as configs

    values = _check_sections({} if file is None else configs.read(file))
    for option, value in options.items():
        if value is not None:
            section, key = _SETTING_OF_OPTION[option].split(".")
            values.setdefault(section, {})[key] = (
                whole_numbers(value, "--seeds", "0,1,2") if option == "seeds" else value
            )
    return _check_sections(configs.overridden(values, changes))


def _check_sections(values: dict[str, Any]) -> dict[str, Any]:
    for section, inner in values.items():
        if not isinstance(inner, dict):
            raise ConfigError(f"{section} must be a section, got {inner!r}")
    return values


def whole_numbers(text: str, option: str, example: str) -> list[int]:
    """Return the numbers of an option; its name and an example are for the error."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(
            f"{option} must be numbers such as {example}, got {text!r:.100}"
        ) from None


def new_config(given: Mapping[str, Any]) -> EvaluationConfig:
    """Return an evaluation's settings; raise `click.UsageError` without environment or model."""
    from harness import config as configs

    name = str(given.get("model", {}).get("name", ""))
    is_run = bool(name) and Path(name).is_dir()
    if not given.get("env", {}).get("id") and not is_run:
        _check_folder(given)
        raise click.UsageError("give an environment with --env, or env.id in a file")
    if not {"name", "backend"} & given.get("model", {}).keys():
        raise click.UsageError("give a model with --model, or model.name in a file")
    return configs.build(configs.EvaluationConfig, given)


def _check_folder(given: Mapping[str, Any]) -> None:
    """Refuse a model name that looks like a missing folder, which is the likely mistake."""
    model = given.get("model", {})
    name = str(model.get("name", ""))
    if "/" not in name or {"url", "backend"} & model.keys():
        return
    from harness.evaluation import model_source

    model_source.check_name(name)
    raise ConfigError(
        f"model.name: there is no folder {name!r:.100}; give that of a training run, or, for a "
        "model at the hub, an environment with --env"
    )


def _resumed_config(folder: Path, given: Mapping[str, Any]) -> EvaluationConfig:
    from harness import config as configs
    from harness.evaluation import results
    from harness.evaluation.folders import read_config
    from harness.types import plugins

    values = configs.merged(results.config_to_json(read_config(folder)), given)
    if "id" in given.get("env", {}):
        values["env"]["id"] = plugins.find_environment(given["env"]["id"])
    return configs.build(configs.EvaluationConfig, values)


def _print_config(config: EvaluationConfig) -> None:
    from harness.evaluation import results

    echo(json.dumps(results.config_to_json(_resolved(config)), indent=1))


def _resolved(config: EvaluationConfig) -> EvaluationConfig:
    from harness.evaluation import defaults
    from harness.evaluation.open_model import backend_of

    trained = None
    if backend_of(config.model) in ("hf", "vllm") and config.model.name:
        from harness.evaluation import model_source

        trained = model_source.find(config.model.name, config.model.checkpoint).trained
    return defaults.resolve(config, trained)


def _evaluate_last(given: dict[str, Any], count: int, *, print_config: bool) -> int:
    """Play the newest evaluated checkpoints of a run, and print their mean.

    Each has a folder, in which a repeated call goes on. The status is 1 if episodes are missing.
    """
    from harness.evaluation import results, run_checkpoints
    from harness.evaluation.model_source import check_checkpoint, is_run
    from harness.reporting import report_output
    from harness.reporting.results.training_runs import Choice

    name = str(given["model"].get("name", ""))
    if not is_run(Path(name)):
        check_checkpoint(name, f"last-{count}")
    steps = run_checkpoints.last_evaluated(Path(name), count)
    configs = [_checkpoint_config(given, step) for step in steps]
    if print_config:
        echo(json.dumps([results.config_to_json(config) for config in configs], indent=1))
        return 0
    folders = [_run(partial(_run_or_resume, config)) for config in configs]
    echo(f"\n{report_output.tables(folders, Choice('mean', count))}")
    return max(_report_missing(folder) for folder in folders)


def _checkpoint_config(given: dict[str, Any], step: int) -> EvaluationConfig:
    from harness import config as configs
    from harness.evaluation import defaults

    changes: dict[str, Any] = {"model": {"checkpoint": str(step)}}
    if name := given.get("run", {}).get("name"):
        changes["run"] = {"name": f"{name}-{defaults.step_name(str(step))}"}
    return _resolved(new_config(configs.merged(given, changes)))


def _run_or_resume(config: EvaluationConfig) -> Path:
    from harness.evaluation import results
    from harness.reporting import run_and_report

    folder = Path(config.run.output) / config.run.name
    if (folder / results.CONFIG).exists():
        return run_and_report.resume(folder, config)
    return run_and_report.run(config)


def _run(work: Callable[[], Path]) -> Path:
    try:
        return work()
    except KeyboardInterrupt as e:
        echo(f"\n{e}", err=True)
        sys.exit(130)


def _report(folder: Path) -> int:
    """Print an evaluation's table, and return the status: 1 if episodes are missing."""
    from harness.evaluation import results
    from harness.reporting.run_and_report import PAGE, TABLE

    echo(f"\n{(folder / TABLE).read_text(encoding='utf-8')}")
    echo(f"result: {folder / results.RESULT}\npage:   {folder / PAGE}")
    return _report_missing(folder)


def _report_missing(folder: Path) -> int:
    from harness.evaluation import results

    result = results.read_json(folder / results.RESULT)
    missing, planned = result["episodes"]["missing"], result["episodes"]["planned"]
    if missing:
        echo(
            f"{missing} of {planned} episodes are missing, the first for "
            f"{result['missing'][0]['error']}\nplay them with: harness eval --resume "
            f"{shlex.quote(str(folder))}",
            err=True,
        )
    return 1 if missing else 0
