"""The environment: arguments, tasks, feedback, progress, snapshots, experts."""

import re
import shutil
import sys

import gymnasium as gym
import pytest
from gymnasium.error import DependencyNotInstalled
from real_games_source import ARCHIVE, find_real_games

import agentgyms
from agentgyms.core.errors import (
    BadOption,
    BadSnapshot,
    DataMissing,
    UnknownSplit,
    UnknownTask,
    WorkerLost,
)
from agentgyms.core.imports import install
from agentgyms.data import datasets
from agentgyms.envs.alfworld.generated.writer import write_games
from agentgyms.envs.alfworld.official.engine import PYTHON_VARIABLE, is_installed
from agentgyms.processes import workers

ENV_ID = "agentgyms/ALFWorld-v0"


def make(**kwargs):
    return gym.make(ENV_ID, **kwargs).unwrapped


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    """A folder of official game files: 12 of train and 6 of valid_seen."""
    folder = tmp_path_factory.mktemp("games")
    ids = [f"small-train-{family}-{i:04d}" for i in range(3) for family in ("pick", "heat", "look")]
    write_games("train", folder, task_ids=ids)
    write_games("valid_seen", folder, task_ids=["small-valid_seen-cool-0001"])
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "both"}, "source 'both' is unknown: expected 'generated' or 'official'"),
        ({"rooms": ["small"]}, r"rooms \['small'\] is unknown: expected one of small, large"),
        ({"rooms": "huge"}, "rooms 'huge' is unknown: expected one of small, large"),
        ({"backend": "unity"}, "backend 'unity' is unknown"),
        ({"families": ["pick", "dance"]}, "families must be a list of some of pick, look"),
        ({"families": []}, "families must be a list"),
        ({"families": "pick"}, "families must be a list"),
        ({"families": 3}, "families must be a list"),
        ({"data_path": "/tmp"}, "add source='official'"),
        ({"max_turns": 0}, "max_turns must be a positive integer"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(BadOption, match=message):
        make(**arguments)


def test_an_unknown_split():
    with pytest.raises(UnknownSplit, match="train, valid_seen, valid_unseen, sample"):
        make(split="test")


def test_an_unknown_task_names_near_ones():
    with pytest.raises(UnknownTask, match="did you mean small-train-pick-0"):
        make().reset(options={"task_id": "small-train-pick-000"})


def test_every_task_of_a_split_is_visited_once():
    env = make(split="valid_unseen")
    seen = [env.reset(options={"task_id": task_id})[1]["task_id"] for task_id in env.tasks]
    assert seen == sorted(set(seen))
    assert len(seen) == 240


def test_families_restrict_the_tasks():
    env = make(split="valid_seen", families=["heat", "pick2"])
    assert env.tasks.families() == {"heat": 40, "pick2": 40}
    assert {env.reset(seed=seed)[1]["family"] for seed in range(12)} == {"heat", "pick2"}


def test_the_sample_has_two_of_each_family():
    assert set(make(split="sample").tasks.families().values()) == {2}


def test_goal_and_introduction_agree():
    env = make()
    observation, info = env.reset(seed=3)
    assert observation.endswith(f"Your task is to: {info['goal']}")


def start(task_id="small-train-heat-0000", **kwargs):
    env = make(**kwargs)
    env.reset(options={"task_id": task_id})
    return env


@pytest.mark.parametrize(
    ("action", "feedback", "reason"),
    [
        ("", "malformed", "blank"),
        (" \n ", "malformed", "blank"),
        ("look\x00", "malformed", "control character"),
        ("go to\nfridge 1", "malformed", "control character"),
        ("look " * 2000, "malformed", "longer than 8192"),
        ("LOOK", "malformed", "no command begins with 'LOOK'"),
        ("put mug 1 in/on shelf 1", "malformed", "no command begins with 'put'"),
        ("go to nowhere 1", "inadmissible", "not possible now"),
        ("Go to fridge 1", "malformed", "'Go'"),
        ("open", "inadmissible", "not possible now"),
        ("help me", "inadmissible", "not possible now"),
    ],
)
def test_feedback_of_what_is_no_legal_command(action, feedback, reason):
    env = start()
    _, before = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(action)
    assert (observation, reward, terminated, truncated) == ("Nothing happens.", 0, False, False)
    assert (info["feedback"], info["action_key"]) == (feedback, "<invalid>")
    assert reason in info["feedback_text"]
    assert info["state_key"] == before["state_key"]
    assert info["turn"] == 1


def test_feedback_of_legal_commands():
    env = start()
    *_, info = env.step("  help ")
    assert (info["feedback"], info["action_key"], info["feedback_text"]) == ("ok", "help", "")
    *_, info = env.step("look")
    assert info["feedback"] == "ok"


def test_a_legal_command_without_effect_is_told():
    env = start("small-train-look-0000")
    _, info = env.reset(options={"task_id": "small-train-look-0000"})
    for road in [a for a in info["admissible_actions"] if a.startswith("go to ")]:
        *_, info = env.step(road)
        lamps = [a for a in info["admissible_actions"] if a.startswith("use ")]
        if lamps:
            break
    *_, first = env.step(lamps[0])
    assert (first["feedback"], first["feedback_text"]) == ("ok", "")
    observation, *_, again = env.step(lamps[0])
    assert observation.startswith("You turn on the ")
    assert (again["feedback"], again["action_key"]) == ("no_effect", lamps[0])
    assert "changed nothing" in again["feedback_text"]
    assert again["state_key"] == first["state_key"]


@pytest.mark.parametrize(
    ("family", "steps"),
    [
        ("pick", [0, 1]),
        ("look", [0, 1 / 3, 2 / 3, 1]),
        ("clean", [0, 0.5, 1]),
        ("heat", [0, 0.5, 1]),
        ("cool", [0, 0.5, 1]),
        ("pick2", [0, 0.5, 1]),
    ],
)
def test_progress_counts_the_goals_literals(family, steps):
    env = start(f"small-train-{family}-0004")
    seen, info = [0.0], {"progress": 0.0, "success": False}
    while not info["success"]:
        _, reward, terminated, _, info = env.step(env.expert_actions()["best"])
        assert (info["progress"] == 1) == info["success"] == terminated == bool(reward)
        metrics = info["metrics"]
        assert info["progress"] == metrics["subgoals_reached"] / metrics["subgoals_total"]
        seen.append(info["progress"])
    assert sorted(set(seen)) == pytest.approx(steps)


def test_reward_comes_once_and_ends_the_episode():
    env = start("small-train-pick2-0001")
    rewards = []
    terminated = False
    while not terminated:
        _, reward, terminated, truncated, info = env.step(env.expert_actions()["best"])
        rewards.append(reward)
    assert rewards == [0.0] * (len(rewards) - 1) + [1.0]
    assert (info["score"], info["success"], truncated) == (1.0, True, False)


def test_the_turn_limit_truncates():
    env = start(max_turns=3)
    results = [env.step("look") for _ in range(3)]
    assert [result[2:4] for result in results] == [(False, False), (False, False), (False, True)]


def test_experts_through_the_public_interface():
    env = gym.make(ENV_ID, rooms="large", oracle=True)
    for kind in ("best", "explore"):
        expert = agentgyms.expert(env, kind)
        observation, info = env.reset(seed=11)
        over = False
        while not over:
            observation, _, terminated, truncated, info = env.step(expert(observation, info))
            over = terminated or truncated
        assert info["success"]


def test_a_damaged_snapshot_is_refused():
    env = start()
    env.step("go to fridge 1")
    snapshot = env.snapshot()
    bits = env.save()
    for damage in (bits[1:], "f" + bits, "-" + bits, "xyz", ""):
        bad = snapshot.replace(f'"engine": "{bits}"'.encode(), f'"engine": "{damage}"'.encode())
        assert bad != snapshot
        with pytest.raises(BadSnapshot, match="damaged"):
            env.restore(bad)
    with pytest.raises(BadSnapshot):
        env.restore(snapshot.replace(f'"engine": "{bits}"'.encode(), b'"engine": 5'))
    env.restore(snapshot)


def test_a_snapshot_of_other_rooms_is_refused():
    env, other = start(), make(rooms="large")
    with pytest.raises(BadSnapshot):
        other.restore(env.snapshot())


# --- official game files ------------------------------------------------------------------------


def test_official_files_are_played(games):
    env = make(source="official", data_path=games)
    assert env.tasks.families() == {"heat": 3, "look": 3, "pick": 3}
    task_id = next(task_id for task_id in env.tasks if "heat" in task_id)
    task, trial = task_id.split("/")
    assert task.startswith("pick_heat_then_place_in_recep-")
    assert trial.startswith("trial_small_train_heat_")
    observation, info = env.reset(options={"task_id": task_id})
    twin = make()
    expected, _ = twin.reset(options={"task_id": trial.removeprefix("trial_").replace("_", "-")})
    assert observation == expected
    assert info["task_id"] == task_id


def test_the_folder_above_is_understood(games, tmp_path):
    above = tmp_path / "data"
    above.mkdir()
    (above / "json_2.1.1").symlink_to(games)
    assert len(make(source="official", data_path=str(above)).tasks) == 9


def test_the_official_sample_is_drawn_from_train(games):
    env = make(source="official", data_path=games, split="sample")
    assert env.tasks.families() == {"heat": 2, "look": 2, "pick": 2}


def test_a_missing_split_is_named(games):
    with pytest.raises(DataMissing, match="valid_unseen"):
        make(source="official", data_path=games, split="valid_unseen")


def test_a_folder_without_games(tmp_path):
    with pytest.raises(DataMissing, match=r"train, valid_seen, valid_unseen.*data fetch alfworld"):
        make(source="official", data_path=tmp_path)


def test_missing_data_names_the_commands(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path))
    with pytest.raises(DataMissing, match=r"data fetch alfworld.*data import alfworld PATH"):
        make(source="official")


def version(**kwargs):
    return make(source="official", **kwargs).data_version


def test_the_data_version_changes_with_the_games(games, tmp_path):
    copied = shutil.copytree(games, tmp_path / "copied")
    assert version(data_path=copied) == version(data_path=games)
    changed = shutil.copytree(games, tmp_path / "changed")
    file = sorted(changed.rglob("train/**/game.tw-pddl"))[0]
    file.write_bytes(file.read_bytes() + b"\n")
    fewer = shutil.copytree(games, tmp_path / "fewer")
    shutil.rmtree(sorted((fewer / "train").iterdir())[0])
    versions = [version(data_path=folder) for folder in (games, changed, fewer)]
    versions += [version(data_path=games, split="valid_seen"), make().data_version]
    assert len(set(versions)) == 5
    seen = [version(data_path=folder, split="valid_seen") for folder in (games, changed, fewer)]
    assert len(set(seen)) == 1, "the other split did not change"


def test_imported_games_and_those_of_a_folder_share_version_and_snapshots(
    games, tmp_path, monkeypatch
):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path))
    datasets.import_data("alfworld", games, allow_other=True, progress=False)
    imported, own = make(source="official"), make(source="official", data_path=games)
    assert imported.data_version == own.data_version
    assert list(imported.tasks) == list(own.tasks)
    _, info = own.reset(seed=1)
    assert imported.restore(own.snapshot())[1] == info


def test_snapshots_do_not_depend_on_the_order_of_families():
    one, other = make(families=["heat", "pick"]), make(families=("pick", "heat", "pick"))
    _, info = one.reset(seed=1)
    assert other.restore(one.snapshot())[1] == info


def test_families_that_a_split_does_not_have(games):
    env = make(source="official", data_path=games, families=["pick2"])
    with pytest.raises(BadOption, match="split 'train' has no task with these arguments"):
        env.reset(seed=0)


def test_a_folder_below_the_users_own(games, monkeypatch):
    monkeypatch.setenv("HOME", str(games.parent))
    assert len(make(source="official", data_path=f"~/{games.name}").tasks) == 9


def test_the_sample_is_written_where_it_is_found(tmp_path):
    write_games("sample", tmp_path)
    for split in ("train", "sample"):
        env = make(source="official", data_path=tmp_path, split=split)
        assert env.tasks.families() == make(split="sample").tasks.families()


def test_games_are_parsed_once_for_all_environments(games):
    first, second = (make(source="official", data_path=games) for _ in range(2))
    first.reset(seed=1)
    second.reset(seed=1)
    assert first._state.game is second._state.game


@pytest.mark.parametrize("inside", ["train/task", "json_2.1.1/valid_seen/task"])
def test_the_real_games_are_found_packed_or_unpacked(tmp_path, inside):
    assert find_real_games(tmp_path) is None
    (tmp_path / "alfworld").mkdir()
    assert find_real_games(tmp_path) is None
    (tmp_path / "alfworld" / inside).mkdir(parents=True)
    assert find_real_games(tmp_path) == (tmp_path / "alfworld" / inside).parents[1]
    (tmp_path / ARCHIVE).touch()
    assert find_real_games(tmp_path) == tmp_path / ARCHIVE


# --- the official engine, where it is missing ---------------------------------------------------


@pytest.mark.skipif(is_installed(), reason="this interpreter has alfworld")
def test_a_missing_engine_names_the_command(monkeypatch):
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    with pytest.raises(DependencyNotInstalled, match=re.escape(install("alfworld"))):
        make(backend="textworld")


@pytest.mark.skipif(is_installed(), reason="this interpreter has alfworld")
def test_an_interpreter_without_the_engine_is_told(monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv(PYTHON_VARIABLE, str(python))
    env = make(backend="textworld")
    with pytest.raises(DependencyNotInstalled, match="has no alfworld"):
        env.reset(seed=0)
    env.close()


def test_an_interpreter_that_does_not_exist_is_told(monkeypatch):
    monkeypatch.setenv(PYTHON_VARIABLE, "/no/such/python")
    with pytest.raises(WorkerLost, match=r"/no/such/python .* cannot be started"):
        make(backend="textworld").reset(seed=0)


STAND_IN = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    print(json.dumps({"observation": "Hello.", "admissible": ["look"], "won": False}), flush=True)
"""


def test_closing_ends_the_process_of_an_engine(monkeypatch, tmp_path):
    engine, python = tmp_path / "engine.py", tmp_path / "python"
    engine.write_text(STAND_IN)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{engine}"\n')
    python.chmod(0o755)
    monkeypatch.setenv(PYTHON_VARIABLE, str(python))
    env = make(backend="textworld")
    assert env.reset(seed=0)[0].endswith("Hello.")
    running = workers.counts()["alfworld-engine"].alive
    env.close()
    assert workers.counts()["alfworld-engine"].alive == running - 1
