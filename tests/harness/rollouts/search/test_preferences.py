"""Step preferences: what a file keeps of a prompt, and what it refuses."""

import json

import numpy as np
import pytest

from agentgyms.core.errors import DataCorrupt, DataMissing
from harness.rollouts.search.preferences import Preference, line, plain, read, write
from harness.types.errors import ConfigError
from harness.types.messages import shared_image

TOOLS = [{"type": "function", "function": {"name": "go", "parameters": {}}}]
PAIR = Preference(
    "kitchen-1",
    3,
    (
        {"role": "user", "content": "Open “it”.", "tools": TOOLS},
        {"role": "assistant", "content": "<action>look</action>"},
        {"role": "user", "content": "A door."},
    ),
    "<action>open door</action>",
    "<action>wait</action>",
    1.0,
    0.25,
    4,
)
ROW = json.loads(line(PAIR))


def test_a_file_gives_back_what_was_written(tmp_path):
    path = tmp_path / "preferences.jsonl"
    write(path, [PAIR, PAIR])
    assert read(path) == [PAIR, PAIR]
    write(path, [])
    assert read(path) == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["preferences.jsonl"]


def test_a_prompt_keeps_roles_texts_and_tools_alone():
    first = {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }
    said = {"role": "assistant", "content": "c", "token_ids": (1, 2), "without_thoughts": True}
    assert plain([first | {"tools": TOOLS}, said]) == (
        {"role": "user", "content": "ab", "tools": TOOLS},
        {"role": "assistant", "content": "c"},
    )
    image = shared_image(np.zeros((2, 2, 3), np.uint8))
    with pytest.raises(ConfigError, match="shows an image"):
        plain([{"role": "user", "content": [{"type": "image", "image": image}]}])


def test_files_of_other_programs_may_leave_out_seed_and_visits(tmp_path):
    path = tmp_path / "pairs.jsonl"
    row = {name: value for name, value in ROW.items() if name not in ("seed", "visits")}
    path.write_text(f"\n{json.dumps(row)}\n")
    [found] = read(path)
    assert (found.seed, found.visits, found.messages) == (0, 1, PAIR.messages)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected an object, got list"),
        (json.dumps(ROW | {"messages": []}), "must hold the prompt"),
        (json.dumps(ROW | {"messages": ["a"]}), "must be an object, got str"),
        (json.dumps(ROW | {"messages": [{"role": "user"}]}), "has no 'content'"),
        (json.dumps(ROW | {"value_chosen": "high"}), "must be a finite number"),
        (json.dumps(ROW | {"value_rejected": float("nan")}), "must be a finite number"),
        (json.dumps(ROW | {"visits": -1}), "must be a whole number"),
        (json.dumps(ROW | {"margin": 1}), "unknown field 'margin'"),
        (json.dumps({k: v for k, v in ROW.items() if k != "chosen"}), "has no 'chosen'"),
    ],
)
def test_a_line_that_is_no_preference_is_named(tmp_path, content, why):
    path = tmp_path / "pairs.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{content}\n")
    with pytest.raises(DataCorrupt, match="line 2") as error:
        read(path)
    assert why in str(error.value)


def test_a_file_that_is_missing_or_none_is_named(tmp_path):
    with pytest.raises(DataMissing, match="no file .*none.jsonl"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(DataCorrupt, match="no text file"):
        read(tmp_path)
