"""The real engine's environment and data, as far as they can be had without the engine."""

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from gymnasium.error import DependencyNotInstalled

from agentgyms.cli import doctor
from agentgyms.cli.main import main
from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing, EnvUnavailable
from agentgyms.data import datasets
from agentgyms.data.folders import lock_folder
from agentgyms.envs.appworld.engine import sources
from agentgyms.envs.appworld.engine.data_roots import divide, divided, find_data
from agentgyms.envs.appworld.engine.world import EngineTasks
from agentgyms.envs.appworld.sandbox import install


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    monkeypatch.delenv(install.PYTHON_VARIABLE, raising=False)
    install.check.cache_clear()
    yield tmp_path / "home"
    install.check.cache_clear()


def interpreter(path, says, code=0):
    """Write a program that says one thing, whatever it is asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\necho '{says}' >&2\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def test_without_the_engine_the_command_is_named():
    with pytest.raises(DependencyNotInstalled, match="agentgyms setup appworld"):
        install.python()
    with pytest.raises(DependencyNotInstalled, match=install.PYTHON_VARIABLE):
        EngineTasks()


@pytest.mark.parametrize(
    ("says", "code", "expected"),
    [
        ("0.1.2", 0, r"has appworld 0\.1\.2, expected 0\.1\.3\.post1"),
        ("missing", 0, "has no appworld"),
        ("packed", 0, "appworld.cli install"),
        ("Segmentation fault", 139, "not a usable Python.*Segmentation fault"),
    ],
)
def test_an_interpreter_without_the_right_engine(tmp_path, monkeypatch, says, code, expected):
    named = interpreter(tmp_path / "python", says, code)
    monkeypatch.setenv(install.PYTHON_VARIABLE, named)
    with pytest.raises(DependencyNotInstalled, match=expected):
        install.python()


def test_an_interpreter_that_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv(install.PYTHON_VARIABLE, str(tmp_path / "nope"))
    with pytest.raises(DependencyNotInstalled, match="cannot be run"):
        install.python()


def test_this_interpreter_has_no_appworld(monkeypatch):
    monkeypatch.setenv(install.PYTHON_VARIABLE, sys.executable)
    with pytest.raises(DependencyNotInstalled, match="has no appworld"):
        install.python()


def test_the_environment_below_the_data_home_is_found(home, monkeypatch, tmp_path):
    own = interpreter(home / "appworld-engine/bin/python", install.VERSION)
    assert install.python() == own
    assert install.install() == home / "appworld-engine/bin/python", "nothing is left to do"
    other = interpreter(tmp_path / "other", install.VERSION)
    monkeypatch.setenv(install.PYTHON_VARIABLE, other)
    assert install.python() == other


@pytest.mark.parametrize(
    ("says", "expected"), [("3 10", "is Python 3.10: AppWorld needs 3.11"), ("x", "cannot be run")]
)
def test_an_interpreter_that_cannot_make_the_environment(tmp_path, says, expected):
    with pytest.raises(BadOption, match=expected):
        install.install(tmp_path / "engine", interpreter(tmp_path / "python", says))
    assert not (tmp_path / "engine").exists()


def test_a_step_that_fails_is_named(tmp_path):
    base = tmp_path / "python"
    interpreter(base, "3 12")
    base.write_text(f"{base.read_text()}".replace("exit 0", '[ "$1" = -I ] || exit 7'))
    with pytest.raises(EnvUnavailable, match="could not make a virtual environment.*with 7"):
        install.install(tmp_path / "engine", str(base))


def test_two_installations_do_not_meet(tmp_path):
    with lock_folder(tmp_path / "engine"), pytest.raises(EnvUnavailable, match="another process"):
        install.install(tmp_path / "engine")


def run(*arguments):
    return CliRunner().invoke(main, ["setup", "appworld", *arguments])


def test_the_check_of_what_is_not_there(tmp_path):
    for arguments in ([], ["--folder", str(tmp_path / "elsewhere")]):
        done = run("--check", *arguments)
        assert isinstance(done.exception, DependencyNotInstalled)


def test_the_check_builds_nothing(home):
    interpreter(home / "appworld-engine/bin/python", install.VERSION)
    done = run("--check")
    assert isinstance(done.exception, DataMissing)
    assert "agentgyms setup appworld" in str(done.exception)
    assert [path.name for path in home.iterdir()] == ["appworld-engine"]


def test_data_that_is_not_there_is_noticed_before_anything_is_installed(home):
    done = run("--data", "offical")
    assert isinstance(done.exception, DataMissing)
    assert not home.exists()


def test_the_doctor_says_whether_the_engine_is_there(home):
    def finding():
        return next(f for f in doctor.examine() if f.subject == "AppWorld engine")

    assert not finding().ok
    assert "agentgyms setup appworld" in finding().advice
    own = interpreter(home / "appworld-engine/bin/python", install.VERSION)
    assert finding().ok
    assert own in finding().found


FILES = {
    "version.txt": "made-up",
    "base_dbs/a.db": "records",
    "api_docs/standard/a.json": "{}",
    "datasets/train.txt": "one_1\none_2\n",
    "datasets/dev.txt": "two_1:tag\n",
    "datasets/test_normal.txt": "",
    "datasets/test_challenge.txt": "",
    "notes/answers.txt": "secret",
    **{
        f"tasks/{task}/{name}": text
        for task in ("one_1", "one_2", "two_1")
        for name, text in {
            "specs.json": json.dumps({"instruction": f"do {task}"}),
            "dbs/a.jsonl": "change",
            "ground_truth/answer.json": '"secret"',
            "ground_truth/metadata.json": '{"difficulty": 2}',
            "solution.py": "secret",
        }.items()
    },
}


@pytest.fixture
def made_up(tmp_path):
    """A folder in the layout of AppWorld's data, with contents of our own."""
    for name, text in FILES.items():
        path = tmp_path / "root/data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "root"


def files(folder):
    walk = os.walk(folder, followlinks=True)
    found = [Path(parent, name) for parent, _, names in walk for name in names]
    return sorted(path.relative_to(folder).as_posix() for path in found)


@pytest.mark.parametrize("link", [True, False])
def test_a_world_gets_nothing_that_tells_the_answer(made_up, tmp_path, link):
    roots = divide(made_up, tmp_path / "out", link=link)
    for name in files(roots.world):
        assert "secret" not in (roots.world / name).read_text()
    assert files(roots.truth / "data") == sorted(FILES), "the other root is whole"
    assert files(roots.world / "data") == sorted(
        name
        for name in FILES
        if not name.startswith("notes") and "ground_truth" not in name and "solution" not in name
    )
    assert divided(tmp_path / "out") == roots
    linked = (roots.world / "data/base_dbs/a.db").stat().st_nlink > 1
    assert linked == link
    assert files(made_up / "data") == sorted(FILES), "the source stays"


def test_a_cut_division_goes_on(made_up, tmp_path):
    roots = divide(made_up, tmp_path / "out")
    (roots.world / "data/base_dbs/a.db").write_text("rec")
    (roots.truth / "data/tasks/one_1/specs.json").unlink()
    (roots.truth / "data/tasks/one_1/ground_truth/answer.json").unlink()
    assert divide(made_up, tmp_path / "out") == roots
    assert files(roots.truth / "data") == sorted(FILES)
    assert (roots.world / "data/base_dbs/a.db").read_text() == "records"


def test_what_divided_roots_tell(made_up, tmp_path):
    roots = divide(made_up, tmp_path / "out")
    assert roots.version == "made-up"
    assert (roots.tasks("train"), roots.tasks("dev")) == (["one_1", "one_2"], ["two_1"])
    assert roots.specs("two_1") == {"instruction": "do two_1"}
    assert roots.ground_truth("two_1", "metadata") == {"difficulty": 2}
    assert roots.ground_truth("two_1", "solution_blocks") is None
    with pytest.raises(DataMissing, match="no split 'other'"):
        roots.tasks("other")
    with pytest.raises(DataMissing, match="two_2"):
        roots.specs("two_2")
    (roots.world / "data/tasks/two_1/specs.json").write_text("{")
    with pytest.raises(DataCorrupt, match=r"specs\.json is damaged"):
        roots.specs("two_1")


def test_a_folder_without_the_data(tmp_path):
    with pytest.raises(DataMissing, match="base_dbs, api_docs"):
        find_data(tmp_path)
    with pytest.raises(DataMissing, match="base_dbs, api_docs"):
        sources.find("official", tmp_path, sys.executable)


def test_the_official_data_comes_from_a_folder(made_up, home):
    with pytest.raises(DataMissing, match="agentgyms setup appworld --data official"):
        sources.find("official", None, sys.executable)
    folder = datasets.import_data("appworld", made_up, progress=False)
    assert folder == home / "appworld"
    roots = sources.find("official", None, sys.executable)
    assert roots.tasks("train") == ["one_1", "one_2"]
    status = datasets.verify("appworld", progress=False)
    assert {split: part.num_items for split, part in status.parts.items()} == {"train": 2, "dev": 1}
    (roots.truth / "data/tasks/one_1/ground_truth/answer.json").write_text('"guessed"')
    with pytest.raises(DataCorrupt, match=r"answer\.json was changed"):
        datasets.verify("appworld", progress=False)


def test_official_data_that_is_cut(made_up, home):
    (made_up / "data/tasks/one_2/specs.json").unlink()
    with pytest.raises(DataCorrupt, match="lists the task one_2"):
        datasets.import_data("appworld", made_up, progress=False)
    assert not (home / "appworld").exists()


def test_official_data_that_is_an_archive(tmp_path):
    (tmp_path / "data.zip").write_bytes(b"PK")
    with pytest.raises(DataMissing, match="not a folder"):
        datasets.import_data("appworld", tmp_path / "data.zip", progress=False)


def test_our_data_that_cannot_be_built(home, tmp_path):
    with pytest.raises(EnvUnavailable, match="could not be built.*no room"):
        sources.generated(interpreter(tmp_path / "python", "no room", 1))
    left = [path.name for path in home.iterdir()]
    assert not [name for name in left if not name.startswith(".")], "nothing half built is used"
