"""Modules of the current folder, and short ids: what people name on the command line."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import gymnasium as gym
import pytest
from click.testing import CliRunner

import agentgyms
from agentgyms.cli.main import main
from agentgyms.core.errors import BadOption
from agentgyms.registration import ENVIRONMENTS, find_maker, full_id, short_name

ROOT = Path(__file__).parents[3]
MINE = """
import gymnasium as gym
from agentgyms import Task, TaskSet
from agentgyms.envs.corridor import CorridorEnv

class MyEnv(CorridorEnv):
    def load_tasks(self):
        return TaskSet(self.split, [Task("near", "free"), Task("far", "free")])

    splits = ("train", "test", "train_more")
    default_max_turns = 7

class Alone(MyEnv):
    splits = ("train",)

gym.register("mine/Walk-v0", MyEnv, disable_env_checker=True)
gym.register("mine/Alone-v0", Alone, disable_env_checker=True)
"""


def program(name, *words, cwd, code=0):
    """Run an installed program, which has its own folder on the path in place of the current."""
    script = Path(sysconfig.get_path("scripts")) / name
    if not script.exists():
        pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        [script, *map(str, words)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def test_an_installed_program_finds_what_the_user_names(folder):
    facts = json.loads(program("agentgyms", "info", "mine:mine/Walk-v0", "--json", cwd=folder))
    assert facts["max_turns"] == 7
    program("agentgyms", "record", "mine:mine/Walk-v0", "played.jsonl", cwd=folder)
    header, *turns = (folder / "played.jsonl").read_text().splitlines()
    assert json.loads(header)["env_id"] == "mine/Walk-v0"
    replay = ("replay", "played.jsonl", "--env", "mine:mine/Walk-v0")
    assert "states agree" in program("agentgyms", *replay, cwd=folder)
    fields = json.loads(header) | {"env_id": "mine:mine/Walk-v0"}
    (folder / "strange.jsonl").write_text("\n".join([json.dumps(fields), *turns]))
    (folder / "mine.py").write_text("raise SystemExit('a stranger ran this')")
    assert "--env mine:" in program("agentgyms", "replay", "strange.jsonl", cwd=folder, code=2)
    gone = program("agentgyms", "info", "gone:mine/Walk-v0", cwd=folder, code=2)
    assert gone.startswith("error: ")
    assert len(gone.splitlines()) == 1


@pytest.mark.slow
def test_training_takes_limit_and_split_from_the_environment(folder):
    (folder / "own.toml").write_text("extends = 'bases/tiny'\nwarmstart.episodes = 9\n")
    short = ("--set", "env.id=corridor", "--print-config")
    shown = program("harness", "train", "own.toml", *short, cwd=folder)
    assert json.loads(shown)["env"]["id"] == "agentgyms/Corridor-v0"
    plan = program(
        "harness", "train", "own.toml", "--dry-run", "--set", "env.id=mine:mine/Walk-v0",
        cwd=folder,
    )  # fmt: skip
    assert "mine:mine/Walk-v0, 7 turns at most" in plan
    assert "all tasks of test " in plan
    alone = ("train", "own.toml", "--set", "env.id=mine:mine/Alone-v0")
    for words in (alone, (*alone, "--dry-run")):
        shown = program("harness", *words, cwd=folder, code=2)
        assert "mine:mine/Alone-v0 has the splits train: set" in shown
        assert len(shown.splitlines()) == 1
    assert not (folder / "runs").exists()


def test_the_current_folder_shadows_no_installed_module(tmp_path):
    (tmp_path / "only_here.py").write_text("import beside\n")
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "tqdm.py").write_text("raise SystemExit('the wrong module')")
    code = (
        "import sys; from agentgyms.core.imports import import_named\n"
        "before = list(sys.path); import_named('json'); assert sys.path == before\n"
        "import_named('only_here'); assert sys.path == [*before, sys.argv[1]]\n"
        "sys.modules.pop('tqdm', None); import tqdm\n"
    )
    subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        timeout=120,
    )


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_ids_need_neither_namespace_nor_version(env_id):
    name = short_name(env_id)
    for written in (env_id, name, name.lower(), f"{name}-v0", f"agentgyms/{name}"):
        assert full_id(written) == env_id
    assert find_maker(name) == find_maker(env_id)


def test_short_ids_on_every_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words, **kwargs):
        done = CliRunner().invoke(main, words, catch_exceptions=False, **kwargs)
        assert done.exit_code == 0, done.output
        return done.output

    assert json.loads(run("info", "corridor", "--json"))["id"] == "agentgyms/Corridor-v0"
    assert "corridor" in run("play", "Corridor", input="")
    run("record", "Corridor", "played.jsonl")
    assert "states agree" in run("replay", "played.jsonl", "--env", "corridor")
    with agentgyms.make_group("Corridor", 2) as group:
        assert group.reset(seed=0)


def test_a_wrong_id_is_answered_with_the_nearest():
    for written in ("ALFWrld", "agentgyms/ALFWrld-v0", "alfworldd"):
        with pytest.raises(BadOption, match="did you mean ALFWorld"):
            full_id(written)
    with pytest.raises(BadOption, match="the module json registers no environment 'mine/No-v0'"):
        full_id("json:mine/No-v0")
    with pytest.raises(gym.error.Error):
        gym.make("Corridor")  # Gymnasium itself wants the whole id
