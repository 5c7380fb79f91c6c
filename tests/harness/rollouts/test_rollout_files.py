"""Rollouts written, read again, and brought from elsewhere."""

import asyncio
import gzip
import json
import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_contents import header_of

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.recording.recorder import RecordEpisodes
from harness import config as configs
from harness import prompts
from harness.credit import TurnTable
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.model import tiny, tiny_vl
from harness.model.policy import Policy
from harness.rollouts import rollout_files
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.rollout_files import read, write
from harness.runs.runfolder import RunFolder
from harness.types.errors import TableError
from harness.types.messages import GENERATED_IMAGE_TOKEN, shared_image
from harness.types.rollout import Completion, Rollout, StopReason, Turn
from harness.types.task_draws import TaskDraw
from tests.harness.lamp_env import LAMPS

CORRIDOR = "agentgyms/Corridor-v0"


def equal(ours, theirs):
    """Whether rollouts are equal, unknown progress included."""
    return repr(ours) == repr(theirs)


def play(env_id, context, kind=tiny, **policy_arguments):
    words = "left right open door go key the corridor end stand at"
    tokenizer = kind.make_tokenizer([words, *words.split()] * 20, 400)
    size = configs.TinyConfig(layers=1, hidden=32, heads=4, feed_forward=32, max_length=1024)
    policy = Policy(kind.make_model(size, tokenizer, seed=2), tokenizer, "cpu", **policy_arguments)
    style = prompts.load("look" if policy_arguments else "compact", env_id)
    agent = Agent(HFCompleter(policy), style, Sampling(1.0, 5), 1, context)
    pool = EnvPool(env_id, 4, 64, max_turns=4)
    tasks = pool.take().envs[0].tasks
    draws = [TaskDraw(tasks[i], i) for i in range(2)]
    return asyncio.run(collect(pool, draws, agent, seed=1))


@pytest.fixture(scope="module", params=["window", "transcript"])
def played(request):
    return play(CORRIDOR, request.param)


@pytest.fixture(scope="module", params=["window", "transcript"])
def seen(request):
    processor = tiny_vl.make_image_processor()
    return play(LAMPS, request.param, tiny_vl, image_processor=processor)


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_what_was_written_is_read(played, name, tmp_path):
    path = tmp_path / "deep" / name
    count = sum(len(r.turns) for r in played)
    columns = {"value": np.linspace(-1, 1, count) ** 3, "kl": np.arange(count) / 7}
    write(path, played, columns, about={"env_id": CORRIDOR, "step": 3})
    rollouts, back = read(path)
    assert equal(rollouts, played)
    assert sorted(back) == ["kl", "value"]
    for column, values in columns.items():
        assert np.array_equal(back[column], values)
    assert header_of(path) == {
        "env_id": CORRIDOR,
        "step": 3,
        "format": "agentgyms-rollouts-1",
        "columns": ["kl", "value"],
    }
    assert [p.name for p in path.parent.iterdir()] == [name]
    other = tmp_path / f"other{''.join(path.suffixes)}"
    write(other, played, columns, about={"env_id": CORRIDOR, "step": 3})
    assert other.read_bytes() == path.read_bytes()


def test_tokens_and_images_may_be_left_out(seen, tmp_path):
    write(tmp_path / "all", seen)
    assert equal(read(tmp_path / "all").rollouts, seen)
    mine = read(tmp_path / "all").rollouts[0].turns[0]
    assert np.array_equal(mine.image.pixels, seen[0].turns[0].image.pixels)
    assert any(GENERATED_IMAGE_TOKEN in t.completion.images for r in seen for t in r.turns) or all(
        len(t.completion.images) == 1 for r in seen for t in r.turns
    )
    write(tmp_path / "few", seen, tokens=False, images=False)
    for ours, theirs in zip(read(tmp_path / "few").rollouts, seen, strict=True):
        for mine, turn in zip(ours.turns, theirs.turns, strict=True):
            assert mine.completion == Completion(
                turn.completion.text, finished=turn.completion.finished
            )
            assert mine.image is None
            assert mine.observation == turn.observation


def test_a_transcript_is_kept_once(tmp_path):
    prompt, turns = tuple(range(5000, 5200)), []
    for i in range(40):
        said = Completion("x", prompt, (7, 8), (-0.5, -0.25), False)
        turns.append(Turn("o", f"s{i}", said, "x", "x", "ok", 0.0, "o", f"s{i + 1}", 0.5))
        prompt = (*prompt, 7, 8, *range(5000, 5050))
    rollouts = [Rollout("t", "f", 0, 0, 1, turns=turns, stop_reason=StopReason.TERMINATED)]
    write(tmp_path / "r", rollouts)
    assert equal(read(tmp_path / "r").rollouts, rollouts)
    assert (tmp_path / "r").read_text().count("5001") < 50


def test_failed_rollouts_are_kept_too(played, tmp_path):
    lost = Rollout("t", "", 9, 0, 4, error="EnvUnavailable: gone")
    count = sum(len(r.turns) for r in played)
    write(tmp_path / "r", [lost, *played], {"value": np.zeros(count)})
    rollouts, columns = read(tmp_path / "r")
    assert equal(rollouts, [lost, *played])
    assert columns["value"].shape == (count,)


texts = st.text(max_size=8)
numbers = st.floats(-10, 10)
turns = st.builds(
    Turn,
    observation=texts,
    state_key=texts,
    completion=st.builds(
        lambda text, ids: Completion(text, tuple(ids), tuple(ids), tuple(-float(i) for i in ids)),
        texts,
        st.lists(st.integers(0, 9), max_size=4),
    ),
    action=texts,
    action_key=texts,
    feedback=st.sampled_from(["ok", "failed", "malformed"]),
    reward=numbers,
    next_observation=texts,
    next_state_key=texts,
    progress=st.just(math.nan) | numbers,
)
rollouts_of_any_kind = st.lists(
    st.builds(
        Rollout,
        task_id=texts,
        family=texts,
        group=st.integers(0, 3),
        member=st.integers(0, 3),
        seed=st.integers(0, 2**63),
        goal=texts,
        turns=st.lists(turns, min_size=1, max_size=4),
        stop_reason=st.sampled_from(StopReason),
        success=st.booleans(),
        score=numbers,
        error=texts,
    ),
    max_size=4,
)


@given(rollouts_of_any_kind)
def test_any_rollout_survives(tmp_path_factory, rollouts):
    path = tmp_path_factory.mktemp("any") / "r"
    write(path, rollouts)
    assert equal(read(path).rollouts, rollouts)


def test_a_file_is_whole_or_not_there(played, tmp_path, monkeypatch):
    write(tmp_path / "r", played)
    before = (tmp_path / "r").read_bytes()
    calls = []

    def fail(*args, **kwargs):
        calls.append(args)
        if len(calls) == 3:
            raise OSError("the disk is full")
        return {}

    monkeypatch.setattr(rollout_files, "encode", fail)
    with pytest.raises(OSError, match="the disk is full"):
        write(tmp_path / "r", played)
    assert (tmp_path / "r").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["r"]


def test_columns_and_numbers_that_do_not_fit_are_refused(played, tmp_path):
    count = sum(len(r.turns) for r in played)
    for columns, message in (
        ({"values": np.zeros(count)}, "unknown column 'values'"),
        ({"value": np.zeros(count + 1)}, r"value has shape \(\d+,\), expected"),
        ({"value": np.full(count, math.nan)}, "value has numbers that are not finite"),
    ):
        with pytest.raises(TableError, match=message):
            write(tmp_path / "r", played, columns)
    turn = Turn("o", "s", Completion(""), "a", "a", "ok", math.nan, "o", "t", 0.0)
    with pytest.raises(TableError, match="not finite"):
        write(tmp_path / "r", [Rollout("t", "", 0, 0, 0, turns=[turn])])
    assert not (tmp_path / "r").exists()


# --- from elsewhere -------------------------------------------------------------------------------


def brought(tmp_path, *lines, name="theirs.jsonl"):
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def test_the_least_that_a_rollout_needs(tmp_path):
    path = brought(
        tmp_path,
        {"task_id": "a", "turns": [{"action": "x", "reward": 0}, {"action": "y", "reward": 1}]},
        "",
        {"task_id": "b", "turns": [{"action": "x", "reward": 0}]},
        {"task_id": "a", "turns": [{"action": "x", "reward": 0, "state_key": "s"}]},
    )
    rollouts, columns = read(path)
    assert columns == {}
    assert [(r.group, r.member, r.success, r.score) for r in rollouts] == [
        (0, 0, True, 1.0),
        (1, 0, False, 0.0),
        (0, 1, False, 0.0),
    ]
    first = rollouts[0].turns[0]
    assert (first.action_key, first.feedback, first.completion.text) == ("x", "ok", "x")
    assert first.next_state_key == rollouts[0].turns[1].state_key
    table = TurnTable.from_rollouts(rollouts)
    assert len(set(table.state_key)) == 4
    assert table.valid.all()
    assert table.success.tolist() == [True, True, False, False]


def test_what_follows_is_what_comes_next(tmp_path):
    path = brought(
        tmp_path,
        {
            "group": "one",
            "turns": [
                {"action": "x", "reward": 0, "state_key": "s", "observation": "here"},
                {"action": "y", "reward": 0, "state_key": "t", "observation": "there"},
                {"action": "z", "reward": 0, "next_state_key": "u", "next_observation": "over"},
            ],
        },
        {"group": "two", "turns": [{"action": "x", "reward": 0}]},
        {"group": "one", "turns": [{"action": "x", "reward": 0}], "success": True, "score": 0.5},
    )
    rollouts = read(path).rollouts
    assert [r.group for r in rollouts] == [0, 1, 0]
    reached = [(t.next_state_key, t.next_observation) for t in rollouts[0].turns]
    assert reached == [("t", "there"), ("rollout 0, turn 2", ""), ("u", "over")]
    assert (rollouts[2].success, rollouts[2].score) == (True, 0.5)


def test_columns_of_others(tmp_path):
    turn = {"action": "x", "reward": 0}
    path = brought(
        tmp_path,
        {"group": 4, "turns": [{**turn, "entropy": 0.5}, {**turn, "entropy": 1}]},
        {"group": 2, "turns": [{**turn, "entropy": 2.5}]},
    )
    rollouts, columns = read(path)
    assert columns["entropy"].tolist() == [0.5, 1.0, 2.5]
    assert [r.group for r in rollouts] == [4, 2]


GOOD = {"task_id": "a", "turns": [{"action": "x", "reward": 0}]}


def with_turn(**fields):
    return {"task_id": "a", "turns": [{"action": "x", "reward": 0} | fields]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not valid JSON"),
        ("[1]", "expected an object, got list"),
        ('{"task_id": "a", "turns": [{"action": "x", "reward": NaN}]}', "NaN is not JSON"),
        ('{"task_id": "a", "turns": [{"action": "x", "reward": 1e999}]}', "finite number, got inf"),
        ({"task_id": "a"}, "rollout has no 'turns'"),
        ({"task_id": "a", "turns": []}, "needs turns"),
        ({"task_id": "a", "turns": {}}, "'turns' of rollout must be a list, got dict"),
        ({"task_id": "a", "turns": ["x"]}, "turn 0 must be an object, got str"),
        ({"turns": GOOD["turns"]}, "needs 'task_id' or 'group'"),
        ({"group": 1, **GOOD}, "numbered groups and others do not"),
        ({"group": -1, **GOOD}, "'group' must be a string or a number from 0"),
        ({"group": 1.5, **GOOD}, "'group' must be a string or a number from 0"),
        ({"group": 2**63, **GOOD}, "'group' must be a string or a number from 0"),
        ("[" * 100_000, "not valid JSON: maximum recursion depth"),
        ({"task_id": "a", "turns": [{"action": "x"}]}, "turn 0 has no 'reward'"),
        ({"task_id": "a", "turns": [{"reward": 1}]}, "turn 0 has no 'action'"),
        (with_turn(reward="1"), "'reward' of turn 0 must be a finite number, got '1'"),
        (with_turn(reward=True), "must be a finite number, got True"),
        (with_turn(reward=10**400), "must be a finite number"),
        (with_turn(action=3), "'action' of turn 0 must be a string, got 3"),
        (with_turn(feedback="fine"), "unknown 'feedback' of turn 0, 'fine': expected ok, no_eff"),
        (with_turn(finished=1), "'finished' of turn 0 must be true or false"),
        (with_turn(response_ids=[1, "2"]), "'response_ids' of turn 0 must hold token ids"),
        (with_turn(response_ids=[2**63], logprobs=[-1]), "must hold token ids"),
        (with_turn(response_ids=[1], logprobs=[-1, -2]), "1 response_ids and 2 logprobs"),
        (with_turn(response_ids=[1], logprobs=["a"]), "must hold finite numbers"),
        (with_turn(usage=[3, 1]), "tokens read, tokens written and calls"),
        (with_turn(usage=[3, 1, -1]), "tokens read, tokens written and calls"),
        (with_turn(image=0), "turn 0 names image 0, the rollout has 0"),
        ({**GOOD, "images": ["lamp"]}, "'images' of the rollout must hold"),
        ({**GOOD, "images": [{"png": "AAAA"}]}, "is no image"),
        ({**GOOD, "member": -1}, "'member' of rollout must be a whole number"),
        ({**GOOD, "success": "yes"}, "'success' of rollout must be true or false"),
        ({**GOOD, "stop_reason": "tired"}, "unknown 'stop_reason' of rollout, 'tired'"),
        (with_turn(value=1.0), "some turns of the file have 'value' and others do not"),
        (
            {"task_id": "a", "turns": [{**GOOD["turns"][0], "value": 1.0}, *GOOD["turns"]]},
            "turn 1 has no 'value', and other turns have it",
        ),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    path = brought(tmp_path, GOOD, line)
    with pytest.raises(DataCorrupt, match=f"theirs.jsonl, line 2: .*{message}"):
        read(path)


def test_a_turn_without_an_image_may_say_so(tmp_path):
    assert read(brought(tmp_path, with_turn(image=None))).rollouts[0].turns[0].image is None


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataMissing, match=r"there is no file .*nothing\.jsonl"):
        read(tmp_path / "nothing.jsonl")
    deep = tmp_path / "deep.jsonl"
    deep.write_text('{"format": ' + "[" * 100_000)
    with pytest.raises(DataCorrupt, match="line 1: not valid JSON: maximum recursion depth"):
        read(deep)
    with pytest.raises(DataMissing, match="there is no file"):
        read(deep / "r.jsonl")
    with pytest.raises(DataCorrupt, match="is a folder"):
        read(tmp_path)
    with pytest.raises(DataCorrupt, match="holds no rollouts"):
        read(brought(tmp_path, ""))
    with pytest.raises(DataCorrupt, match="format 'theirs-2', expected 'agentgyms-rollouts-1' or"):
        read(brought(tmp_path, {"format": "theirs-2"}, GOOD))
    (tmp_path / "no.gz").write_text("text")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"x" * 10000)[:20])
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name in ("no.gz", "cut.gz", "bytes"):
        with pytest.raises(DataCorrupt, match="is damaged, or no text file"):
            read(tmp_path / name)


def test_lines_of_other_systems(tmp_path):
    (tmp_path / "r").write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n")
    assert len(read(tmp_path / "r").rollouts) == 1


# --- recordings of environments -------------------------------------------------------------------


@pytest.mark.parametrize("compressed", [False, True])
def test_recordings_are_rollouts_too(tmp_path, compressed):
    path = tmp_path / "episodes.jsonl"
    env = RecordEpisodes(gym.make(CORRIDOR, max_turns=9, oracle=True), path, agent="expert")
    for task, seed, actions in (("free-000", 1, 9), ("free-002", 1, 2), ("free-000", 2, 3)):
        _, info = env.reset(seed=seed, options={"task_id": f"train/{task}"})
        for i in range(actions):
            action = json.loads(info["oracle"])["best"] if i else "sing"
            *_, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                break
    env.close()
    if compressed:
        packed = tmp_path / "episodes.jsonl.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        path = packed
    rollouts, columns = read(path)
    assert columns == {}
    assert [(r.task_id, r.group, r.member, r.seed) for r in rollouts] == [
        ("train/free-000", 0, 0, 1),
        ("train/free-002", 1, 0, 1),
        ("train/free-000", 0, 1, 2),
    ]
    assert [r.success for r in rollouts] == [True, False, False]
    assert rollouts[0].stop_reason is StopReason.TERMINATED
    assert rollouts[0].family == "free"
    first, second = rollouts[0].turns[:2]
    assert first.feedback == "malformed"
    assert first.next_state_key == second.state_key
    assert first.next_observation == second.observation
    table = TurnTable.from_rollouts(rollouts)
    assert table.state_key[0] == table.state_key[table.starts[2]]
    assert table.reward.sum() == 1.0
    assert not table.valid[0]


def test_recordings_with_images_and_without_turns(tmp_path):
    path = tmp_path / "lamps.jsonl"
    env = RecordEpisodes(gym.make(LAMPS), path)
    observation, _ = env.reset(seed=0)
    env.step("left")
    env.close()
    (rollout,) = read(path).rollouts
    assert rollout.turns[0].image == shared_image(observation["image"])
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:2]))
    with pytest.raises(DataCorrupt, match="holds no episode with a turn"):
        read(path)
    path.write_text("\n".join([*lines[:2], "{}"]))
    with pytest.raises(DataCorrupt, match="line 3: not a line of a recording"):
        read(path)


def test_the_place_in_a_run():
    folder = RunFolder.__new__(RunFolder)
    object.__setattr__(folder, "path", configs.RECIPES)
    assert folder.rollouts(10) == configs.RECIPES / "rollouts/step-000010.jsonl.gz"
    plain = configs.Config()
    assert configs.digest(plain) == configs.digest(configs.from_dict({}))
    assert configs.digest(plain) != configs.digest(configs.from_dict({"run": {"seed": 1}}))
