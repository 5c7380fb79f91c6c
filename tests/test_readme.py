"""The README is executed: its four uses line by line; tests/docs runs all its other code."""

import fnmatch
import json
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
from chat_server import ChatServer
from click.testing import CliRunner

from agentgyms.cli.main import main as agentgyms_cli
from agentgyms.registration import GroupEnv
from env_servers import Server, create_app
from harness.cli.main import main as harness_cli
from harness.config import EvaluationConfig, build
from harness.evaluation import defaults
from harness.runs import metrics

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
EVALUATION = (ROOT / "docs" / "evaluation.md").read_text()
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
SERVER_URL, MODEL_URL = "http://127.0.0.1:8001", "http://127.0.0.1:8000/v1"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def uses() -> dict[str, tuple[str, str]]:
    """Return the four uses: shell commands and Python of each, by heading."""
    section = README.partition("\n## Four uses\n")[2].partition("\n## ")[0]
    found = {}
    for use in re.split(r"^### ", section, flags=re.MULTILINE)[1:]:
        shell = "".join(re.findall(r"^```bash\n(.*?)^```", use, re.DOTALL | re.MULTILINE))
        found[use.partition("\n")[0]] = shell, "".join(BLOCK.findall(use))
    return found


SERVERS, OWN_CODE, TRAINING, PROMPTING = (
    "Environments from containers",
    "Environments in your own code",
    "Training",
    "Prompting baselines",
)


def test_the_audit_prints_the_table_of_the_first_screen():
    first = README.partition("\n## ")[0]
    (command,) = re.findall(r"^harness (credit audit .*?) *#", first, re.MULTILINE)
    (table,) = re.findall(r"^```text\n(.*?)^```", first, re.DOTALL | re.MULTILINE)
    result = CliRunner().invoke(harness_cli, shlex.split(command))
    printed = result.output.splitlines()
    for line in table.splitlines():
        assert any(whole.startswith(line) for whole in printed), line


def test_there_are_four_uses_of_five_lines_at_most():
    assert list(uses()) == [SERVERS, OWN_CODE, TRAINING, PROMPTING]
    for name, (shell, python) in uses().items():
        lines = [line for line in (shell + python).splitlines() if line.strip()]
        assert 1 <= len(lines) <= 5, name


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A folder on the path; its pip checks names."""
    folder = tmp_path / "bin"
    folder.mkdir()
    known = "|".join(f"*.[[]{name}[]]" for name in EXTRAS)
    _program(folder / "pip", f'case "$3" in .|{known}) ;; *) echo "no extra $3" >&2; exit 1;; esac')
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return folder


@pytest.fixture
def programs(path, harness_program):
    """The project's command on the path, as an installation puts it there."""
    _program(path / "harness", f'exec {harness_program} "$@"')


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def run_shell(script: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def run_python(code: str, name: str) -> dict[str, object]:
    namespace: dict[str, object] = {"__name__": name}
    exec(compile(code, "README.md", "exec"), namespace)
    return namespace


def test_environments_from_containers_without_containers():
    with Server(create_app("agentgyms/ALFWorld-v0")) as server:
        found = run_python(uses()[SERVERS][1].replace(SERVER_URL, server.url), "use")
        assert found["info"]["goal"]


@pytest.fixture
def compose(path, tmp_path, monkeypatch):
    """`docker compose`, whatever it is called here, on a free port; afterwards nothing is left."""
    if not shutil.which("docker") or _run("docker", "info").returncode:
        pytest.skip("no Docker engine answers")
    if _run("docker", "compose", "version").returncode:
        standalone = shutil.which("docker-compose") or pytest.skip("there is no compose")
        real, other = shlex.quote(str(shutil.which("docker"))), shlex.quote(str(standalone))
        script = f'[ "$1" = compose ] || exec {real} "$@"\nshift\nexec {other} "$@"'
        _program(path / "docker", script)
    override = tmp_path / "override.yaml"
    # The build uses this machine's network, which may be the only one with a package index.
    change = {"image": f"agentgyms-readme-{os.getpid()}", "build": {"network": "host"}}
    override.write_text(json.dumps({"services": {"alfworld": change}}))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    monkeypatch.setenv("COMPOSE_FILE", f"{ROOT}/docker/compose.yaml{os.pathsep}{override}")
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", change["image"])
    monkeypatch.setenv("ALFWORLD_PORT", str(port))
    yield f"http://127.0.0.1:{port}"
    run_shell("docker compose down -v --rmi all", ROOT)


def _run(*command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, timeout=60)


@pytest.mark.docker
def test_environments_from_containers(compose):
    shell, python = uses()[SERVERS]
    run_shell(shell.replace(SERVER_URL, compose), ROOT)
    found = run_python(python.replace(SERVER_URL, compose), "use")
    assert found["info"]["goal"]


def test_environments_in_own_code():
    found = run_python(uses()[OWN_CODE][1], "use")
    assert found["info"]["turn"] == 1


@pytest.mark.slow
def test_training(programs, tmp_path):
    """What the README trains learns, and is evaluated by the command of docs/evaluation.md.

    With tests/test_own_pages.py this is a stranger's first hour, from an empty folder.
    """
    run_shell(uses()[TRAINING][0], tmp_path)
    assert list(tmp_path.glob("*.png"))
    runs = list(tmp_path.glob("runs/*"))
    assert len(runs) == 2
    for folder in runs:
        split = "eval/train/success"
        found = [line[split] for line in metrics.read(folder) if split in line]
        assert found[0] < 0.6
        assert found[-1] > 0.7
        assert found[-1] - found[0] > 0.2
    shown = next(line for line in EVALUATION.splitlines() if "--model runs/NAME" in line)
    run_shell(shown.replace("NAME", "gigpo"), tmp_path)
    (folder,) = tmp_path.glob("evaluations/*")
    assert json.loads((folder / "result.json").read_text())["figures"]["success"]["mean"] > 0.7
    assert (folder / "page.html").exists()


@pytest.mark.slow
def test_prompting_baselines(programs, tmp_path):
    answer = "<think>look first</think><action>look</action>"
    with ChatServer(lambda messages: answer, model="qwen") as server:
        shell = uses()[PROMPTING][0].replace(MODEL_URL, server.url)
        for official in (" && agentgyms data fetch alfworld", " --env-arg source=official"):
            assert official in shell
            shell = shell.replace(official, "")  # a test has no network; the tasks are generated
        assert "reflexion" in run_shell(shell, tmp_path).lower()
        assert server.requests
    assert list(tmp_path.glob("*.html"))


def test_make_clean_removes_what_git_ignores_but_no_results():
    shown = subprocess.run(
        ["make", "-n", "clean"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    removed = shown.stdout.split()
    ignored = (ROOT / ".gitignore").read_text().replace("/", "").split()
    left = {name for name in ignored if not fnmatch.filter(removed, name)}
    assert left == {"runs", "evaluations", "certificates", ".venv*.log"}


def test_the_commands_of_the_readme_exist():
    text = README
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
        assert target in targets, f"README names `make {target}`"
    for program, main in (("agentgyms", agentgyms_cli), ("harness", harness_cli)):
        for name in re.findall(rf"^{program} ([a-z]+)", text, re.MULTILINE):
            assert name in main.commands, f"README names `{program} {name}`"


def test_the_settings_file_of_the_documentation_is_accepted():
    (text,) = re.findall(r"^```toml\n(.*?)^```", EVALUATION, re.DOTALL | re.MULTILINE)
    resolved = defaults.resolve(build(EvaluationConfig, tomllib.loads(text)))
    with GroupEnv(resolved.env.id, 1, split=resolved.env.split, **resolved.env.kwargs) as group:
        assert group.reset(seed=0)


def test_the_documentation_names_every_file_of_an_evaluation(tmp_path):
    words = ["eval", "--env", "Corridor", "--model", "expert", "--tasks", "1", "--name", "x"]
    place = ["--set", f"run.output={json.dumps(str(tmp_path))}"]
    done = CliRunner().invoke(harness_cli, [*words, *place], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    named = set(re.findall(r"`([a-z]*\.[a-z]+)`", EVALUATION))
    assert {path.name for path in (tmp_path / "x").iterdir()} <= named
