"""Command line: `agentgyms list · info · play · record · replay · serve · data · setup ...`."""

from __future__ import annotations

import inspect
import json
import os
import random
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import click
import gymnasium as gym
from tqdm import tqdm

import agentgyms
from agentgyms import doctor as doctors
from agentgyms import recording
from agentgyms.arguments import in_force
from agentgyms.core import Observation, TextEnv
from agentgyms.data_cli import data
from agentgyms.errors import AgentGymsError, BadOption
from agentgyms.observations import text_of
from agentgyms.registration import ENVIRONMENTS, env_class
from agentgyms.setup_cli import setup

_PLACEHOLDER: Final = re.compile(r"<\w[^<>]*>")
"""What an admissible action leaves open, such as `<query>` of `search[<query>]`."""


@click.group()
@click.version_option(package_name="agentgyms")
def main() -> None:
    """Environments for language agents."""


main.add_command(data)
main.add_command(setup)


def _settings(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return `key=value` pairs as keyword arguments; values are JSON, or else text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise BadOption(f"a setting has the form key=value, got {pair!r}")
        try:
            settings[key] = json.loads(text)
        except ValueError:
            settings[key] = text
    return settings


_set = click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Argument of make.")


def _make(env_id: str, pairs: tuple[str, ...], **usual: Any) -> gym.Env[Any, str]:
    """Return the environment; the settings in `pairs` go before the `usual` ones."""
    with warnings.catch_warnings():
        # Gymnasium's, about environments that are refused below or refuse the mode themselves
        warnings.filterwarnings("ignore", message=".*not in the possible render_modes")
        env = gym.make(env_id, **{**usual, **_settings(pairs)})
    if not isinstance(env.unwrapped, TextEnv):
        env.close()
        raise BadOption(
            f"{env_id} is no environment for language agents: expected one that "
            "`agentgyms list` shows, or a TextEnv of your own"
        )
    return env


@main.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """List the environments."""
    rows = {env_id: inspect.getdoc(env_class(env_id)) or "" for env_id in ENVIRONMENTS}
    if as_json:
        click.echo(json.dumps({k: v.splitlines()[0] for k, v in rows.items()}, indent=1))
        return
    for env_id, doc in rows.items():
        click.echo(f"{env_id:28} {doc.splitlines()[0]}")


@main.command()
@click.argument("env_id")
@_set
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(env_id: str, pairs: tuple[str, ...], as_json: bool) -> None:
    """Describe ENV_ID: splits, tasks, spaces, limits, data."""
    env = cast(TextEnv, _make(env_id, pairs).unwrapped)
    facts: dict[str, Any] = {
        "id": env_id,
        "splits": list(env.splits),
        "split": env.split,
        "tasks": len(env.tasks),
        "families": env.tasks.families(),
        "max_turns": env.max_turns,
        "data_version": env.data_version,
        "parties": dict(env.parties),
        "observation_space": str(env.observation_space),
        "action_space": str(env.action_space),
        "arguments": in_force(env),
    }
    env.close()
    if as_json:
        click.echo(json.dumps(facts, indent=1))
        return
    for name, value in facts.items():
        click.echo(f"{name:18} {value}")


@main.command()
@click.argument("env_id")
@_set
@click.option("--seed", type=int, help="Seed of the episode.")
@click.option("--task", "task_id", help="Task to play.")
@click.option("--record", "path", type=click.Path(path_type=Path), help="Append to this recording.")
def play(
    env_id: str, pairs: tuple[str, ...], seed: int | None, task_id: str | None, path: Path | None
) -> None:
    """Play ENV_ID yourself: type an action, or the number of one; an empty line shows the list."""
    env = _make(env_id, pairs, render_mode="ansi")
    if path is not None:
        env = recording.RecordEpisodes(env, path, actor="person")
    options = {"task_id": task_id} if task_id else None
    with env:
        observation, told = env.reset(seed=seed, options=options)
        over = False
        click.echo(_shown(env, observation))
        while not over:
            action = _ask(told["admissible_actions"])
            if action is None:
                break
            observation, _, terminated, truncated, told = env.step(action)
            over = terminated or truncated
            click.echo(_shown(env, observation))
            if told["feedback"] != "ok":
                click.secho(f"[{told['feedback']}] {told['feedback_text']}", fg="yellow")
    if over:
        verdict = "solved" if told["success"] else "not solved"
        click.echo(f"{verdict} after {told['turn']} turns, score {told['score']:g}")


def _shown(env: gym.Env[Any, str], observation: Observation) -> str:
    """Return what a person reads: the state in characters, for an agent may see a picture of it."""
    rendered: Any = env.render()
    return rendered if isinstance(rendered, str) else text_of(observation)


def _ask(actions: list[str]) -> str | None:
    """Return the action a person chose, or None at the end of input."""
    while True:
        try:
            text = click.prompt(">", default="", show_default=False, prompt_suffix=" ")
        except click.Abort:
            return None
        if text.isdecimal() and 0 < int(text) <= len(actions):
            action = actions[int(text) - 1]
            if not _PLACEHOLDER.search(action):
                return action
            click.secho(_how_to_write(action), fg="yellow")
        elif text.strip():
            return str(text)
        else:
            for number, action in enumerate(actions, 1):
                note = "  (a form: write it out)" if _PLACEHOLDER.search(action) else ""
                click.echo(f"{number:4}  {action}{note}")


def _how_to_write(form: str) -> str:
    """Return what to type for an action that leaves something open."""
    left_open = " and ".join(dict.fromkeys(_PLACEHOLDER.findall(form)))
    return f"{form} is a form, no action: type it with words of your own in place of {left_open}"


@main.command()
@click.argument("env_id")
@click.argument("path", type=click.Path(path_type=Path))
@_set
@click.option("--policy", type=click.Choice(["expert", "random"]), default="expert")
@click.option("--episodes", default=1, show_default=True, help="How many.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first episode.")
def record(
    env_id: str, path: Path, pairs: tuple[str, ...], policy: str, episodes: int, seed: int
) -> None:
    """Let an expert or chance play ENV_ID, and append the episodes to PATH."""
    solved = 0
    with _make(env_id, pairs) as env:
        act: Callable[[], str] = lambda: "look"  # noqa: E731
        if policy == "expert":
            act = agentgyms.expert(env)
            env.reset(seed=seed)
            act()  # only in an episode does it say that it is missing: here, before there is a file
        with recording.RecordEpisodes(env, path, actor=policy) as recorder:
            for episode in tqdm(range(seed, seed + episodes), unit="episode"):
                chance = random.Random(episode) if policy == "random" else None
                solved += _play_through(recorder, episode, act, chance)
    click.echo(f"{episodes} episodes, {solved} solved, in {path}")


def _play_through(
    env: gym.Env[Any, str], seed: int, act: Callable[[], str], chance: random.Random | None
) -> bool:
    """Return whether an episode was solved; `chance` draws actions where the state lists them."""
    _, told = env.reset(seed=seed)
    over = False
    while not over:
        actions = told["admissible_actions"] if chance else []
        action = chance.choice(actions) if chance and actions else act()
        _, _, terminated, truncated, told = env.step(action)
        over = terminated or truncated
    return bool(told["success"])


@main.command()
@click.argument("path", type=click.Path(path_type=Path))
@_set
def replay(path: Path, pairs: tuple[str, ...]) -> None:
    """Play the recording PATH again and verify every state; `--set url=...` on a server."""
    settings = _settings(pairs)
    episodes = recording.read(path)
    turns = sum(recording.replay(e, **settings) for e in tqdm(episodes, unit="episode"))
    click.echo(f"{len(episodes)} episodes, {turns} states agree")


@main.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(arguments: tuple[str, ...]) -> None:
    """Serve an environment over HTTP: the same as `python -m env_servers ...`."""
    os.execv(sys.executable, [sys.executable, "-m", "env_servers", *arguments])  # noqa: S606


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Look at this machine and say what is missing and how to get it."""
    findings = doctors.examine()
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings], indent=1))
        return
    for finding in findings:
        mark = "ok " if finding.ok else "-- "
        click.echo(f"{mark} {finding.subject:24} {finding.found}")
        if not finding.ok and finding.advice:
            click.echo(f"    {finding.advice}")


def run() -> None:
    """Entry point: errors of this package and of files end in one line, not in a traceback."""
    try:
        main(standalone_mode=True)
    except (AgentGymsError, gym.error.Error, TypeError, OSError, ImportError) as e:
        click.echo(f"error: {_said(e)}", err=True)
        sys.exit(2)


def _said(error: Exception) -> str:
    """Return an exception's text in one line; for a file its name and what is wrong with it."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
