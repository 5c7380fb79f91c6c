"""This package's engine against the official one, live, and the official one as a backend.

Each run draws a fresh sample; the seed is printed, and `SEED=...` repeats it. `FULL=1` plays 324
real games with more than 12,000 turns, in two processes, which takes about half an hour.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium as gym
import pytest
from alfworld_traces import answer, start
from alfworld_walks import walk

from agentgyms import testing
from agentgyms.core.errors import WorkerLost
from agentgyms.envs.alfworld.engine import VERBS
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.generated.writer import game_fields, write_games
from agentgyms.envs.alfworld.official.engine import PYTHON_VARIABLE, OfficialEngine
from agentgyms.envs.alfworld.problem import FAMILIES
from agentgyms.envs.alfworld.sources import Official
from agentgyms.processes import workers

FULL = os.environ.get("FULL") == "1"
SEED = int(os.environ.get("SEED", time.time_ns() % 2**31))
ENV_ID = "agentgyms/ALFWorld-v0"

pytestmark = pytest.mark.official


def compare(engine: OfficialEngine, fields, commands, where: str) -> Counter:
    """Play one game in both engines and check every answer; return the verbs that did something.

    Args:
        engine: The official engine.
        fields: The content of the game file.
        commands: Given the state in this package's engine, returns the commands to play.
        where: Names the game in messages.
    """
    state, mine = start(fields)
    played, counts = [], Counter()
    theirs = engine.load(fields)._asdict()
    assert mine == theirs, f"{where}: at the start"
    for action in commands(state):
        played.append(action)
        mine, theirs = answer(state, action), engine.step(action)._asdict()
        assert mine == theirs, f"{where}: {played}"
        effective = mine["observation"] != "Nothing happens."
        counts[action.strip().partition(" ")[0] if effective else "junk"] += 1
    counts["(turns)"], counts["(won)"], counts["(games)"] = len(played), int(state.won), 1
    return counts


@pytest.mark.data
def test_real_games_play_alike(real_games, has_official_engine):
    rng, source = random.Random(SEED), Official.open(real_games)
    rounds, turns, seconds = (18, 48, 7200.0) if FULL else (3, 30, 60.0)
    groups = [
        [(split, task.task_id) for task in source.tasks(split) if task.family == family]
        for split in ("train", "valid_seen", "valid_unseen")
        for family in FAMILIES
    ]
    games = [rng.choice(group) for _ in range(rounds) for group in groups]
    end = time.monotonic() + seconds

    def play(games) -> Counter:
        engine, counts = OfficialEngine(), Counter()
        for split, task_id in games:
            if time.monotonic() < end:
                fields = source.fields(split, task_id)
                seed = f"{SEED} {task_id}"
                commands = lambda state, seed=seed: walk(state, random.Random(seed), turns)
                counts += compare(engine, fields, commands, f"SEED={SEED} {task_id}")
        engine.close()
        return counts

    with ThreadPoolExecutor(2) as pool:
        counts = sum(pool.map(play, (games[::2], games[1::2])), Counter())
    print(f"\nseed {SEED}: {json.dumps(counts, sort_keys=True)}")  # noqa: T201
    if FULL:
        assert counts["(games)"] >= 300
        assert counts["(turns)"] >= 12000
        assert min(counts[verb] for verb in VERBS) >= 30


def test_written_games_are_won_and_play_alike(official, tmp_path):
    number = 50 if FULL else 12
    rng = random.Random(SEED)
    counts = Counter()
    for rooms in ("small", "large"):
        tasks = generator.list_tasks(rooms, "valid_seen") + generator.list_tasks(rooms, "train")
        ids = [
            rng.choice([task.task_id for task in tasks if task.family == FAMILIES[i % 6]])
            for i in range(number // 2)
        ]
        for task_id in ids:
            (path,) = write_games(task_id.split("-")[1], tmp_path, rooms=rooms, task_ids=[task_id])
            fields = json.loads(path.read_text())
            where = f"SEED={SEED} {task_id}"
            won = compare(official, fields, lambda _, f=fields: f["walkthrough"], where)
            assert won["(won)"] == 1
            seed = f"{SEED} {task_id}"
            counts += compare(
                official, fields, lambda state, s=seed: walk(state, random.Random(s), 25), where
            )
    print(f"\nseed {SEED}: {json.dumps(counts, sort_keys=True)}")  # noqa: T201


@pytest.mark.data
def test_games_of_the_package_alfworld_play_alike(official, real_games):
    """`alfworld-generate` writes rules and wording that differ a little from the release's."""
    code = (
        "import json, alfworld.info as i\n"
        "print(json.dumps([open(p).read() for p in (i.ALFRED_PDDL_PATH, i.ALFRED_TWL2_PATH)]))"
    )
    python = os.environ.get(PYTHON_VARIABLE, sys.executable)
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    domain, grammar = json.loads(run.stdout.splitlines()[-1])
    source = Official.open(real_games)
    task_id = random.Random(SEED).choice(source.tasks("valid_seen")).task_id
    fields = source.fields("valid_seen", task_id) | {
        "pddl_domain": domain,
        "grammar": grammar.replace("UNKNOWN GOAL", "put a mug in shelf"),
    }
    compare(
        official, fields, lambda state: ["help", *walk(state, random.Random(SEED), 15)], task_id
    )


# --- backend="textworld" ------------------------------------------------------------------------


def make(**kwargs):
    return gym.make(ENV_ID, backend="textworld", **kwargs)


def test_the_backend_keeps_the_contract(has_official_engine):
    testing.check_env(lambda: make(max_turns=4))


def test_the_backend_restores_snapshots_by_replay(has_official_engine):
    env = make(max_turns=5).unwrapped
    _, first = env.reset(seed=2)
    env.step(first["admissible_actions"][0])
    snapshot = env.snapshot()
    *_, expected = env.step("look")
    twin = env.fork()
    for world in (env, twin):
        world.restore(snapshot)
        *_, info = world.step("look")
        assert info == expected
        world.close()


def test_both_backends_play_equal_episodes(has_official_engine):
    native, official = gym.make(ENV_ID, max_turns=8), make(max_turns=8)
    testing.assert_equal_episodes(native, official, SEED % 1000)
    official.close()


def test_a_dead_process_is_told_and_replaced(has_official_engine):
    env = make().unwrapped
    observation, _ = env.reset(seed=1)
    folder = Path(env._official._child.greeting["folder"])
    assert folder.is_dir()
    env._official._child._process.kill()
    with pytest.raises(WorkerLost, match="died"):
        env.step("look")
    again, _ = env.reset(seed=1)
    assert again == observation
    assert not folder.exists()
    env.close()


def test_a_late_process_is_ended(has_official_engine):
    engine = OfficialEngine(limit_s=0.02)
    with pytest.raises(WorkerLost, match=r"did not answer within 0\.02 s"):
        engine.load({})
    engine.close()


def test_a_process_is_replaced_after_some_episodes(has_official_engine):
    engine = OfficialEngine(episodes_per_child=2)
    task_id = "small-train-pick-0000"
    fields = game_fields(generator.generate(task_id), task_id)
    children = []
    recycled = _recycled()
    for _ in range(3):
        engine.load(fields)
        children.append(engine._child)
    assert children[0] is children[1] is not children[2]
    assert not children[0].alive
    assert _recycled() == recycled + 1
    engine.close()
    assert not children[2].alive
    assert _recycled() == recycled + 1


def _recycled():
    return workers.counts().get("alfworld-engine", workers.Count()).recycled


def test_closing_ends_the_process(has_official_engine):
    env = make()
    env.reset(seed=0)
    child = env.unwrapped._official._child
    assert child.alive
    env.close()
    assert not child.alive
    env.close()


LOADER = """
import json, sys
from alfworld.agents.environment import get_environment
config = {
    "env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6],
            "domain_randomization": False, "expert_type": "handcoded"},
    "dataset": {"data_path": sys.argv[1], "num_train_games": -1, "num_eval_games": -1},
    "general": {"training_method": "dagger"},
    "dagger": {"training": {"max_nb_steps_per_episode": 50}},
}
env = get_environment("AlfredTWEnv")(config, train_eval="train")
games = len(env.game_files)
env = env.init_env(batch_size=1)
won = []
for _ in range(games):
    observation, infos = env.reset()
    done = [False]
    while not done[0]:
        plan = infos["extra.expert_plan"][0][0]
        observation, score, done, infos = env.step([plan])
    won.append(bool(infos["won"][0]))
print(json.dumps([games, won]))
"""


def test_written_games_are_loaded_and_played_by_alfworld_itself(has_official_engine, tmp_path):
    """Its loader and its scripted expert need `traj_data.json` and the folders' names."""
    ids = [task.task_id for task in generator.list_tasks("small", "sample")]
    write_games("sample", tmp_path, task_ids=ids)
    python = os.environ.get(PYTHON_VARIABLE, sys.executable)
    run = subprocess.run(
        [python, "-c", LOADER, str(tmp_path / "train")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"ALFWORLD_DATA": str(tmp_path)},
    )
    games, won = json.loads(run.stdout.splitlines()[-1])
    assert games == len(ids)
    assert sum(won) >= 10, "alfworld's scripted expert loses some games of its own as well"
