"""Clients that code generators write from `/openapi.json` play what a local environment plays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import gymnasium as gym
import pytest
from server_faults import CORRIDOR, TOKEN

import agentgyms
from agentgyms.core import serialization
from env_servers import Server, create_app

pytestmark = pytest.mark.adapters

HERE: Final = Path(__file__).parent
BIN: Final = Path(os.environ.get("AGENTGYMS_ADAPTERS_PYTHON", "")).parent
MODULES: Final = BIN.parent / "node/node_modules"
PICTURES: Final = "agentgyms/VisualSokoban-v0"
SOKOBAN: Final = "agentgyms/Sokoban-v0"
SEED: Final = 3


def _run(*command: str | Path, folder: Path, said: str | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        input=said,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout + done.stderr


def openapi_python_client(file: Path, folder: Path) -> list[str | Path]:
    """Write a client and return the command that plays with it."""
    tool = BIN / "openapi-python-client"
    config = folder / "config.json"
    overrides = {"application/jsonl": "text/plain"}
    config.write_text(json.dumps({"content_type_overrides": overrides, "post_hooks": []}))
    arguments = ["--path", file, "--config", config, "--meta", "none", "--fail-on-warning"]
    _run(tool, "generate", *arguments, "--output-path", "made_client", folder=folder)
    return [BIN / "python", HERE / "by_openapi_python_client.py"]


def openapi_generator(file: Path, folder: Path) -> list[str | Path]:
    """Write a client and return the command that plays with it."""
    if not shutil.which("java"):
        pytest.skip("needs Java, in which openapi-generator is written")
    made = ["-g", "python", "-o", folder, "--package-name", "made_client"]
    _run(BIN / "openapi-generator-cli", "generate", "-i", file, *made, folder=folder)
    return [BIN / "python", HERE / "by_openapi_generator.py"]


def openapi_typescript(file: Path, folder: Path) -> list[str | Path]:
    """Write types, compile a program with them and return the command that runs it."""
    if not MODULES.is_dir():
        pytest.skip(f"needs node, npm and {MODULES}: make test-real installs them")
    (folder / "node_modules").symlink_to(MODULES)
    program = shutil.copy(HERE / "by_openapi_typescript.mts", folder)
    _run("node", MODULES / ".bin/openapi-typescript", file, "-o", "made.d.ts", folder=folder)
    strict = ["--strict", "--target", "es2022", "--module", "nodenext", "--types", "node"]
    _run("node", MODULES / ".bin/tsc", *strict, program, folder=folder)
    return ["node", folder / "by_openapi_typescript.mjs"]


def _expert(env_id: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the actions of an expert's episode, and its infos as they travel."""
    env = gym.make(env_id)
    expert = agentgyms.expert(env)
    observation, info = env.reset(seed=SEED)
    actions, infos, over = [], [serialization.encode_info(info)], False
    while not over:
        actions.append(expert(observation, info))
        observation, _, terminated, truncated, info = env.step(actions[-1])
        infos.append(serialization.encode_info(info))
        over = terminated or truncated
    env.close()
    return actions, infos


@pytest.mark.parametrize(
    ("make", "env_ids"),
    [
        (openapi_python_client, [CORRIDOR, PICTURES]),
        # Its models cannot hold a dict whose values are a text or an object.
        (openapi_generator, [CORRIDOR, SOKOBAN]),
        (openapi_typescript, [CORRIDOR, PICTURES]),
    ],
)
def test_a_generated_client_plays_episodes_and_batches(
    make: Callable[[Path, Path], list[str | Path]], env_ids: list[str], tmp_path: Path
) -> None:
    app = create_app(CORRIDOR, token=TOKEN)
    (tmp_path / "openapi.json").write_text(app.test_client().get("/openapi.json").text)
    command = make(tmp_path / "openapi.json", tmp_path)
    for env_id in env_ids:
        actions, infos = _expert(env_id)
        app = create_app(env_id, token=TOKEN)
        with Server(app) as server:
            asked = {"url": server.url, "token": TOKEN, "env": env_id}
            asked |= {"seed": SEED, "actions": actions}
            told = json.loads(_run(*command, folder=tmp_path, said=json.dumps(asked)))
        assert told["infos"] == infos
        assert told["restored"] == infos[0]
        assert told["batch"] == [infos[1], infos[1]]
        assert told["errors"] == ["turn_conflict", "unknown_session"]
        assert not len(app.extensions["agentgyms"].sessions), "a session was left open"
