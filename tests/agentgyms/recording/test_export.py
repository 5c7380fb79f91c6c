"""Exports of recordings: a row per episode, in forms that other programs read."""

import json
import os
import subprocess
from pathlib import Path

import gymnasium as gym
import pytest
from click.testing import CliRunner
from picture_corridor import PICTURES
from small_disks import small_disk

import agentgyms
from agentgyms.adapters.export import FORMS, rows
from agentgyms.adapters.messages import parse_action
from agentgyms.cli.main import main
from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing
from agentgyms.core.tools import ToolCall
from agentgyms.recording import RecordEpisodes, recorder

PYTHON = os.environ.get("AGENTGYMS_ADAPTERS_PYTHON", "")
CORRIDOR, ALFWORLD = "agentgyms/Corridor-v0", "agentgyms/ALFWorld-v0"


def record(path, env_id, actions=(), seed=0, **kwargs):
    """Record an episode of some actions, or of the expert."""
    with RecordEpisodes(gym.make(env_id, **kwargs), path, actor="someone") as env:
        observation, info = env.reset(seed=seed)
        expert, over, left = agentgyms.expert(env), False, list(actions)
        while not over and (left or not actions):
            action = left.pop(0) if actions else expert(observation, info)
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
    return path


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A folder with recordings of two environments."""
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "below").mkdir()
    record(folder / "below/corridor.jsonl", CORRIDOR, ["right", "dance"])
    record(folder / "household.jsonl", ALFWORLD, split="valid_seen")
    (folder / "metrics.jsonl").write_text('{"step": 1}\n')
    return folder


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A recording with prompts and answers, as evaluations write it, of both seats."""
    (plain,) = recorder.read(
        record(tmp_path_factory.mktemp("told") / "plain.jsonl", CORRIDOR, ["right", "right"])
    )
    agents = [
        {"prompt": "first", "answer": "<think>so</think><action>right</action>", "tokens": [7, 3]},
        {"prompt": "his", "answer": "<action>right</action>", "seat": "partner"},
    ]
    header = json.loads(json.dumps(plain.header))
    header["provenance"]["evaluation"] = {"preamble": "Examples.\n"}
    path = tmp_path_factory.mktemp("told") / "told.jsonl"
    lines = [json.dumps(header), recorder.turn_line(plain.turns[0])]
    for turn, agent in zip(plain.turns[1:], agents, strict=True):
        line = json.loads(recorder.turn_line(turn)) | {"agent": agent, "reward": 0.25}
        lines.append(json.dumps(line))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_every_form_has_the_same_columns_for_all_environments(mixed):
    for form in FORMS:
        made = rows([mixed], form)
        assert len(made) == 2
        assert made[0].keys() == made[1].keys()
        facts = [row["extra"] if form == "atif" else row for row in made]
        assert [row["env_id"] for row in facts] == [CORRIDOR, ALFWORLD]
        assert {row["actor"] for row in facts} == {"someone"}
        assert [row["end"] for row in facts] == ["unfinished", "terminated"]
        assert [row["success"] for row in facts] == [False, True]
        assert facts[1]["return"] == sum(facts[1]["rewards"]) > 0
        assert [json.loads(row["kwargs"]) for row in facts] == [{}, {"split": "valid_seen"}]


def test_messages_lead_to_the_recorded_actions(mixed):
    for form, column, speaker, said in (
        ("messages", "messages", "role", "content"),
        ("sharegpt", "conversations", "from", "value"),
    ):
        for row, path in zip(
            rows([mixed], form), ["below/corridor.jsonl", "household.jsonl"], strict=True
        ):
            (recording,) = recorder.read(mixed / path)
            answers = [m[said] for m in row[column] if m[speaker] in ("assistant", "gpt")]
            assert [parse_action(answer) for answer in answers] == recording.actions
            asked = [m[said] for m in row[column] if m[speaker] in ("user", "human")]
            assert all(recording.turns[i].observation in text for i, text in enumerate(asked))
            assert row["goal"] in asked[0]
            assert row[column][0][speaker] == "system"
            assert row[column][-1][said] == answers[-1]


def test_prompts_are_what_stands_before_the_first_answer(mixed):
    for whole, prompt in zip(rows([mixed], "messages"), rows([mixed], "prompts"), strict=True):
        assert prompt["prompt"] == whole["messages"][:2]
        assert {k: v for k, v in whole.items() if k != "messages"}.items() <= prompt.items()


def test_calls_of_tools_stand_for_the_recorded_actions(mixed):
    corridor, household = rows([mixed], "tools")
    env = gym.make(ALFWORLD)
    (recording,) = recorder.read(mixed / "household.jsonl")
    calls = [m["tool_calls"][0] for m in household["messages"] if m["role"] == "assistant"]
    made = [
        env.unwrapped.tools.action(
            ToolCall(call["function"]["name"], json.loads(call["function"]["arguments"]))
        )
        for call in calls
    ]
    assert made == recording.actions
    results = [m for m in household["messages"] if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in results] == [call["id"] for call in calls]
    assert json.loads(household["tools"]) == env.unwrapped.tools.schemas
    first, right, seen, dance, outcome = corridor["messages"]
    assert (right["tool_calls"][0]["function"]["name"], seen["role"]) == ("walk", "tool")
    assert (dance["content"], dance["tool_calls"], outcome["role"]) == ("dance", [], "user")
    assert "[malformed]" in outcome["content"]
    assert 'walk(direction="right")' in first["content"]
    assert {frozenset(m) for row in (corridor, household) for m in row["messages"]} == {
        frozenset(first)
    }


def test_recorded_prompts_and_answers_are_kept_and_the_partners_are_the_worlds(told):
    (row,) = rows([told], "messages")
    assert row["messages"] == [
        {"role": "user", "content": "Examples.\nfirst"},
        {"role": "assistant", "content": "<think>so</think><action>right</action>"},
    ]
    assert (row["turns"], row["rewards"], row["return"]) == (1, [0.5], 0.5)
    (row,) = rows([told], "tools")
    assert row["messages"][1]["content"] == "<think>so</think>"
    (row,) = rows([told], "atif")
    step = row["steps"][1]
    assert step["message"] == "<think>so</think><action>right</action>"
    assert step["metrics"] == {"prompt_tokens": 7, "completion_tokens": 3}
    assert row["final_metrics"]["total_prompt_tokens"] == 7


ATIF = {
    "user": {"step_id", "source", "message"},
    "agent": {
        *("step_id", "source", "message", "tool_calls", "observation", "metrics", "extra"),
    },
}
"""What a step may have."""


def test_trajectories_keep_the_rules_of_atif(mixed, told, tmp_path):
    """Those of version 1.7, by which Harbor 0.25's own models took them too."""
    pictures = record(tmp_path / "pictures.jsonl", PICTURES)
    for row in rows([mixed, told], "atif") + rows([pictures, told], "atif"):
        assert row["schema_version"] == "ATIF-v1.7"
        assert row["agent"]["name"] == "someone"
        assert isinstance(row["agent"]["version"], str)
        assert [step["step_id"] for step in row["steps"]] == [*range(1, len(row["steps"]) + 1)]
        assert [step["source"] for step in row["steps"]] == (
            ["user"] + ["agent"] * (len(row["steps"]) - 1)
        )
        for step in row["steps"]:
            assert step.keys() <= ATIF[step["source"]]
            calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
            results = step.get("observation", {"results": []})["results"]
            assert {r["source_call_id"] for r in results if "source_call_id" in r} == calls
            for content in [step["message"], *(result["content"] for result in results)]:
                for part in content if isinstance(content, list) else []:
                    assert part["type"] == "text" or part["source"]["media_type"] == "image/png"
        assert row["final_metrics"]["total_steps"] == len(row["steps"])
    assert len({row["session_id"] for row in rows([mixed, told, pictures], "atif")}) == 4


def test_pictures_are_a_column_where_there_are_any(mixed, tmp_path):
    path = record(tmp_path / "pictures.jsonl", PICTURES)
    for form, column in (("messages", "messages"), ("tools", "messages"), ("prompts", "prompt")):
        assert "images" not in rows([mixed], form)[0]
        text, seen = rows([mixed / "household.jsonl", path], form)
        assert text["images"] == []
        marks = sum(m["content"].count("<image>") for m in seen[column])
        assert len(seen["images"]) == marks > 0
        assert seen["images"][0].startswith("data:image/png;base64,")


def test_a_recording_of_an_environment_that_is_not_built_in_imports_nothing(mixed, tmp_path):
    path = tmp_path / "foreign.jsonl"
    text = (mixed / "below/corridor.jsonl").read_text()
    path.write_text(text.replace(CORRIDOR, "no_such_module:Foreign-v0"))
    (row,) = rows([path], "tools")
    call = row["messages"][1]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("act", {"action": "right"})


def export(*words):
    return CliRunner().invoke(main, ["export", *map(str, words)])


def test_the_command_writes_json_lines(mixed, tmp_path):
    output = tmp_path / "rows.jsonl"
    done = export(mixed, mixed / "household.jsonl", "--format", "messages", "--output", output)
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"3 episodes in {output}\n"
    made = [json.loads(line) for line in output.read_text().splitlines()]
    assert made == rows([mixed, mixed / "household.jsonl"], "messages")
    printed = export(mixed / "household.jsonl", "--format", "messages")
    assert json.loads(printed.stdout) == made[-1]


def test_a_full_disk_keeps_the_old_export(mixed, tmp_path):
    with small_disk(tmp_path / "disk", 1) as disk:
        (disk / "rows.jsonl").write_text("old\n")
        done = export(
            mixed / "household.jsonl", "--format", "messages", "--output", disk / "rows.jsonl"
        )
        assert isinstance(done.exception, BadOption)
        assert "rows.jsonl cannot be written: " in str(done.exception)
        assert [(path.name, path.read_text()) for path in disk.iterdir()] == [
            ("rows.jsonl", "old\n")
        ]


def test_what_cannot_be_exported_is_said_in_one_line(mixed, tmp_path):
    recording = mixed / "household.jsonl"
    empty, broken, bare = tmp_path / "empty", tmp_path / "broken.jsonl", tmp_path / "bare.jsonl"
    empty.mkdir()
    broken.write_text(f"{recording.read_text()[:-20]}\n")
    bare.write_text("\n".join(recording.read_text().splitlines()[:2]) + "\n")
    for given, error, words in (
        ([tmp_path / "none.jsonl"], DataMissing, "there is no recording"),
        ([empty], DataMissing, "expected files"),
        ([mixed / "metrics.jsonl"], DataCorrupt, "line 1"),
        ([broken], DataCorrupt, "broken.jsonl, line"),
        ([bare], DataMissing, "has a turn"),
    ):
        done = export(*given, "--format", "messages")
        assert done.exit_code == 1
        assert done.stdout == ""
        assert isinstance(done.exception, error)
        assert words in str(done.exception)
        assert len(str(done.exception)) <= 300
        assert "\n" not in str(done.exception)
    kept = recording.read_text()
    done = export(mixed, "--format", "messages", "--output", recording)
    assert isinstance(done.exception, BadOption)
    assert recording.read_text() == kept
    done = export(recording, "--format", "messages", "--output", tmp_path / "none/rows.jsonl")
    assert "cannot be written" in str(done.exception)
    assert export(recording, "--format", "chatml").exit_code == 2
    with pytest.raises(BadOption, match="unknown format 'chatml'"):
        rows([recording], "chatml")


LOADED = """
import datasets, json, sys
found = {}
for path in sys.argv[1:]:
    table = datasets.load_dataset("json", data_files=path, split="train")
    found[path] = [table.column_names, table.to_list()]
print(json.dumps(found))
"""


@pytest.mark.adapters
def test_datasets_loads_all_forms(mixed, told, tmp_path):
    record(tmp_path / "pictures.jsonl", PICTURES)
    given = [mixed, told, tmp_path / "pictures.jsonl"]
    paths = {form: str(tmp_path / f"{form}.rows") for form in FORMS}
    for form, path in paths.items():
        assert export(*given, "--format", form, "--output", path).exit_code == 0
    done = subprocess.run(
        [PYTHON, "-c", LOADED, *paths.values()],
        env={**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    loaded = json.loads(done.stdout.splitlines()[-1])
    for form, path in paths.items():
        written = [json.loads(line) for line in Path(path).read_text().splitlines()]
        columns, found = loaded[path]
        assert set(columns) == set(written[0])
        assert len(found) == len(written) == 4
        if form != "atif":  # whose objects get each other's keys
            assert found == written
