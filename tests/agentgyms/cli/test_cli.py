"""The command line, as people use it."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import gymnasium as gym
import pytest
from click.testing import CliRunner

import agentgyms.cli.main
from agentgyms.cli.main import main
from agentgyms.core.arguments import meanings, with_defaults
from agentgyms.core.errors import BadOption
from agentgyms.core.imports import install
from agentgyms.data import datasets
from agentgyms.envs.alfworld.generated.layouts import SIZES
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.recording import recorder
from agentgyms.registration import ENVIRONMENTS, env_class
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


def run_module(*arguments):
    command = [sys.executable, "-m", "agentgyms", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_module_is_the_command_line():
    listed = run_module("list", "--json")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout == invoke("list", "--json")
    failed = run_module("replay", "no-such-file.jsonl")
    assert failed.returncode == 2
    assert "no-such-file.jsonl" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert run_module("--help").stdout.startswith("Usage: python -m agentgyms ")


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


def test_replay_sends_nothing_to_an_address_in_the_recording(tmp_path, monkeypatch):
    file = tmp_path / "episodes.jsonl"
    invoke("record", CORRIDOR, str(file))
    header, *turns = file.read_text().splitlines()
    fields = json.loads(header)
    monkeypatch.setenv("AGENTGYMS_TOKEN", "secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        for name in ("url", "retriever"):
            changed = json.dumps(fields | {"kwargs": {name: address}})
            file.write_text("\n".join([changed, *turns]))
            with pytest.raises((BadOption, TypeError)):
                invoke("replay", str(file))
        with pytest.raises(BlockingIOError):  # nobody connected
            server.accept()
    file.write_text("\n".join([json.dumps(fields | {"env_id": f"no_module:{CORRIDOR}"}), *turns]))
    with pytest.raises(BadOption, match="--env no_module:"):
        invoke("replay", str(file))
    assert "states agree" in invoke("replay", str(file), "--env", f"agentgyms:{CORRIDOR}")


def test_doctor_names_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path))
    findings = {f["subject"]: f for f in json.loads(invoke("doctor", "--json"))}
    assert findings["python"]["ok"]
    assert not findings["data: alfworld"]["ok"]
    assert "agentgyms data fetch alfworld" in findings["data: alfworld"]["advice"]
    assert "ok  gymnasium" in invoke("doctor")
    monkeypatch.setenv("PATH", "/nowhere")
    findings = {f["subject"]: f for f in json.loads(invoke("doctor", "--json"))}
    assert findings["selenium"]["advice"] == f"optional: {install('browser')}"
    for program in ("Chromium", "ChromeDriver"):
        assert not findings[program]["ok"]
        assert "install Chromium" in findings[program]["advice"]


def commands_in(text):
    """Yield the commands of this package and of pip in a text, as words."""
    for found in re.findall(r"(?:agentgyms (?:data|setup)|pip install) [^;,()`\n]*", text):
        yield shlex.split(found.replace("PATH", "."))


def test_doctor_and_data_list_name_commands_that_run(monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path))
    monkeypatch.setenv("AGENTGYMS_APPWORLD_PYTHON", "")
    monkeypatch.setattr("agentgyms.cli.doctor._version", lambda _: "")
    named = [*commands_in(invoke("doctor")), *commands_in(invoke("data", "list"))]
    assert {words[-2] for words in named if words[1] == "data"} >= {"fetch", "webshop", "sotopia"}
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    for words in named:
        if words[0] == "pip":
            extra = re.search(r"\[(\w+)\]$", words[-1])[1]
            assert shlex.join(words) == install(extra)
            assert extra in project["optional-dependencies"]
            continue
        command, rest = main, words[1:]
        while hasattr(command, "commands"):
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context(words[-1], rest)  # parses, and runs nothing


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_every_argument_has_words(env_id):
    maker = env_class(env_id)
    words = meanings(maker)
    assert words.keys() == with_defaults(maker, {}).keys()
    assert all(words.values())
    assert words["split"] == f"one of {', '.join(maker.splits)}"


def test_info_explains_the_arguments():
    shown = invoke("info", "alfworld", "--set", "rooms=large")
    assert re.search(r'^rooms +"large" +generated only: `"small"` has', shown, re.MULTILINE)
    assert re.search(r"^split +\S+ +one of train, valid_seen, ", shown, re.MULTILINE)


def test_neither_the_list_nor_quitting_costs_a_turn(tmp_path):
    file = tmp_path / "mine.jsonl"
    shown = invoke("play", CORRIDOR, "--record", str(file), input="?\nright\nquit\nright\n")
    assert "? lists the actions, quit leaves" in shown
    assert "1  left" in shown
    assert len(file.read_text().splitlines()) == 3  # header, first state, one turn


def test_data_commands(monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    assert "not here: agentgyms data fetch alfworld" in invoke("data", "list")
    games = tmp_path / "games"
    assert "12 games" in invoke("data", "export", str(games), "--split", "sample")
    made = ("--set", "source=official", "--set", f"data_path={games}", "--set", "split=sample")
    assert json.loads(invoke("info", "agentgyms/ALFWorld-v0", *made, "--json"))["tasks"] == 12
    with pytest.raises(datasets.DataCorrupt, match="train has 12 items"):
        invoke("data", "import", "alfworld", str(games))
    assert json.loads(invoke("data", "list", "--json"))["alfworld"]["folder"] is None
    assert "data set" not in invoke("--version")
    invoke("data", "import", "alfworld", str(games), "--allow-other")
    assert re.search(r"^data set alfworld: train [0-9a-f]{12}$", invoke("--version"), re.MULTILINE)


def test_versions_are_those_of_the_package_and_its_data():
    first, _, *rows = invoke("--version").splitlines()
    assert first == f"agentgyms, version {agentgyms.__version__}"
    told = dict(row.split(maxsplit=1) for row in rows if row.startswith("  "))
    assert list(told) == list(ENVIRONMENTS)
    for env_id in ("agentgyms/ALFWorld-v0", "agentgyms/WebShop-v0"):
        assert told[env_id] == json.loads(invoke("info", env_id, "--json"))["data_version"]


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
        (
            ["record", CORRIDOR, "/nosuch/dir/x.jsonl"],
            "/nosuch/dir/x.jsonl cannot be written: No such file",
        ),
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
        agentgyms.cli.main.run()
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


VISUAL = ("agentgyms/VisualSokoban-v0", "--set", "split=sample")


@pytest.mark.parametrize("remote", [False, True])
def test_play_shows_pictures_in_characters(monkeypatch, remote):
    env = gym.make(VISUAL[0], split="sample", grid=True, text_format="grid")
    grids = []
    for begin in (lambda: env.reset(seed=3), lambda: env.step("up")):
        caption, _, grid = begin()[0]["text"].partition("\n")
        assert set("#P") <= set(grid)
        grids.append(grid)
    env.close()
    if remote:
        with Server(create_app(VISUAL[0], token="")) as server:
            monkeypatch.setenv("AGENTGYMS_VISUALSOKOBAN_URL", server.url)
            output = invoke("play", *VISUAL, "--seed", "3", input="up\n")
    else:
        output = invoke("play", *VISUAL, "--seed", "3", input="up\n")
    for grid in grids:
        assert grid in output
    assert caption not in output


@pytest.mark.parametrize("mode", ["null", "rgb_array"])
def test_play_keeps_a_render_mode_that_was_asked_for(mode):
    output = invoke("play", *VISUAL, "--set", f"render_mode={mode}", "--seed", "3", input="")
    assert "The picture shows the room from above." in output
    assert "#" not in output


def test_how_play_shows_an_episode_is_not_recorded(tmp_path):
    invoke("play", CORRIDOR, "--record", str(tmp_path / "mine"), "--seed", "1", input="right\n")
    (episode,) = recorder.read(tmp_path / "mine")
    assert episode.header["kwargs"] == {}


def test_the_number_of_a_form_says_how_to_write_it(tmp_path):
    file = tmp_path / "mine.jsonl"
    output = invoke(
        "play", "agentgyms/SearchQA-v0", "--set", "split=sample", "--record", str(file),
        input="\n1\n2\nsearch[who]\nanswer[<text>]\n",
    )  # fmt: skip
    assert "   1  search[<query>]  (a form: write it out)" in output
    assert "answer[<text>] is a form, no action: type it with words of your own" in output
    assert "in place of <query>" in output
    (episode,) = recorder.read(file)
    assert episode.actions == ["search[who]", "answer[<text>]"], "what is typed out is an action"


@pytest.mark.parametrize("action", ["click[< Prev]", "say 1 < 2 > 0", "x <- y", "left"])
def test_angles_alone_make_no_form(monkeypatch, action):
    monkeypatch.setattr("click.prompt", lambda *_, **__: "1")
    assert agentgyms.cli.main._prompt_action([action]) == action


class HandExpertEnv(CorridorEnv):
    """A corridor whose best expert knows the tasks of one family only."""

    def expert_actions(self):
        return {"best" if self._task.family == "free" else "hand": "right"}


gym.register("tests/HandExpert-v0", HandExpertEnv, disable_env_checker=True)


@pytest.mark.parametrize(("first", "complete"), [("locked", 0), ("free", 1)])
def test_a_missing_expert_leaves_no_episode_behind(tmp_path, first, complete):
    file = tmp_path / "episodes.jsonl"
    env = gym.make("tests/HandExpert-v0")
    families = [env.reset(seed=seed)[1]["family"] for seed in range(40)]
    seed = next(s for s in range(39) if families[s] == first != families[s + 1])
    arguments = ["record", "tests/HandExpert-v0", str(file), "--seed", str(seed)]
    result = CliRunner().invoke(main, [*arguments, "--episodes", "2"])
    assert isinstance(result.exception, BadOption)
    assert "there is no expert 'best'" in str(result.exception)
    assert file.exists() == bool(complete), "a file was made for nothing"
    assert not complete or len(recorder.read(file)) == complete


def test_no_file_is_made_where_a_server_tells_no_solution(tmp_path):
    file = tmp_path / "episodes.jsonl"
    with Server(create_app(CORRIDOR, token="")) as server:
        arguments = ["record", CORRIDOR, str(file), "--set", f"url={server.url}"]
        result = CliRunner().invoke(main, arguments)
    assert "oracle=True" in str(result.exception)
    assert not file.exists()


def program(arguments, folder, missing):
    """Return what a command says on a machine that lacks the package `missing`."""
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules[{missing!r}] = None\n")
    path = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )


SERVE = [
    "-c",
    "import sys; from agentgyms.cli.main import run; sys.argv[0] = 'agentgyms'; run()",
    "serve",
]


EVAL = ["-m", "harness", "eval", "--env", "Corridor"]


@pytest.mark.parametrize(
    ("arguments", "missing", "extra"),
    [
        ([*SERVE, CORRIDOR], "flask", "server"),
        (["-m", "env_servers", CORRIDOR], "waitress", "server"),
        (["-m", "env_servers", "--help"], "prometheus_client", "server"),
        (["-m", "env_servers.retriever"], "flask", "server"),
        (["-m", "harness", "recipes"], "pydantic", "harness"),
        (["-m", "harness", "train", "corridor-tiny"], "torch", "harness"),
        (["-m", "harness", "train", "corridor-tiny"], "transformers", "harness"),
        ([*EVAL, "--model", "x", "--url", "http://127.0.0.1:1/v1"], "httpx2", "eval"),
        ([*EVAL, "--model", "expert"], "jinja2", "eval"),
        ([*EVAL, "--model", "x", "--backend", "hf"], "torch", "harness"),
    ],
)
def test_a_missing_extra_is_named_in_one_line(tmp_path, arguments, missing, extra):
    done = program(arguments, tmp_path, missing)
    expected = f"error: {missing} is not installed, run: {install(extra)}\n"
    # A busy machine is told that imports take long.
    said = re.sub(r"^getting ready: .*\n", "", done.stderr, flags=re.MULTILINE)
    assert (done.returncode, done.stdout, said) == (2, "", expected)


def test_a_library_import_says_what_is_missing_and_what_is_ours_is_not_hidden(tmp_path):
    code = "import env_servers; from env_servers import create_app"
    said = program(["-c", code], tmp_path, "flask").stderr
    assert "DependencyNotInstalled: flask is not installed, run: pip install" in said
    for arguments in (["-c", code], ["-m", "env_servers", "--help"]):
        done = program(arguments, tmp_path, "agentgyms.remote.protocol.framing")
        assert (
            "ModuleNotFoundError: import of agentgyms.remote.protocol.framing halted" in done.stderr
        )
        assert done.returncode == 1
    with pytest.raises(ImportError, match="nothing"):
        from env_servers import nothing  # noqa: F401
