"""The environment: turns, views, ends, ratings, snapshots, with offline parties."""

import json
import math

import gymnasium as gym
import pytest
from small_profiles import EASY, small_tables, write_json

import agentgyms
from agentgyms import testing
from agentgyms.core import keys
from agentgyms.core.errors import BadOption, BadSnapshot, DataMissing, UnknownSplit
from agentgyms.core.outcome import MAX_ACTION
from agentgyms.envs.sotopia import render
from agentgyms.envs.sotopia.env import SOTOPIAEnv
from agentgyms.envs.sotopia.generated import scenarios
from agentgyms.envs.sotopia.partner_judge import RANGES
from agentgyms.testing.playing import plain

ENV_ID = "agentgyms/SOTOPIA-v0"
FIRST, SECOND = "sample-0000-bargaining/0", "sample-0000-bargaining/1"
MODEL = "some-model@http://127.0.0.1:9/v1"
WAYS = [
    {},
    {"order": "simultaneous"},
    {"partner": "self"},
    {"partner": "self", "order": "simultaneous"},
    {"max_turns": 2, "masked_turns_count": True},
]


def make(task_id=FIRST, seed=0, **kwargs):
    env = SOTOPIAEnv(split="sample", **kwargs)
    observation, info = env.reset(seed=seed, options={"task_id": task_id})
    return env, observation, info


def play(env, actions):
    steps = [env.step(action) for action in actions]
    assert not any(step[2] or step[3] for step in steps[:-1])
    return steps[-1]


@pytest.mark.parametrize("kwargs", WAYS, ids=str)
def test_it_keeps_the_contract(kwargs):
    maker = lambda: gym.make(ENV_ID, split="sample", oracle=True, **kwargs)
    testing.check_env(maker)
    testing.check_leaks(maker)
    testing.check_determinism(maker)
    testing.check_snapshot(maker)
    testing.check_group(lambda: agentgyms.make_group(ENV_ID, 4, **kwargs))


def test_many_at_once():
    testing.check_vector(ENV_ID, num_envs=3, split="valid")


def test_the_first_observation_is_the_context_of_the_seat():
    env, seen, info = make()
    encounter = scenarios.encounter(FIRST)
    assert seen == render.first_observation(encounter, 0)
    assert info["goal"] == render.goal(encounter, 0)
    assert render.goal(encounter, 1) not in seen
    assert (info["family"], info["score"], info["progress"]) == ("bargaining", 0.0, 0.0)
    assert env.parties == {"partner": "scripted-v1", "judge": "programmatic-v1"}


def test_at_seat_1_the_partner_has_spoken_before():
    env, seen, info = make(SECOND)
    encounter = scenarios.encounter(SECOND)
    dialogue = env._state.dialogue
    assert [seat for seat, _ in dialogue[0]] == [0]
    first = render.first_observation(encounter, 1)
    assert seen == first + render.turn_text(encounter, 0, dialogue[0])
    assert info["goal"] == render.goal(encounter, 1)
    assert (info["turn"], info["metrics"]["dialogue_turns"]) == (0, 1.0)


@pytest.mark.parametrize("kwargs", [way for way in WAYS if "max_turns" not in way], ids=str)
@pytest.mark.parametrize("task_id", [FIRST, SECOND])
def test_what_a_seat_reads_is_all_of_its_history_once(task_id, kwargs):
    env, seen, info = make(task_id, **kwargs)
    read = {0: [], 1: []}
    for action in ("speak: good day", "act: offer 7", "none", "leave"):
        seat = env._simulator.acting(env._state)
        read[seat].append(seen)
        seen, _, terminated, _, info = env.step(action)
    assert terminated
    learner = int(task_id[-1])
    read[learner].append(seen)
    history = render.history(env._simulator.encounter, env._state.dialogue, learner)
    joined = "".join(read[learner])
    assert joined.replace("\n\n", "\n").strip() == history.replace("\n\n", "\n").strip()
    assert info["metrics"]["partner_turn"] == 0.0


def test_partner_and_agent_take_turns():
    env, *_ = make()
    seen, reward, terminated, truncated, info = env.step("speak:  Good   day ")
    name = scenarios.encounter(FIRST).people[0].name
    assert seen.startswith(f'Turn #0: {name} said: "Good day"\nTurn #1: ')
    assert (reward, terminated, truncated, info["action_key"]) == (
        0,
        False,
        False,
        "speak: Good day",
    )
    assert [[seat for seat, _ in turn] for turn in env._state.dialogue] == [[0], [1]]


def test_a_text_that_is_no_action_does_nothing_and_is_told_to_its_writer_alone():
    env, *_ = make()
    seen, *_, info = env.step("good day")
    assert seen.startswith('Nothing happens: "good day" is no action; write speak: <words>')
    assert "Turn #0: \n" in seen
    assert (info["feedback"], info["action_key"]) == ("malformed", keys.INVALID_ACTION)
    assert info["feedback_text"] in seen
    twin, *_ = make()
    other, *_, calm = twin.step("none")
    assert seen.endswith(other)
    assert calm["state_key"] == info["state_key"]
    assert (info["metrics"]["malformed_turns"], calm["metrics"]["malformed_turns"]) == (1.0, 0.0)
    assert env.step("speak: sorry")[4]["feedback"] == "ok"
    assert env.step("speak: " + "x" * MAX_ACTION)[4]["feedback"] == "malformed"


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("act: accept", "there is no offer of the other one's to accept"),
        ("act: offer eighty", 'no offer: expected one like "act: offer '),
    ],
)
def test_a_deed_that_binds_nobody_is_seen_and_its_writer_reads_why(action, why):
    env, *_ = make()
    seen, *_, info = env.step(action)
    assert seen.startswith(f"Nothing happens: {why}")
    assert f"[action] {action.removeprefix('act: ')}" in seen
    assert (info["feedback"], info["action_key"]) == ("no_effect", action)
    assert info["feedback_text"].startswith(why)
    assert info["metrics"]["malformed_turns"] == 0.0
    restored, again = env.restore(env.snapshot())
    assert (restored, again) == (seen, info)
    seen, *_, info = env.step("act: offer 60")
    assert (seen.startswith("Turn #"), info["feedback"]) == (True, "ok")


def test_json_is_the_same_action():
    env, *_ = make()
    twin, *_ = make()
    one = env.step('{"action_type": "speak", "argument": "Hello there"}')
    assert one == twin.step("speak: Hello  there")
    assert one[4]["action_key"] == "speak: Hello there"


def test_leaving_ends_it_and_no_deal_is_worth_nothing():
    env, *_ = make()
    _, reward, terminated, truncated, info = env.step("leave")
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)
    assert (info["score"], info["metrics"]["rated"], info["admissible_actions"]) == (0.0, 1.0, [])
    assert len(env._state.dialogue) == 1


def test_silence_is_stale_when_both_keep_it():
    env, *_ = make(partner="self")
    *_, terminated, truncated, info = play(env, ["none", "speak: well", "none", "none", "none"])
    assert (terminated, truncated, info["turn"]) == (True, False, 5)
    env, *_ = make(partner="self", masked_turns_count=True)
    assert play(env, ["speak: well", "none"])[2], "as in the package: waiting counts too"


def test_the_dialogue_has_its_own_limit_of_turns():
    env, *_ = make(SECOND, max_dialogue_turns=3, partner="self")
    *_, terminated, truncated, info = play(env, ["speak: a", "speak: b", "speak: c"])
    assert (terminated, truncated, info["metrics"]["rated"]) == (False, True, 1.0)
    assert (info["metrics"]["dialogue_turns"], info["metrics"]["partner_turn"]) == (3.0, 0.0)


def test_the_last_turn_of_the_caller_is_rated_too():
    env, *_ = make(max_turns=2)
    _, reward, terminated, truncated, info = play(env, ["speak: a", "speak: b"])
    assert (terminated, truncated, info["metrics"]["rated"]) == (False, True, 1.0)
    assert reward == info["score"] == info["metrics"]["goal"] / 10


@pytest.mark.parametrize(
    ("kwargs", "turns"),
    [
        ({}, 20),
        ({"partner": "self"}, 20),
        ({"partner": "self", "order": "simultaneous"}, 40),
        ({"order": "simultaneous", "max_dialogue_turns": 30}, 30),
        ({"max_dialogue_turns": 61}, 31),
        ({"max_turns": 3}, 3),
    ],
)
def test_there_are_turns_enough_for_the_dialogue(kwargs, turns):
    assert SOTOPIAEnv(**kwargs).max_turns == turns


@pytest.mark.parametrize("split", ["valid", "test"])
def test_the_expert_reaches_its_goal_and_the_rating_is_told(split):
    env = SOTOPIAEnv(split=split, oracle=True)
    goals = []
    for task_id in list(env.tasks)[:24]:
        act = agentgyms.expert(env)
        _, info = env.reset(seed=1, options={"task_id": task_id})
        over = False
        while not over:
            _, reward, terminated, truncated, info = env.step(act())
            over = terminated or truncated
        metrics = info["metrics"]
        for name, (lowest, highest) in RANGES.items():
            assert lowest <= metrics[name] <= highest
        assert metrics["overall"] == pytest.approx(sum(metrics[n] for n in RANGES) / 7)
        assert reward == info["score"] == metrics["goal"] / 10
        assert info["success"] == (metrics["goal"] > 6)
        assert set(json.loads(info["oracle"])) == {"best", "plain", "hidden", "reasons"}
        goals.append(metrics["goal"])
    assert sum(goals) / len(goals) > 6


def test_self_chat_is_played_seat_by_seat():
    env, seen, info = make(SECOND, partner="self")
    encounter = scenarios.encounter(SECOND)
    assert env.parties == {"partner": "self", "judge": "programmatic-v1"}
    assert seen == render.first_observation(encounter, 0)
    assert (info["goal"], info["metrics"]["partner_turn"]) == (render.goal(encounter, 0), 1.0)
    seen, *_, info = env.step("gibberish")
    assert seen == render.first_observation(encounter, 1) + "Turn #0: \n"
    assert (info["goal"], info["metrics"]["partner_turn"]) == (render.goal(encounter, 1), 0.0)
    assert (info["metrics"]["partner_malformed"], info["metrics"]["malformed_turns"]) == (1.0, 0.0)
    seen, *_, info = env.step("act: offer 9")
    assert seen.startswith('Nothing happens: "gibberish"')
    _, reward, terminated, _, info = env.step("act: accept")
    *_, reward, terminated, _, info = env.step("leave")
    assert terminated
    own, other = (encounter.game.goal_score(env._state.dialogue, seat) for seat in (1, 0))
    assert (info["metrics"]["goal"], info["metrics"]["partner_goal"]) == (own, other)
    assert (info["goal"], reward) == (render.goal(encounter, 1), own / 10)


def test_in_simultaneous_self_chat_nobody_sees_what_the_other_one_is_about_to_do():
    env, _, before = make(partner="self", order="simultaneous")
    seen, *_, info = env.step("speak: a secret plan")
    assert "a secret plan" not in seen
    assert info["state_key"] != before["state_key"]
    assert (info["metrics"]["partner_turn"], info["metrics"]["dialogue_turns"]) == (1.0, 0.0)
    seen, *_ = env.step("speak: hello")
    assert 'a secret plan";' in seen


def test_equal_acts_meet_equal_partners_and_another_seed_is_another_state():
    group = agentgyms.make_group(ENV_ID, 3, split="sample")
    group.reset(seed=4, options={"task_id": FIRST})
    for action in ("speak: hi", "act: offer 60", "act: offer 60", "none"):
        first, *others = map(plain, group.step([action] * 3))
        assert others == [first, first]
    _, _, one = make(seed=1)
    _, _, two = make(seed=2)
    assert one["state_key"] != two["state_key"]


def test_a_hundred_seeds_are_a_hundred_states():
    assert len({make(seed=seed)[2]["state_key"] for seed in range(100)}) == 100


@pytest.mark.parametrize(("above", "success"), [(1, 0), (0, 0), (-1, 1)])
def test_success_is_a_goal_above_the_threshold(above, success):
    goal = bargained(success_threshold=6)["metrics"]["goal"]
    assert 1 <= goal < 9
    assert bargained(success_threshold=goal + above)["success"] == success
    assert bargained(success_threshold=0.5)["success"]


def bargained(**kwargs):
    """Return the last info of an episode in which both meet half-way."""
    env, *_ = make(partner="self", **kwargs)
    price = sum(scenarios.encounter(FIRST).game.limits) // 2
    return play(env, [f"act: offer {price}", "act: accept", "leave"])[4]


@pytest.mark.parametrize(
    ("kwargs", "error", "said"),
    [
        ({"source": "redis"}, BadOption, "source must be one of generated, official, got 'redis'"),
        ({"source": ["a"]}, BadOption, "source must be"),
        ({"split": "all"}, UnknownSplit, "source='generated' has no split 'all'"),
        ({"source": "official", "split": "train"}, UnknownSplit, "expected one of all, hard, pi"),
        ({"order": "random"}, BadOption, "order must be one of round-robin, simultaneous"),
        ({"max_dialogue_turns": 0}, BadOption, "max_dialogue_turns must be an integer from 1"),
        ({"stale_turns": True}, BadOption, "stale_turns must be an integer"),
        ({"masked_turns_count": 1}, BadOption, "masked_turns_count must be True or False"),
        ({"success_threshold": 10}, BadOption, "success_threshold must be a number from 0"),
        ({"success_threshold": math.nan}, BadOption, "success_threshold"),
        ({"data_path": "/x"}, BadOption, "data_path is for source='official'"),
        ({"source": "official", "split": "all", "data_path": 3}, BadOption, "must be a path"),
        ({"source": "official", "split": "all"}, BadOption, "needs a partner: give partner="),
        (
            {"source": "official", "split": "all", "partner": "self"},
            BadOption,
            "needs a judge: give judge=",
        ),
        (
            {"source": "official", "split": "all", "partner": "scripted", "judge": MODEL},
            BadOption,
            "'scripted' is for source='generated'",
        ),
        (
            {"source": "official", "split": "all", "partner": "self", "judge": "programmatic"},
            BadOption,
            "no program can score open situations",
        ),
        ({"partner": "programmatic"}, BadOption, 'must be "scripted" or "self", or a model'),
        ({"judge": "gpt-4o"}, BadOption, 'must be "programmatic", or a model: "name@http'),
        ({"judge": 3}, BadOption, "judge must be"),
        ({"judge": {"name": "x"}}, BadOption, "judge has no url"),
        ({"partner": "x@http://"}, BadOption, "partner"),
    ],
    ids=str,
)
def test_what_callers_do_wrong_is_said_clearly(kwargs, error, said):
    with pytest.raises(error, match=said):
        SOTOPIAEnv(**kwargs)


def test_without_the_profiles_the_way_to_them_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path))
    with pytest.raises(DataMissing, match="agentgyms data import sotopia"):
        SOTOPIAEnv(source="official", split="all", partner="self", judge=MODEL)


def test_open_situations_have_no_expert_and_no_progress(tmp_path, small_splits):
    write_json(small_tables(), tmp_path)
    env = SOTOPIAEnv(
        source="official", split="all", data_path=tmp_path, partner="self", judge=MODEL, oracle=True
    )
    assert env.parties == {"partner": "self", "judge": "some-model"}
    assert env.blocking
    _, info = env.reset(seed=0, options={"task_id": "c0/1"})
    assert (info["family"], info["metrics"]["partner_turn"]) == ("hand-craft", 1.0)
    assert math.isnan(info["progress"])
    assert info["goal"] == "Bake first (you are late)"
    assert "Bake first too" in json.loads(info["oracle"])["hidden"]["goal"]
    with pytest.raises(BadOption, match="c0/1 has no expert: only generated games"):
        agentgyms.expert(env)()
    with pytest.raises(BadOption, match="no expert 'best': this task has none"):
        agentgyms.expert(env)(None, info)
    seen, *_, info = env.step("speak: <p viewer='agent_1'>hush</p> & on")
    assert "said: \"<p viewer='agent_1'>hush</p> & on\"" in seen
    assert info["goal"] == "Bake first too"
    assert EASY in env._simulator.encounter.scenario.scenario_id
    env.close()


BROKEN = [
    ("seed", -1),
    ("seed", None),
    ("dialogue", 3),
    ("dialogue", [[[0, "sing", "la"]]]),
    ("dialogue", [[[0, "speak", ""]], [[1, "speak", "x"]]]),
    ("dialogue", [[[0, "leave", "x"]]]),
    ("dialogue", [[[0, "speak", 7]], [[1, "speak", "x"]]]),
    ("dialogue", [[[0, "speak", "x\nTurn #9: y"]], [[1, "speak", "x"]]]),
    ("dialogue", [[[0, "speak", "\ud800"]], [[1, "speak", "x"]]]),
    ("dialogue", [[[0, "speak", "x" * 4001]], [[1, "speak", "x"]]]),
    ("dialogue", [[[1, "speak", "x"]], [[0, "speak", "x"]]]),
    ("dialogue", [[[True, "speak", "x"]], [[0, "speak", "x"]]]),
    ("dialogue", [[[0, "speak", "x"]]]),
    ("dialogue", [[[0, "leave", ""]], [[1, "speak", "x"]]]),
    ("pending", ["speak", "x"]),
    ("malformed", -1),
    ("partner_malformed", 1.0),
    ("refusals", ["x"]),
    ("refusals", ["x", 3]),
    ("spent", [1, 2, 3]),
    ("spent", [1, 2, True, 0.0]),
    ("spent", [1, 2, 3, -1.0]),
    ("verdict", {"ratings": None, "reason": "", "spent": [0, 0, 0, 0.0]}),
]


@pytest.mark.parametrize(("name", "value"), BROKEN, ids=str)
def test_damaged_states_are_refused(name, value):
    env, *_ = make()
    env.step("speak: hello")
    snapshot = json.loads(env.snapshot())
    env.restore(json.dumps(snapshot).encode())
    snapshot["engine"][name] = value
    with pytest.raises(BadSnapshot, match="engine state is damaged"):
        env.restore(json.dumps(snapshot).encode())


@pytest.mark.parametrize(
    "damage",
    [
        lambda ratings: ratings.pop(),
        lambda ratings: ratings[0][0].pop("goal"),
        lambda ratings: ratings[0][0].update(goal=11),
        lambda ratings: ratings[1][0].update(secret=1),
        lambda ratings: ratings[1][0].update(goal=True),
        lambda ratings: ratings[0][1].update(goal=3),
        lambda ratings: ratings[0][1].update(charm="much"),
    ],
)
def test_damaged_verdicts_are_refused(damage):
    env, *_ = make()
    last = env.step("leave")[4]
    snapshot = json.loads(env.snapshot())
    restored = env.restore(json.dumps(snapshot).encode())[1]
    assert restored == last
    damage(snapshot["engine"]["verdict"]["ratings"])
    with pytest.raises(BadSnapshot, match="engine state is damaged"):
        env.restore(json.dumps(snapshot).encode())


def test_snapshots_belong_to_their_parties():
    env, *_ = make()
    other, *_ = make(partner="self")
    with pytest.raises(BadSnapshot, match="but this is"):
        other.restore(env.snapshot())


def test_families_restrict_the_tasks():
    env = SOTOPIAEnv(split="sample", families=["division", "bargaining"])
    assert env.tasks.families() == {"bargaining": 4, "division": 4}
    twin = SOTOPIAEnv(split="sample", families=("bargaining", "division", "division"))
    assert twin.tasks[:] == env.tasks[:]
    first = env.reset(seed=3)
    assert twin.reset(seed=3) == first
    assert twin.restore(env.snapshot()) == first


@pytest.mark.parametrize("families", ["bargaining", [], ["haggling"], [1], 3, [["bargaining"]]])
def test_families_are_checked(families):
    with pytest.raises(BadOption, match="families must be a list of some of bargaining, contact"):
        SOTOPIAEnv(split="sample", families=families)
