"""Command line: `harness credit audit`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from agentgyms.cli.printing import echo
from agentgyms.core import imports
from agentgyms.core.errors import not_written
from harness.cli.evaluate import new_config, values_of, whole_numbers
from harness.cli.output import write

if TYPE_CHECKING:
    from harness.audit.agreement import Agreement
    from harness.audit.models import Plan
    from harness.audit.truth_sets import TruthSet
    from harness.reporting.credit_view.audit_text import Parts

_SCORE_OPTIONS = (
    *("truth_file", "names", "settings", "preset", "save", "table", "values", "figure"),
    *("sizes", "by", "page"),
)
"""Parameters that have an effect where nothing is played."""
_HOW_TO_PLAY = (
    *("config_file", "split", "model", "checkpoint", "url", "backend", "agent", "noise"),
    *("env_args", "overrides"),
)
"""Parameters that say who plays, and how."""


def _take_settings(context: click.Context, _: click.Parameter, name: str | None) -> None:
    """Make the settings of a truth set the defaults of the other options."""
    if name is not None:
        from harness.audit import sets

        context.default_map = sets.settings(name)


@click.command("audit")
@click.argument("config_file", required=False, type=click.Path(path_type=Path), metavar="[CONFIG]")
@click.option(
    "--truth",
    "truth_file",
    metavar="NAME|FILE",
    help="Take a truth set of this package, such as alfworld-v1, or one that --save wrote; nothing "
    "is played.",
)
@click.option(
    "--like",
    metavar="NAME",
    is_eager=True,
    expose_value=False,
    callback=_take_settings,
    help="Play as a truth set of this package was played; other options change that.",
)
@click.option("--env", help="Environment, such as ALFWorld or agentgyms/ALFWorld-v0.")
@click.option("--split", help="Tasks to play; by default those that results are reported on.")
@click.option("--model", help="As for harness eval; default expert, which plays without a model.")
@click.option("--checkpoint", metavar="newest|best|STEP", help="Of a training run.")
@click.option("--url", help="Of an OpenAI-compatible server.")
@click.option("--backend", help="openai, vllm, hf, expert or random.")
@click.option("--agent", help="direct or react; a run's own for its model.")
@click.option(
    "--noise", type=float, default=0.5, help="Share of random actions of the expert (0.5)."
)
@click.option("--tasks", type=int, default=32, help="So many tasks, spread over the families.")
@click.option("--group-size", type=int, default=8, help="Rollouts of a group.")
@click.option("--repeats", type=int, default=1, help="Fresh groups of each task.")
@click.option("--continuations", type=int, default=48, help="From each state, a multiple of 4.")
@click.option(
    "--exact",
    is_flag=True,
    help="Exact values in place of continuations, in the games of agentgyms.envs.games.",
)
@click.option("--reward", default="success", help="success, score or environment.")
@click.option("--gamma", type=float, default=1.0, help="Discount of later turns.")
@click.option(
    "--process-reward",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="A run of oprl, whose newest reward model scores the turns.",
)
@click.option("--seed", type=int, default=0, help="Of episodes and decisions.")
@click.option("--methods", "names", default="", metavar="A,B", help="Only these, in this order.")
@click.option(
    "--credit", "settings", multiple=True, metavar="METHOD.KEY=VALUE", help="A hyperparameter."
)
@click.option("--preset", default="paper", help="paper or verl_agent.")
@click.option(
    "--group-sizes", "sizes", default="", metavar="N,N", help="Figures of groups of these sizes."
)
@click.option(
    "--by",
    type=click.Choice(("success", "length")),
    multiple=True,
    help="Figures by thirds of the tasks' success rate, or of the rollouts' length.",
)
@click.option("--save", type=click.Path(path_type=Path), help="Keep the truth in this file (.npz).")
@click.option("--html", "page", type=click.Path(path_type=Path), help="Write the page here.")
@click.option("--csv", "table", type=click.Path(path_type=Path), help="Write figures; - prints.")
@click.option("--json", "values", type=click.Path(path_type=Path), help="The same as JSON.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the figures with their intervals: a .png or .svg file.",
)
@click.option(
    "--env-arg", "env_args", multiple=True, metavar="KEY=VALUE", help="Argument of the environment."
)
@click.option(
    "--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE", help="As for harness eval."
)
@imports.needed("eval")
def audit(
    config_file: Path | None,
    truth_file: str | None,
    names: str,
    settings: tuple[str, ...],
    preset: str,
    save: Path | None,
    page: Path | None,
    table: Path | None,
    values: Path | None,
    figure: Path | None,
    sizes: str,
    by: tuple[str, ...],
    env_args: tuple[str, ...],
    overrides: tuple[str, ...],
    **options: Any,
) -> None:
    """Measure what each turn was worth, and which methods give it that credit.

    A policy plays groups of rollouts; from a fork before every turn it plays on many times, which
    gives the turn's true advantage. Every method's credit is compared with it.
    """
    from harness.audit import sets, truth_sets
    from harness.audit.parts import check_sizes
    from harness.reporting.credit_view import audit_page, audit_text, compare
    from harness.reporting.figure import check_kind

    if truth_file is not None:
        _refuse_what_plays(click.get_current_context())
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    choices = compare.choose(chosen, settings, preset)
    group_sizes = whole_numbers(sizes, "--group-sizes", "4,8,16") if sizes else []
    if figure is not None:
        check_kind(figure)
    if truth_file is None:
        overrides, env_args = _with_signal(options, overrides, env_args)
        check_sizes(group_sizes, options["group_size"] * options["repeats"])
        changes = [*overrides, *(f"env.kwargs.{argument}" for argument in env_args)]
        truth_set = _measured(config_file, changes, options)
    else:
        truth_set = truth_sets.read(sets.find(truth_file))
    if save is not None:
        truth_sets.write(save, truth_set)
        echo(f"wrote {save}, digest {truth_set.digest}", err=True)
    scores = audit_text.score(truth_set, choices, group_sizes, by)
    found, results, parts = scores.agreement, scores.results, scores.parts
    if table is not None:
        write(table, audit_text.to_csv(found, parts))
    if values is not None:
        text = json.dumps(audit_text.to_json(truth_set, found, results, parts), indent=1)
        write(values, f"{text}\n")
    if page is not None:
        write(page, audit_page.render(truth_set, found, results))
    if figure is not None:
        _draw(figure, found, audit_text.title(truth_set), parts)
    if not any(str(path) == "-" for path in (table, values, page)):
        echo(audit_text.report(truth_set, found, results, parts))


def _draw(path: Path, agreement: Agreement, title: str, parts: Parts) -> None:
    from harness.reporting.credit_view import audit_figure

    try:
        audit_figure.draw(path, agreement, title, parts)
    except OSError as e:
        raise not_written(path, e) from e
    echo(f"wrote {path}", err=True)


def _with_signal(
    options: dict[str, Any], overrides: tuple[str, ...], env_args: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Let the expert play as in the environment's truth set if no option says how to play."""
    from harness.audit import sets

    source = click.get_current_context().get_parameter_source
    name, played = sets.as_played(options["env"] or "")
    if not name or any(source(one) is not ParameterSource.DEFAULT for one in _HOW_TO_PLAY):
        return overrides, env_args
    options["noise"] = played["noise"]
    flags = [f"--noise {played['noise']:g}"]
    for flag, key in (("--env-arg", "env_args"), ("--set", "overrides")):
        flags += [f"{flag} '{one}'" for one in played.get(key, ())]
    echo(f"the expert plays as in {name}: {' '.join(flags)}", err=True)
    return tuple(played.get("overrides", ())), tuple(played.get("env_args", ()))


def _refuse_what_plays(context: click.Context) -> None:
    """Refuse options beside --truth that only matter where episodes are played."""
    given = ParameterSource.COMMANDLINE
    for one in context.command.params:
        if one.name not in _SCORE_OPTIONS and context.get_parameter_source(str(one.name)) is given:
            name = one.opts[0] if one.param_type_name == "option" else "the file of settings"
            raise click.UsageError(f"--truth plays nothing: leave out {name}")


def _measured(config_file: Path | None, changes: list[str], options: dict[str, Any]) -> TruthSet:
    from agentgyms.data.progress_bar import ProgressBar
    from harness.audit.models import measure_model

    plan = _plan(options)
    given = values_of(config_file, options, changes)
    if not {"name", "backend"} & given.get("model", {}).keys():
        given.setdefault("model", {})["name"] = "expert"
    config = new_config(given)
    with ProgressBar(total=None, desc="audit", unit="group") as bar:

        def advance(played: int, total: int) -> None:
            bar.total = total
            bar.update(played - bar.n)

        try:
            return asyncio.run(measure_model(config, plan, advance))
        except KeyboardInterrupt:
            echo("\ninterrupted; an audit keeps nothing before its end", err=True)
            sys.exit(130)


def _plan(options: dict[str, Any]) -> Plan:
    from harness.audit.models import Plan
    from harness.audit.truth import TruthOptions

    own = {key: options.pop(key) for key in ("continuations", "reward", "gamma", "exact")}
    if own["exact"]:
        source = click.get_current_context().get_parameter_source("continuations")
        if source is ParameterSource.COMMANDLINE:
            raise click.UsageError("--exact plays no continuations: leave out --continuations")
        own["continuations"] = 4  # equal columns: each part of them is the value
    played = {
        key: options.pop(key)
        for key in ("group_size", "repeats", "noise", "seed", "process_reward")
    }
    return Plan(**played, options=TruthOptions(**own))
