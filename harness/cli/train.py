"""Command line: `harness train`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from agentgyms.cli.printing import echo
from harness.cli.getting_ready import getting_ready

if TYPE_CHECKING:
    from harness.config import Config


class _Gpus(NamedTuple):
    """The GPUs that a dry run plans for; None are those of this machine."""

    number: int | None
    memory: int | None


@click.command()
@click.argument("recipe", required=False)
@click.option(
    "--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="Change a setting."
)
@click.option(
    "--seeds", type=click.IntRange(min=1), help="Train so many runs, with run.seed, run.seed+1, ..."
)
@click.option(
    "--methods",
    metavar="A,B,...",
    help="Train a run with each of these methods, all else equal; see harness methods.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="With --seeds, --methods or --sweep: train so many runs at a time, on one machine.",
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="SECTION.KEY=A,B,...",
    help="Train a run for each value; given again, for each combination.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="Go on with the run in this folder; with --set run.steps=N up to that step.",
)
@click.option(
    "--engine",
    type=click.Choice(("harness", "verl")),
    default="harness",
    help="What trains: this harness, on one machine or with torchrun; or verl, on Ray.",
)
@click.option(
    "--verl",
    "verl_settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --engine verl: a setting of verl, such as trainer.n_gpus_per_node=4.",
)
@click.option("--print-config", is_flag=True, help="Print the resolved configuration and stop.")
@click.option("--help-config", is_flag=True, help="List all settings with their words and stop.")
@click.option(
    "--dry-run", is_flag=True, help="Print what would run, the memory it needs, what is missing."
)
@click.option("--gpus", type=click.IntRange(min=1), help="With --dry-run: plan for so many GPUs.")
@click.option(
    "--gpu-memory", type=click.FloatRange(min=1), help="With --dry-run: GB of each of these GPUs."
)
def train(
    recipe: str | None,
    overrides: tuple[str, ...],
    seeds: int | None,
    methods: str | None,
    jobs: int | None,
    sweeps: tuple[str, ...],
    resume: Path | None,
    engine: str,
    verl_settings: tuple[str, ...],
    help_config: bool,
    gpus: int | None,
    gpu_memory: float | None,
    **shown: bool,
) -> None:
    """Train with RECIPE: a TOML file, or the name of one that is built in (`harness recipes`).

    RECIPE+MODEL, such as alfworld-gigpo-1.5b+qwen3-4b, trains another model with its settings.

    With --seeds, --methods or --sweep several runs are trained, one after another or --jobs at a
    time, in the folders NAME-METHOD-KEY=VALUE-seedN. The same command again skips those that are
    finished and goes on with the others.
    """
    if help_config:
        from harness.config import reference, schema

        echo(reference.as_text(schema.Config))
        return
    if (recipe is None) == (resume is None):
        raise click.UsageError("give a recipe, or --resume FOLDER")
    several = bool(seeds or sweeps or methods)
    if resume is not None and (several or any(shown.values())):
        raise click.UsageError(
            "a resumed run keeps its settings: leave --seeds, --methods, --sweep, --print-config "
            "and --dry-run"
        )
    if jobs is not None and not several:
        raise click.UsageError("--jobs is for several runs: give --seeds, --methods or --sweep")
    if (gpus or gpu_memory) and not shown["dry_run"]:
        option = "--gpus" if gpus else "--gpu-memory"
        raise click.UsageError(f"{option} is for --dry-run: torchrun starts a process for each GPU")
    if engine == "verl":
        _by_verl(recipe, overrides, verl_settings, several=several, **shown)
        return
    if verl_settings:
        raise click.UsageError("--verl is for --engine verl")
    machine = _Gpus(gpus, None if gpu_memory is None else round(gpu_memory * 1e9))
    from harness import config as configs

    if resume is not None:
        _resume(resume, overrides)
    elif several:
        named = [name.strip() for name in (methods or "").split(",") if name.strip()]
        runs = configs.vary(str(recipe), overrides, sweeps, seeds or 1, named)
        _several(runs, machine, jobs or 1, **shown)
    else:
        _one(configs.load(str(recipe), overrides), machine, **shown)


def _by_verl(
    recipe: str | None,
    overrides: Sequence[str],
    verl_settings: Sequence[str],
    *,
    several: bool,
    print_config: bool,
    dry_run: bool,
) -> None:
    if recipe is None or several or dry_run:
        raise click.UsageError(
            "--engine verl trains one new run: leave --seeds, --methods, --sweep and --dry-run, "
            "and --resume finds out by itself what trained a run"
        )
    from harness.cli import verl

    folder = verl.train(recipe, overrides, verl_settings, print_config=print_config)
    if folder is not None:
        _show_results(folder)


def _resume(folder: Path, overrides: Sequence[str]) -> None:
    from harness.training.verl import run as verl_run

    if verl_run.is_verls(folder):
        if overrides:
            raise click.UsageError(
                f"verl trains the run in {folder}, and a resumed one keeps its settings: leave "
                f"--set; its steps are trainer.total_training_steps in {folder}/verl.json"
            )
        verl_run.resume(folder)
        _show_results(folder)
        return
    from harness.training import torchrun_processes

    with getting_ready() as announce, torchrun_processes() as processes:
        from harness.training import setup

        setup.resume(folder, processes, announce, overrides).run()
    if processes.is_first:
        _show_results(folder)


def _one(config: Config, gpus: _Gpus, *, print_config: bool, dry_run: bool) -> None:
    from harness.runs.runfolder import RunFolder
    from harness.training import torchrun_processes

    if print_config:
        echo(json.dumps(_resolved(config), indent=1))
        return
    if dry_run:
        if _print_plan(config, gpus):
            sys.exit(2)
        return
    with getting_ready() as announce, torchrun_processes() as processes:
        from harness.training import setup

        setup.start(config, processes, announce).run()
    if processes.is_first:
        _show_results(RunFolder.from_config(config).path)


def _several(
    runs: Sequence[Config], gpus: _Gpus, jobs: int, *, print_config: bool, dry_run: bool
) -> None:
    from harness.reporting import report_output
    from harness.training import torchrun_processes

    if print_config:
        echo(json.dumps([_resolved(config) for config in runs], indent=1))
        return
    if dry_run:
        _print_plans(runs, gpus)
        return
    with getting_ready() as announce, torchrun_processes() as processes:
        if jobs > 1 and processes.size > 1:
            raise click.UsageError("under torchrun all processes train one run: leave --jobs")
        from harness.training import series

        def fill(finished: Sequence[Path]) -> None:
            if processes.is_first:
                echo(f"\n{len(finished)} of {len(runs)} runs\n{report_output.filling(finished)}")

        folders = series.train_all(runs, processes, announce, jobs, fill)
    if processes.is_first:
        echo(f"\n{report_output.tables(folders)}")


def _resolved(config: Config) -> dict[str, Any]:
    from harness import config as configs
    from harness.preflight import defaults

    return configs.to_dict(defaults.resolve(config))


def _show_results(folder: Path) -> None:
    """Print a run's table, its result, its files and the next commands."""
    from harness.evaluation import defaults
    from harness.reporting import run_report
    from harness.reporting.results import training_runs
    from harness.runs import checkpoints

    if (folder / "table.md").is_file():
        echo(f"\n{(folder / 'table.md').read_text(encoding='utf-8')}")
    saved = checkpoints.find_all(folder)
    given = shlex.join([str(folder), *defaults.words_to_give(training_runs.read(folder).config)])
    shown = {
        "result": run_report.sentence(folder),
        "curve": _if_there(folder / "curve.png"),
        "training": _if_there(folder / "training.png"),
        "run": folder,
        "checkpoint": saved[-1].folder if saved else "",
        "evaluate": f"{_program()} eval --model {given}",
        "report": f"{_program()} report {shlex.quote(str(folder))}",
    }
    echo("\n".join(f"{name + ':':12}{text}" for name, text in shown.items() if text))
    echo("The same seed gives the same figures on one kind of processor, others on another.")


def _if_there(file: Path) -> Path | str:
    return file if file.is_file() else ""


def _program() -> str:
    """Return how this program was called, to call it again in the same folder."""
    if Path(sys.argv[0]).name != "__main__.py":
        return shlex.quote(sys.argv[0])
    python = Path(sys.executable)
    near = python.is_relative_to(Path.cwd())
    return f"{shlex.quote(str(python.relative_to(Path.cwd()) if near else python))} -m harness"


def _print_plan(config: Config, gpus: _Gpus) -> bool:
    """Print the plan of a run, and return whether something is missing."""
    from harness.preflight.planning import plan

    planned = plan(config, gpus.number, gpus.memory, tries=True)
    echo(planned.text())
    return bool(planned.missing)


def _print_plans(runs: Sequence[Config], gpus: _Gpus) -> None:
    """Print the plan of the first new run and all states; exit with 2 if anything is missing."""
    from harness.preflight.series_plan import plan_all
    from harness.runs.runfolder import RunFolder
    from harness.training import series

    states = [series.state(config) for config in runs]
    new = [c for c, was in zip(runs, states, strict=True) if was == series.NEW]
    planned = plan_all(series.kinds(new), gpus.number, gpus.memory) if new else None
    if planned is not None:
        echo(planned.needs())
    echo(f"\n{len(runs)} runs, one after another:")
    for config, was in zip(runs, states, strict=True):
        echo(f"  {RunFolder.from_config(config).path} ({was})")
    if planned is not None:
        echo(f"\n{planned.verdict('the runs')}")
        if planned.missing:
            sys.exit(2)
