"""Our ScienceWorld: what the real engine answered, gold paths, contract, requests, prompts."""

import json
from pathlib import Path

import gymnasium as gym
import pytest
from chat_server import ChatServer
from click.testing import CliRunner
from trace_digests import of_game

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadSnapshot, Mismatch
from agentgyms.envs.scienceworld import tasks
from agentgyms.envs.scienceworld.own.game import Game
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app
from harness.cli.main import main as harness_cli

ENV_ID = "agentgyms/ScienceWorld-v0"
TRACES = json.loads(Path(__file__).with_name("data").joinpath("traces.json").read_text())
WALK = ["open door to kitchen", "go to kitchen", "open door", "0", "look around", "wait", "eat air"]


def make(**kwargs):
    return gym.make(ENV_ID, **{"split": "sample", **kwargs}).unwrapped


def start(env, name, number=0):
    return env.reset(seed=0, options={"task_id": f"{name}/{number}"})


@pytest.mark.parametrize("name", TRACES)
def test_it_answers_what_the_real_engine_answered(name):
    trace = TRACES[name]
    game = Game(*trace["game"])
    assert of_game(game, game.step("look around")) == trace["start"]
    for number, (command, digest) in enumerate(trace["turns"]):
        observation = game.step(command)
        assert of_game(game, observation) == digest, (number, command, observation)


def test_the_traces_are_of_all_tasks():
    assert {trace["game"][0] for trace in TRACES.values()} == set(tasks.VARIATIONS)


@pytest.mark.parametrize(
    "name",
    tasks.VARIATIONS,
)
def test_the_gold_path_wins(name):
    env = make(max_turns=400)
    start(env, name)
    expert, total, over = agentgyms.expert(env), 0.0, False
    env.step("look around")  # which the path goes on after
    while not over:
        _, reward, terminated, truncated, info = env.step(expert())
        total, over = total + reward, terminated or truncated
    assert (info["success"], info["score"], info["progress"], terminated) == (True, 1.0, 1.0, True)
    assert total == pytest.approx(1)
    assert all(holds for holds in info["atoms"].values() if isinstance(holds, bool))


def test_a_wrong_focus_fails():
    env = make()
    start(env, "find-animal")
    _, reward, terminated, _, info = env.step("focus on orange")
    assert (reward, terminated, info["success"], info["score"]) == (-1.0, True, False, 0.0)
    assert info["metrics"]["points"] == -100


def test_ambiguous_requests_are_answered_with_a_number_or_cancelled():
    env = make()
    start(env, "find-animal")
    asked, *_, info = env.step("open door")
    assert asked.startswith("Ambiguous request")
    assert "\n0:\topen door" in asked
    assert info["admissible_actions"][:2] == ["0", "1"]
    opened, *_, info = env.step("0")
    assert (opened, info["feedback"], info["action_key"]) == ("The door is now open.", "ok", "0")
    env.step("open door")
    *_, cancelled = env.step("")
    assert cancelled["feedback"] == "ok"
    unknown, *_, info = env.step("0")
    assert (unknown, info["feedback"]) == ("No known action matches that input.", "inadmissible")
    assert env.step("\x00")[-1]["feedback"] == "malformed"


def test_it_keeps_the_contract_here_and_on_a_server():
    kwargs = {"split": "sample", "families": ["boil", "grow-plant"], "max_turns": 8}
    testing.check_env(lambda: make(**kwargs))
    with Server(create_app(ENV_ID, token="")) as server:
        testing.check_remote_parity(
            lambda: gym.make(ENV_ID, **kwargs),
            lambda: RemoteEnv(ENV_ID, url=server.url, **kwargs),
        )


def walked(env, name, actions):
    seen = [start(env, name)]
    return [*seen, *(env.step(action) for action in actions)]


def test_the_list_of_actions_changes_nothing():
    listed = walked(make(), "grow-plant", WALK)
    unlisted = walked(make(list_actions=False), "grow-plant", WALK)
    assert [one[0] for one in unlisted] == [one[0] for one in listed]
    assert [one[-1]["state_key"] for one in unlisted] == [one[-1]["state_key"] for one in listed]
    assert unlisted[-1][-1]["admissible_actions"] == []


def test_what_takes_no_time_changes_no_state():
    env = make()
    _, info = start(env, "boil")
    for action in ("look around", "inventory", "task", "help", "zzz"):
        assert env.step(action)[-1]["state_key"] == info["state_key"], action
    assert env.step("wait1")[-1]["state_key"] != info["state_key"]


def test_forks_play_on_alone_and_another_replay_is_refused():
    env = make()
    walked(env, "find-animal", WALK[:4])
    snapshot = env.snapshot()
    with env.fork() as twin:
        assert twin.step("wait1") == env.step("wait1")
    changed = json.loads(snapshot)
    changed["actions"][0] = "wait1"
    with pytest.raises(Mismatch, match="replaying seed 0 and 4 actions reached state"):
        env.restore(json.dumps(changed).encode())
    with pytest.raises(BadSnapshot):
        make(simplification="easy").restore(snapshot)
    foreign = {**json.loads(snapshot), "engine": {"turn": 1}}
    with pytest.raises(BadSnapshot, match="ScienceWorldEnv has no load"):
        env.restore(json.dumps(foreign).encode())


def test_simplifications_are_the_engines():
    env = make(simplification="easy")
    start(env, "find-animal")
    assert env.step("open door to kitchen")[0] == "The door is already open."


def test_a_model_is_evaluated_with_the_forms_of_commands_in_its_prompt():
    answer = "<think>I look first.</think><action>open door to kitchen</action>"
    words = ["eval", "--env", "ScienceWorld", "--split", "sample", "--tasks", "1"]
    words += ["--agent", "react", "--model", "scripted", "--name", "science"]
    words += ["--set", "env.max_turns=3", "--env-arg", "list_actions=false"]
    with ChatServer(lambda messages: answer, model="scripted") as server:
        done = CliRunner().invoke(harness_cli, [*words, "--url", server.url])
    assert done.exit_code == 0, done.output
    prompt = json.dumps(server.requests[0].body["messages"])
    assert "focus on OBJ" in prompt
    assert "Your task is to" in prompt
    result = json.loads(Path("evaluations/science/result.json").read_text())
    assert (result["episodes"]["finished"], result["data_source"]) == (1, "official"), result
