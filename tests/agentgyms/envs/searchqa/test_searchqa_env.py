"""Episodes: what actions do, what is scored, what the expert does, and what callers do wrong."""

import json
import math

import gymnasium as gym
import pytest
from gymnasium.error import ResetNeeded

import agentgyms
from agentgyms.core.errors import BadOption, DataMissing, UnknownSplit
from agentgyms.envs.searchqa.env import SearchQAEnv
from agentgyms.envs.searchqa.questions import COUNTS, generated_questions
from agentgyms.remote import InProcessTransport, RemoteEnv
from env_servers import create_app

ENV_ID = "agentgyms/SearchQA-v0"
QUESTION = next(q for q in generated_questions()["valid"] if q.family == "2-hop")


@pytest.fixture
def env():
    env = SearchQAEnv(split="valid")
    env.reset(options={"task_id": QUESTION.question_id})
    return env


def test_an_episode_of_two_hops(env):
    observation, info = env.reset(options={"task_id": QUESTION.question_id})
    assert observation == info["goal"] == QUESTION.text
    assert (info["family"], info["progress"], info["score"]) == ("2-hop", 0, 0)
    assert not any(title in observation for title in QUESTION.titles[1:])
    observation, *_, info = env.step(f"search[{QUESTION.titles[0]}]")
    lines = observation.split("\n")
    assert len(lines) == 3
    assert lines[0].startswith(f'Doc 1 (Title: "{QUESTION.titles[0]}") ')
    assert [line.partition(" (")[0] for line in lines] == ["Doc 1", "Doc 2", "Doc 3"]
    assert info["progress"] == pytest.approx(1 / 3)
    assert info["metrics"]["answer_retrieved"] == 0
    *_, info = env.step(f"search[{QUESTION.titles[1]}]")
    assert info["progress"] == pytest.approx(2 / 3)
    assert (info["metrics"]["searches"], info["metrics"]["answer_retrieved"]) == (2, 1)
    _, reward, terminated, truncated, info = env.step(f"answer[The {QUESTION.golden[0].upper()}!]")
    assert (reward, terminated, truncated, info["success"]) == (1, True, False, True)
    assert (info["score"], info["progress"]) == (1, 1)
    assert {info["metrics"][name] for name in ("em", "f1", "sub_em")} == {1}
    with pytest.raises(ResetNeeded):
        env.step("search[more]")


def test_a_wrong_answer_ends_the_episode_without_reward(env):
    env.step(f"search[{QUESTION.titles[0]}]")
    _, reward, terminated, _, info = env.step(f"answer[{QUESTION.golden[0]} and Sons]")
    assert (reward, terminated, info["success"], info["score"]) == (0, True, False, 0)
    assert info["progress"] == pytest.approx(1 / 3)
    assert (info["metrics"]["em"], info["metrics"]["sub_em"]) == (0, 1)
    assert 0 < info["metrics"]["f1"] < 1


def test_retrieved_text_is_never_taken_for_an_answer(env):
    """The answer stands in what was found, and in the query; only `answer[...]` answers."""
    for action in (f"search[{QUESTION.titles[1]}]", f"search[answer[{QUESTION.golden[0]}]]"):
        _, reward, terminated, _, info = env.step(action)
        assert (reward, terminated, info["success"]) == (0, False, False)
        assert info["metrics"]["answer_retrieved"] == 1
    assert env.step(QUESTION.golden[0])[4]["feedback"] == "malformed"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("", "neither"),
        ("search", "neither"),
        ("search[", "neither"),
        ("search[x] then answer[y", "neither"),
        ("search[x] then answer[y]", "several actions"),
        ("search[a]\nanswer[b]", "several actions"),
        ("answer[x] Search [y]", "several actions"),
        ("search[a]search[b]", "several actions"),
        ("find[x]", "neither"),
        ("<search>x</search>", "neither"),
        ("please search[x]", "neither"),
        ("search[]", "query is blank"),
        ("search[ \n\t]", "query is blank"),
        ("answer[ ]", "answer is blank"),
        (f"answer[{'x' * 9000}]", "longer than 8192"),
    ],
)
def test_malformed_actions_do_nothing_but_take_a_turn(env, action, reason):
    before = env.step("search[river]")[4]
    observation, reward, terminated, _, info = env.step(action)
    assert (info["feedback"], info["action_key"], info["turn"]) == ("malformed", "<invalid>", 2)
    assert reason in info["feedback_text"]
    assert reason in observation
    assert (reward, terminated, info["state_key"]) == (0, False, before["state_key"])
    assert info["metrics"] == before["metrics"]


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("search[The  Old\nBridge?]", "search[old bridge]"),
        (" SEARCH [old bridge] ", "search[old bridge]"),
        ("search[a [b] c]", "search[b c]"),
        ("search[b] c]", "search[b c]"),
        ("search[what does answer[x] mean]", "search[what does answerx mean]"),
        ("search[b] research [c]", "search[b research c]"),
        ("search[the]", "search[the]"),
        ("answer[A Quiet-Town.]", "answer[quiettown]"),
    ],
)
def test_action_keys_are_canonical(env, action, key):
    info = env.step(action)[4]
    assert info["action_key"] == key
    assert info["feedback"] in ("ok", "no_effect")


def test_the_state_is_what_is_known_not_how_it_was_asked():
    def reached(*actions):
        env = SearchQAEnv(split="valid", max_turns=9)
        info = env.reset(options={"task_id": QUESTION.question_id})[1]
        for action in actions:
            info = env.step(action)[4]
        return info["state_key"]

    one, two = (f"search[{title}]" for title in QUESTION.titles)
    assert reached(one, two) == reached(two, one) == reached(two, "junk", one, one.upper())
    keys = {reached(), reached(one), reached(two), reached(one, two), reached("answer[x]")}
    assert len(keys | {reached("answer[y]"), reached(one, "answer[x]")}) == 7
    assert reached("answer[x]") == reached("answer[ the X ]")


def test_a_query_without_a_known_word_finds_nothing(env):
    observation, *_, info = env.step("search[qqqq zzzz 厨房]")
    assert observation == "No document was found."
    assert (info["feedback"], info["metrics"]["searches"]) == ("no_effect", 1)


def test_the_listed_actions_are_harmless_as_they_stand(env):
    info = env.reset(seed=3)[1]
    assert info["admissible_actions"] == ["search[<query>]", "answer[<text>]"]
    assert not info["admissible_complete"]
    assert env.step("search[<query>]")[4]["feedback"] != "malformed"
    assert env.step("answer[<text>]")[1:3] == (0, True)


def test_a_search_on_the_last_turn_is_carried_out():
    env = SearchQAEnv(split="valid", max_turns=1)
    env.reset(options={"task_id": QUESTION.question_id})
    observation, _, terminated, truncated, info = env.step(f"search[{QUESTION.titles[0]}]")
    assert (terminated, truncated) == (False, True)
    assert QUESTION.titles[0] in observation
    assert info["progress"] > 0
    env.reset(seed=1)
    assert env.step("answer[x]")[2:4] == (True, False)
    assert gym.make(ENV_ID).unwrapped.max_turns == 4


@pytest.mark.parametrize("split", COUNTS)
def test_the_expert_solves_every_question_in_four_turns_by_searching(split):
    env = SearchQAEnv(split=split)
    act, saved = agentgyms.expert(env), 0
    for task_id in env.tasks:
        seen, info = env.reset(options={"task_id": task_id})
        texts, over = [seen], False
        while not over:
            action = act()
            name = action.partition("[")[2][:-1]
            assert any(name in text for text in texts), f"{task_id}: {name!r} was read nowhere"
            seen, reward, terminated, truncated, info = env.step(action)
            texts.append(seen)
            over = terminated or truncated
        assert (reward, info["progress"]) == (1, 1)
        saved += int(info["family"][0]) + 1 - info["turn"]
    # A search for a town may find its twin as well, whose paragraph names it.
    assert 0 <= saved < 0.1 * len(env.tasks)


def test_the_expert_takes_over_from_any_state():
    env = SearchQAEnv(split="valid", max_turns=9)
    act = agentgyms.expert(env)
    for seed in range(20):
        env.reset(seed=seed)
        for action in ("search[old bridge]", "junk", act(), "search[the poet]"):
            env.step(action)
        for _ in range(5):
            _, reward, terminated, _, _ = env.step(act())
            if terminated:
                break
        assert reward == 1


def test_solutions_are_told_only_to_those_who_ask():
    assert "oracle" not in SearchQAEnv().reset(seed=1)[1]
    env = SearchQAEnv(split="valid", oracle=True)
    info = env.reset(options={"task_id": QUESTION.question_id})[1]
    assert json.loads(info["oracle"]) == {
        "best": f"search[{QUESTION.titles[0]}]",
        "answer": f"answer[{QUESTION.golden[0]}]",
        "golden": list(QUESTION.golden),
        "optimal_remaining": len(QUESTION.support) + 1,
    }
    twin = env.fork()
    assert env.step(json.loads(info["oracle"])["answer"])[1] == 1
    assert env.solution()["optimal_remaining"] == 0
    twin.step("answer[nobody]")
    assert twin.solution()["optimal_remaining"] == -1


def test_top_k_is_how_many_documents_come():
    for top_k in (1, 5, 20):
        env = SearchQAEnv(split="valid", top_k=top_k)
        env.reset(seed=0)
        assert env.step("search[the river]")[0].count("\nDoc ") == top_k - 1


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"split": "valid_seen"}, UnknownSplit, "train, valid, test, sample"),
        ({"source": "wiki"}, BadOption, "expected one of generated, flashrag"),
        ({"top_k": 0}, BadOption, "top_k must be an integer from 1 to 100"),
        ({"top_k": True}, BadOption, "got True"),
        ({"top_k": 101}, BadOption, "got 101"),
        ({"data_path": "x"}, BadOption, "are for source='flashrag'"),
        ({"datasets": ["nq"]}, BadOption, "are for source='flashrag'"),
        ({"corpus": "x"}, BadOption, "corpus is for source='flashrag'"),
        ({"retriever": "localhost:8000"}, BadOption, "is no address"),
        ({"retriever": 3}, BadOption, "is no address"),
        ({"request_form": "query"}, BadOption, "are for a retriever"),
        ({"retriever_patience_s": 9}, BadOption, "are for a retriever"),
        ({"retriever": "http://h/r", "retriever_patience_s": -1}, BadOption, "from 0 on, got -1"),
        ({"retriever": "http://h/r", "retriever_patience_s": True}, BadOption, "got True"),
        ({"retriever": "http://h/r", "retriever_patience_s": "9"}, BadOption, "number of seconds"),
        ({"retriever": "http://h/r", "retriever_patience_s": math.nan}, BadOption, "got nan"),
        ({"source": "flashrag", "data_path": 5}, BadOption, "data_path must be a path, got 5"),
        ({"source": "flashrag", "data_path": b"x"}, BadOption, "data_path must be a path"),
        ({"source": "flashrag", "data_path": "x", "corpus": 5}, BadOption, "corpus must be a path"),
        ({"retriever": "http://h/retrieve", "request_form": "q"}, BadOption, "'queries' or"),
        ({"source": "flashrag"}, BadOption, "needs data_path"),
        ({"source": "flashrag", "data_path": "x", "datasets": "nq"}, BadOption, "must be a list"),
        ({"source": "flashrag", "data_path": "x", "datasets": []}, BadOption, "must be a list"),
        ({"source": "flashrag", "data_path": "x", "datasets": [".."]}, BadOption, "must be a list"),
        ({"source": "flashrag", "data_path": "x", "datasets": ["/x"]}, BadOption, "must be a list"),
        (
            {"source": "flashrag", "data_path": "/no", "retriever": "http://h/r"},
            DataMissing,
            "/no does not exist",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments, error, says):
    with pytest.raises(error, match=says):
        SearchQAEnv(**arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({}, BadOption, "needs something to search in"),
        ({"corpus": "/no"}, DataMissing, "no file /no"),
        ({"corpus": "c", "retriever": "http://h/r"}, BadOption, "without a retriever"),
    ],
)
def test_questions_from_files_need_one_place_to_search_in(tmp_path, arguments, error, says):
    file = tmp_path / "nq.jsonl"
    file.write_text('{"id": 1, "question": "q?", "golden_answers": ["x"]}')
    with pytest.raises(error, match=says):
        SearchQAEnv(source="flashrag", data_path=file, **arguments)


def test_a_servers_clients_cannot_choose_files_or_addresses():
    transport = InProcessTransport({"http://server": create_app(ENV_ID, token="")})
    for name, value in {
        "retriever": "http://169.254.169.254/",
        "request_form": "query",
        "retriever_patience_s": 1e9,
        "data_path": "/etc",
        "corpus": "/etc/passwd",
    }.items():
        with pytest.raises(BadOption, match=f"{name}' is the server's to set"):
            RemoteEnv(ENV_ID, url="http://server", transport=transport, **{name: value})


def test_what_is_known_of_the_environment():
    env = SearchQAEnv(split="sample")
    assert env.data_version == "closed-world-2"
    assert not env.blocking
    assert env.tasks.families() == {"1-hop": 4, "2-hop": 4, "3-hop": 4}
    assert not math.isnan(env.reset(seed=1)[1]["progress"])
