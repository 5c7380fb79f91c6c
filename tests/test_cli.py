"""The command line, as people use it."""

import json

import pytest
from click.testing import CliRunner

import agentgyms.cli
from agentgyms import data
from agentgyms.cli import main

CORRIDOR = "agentgyms/Corridor-v0"


def invoke(*arguments, **kwargs):
    result = CliRunner().invoke(main, arguments, catch_exceptions=False, **kwargs)
    assert result.exit_code == 0, result.output
    return result.output


def test_list_and_info():
    assert CORRIDOR in invoke("list")
    assert json.loads(invoke("list", "--json"))["agentgyms/ALFWorld-v0"]
    facts = json.loads(invoke("info", CORRIDOR, "--set", "split=valid_seen", "--json"))
    assert facts["tasks"] == 8
    assert facts["families"] == {"free": 4, "locked": 4}
    assert "observation_space" in invoke("info", CORRIDOR)


def test_play_by_words_and_numbers(tmp_path):
    file = tmp_path / "mine.jsonl"
    typed = "\n2\nright\nright\ndance\nright\nright\nright\nopen door\n" * 2
    output = invoke(
        "play", CORRIDOR, "--task", "train/free-000", "--record", str(file), input=typed
    )
    assert "1  left" in output
    assert "[malformed] unknown command" in output
    assert "solved after" in output
    assert "1 episodes, " in invoke("replay", str(file))


def test_play_stops_at_the_end_of_the_input():
    assert "corridor" in invoke("play", CORRIDOR, "--seed", "1", input="right\n")


@pytest.mark.parametrize(("policy", "solved"), [("expert", 3), ("random", None)])
def test_record_and_replay(tmp_path, policy, solved):
    file = tmp_path / "episodes.jsonl"
    output = invoke("record", CORRIDOR, str(file), "--policy", policy, "--episodes", "3")
    assert solved is None or f"{solved} solved" in output
    assert "3 episodes" in invoke("replay", str(file))


def test_doctor_names_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path))
    findings = {f["subject"]: f for f in json.loads(invoke("doctor", "--json"))}
    assert findings["python"]["ok"]
    assert not findings["data: alfworld"]["ok"]
    assert "agentgyms data fetch alfworld" in findings["data: alfworld"]["advice"]
    assert "ok  gymnasium" in invoke("doctor")


def test_data_commands(monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    assert "not here: agentgyms data fetch alfworld" in invoke("data", "list")
    games = tmp_path / "games"
    assert "12 games" in invoke("data", "export", str(games), "--split", "sample")
    with pytest.raises(data.DataCorrupt, match="holds nothing of alfworld"):
        invoke("data", "import", "alfworld", str(games))
    assert json.loads(invoke("data", "list", "--json"))["alfworld"]["folder"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "agentgyms/Nothing-v0"], "Nothing"),
        (["info", CORRIDOR, "--set", "split=tran"], "no split 'tran'"),
        (["info", CORRIDOR, "--set", "sprit=train"], "sprit"),
        (["info", CORRIDOR, "--set", "split"], "key=value"),
        (["replay", "/nonexistent.jsonl"], "there is no recording"),
        (["data", "fetch", "nothing"], "no data set 'nothing'"),
    ],
)
def test_errors_end_in_one_line(monkeypatch, capsys, arguments, message):
    monkeypatch.setattr("sys.argv", ["agentgyms", *arguments])
    with pytest.raises(SystemExit) as stopped:
        agentgyms.cli.run()
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert "Traceback" not in error
