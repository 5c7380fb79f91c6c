"""The command line, as people use it."""

import json

import pytest
from click.testing import CliRunner

import agentgyms.cli
from agentgyms import data
from agentgyms.alfworld.layouts import SIZES
from agentgyms.cli import main
from env_servers import Server, create_app

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
    made = ("--set", "source=official", "--set", f"data_path={games}", "--set", "split=sample")
    assert json.loads(invoke("info", "agentgyms/ALFWorld-v0", *made, "--json"))["tasks"] == 12
    with pytest.raises(data.DataCorrupt, match="train has 12 items"):
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
        (["info", "CartPole-v1"], "CartPole-v1 is no environment for language agents"),
        (["play", "CartPole-v1"], "CartPole-v1 is no environment for language agents"),
        (["info", "nosuch:foo/Bar-v0"], "nosuch"),
        (["record", CORRIDOR, "/nosuch/dir/x.jsonl"], "/nosuch/dir/x.jsonl: No such file"),
        (["replay", "/"], "/ is a folder"),
        (["data", "export", "/dev/null/games"], "/dev/null/games"),
        (["data", "import", "alfworld", "/tmp"], "AGENTGYMS_DATA=/dev/null is no folder"),
        (["data", "list"], "AGENTGYMS_DATA=/dev/null is no folder"),
    ],
)
def test_errors_end_in_one_line(monkeypatch, capsys, arguments, message):
    monkeypatch.setenv("AGENTGYMS_DATA", "/dev/null")
    monkeypatch.setattr("sys.argv", ["agentgyms", *arguments])
    with pytest.raises(SystemExit) as stopped:
        agentgyms.cli.run()
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1


def test_rooms_are_chosen_from_a_list(tmp_path):
    result = CliRunner().invoke(main, ["data", "export", str(tmp_path), "--rooms", "huge"])
    assert result.exit_code == 2
    assert "'small', 'large'" in result.output
    command = main.commands["data"].commands["export"]
    (rooms,) = [option for option in command.params if option.name == "rooms"]
    assert list(rooms.type.choices) == list(SIZES)


def test_info_tells_all_arguments():
    facts = json.loads(invoke("info", "agentgyms/ALFWorld-v0", "--set", "split=sample", "--json"))
    assert facts["arguments"]["rooms"] == "small"
    assert facts["arguments"]["split"] == "sample"
    assert facts["arguments"]["oracle"] is False
    with Server(create_app(CORRIDOR, token="")) as server:
        url = ("--set", f"url={server.url}", "--set", "token=secret")
        facts = json.loads(invoke("info", CORRIDOR, *url, "--json"))
    assert not {"url", "token", "patience", "transport"} & set(facts["arguments"])


def test_a_number_in_other_digits_is_an_action():
    typed = "²\n"
    assert "[malformed] unknown command" in invoke("play", CORRIDOR, "--seed", "1", input=typed)
