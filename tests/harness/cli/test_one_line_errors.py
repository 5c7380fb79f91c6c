"""What a user mistypes, or a folder that cannot be written, ends in one line and leaves nothing."""

import sys

import pytest

from agentgyms.cli import main as environments
from harness.cli import main as harness

LONGEST = 300


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with a file in it that is no folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    return tmp_path


@pytest.fixture
def refused(here, monkeypatch, capsys):
    """Call a program and return the only line of its standard error, without `error: `."""

    def call(program, *arguments):
        monkeypatch.setattr(sys, "argv", ["program", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            program.run()
        assert ended.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert len(line) <= LONGEST
        assert [path.name for path in here.iterdir()] == ["file"]
        return line.removeprefix("error: ")

    return call


def settings(*changes):
    return [word for change in changes for word in ("--set", change)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["run.output=file/x"], "--set run.output=FOLDER"),
        (["run.output=/proc/x"], "--set run.output=FOLDER"),
        (["run.name=../x"], "run.name '../x' is no plain name"),
        (["run.name=a/b"], "run.name 'a/b' is no plain name"),
        (["run.name=''"], "run.name '.' is no plain name"),
        (["method.name=gigop"], "`harness methods` lists; did you mean gigpo?"),
        (["env.kwargs.lenght=3"], "takes no argument 'lenght'"),
        (["policy.model=./missing"], "policy.model: there is no folder './missing'"),
        (["policy.model=owner/none", "warmstart.episodes=0"], "run `hf download owner/none`"),
    ],
)
def test_training_refuses_in_one_line(refused, monkeypatch, changes, said):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert said in refused(harness, "train", "corridor-tiny", *settings(*changes))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "corridor-tini"], "`harness recipes` lists; did you mean corridor-tiny?"),
        (["train", "--resume", "runs/none"], "runs/none is no run"),
        (["eval", "--model", "runs/none"], "there is no folder 'runs/none'; give that of a train"),
        (["eval", "--model", "./none", "--env", "Corridor"], "there is no folder './none'"),
        (["eval", "--model", "file/none", "--checkpoint", "best"], "there is no folder"),
        (["eval", "--model", "owner/none", "--env", "Corridor"], "run `hf download owner/none`"),
        (["credit", "--example", "--methods", "gigop"], "`harness methods` lists; did you mean"),
        (["credit", "--example", "--html", "file/x.html"], "file/x.html cannot be written"),
        (["credit", "--example", "--csv", "file/x/y.csv"], "file/x/y.csv cannot be written"),
        (["credit", "--example", "--json", "/proc/x/y"], "/proc/x/y cannot be written"),
        (
            ["eval", "--env=Corridor", "--model=expert", "--tasks=1", "--set=run.output=file/x"],
            "--set run.output=FOLDER",
        ),
        (
            ["eval", "--env=Corridor", "--model=expert", "--name=../x"],
            "run.name '../x' is no plain name",
        ),
        (
            ["eval", "--env=Sokoban", "--model=expert", "--env-arg=room=small"],
            "takes no argument 'room': leave it out; did you mean rooms?",
        ),
    ],
)
def test_other_commands_refuse_in_one_line(refused, monkeypatch, words, said):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert said in refused(harness, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["record", "agentgyms/Corridor-v0", "file/x.jsonl"], "file/x.jsonl cannot be written"),
        (["record", "agentgyms/Corridor-v0", "none/x.jsonl"], "in a folder that exists"),
        (["data", "export", "file/x"], "file/x cannot be written"),
        (["info", "agentgyms/Sokoban-v0", "--set", "room=small"], "did you mean rooms?"),
        (["play", "agentgyms/Sokoban-v0", "--set", "room=small"], "did you mean rooms?"),
    ],
)
def test_commands_of_environments_refuse_in_one_line(refused, words, said):
    assert said in refused(environments, *words)


def test_a_hub_that_does_not_answer_is_asked_once(refused, monkeypatch):
    """transformers would ask six times, with pauses of half a minute together."""
    asked = []

    class Session:
        def head(self, url, *, timeout):
            asked.append((url, timeout))
            raise ConnectionError

    monkeypatch.setattr("huggingface_hub.get_session", Session)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    line = refused(harness, "eval", "--model", "owner/none", "--env", "Corridor")
    assert "the hub does not answer" in line
    assert {timeout for _, timeout in asked} == {5.0}
