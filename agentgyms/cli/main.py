"""Command line: `agentgyms list · info · play · record · replay · export · serve · mcp ...`."""

from __future__ import annotations

import inspect
import json
import logging
import os
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import click
import gymnasium as gym

import agentgyms
from agentgyms.cli import doctor as doctors
from agentgyms.cli import last_resort, versions
from agentgyms.cli.certify import certify
from agentgyms.cli.data import data
from agentgyms.cli.export import export
from agentgyms.cli.printing import echo, log_handler
from agentgyms.cli.settings import parsed, set_option
from agentgyms.cli.setup import setup
from agentgyms.core.arguments import meanings, with_defaults
from agentgyms.core.env import Observation, TextEnv
from agentgyms.core.errors import AgentGymsError, BadOption, not_written
from agentgyms.core.outcome import PLACEHOLDER, text_of
from agentgyms.data import terminals
from agentgyms.data.progress_bar import ProgressBar
from agentgyms.recording import RecordEpisodes, recorder
from agentgyms.registration import ENVIRONMENTS, env_class, full_id, make_text_env

_HOW_TO_PLAY: Final = "Type an action or its number; ? lists the actions, quit leaves."


@click.group()
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=versions.show,
    help="Print the versions of the package and its data, and exit.",
)
def main() -> None:
    """Environments for language agents."""


main.add_command(certify)
main.add_command(data)
main.add_command(setup)
main.add_command(export)


def _make(env_id: str, pairs: tuple[str, ...], **defaults: Any) -> gym.Env[Any, str]:
    with warnings.catch_warnings():
        # a warning of Gymnasium about environments that raise a better error below or themselves
        warnings.filterwarnings("ignore", message=".*not in the possible render_modes")
        return make_text_env(env_id, **{**defaults, **parsed(pairs)})


@main.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """List the environments."""
    rows = {env_id: inspect.getdoc(env_class(env_id)) or "" for env_id in ENVIRONMENTS}
    if as_json:
        echo(json.dumps({k: v.splitlines()[0] for k, v in rows.items()}, indent=1))
        return
    for env_id, doc in rows.items():
        echo(f"{env_id:28} {doc.splitlines()[0]}")


@main.command()
@click.argument("env_id")
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(env_id: str, pairs: tuple[str, ...], as_json: bool) -> None:
    """Describe ENV_ID: splits, tasks, spaces, limits, data."""
    env = cast(TextEnv, _make(env_id, pairs).unwrapped)
    facts: dict[str, Any] = {
        "id": full_id(env_id),
        "splits": list(env.splits),
        "split": env.split,
        "tasks": len(env.tasks),
        "families": env.tasks.families(),
        "max_turns": env.max_turns,
        "data_version": env.data_version,
        "data_source": env.data_source,
        "parties": dict(env.parties),
        "observation_space": str(env.observation_space),
        "action_space": str(env.action_space),
    }
    arguments = with_defaults(type(env), env.arguments)
    env.close()
    if as_json:
        echo(json.dumps(facts | {"arguments": arguments}, indent=1))
        return
    for name, value in facts.items():
        echo(f"{name:18} {value}")
    rows = {name: json.dumps(value) for name, value in arguments.items()}
    first, second = (max(map(len, column)) for column in (rows, rows.values()))
    words = meanings(type(env))
    echo(f"\n{'argument':{first}}  {'value':{second}}  meaning")
    for name, value in rows.items():
        echo(f"{name:{first}}  {value:{second}}  {words.get(name, '')}".rstrip())


@main.command()
@click.argument("env_id")
@set_option
@click.option("--seed", type=int, help="Seed of the episode.")
@click.option("--task", "task_id", help="Task to play.")
@click.option("--record", "path", type=click.Path(path_type=Path), help="Append to this recording.")
def play(
    env_id: str, pairs: tuple[str, ...], seed: int | None, task_id: str | None, path: Path | None
) -> None:
    """Play ENV_ID yourself: type an action, or the number of one.

    `?` or an empty line lists the actions, `quit` leaves; neither costs a turn.
    """
    env = _make(env_id, pairs, render_mode="ansi")
    if path is not None:
        env = RecordEpisodes(env, path, actor="person")
    options = {"task_id": task_id} if task_id else None
    with env:
        observation, info = env.reset(seed=seed, options=options)
        over = False
        echo(f"{_screen_text(env, observation)}\n\n{_HOW_TO_PLAY}")
        while not over:
            action = _prompt_action(info["admissible_actions"])
            if action is None:
                break
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            echo(_screen_text(env, observation))
            if info["feedback"] != "ok":
                echo(f"[{info['feedback']}] {info['feedback_text']}", fg="yellow")
    if over:
        verdict = "solved" if info["success"] else "not solved"
        echo(f"{verdict} after {info['turn']} turns, score {info['score']:g}")


def _screen_text(env: gym.Env[Any, str], observation: Observation) -> str:
    """Return the text for a person: the rendered state, since the observation may be an image."""
    rendered: Any = env.render()
    return rendered if isinstance(rendered, str) else text_of(observation)


def _prompt_action(actions: list[str]) -> str | None:
    while True:
        try:
            text = click.prompt(">", default="", show_default=False, prompt_suffix=" ")
        except click.Abort:
            return None
        if text.isdecimal() and 0 < int(text) <= len(actions):
            action = actions[int(text) - 1]
            if not PLACEHOLDER.search(action):
                return action
            left_open = " and ".join(dict.fromkeys(PLACEHOLDER.findall(action)))
            advice = f"type it with words of your own in place of {left_open}"
            echo(f"{action} is a form, no action: {advice}", fg="yellow")
        elif text.strip() == "quit" and text not in actions:
            return None
        elif text.strip() not in ("", "?"):
            return str(text)
        else:
            for number, action in enumerate(actions, 1):
                note = "  (a form: write it out)" if PLACEHOLDER.search(action) else ""
                echo(f"{number:4}  {action}{note}")


@main.command()
@click.argument("env_id")
@click.argument("path", type=click.Path(path_type=Path))
@set_option
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
            act()  # raises here, before the file exists, if there is no expert
        with _recorded(env, path, policy) as recorded:
            for episode in ProgressBar(range(seed, seed + episodes), unit="episode"):
                chance = random.Random(episode) if policy == "random" else None
                _, info = recorded.reset(seed=episode)
                over = False
                while not over:
                    actions = info["admissible_actions"] if chance else []
                    action = chance.choice(actions) if chance and actions else act()
                    _, _, terminated, truncated, info = recorded.step(action)
                    over = terminated or truncated
                solved += bool(info["success"])
    echo(f"{episodes} episodes, {solved} solved, in {path}")


def _recorded(env: gym.Env[Observation, str], path: Path, policy: str) -> RecordEpisodes:
    try:
        return RecordEpisodes(env, path, actor=policy)
    except OSError as e:
        raise not_written(path, e) from e


@main.command()
@set_option
@click.option("--env", "env_id", help="Environment to replay it in; MODULE:ID imports the module.")
@click.argument("path", type=click.Path(path_type=Path))
def replay(path: Path, env_id: str | None, pairs: tuple[str, ...]) -> None:
    """Play the recording PATH again and verify every state; `--set url=...` on a server.

    The recording may come from anyone: addresses, paths, programs and modules that it names are
    not used unless you give them yourself with --set and --env.
    """
    settings = parsed(pairs)
    episodes = recorder.read(path)
    turns = sum(
        recorder.replay(e, env_id=env_id, **settings) for e in ProgressBar(episodes, unit="episode")
    )
    echo(f"{len(episodes)} episodes, {turns} states agree")


@main.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(arguments: tuple[str, ...]) -> None:
    """Serve an environment over HTTP: the same as `python -m env_servers ...`."""
    os.execv(sys.executable, [sys.executable, "-m", "env_servers", *arguments])  # noqa: S606


@main.command()
@click.argument("env_id")
@set_option
@click.option("--http", metavar="HOST:PORT", help="Serve over HTTP; without it, standard input.")
@click.option("--text", is_flag=True, help="One tool, step, instead of the environment's own.")
@click.option("--record", type=click.Path(path_type=Path), help="Record episodes to this folder.")
@click.option(
    "--session", default="", metavar="URL", help="Play the episode of this session on a server."
)
@click.option(
    "--token",
    envvar="AGENTGYMS_MCP_TOKEN",
    default="",
    show_envvar=True,
    help="Over HTTP: the bearer token that clients must send; prefer the variable.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    envvar="AGENTGYMS_ALLOWED_HOSTS",
    show_envvar=True,
    metavar="NAME",
    help="Over HTTP without a token: answer at this name too. Repeatable.",
)
def mcp(
    env_id: str,
    pairs: tuple[str, ...],
    http: str | None,
    text: bool,
    record: Path | None,
    session: str,
    token: str,
    hosts: tuple[str, ...],
) -> None:
    """Serve ENV_ID as tools of the Model Context Protocol."""
    address = None if http is None else _host_and_port(http)
    from agentgyms.adapters import mcp as tools

    options = {"native": not text, "record": record, "session": session, **parsed(pairs)}
    if address is None:
        tools.serve(env_id, **options)
    else:
        tools.serve_at(env_id, address, token=token, hosts=hosts, **options)


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BadOption(f"--http must be HOST:PORT, such as 127.0.0.1:8400, got {text!r:.80}")
    return host.strip("[]"), int(port)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Look at this machine and say what is missing and how to get it."""
    findings = doctors.examine()
    if as_json:
        echo(json.dumps([finding._asdict() for finding in findings], indent=1))
        return
    for finding in findings:
        mark = "ok " if finding.ok else "-- "
        echo(f"{mark} {finding.subject:24} {finding.found}")
        if not finding.ok and finding.advice:
            echo(f"    {finding.advice}")


def run() -> None:
    """Entry point: prints any error in one line."""
    last_resort.run("agentgyms", _run)


def _run() -> None:
    logging.basicConfig(level=logging.WARNING, handlers=[log_handler()])
    try:
        main(standalone_mode=True, color=terminals.set_up())
    except (AgentGymsError, gym.error.Error, TypeError, OSError, ImportError) as e:
        echo(f"error: {_one_line(e)}", err=True)
        sys.exit(2)


def _one_line(error: Exception) -> str:
    """Return an exception's text in one line; for an OSError the file name and the reason."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__
