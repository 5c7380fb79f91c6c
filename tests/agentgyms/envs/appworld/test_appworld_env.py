"""What an episode tells: observations, feedback, figures, keys, ends."""

from __future__ import annotations

import gc
import math
import re

import pytest
from appworld_episodes import children, executor_of, play_expert, settled

import agentgyms
from agentgyms.core.errors import BadOption
from agentgyms.core.outcome import INFO_TYPES
from agentgyms.envs.appworld.env import AppWorldEnv
from agentgyms.envs.appworld.sandbox import code_check, executors
from agentgyms.envs.appworld.sources import scenario_of
from agentgyms.envs.appworld.world import Report

DONE = "apis.supervisor.complete_task()"


@pytest.fixture
def env():
    env = AppWorldEnv(split="sample", timeout_s=1)
    env.reset(seed=0)
    yield env
    env.close()


@pytest.mark.parametrize("split", ["train", "test_challenge"])
def test_the_expert_solves_scenarios_whole(split):
    env = AppWorldEnv(split=split)
    scenarios = {scenario_of(env.tasks[i]) for i in (0, -1)}  # `-m slow` has all
    solve(env, [task_id for task_id in env.tasks if scenario_of(task_id) in scenarios])


@pytest.mark.slow
@pytest.mark.parametrize("split", AppWorldEnv.splits)
def test_the_expert_solves_every_task(split):
    env = AppWorldEnv(split=split)
    solve(env, env.tasks)


def solve(env, ids):
    solved = {}
    for task_id in ids:
        _, start = env.reset(options={"task_id": task_id})
        assert 0 < start["score"] < 1
        *before, last = play_expert(env)
        assert all(reward == 0 and not info["success"] for _, reward, _, _, info in before)
        _, reward, terminated, _, info = last
        solved.setdefault(scenario_of(task_id), []).append(info["success"])
        assert (reward, terminated, info["score"], info["progress"]) == (1, True, 1, 1), task_id
        assert info["metrics"]["failed_turns"] == info["metrics"]["api_errors"] == 0
    assert all(len(tasks) == 3 and all(tasks) for tasks in solved.values())


def test_the_beginning():
    env = AppWorldEnv(split="dev")
    observation, info = env.reset(seed=7)
    task, supervisor, date = observation.split("\n")
    assert task == f"Task: {info['goal']}"
    assert re.fullmatch(r"Supervisor: \S+ .+, email \S+@\S+, phone \d+", supervisor)
    assert re.fullmatch(r"Date and time: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", date)
    assert info["family"] == f"difficulty-{info['metrics']['difficulty']:.0f}"
    assert info["admissible_actions"] == []
    assert not info["admissible_complete"]
    assert executor_of(env) is None, "an episode that only began holds a process"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1/0", "ZeroDivisionError: division by zero"),
        ("apis.purse.show_balance(access_token='x')", "Exception: Response status code is 401:"),
        ("apis.purse.show_balance()", "Exception: Response status code is 401:"),
        ("apis.supervisor.show_profile(x=1)", "Exception: Response status code is 422:"),
        ("apis.notebook.show_note(access_token='x', note_id=1)", "status code is 401"),
        ("apis.nope.x()", "Exception: No app named 'nope' found."),
        ("apis.purse.nope()", "Exception: No API named 'nope' found in the purse app."),
        ("apis.purse.login('a')", "TypeError: "),
        ("print(", "SyntaxError: '(' was never closed"),
        ("I will look at the notes first.", "SyntaxError: invalid syntax"),
        ("return 3", "SyntaxError: 'return' outside function"),
        ("import sys", "Usage of the following module is not allowed: sys."),
        ("while True: pass", "Exception: Execution timed out after 1 seconds."),
        ("input('?')", "Exception: input(..) is not allowed."),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("raise SystemExit", "Exception"),
    ],
)
def test_failed_code(env, code, text):
    observation, reward, terminated, truncated, info = env.step(code)
    assert observation.startswith("Execution failed. Traceback:\n")
    assert (reward, terminated, truncated) == (0, False, False)
    assert info["feedback"] == "failed"
    assert text in info["feedback_text"]
    assert "\n" not in info["feedback_text"]
    assert info["metrics"]["failed_turns"] == 1
    assert env.step("print('still here')")[0] == "still here\n"


def test_code_that_catches_an_error_is_ok(env):
    code = (
        "try:\n    apis.purse.show_balance(access_token='x')\nexcept Exception as e:\n    print(e)"
    )
    observation, *_, info = env.step(code)
    assert observation.startswith("Response status code is 401:\n{")
    assert (info["feedback"], info["feedback_text"]) == ("ok", "")
    assert (info["metrics"]["api_errors"], info["metrics"]["failed_turns"]) == (1, 0)


@pytest.mark.parametrize("action", ["", " \n", "```python\n```", "x" * 9000])
def test_malformed_actions_execute_nothing(env, action):
    env.step("x = 1")
    _, *_, before = env.step("print(x)")
    observation, *_, info = env.step(action)
    assert observation.startswith("No code available to execute.")
    assert (info["feedback"], info["action_key"]) == ("malformed", "<invalid>")
    assert info["feedback_text"] in observation
    assert info["state_key"] == before["state_key"]
    assert (info["metrics"]["malformed_turns"], info["turn"]) == (1, 3)


def test_variables_stay_and_expressions_are_not_shown(env):
    assert env.step("x = {'a': 1}")[0] == "Execution successful."
    assert env.step("x")[0] == "Execution successful."
    assert env.step("```python\nprint(x)\n```")[0] == '{"a": 1}\n'


def test_long_outputs_are_cut():
    env = AppWorldEnv(split="sample", max_output=300)
    env.reset(seed=0)
    observation = env.step("print('a' * 999 + 'b' * 1000)")[0]
    assert len(observation) == 300
    assert re.fullmatch(
        r"a+\n\[\.\.\. \d+ of 2000 characters left out here \.\.\.\]\nb+\n", observation
    )
    error = env.step("raise ValueError('c' * 3000 + 'the end')")
    assert error[0].endswith("the end")
    assert error[4]["feedback_text"].startswith("ValueError: ccc")
    assert "of 5000001 characters" in env.step("print('a' * 5_000_000)")[0]
    env.close()


def test_figures(env):
    env.step("apis.api_docs.show_app_descriptions()\napis.api_docs.search_api_docs(query='note')")
    env.step("apis.supervisor.show_profile()")
    *_, info = env.step("apis.supervisor.show_profile(x=1)")
    figures = info["metrics"]
    assert (figures["api_calls"], figures["doc_lookups"], figures["api_errors"]) == (4, 2, 1)
    assert figures["failed_turns"] == 1
    assert figures["tests"] > figures["tests_passed"] > 0
    assert info["score"] == figures["tests_passed"] / figures["tests"]
    assert info["progress"] == figures["score_over_no_op"] == 0
    assert all(type(value) is float for value in figures.values())


def test_too_many_calls_end_the_turn():
    env = AppWorldEnv(split="sample", max_api_calls=5)
    env.reset(seed=0)
    code = "for _ in range(9): apis.supervisor.show_profile()"
    for turn in (1, 2):
        *_, info = env.step(code)
        assert "Number of requests exceeded the limit of 5" in info["feedback_text"]
        assert info["metrics"]["api_calls"] == 5 * turn
    env.close()


def keys_after(codes, **kwargs):
    env = AppWorldEnv(split="sample", **kwargs)
    _, info = env.reset(seed=0)
    keys = [info["state_key"], *(env.step(code)[4]["state_key"] for code in codes)]
    env.close()
    return keys


LOGIN = (
    "p = {a['account_name']: a['password'] for a in apis.supervisor.show_account_passwords()}\n"
    "email = apis.supervisor.show_profile()['email']\n"
    "t = apis.notebook.login(username=email, password=p['notebook'])['access_token']"
)
NOTE = "apis.notebook.create_note(access_token=t, title='x', content='y')"


def test_the_state_key_of_code_tells_variables_apart():
    start, one, two, three = keys_after(["x = 1", "x = = 2", "y = 1"])
    assert one == two
    assert len({start, one, three}) == 3
    assert keys_after(["y = 1"])[1] not in (start, one, three)
    assert keys_after(["```py\nx = 1\n```"])[1] == one


def test_the_state_key_of_the_database_tells_records_apart():
    kwargs = {"state": "database"}
    start, logged_in, noted, _ = keys = keys_after([LOGIN, NOTE, NOTE], **kwargs)
    assert start == logged_in != noted
    assert len(set(keys)) == 3
    other_words = keys_after([f"{LOGIN}\nfor _ in range(1):\n    {NOTE}"], **kwargs)
    assert other_words == [start, noted]


def test_the_action_key_is_the_code_in_one_layout(env):
    one = env.step("```python\nprint( 'a' ) # b\n```")[4]["action_key"]
    assert one == env.step("print('a')")[4]["action_key"] == "print('a')"


def test_completing_ends_the_episode_after_the_code(env):
    code = f"{DONE}\nprint(3)\n{DONE[:-1]}answer='7')"
    observation, reward, terminated, truncated, info = env.step(code)
    assert (observation, reward, terminated, truncated) == ("3\n", 0, True, False)
    assert not info["success"]
    assert executor_of(env) is None


def test_giving_up_ends_the_episode_too(env):
    results = env.step("apis.supervisor.complete_task(status='fail')")
    assert results[1:4] == (0, True, False)
    assert not results[4]["success"]


def test_code_that_completes_and_fails_ends_the_episode(env):
    _, _, terminated, _, info = env.step(f"{DONE}\n1/0")
    assert terminated
    assert info["feedback"] == "failed"


def test_the_last_turn_is_scored():
    env = AppWorldEnv(split="sample", score="end", max_turns=3)
    _, info = env.reset(seed=0)
    seen = [info] + [env.step(code)[4] for code in ("1", "import sys")]
    for info in seen:
        assert info["score"] == 0
        assert math.isnan(info["progress"])
        assert "tests" not in info["metrics"]
    _, reward, terminated, truncated, info = env.step("")
    assert (reward, terminated, truncated) == (0, False, True)
    assert 0 < info["score"] < 1
    assert info["progress"] == 0
    assert executor_of(env) is None


def test_what_is_done_by_the_last_turn_counts():
    played = AppWorldEnv(split="train", scenarios=["deletenote"])
    played.reset(seed=0)
    turns = len(play_expert(played))
    env = AppWorldEnv(split="train", scenarios=["deletenote"], max_turns=turns - 1)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = play_expert(env)[-1]
    assert (terminated, truncated) == (False, True)
    assert (reward, info["success"]) == (float(info["success"]), info["score"] == 1)


def test_the_expert_goes_on_where_it_was_left(env):
    blocks = []
    while True:
        blocks.append(env.expert_actions()["best"])
        env.step("print('something else')")
        assert env.expert_actions()["best"] == blocks[-1]
        *_, terminated, _, info = env.step(f"```python\n{blocks[-1]}\n```")
        if terminated:
            break
    assert info["success"]
    assert len(set(blocks)) == len(blocks)
    assert agentgyms.expert(env)() == blocks[-1]


def test_tasks_can_be_chosen():
    env = AppWorldEnv(difficulty=2)
    assert set(env.tasks.families()) == {"difficulty-2"}
    template = env.tasks[0].partition("-")[0]
    chosen = AppWorldEnv(scenarios=[template, template])
    assert {i.partition("-")[0] for i in chosen.tasks} == {template}
    assert len(chosen.tasks) < len(AppWorldEnv().tasks)
    assert chosen.arguments == {"scenarios": [template]}
    assert len(AppWorldEnv(scenarios=[scenario_of(env.tasks[0])]).tasks) == 3
    sample = AppWorldEnv(split="sample").tasks
    assert set(sample.families().values()) == {6}
    assert set(sample) < set(AppWorldEnv().tasks)
    assert len(AppWorldEnv(split="sample", difficulty=1).tasks) == 6
    assert len(AppWorldEnv(split="sample", difficulty=[1, 3]).tasks) == 12


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"engine": "real"}, "mini, appworld"),
        ({"source": "web"}, "generated, official"),
        ({"source": "official"}, "engine='appworld'"),
        ({"data_path": "/x"}, "data_path is for"),
        ({"data_path": 3}, "must be a path"),
        ({"difficulty": 4}, "1, 2, 3 or None"),
        ({"difficulty": True}, "1, 2, 3 or None"),
        ({"difficulty": []}, "1, 2, 3 or None"),
        ({"difficulty": [1, 4]}, "1, 2, 3 or None"),
        ({"scenarios": "countnotes"}, "must be a list"),
        ({"scenarios": []}, "must be a list"),
        ({"scenarios": [""]}, "must be a list"),
        ({"timeout_s": 0}, "0.1 to 600"),
        ({"timeout_s": True}, "0.1 to 600"),
        ({"timeout_s": math.nan}, "0.1 to 600"),
        ({"max_api_calls": 0}, "1 to 100000"),
        ({"max_output": 16385}, "200 to 16384"),
        ({"max_output": 199}, "200 to 16384"),
        ({"score": "now"}, "turn, end or None"),
        ({"state": None}, "code, database, got None"),
        ({"split": "valid"}, "test_challenge"),
    ],
)
def test_wrong_arguments_are_refused(kwargs, match):
    with pytest.raises(BadOption if "split" not in kwargs else ValueError, match=match):
        AppWorldEnv(**kwargs)


def test_wrong_scenarios_are_refused_with_an_example():
    with pytest.raises(
        BadOption, match=r"'nope', which matches no scenario of split 'dev'.*such as"
    ):
        _ = AppWorldEnv(split="dev", scenarios=["nope"]).tasks


def test_processes_go_with_their_environment():
    executors.fork_server("mini").warm()
    before = len(children())
    env = AppWorldEnv(split="sample")
    env.reset(seed=0)
    env.step("x = 1")
    assert len(children()) == before + 1
    env.reset(seed=1)
    assert settled(before) == before
    env.step("x = 1")
    env.close()
    assert settled(before) == before
    env.reset(seed=0)
    env.step("x = 1")
    del env
    gc.collect()
    assert settled(before) == before


def test_every_info_has_the_contracts_keys(env):
    assert set(env.step("1")[4]) == set(INFO_TYPES)


PRINTS_ALL = """
import gc, os, sys
frame, seen = sys._getframe(), [repr(dict(os.environ)), repr(sys.argv), repr(globals())]
while frame:
    seen, frame = [*seen, repr(frame.f_locals), repr(frame.f_code.co_consts)], frame.f_back
kinds = (str, bytes, dict, list, tuple)
seen += [repr(o) for o in gc.get_objects() if type(o) in kinds and len(o) < 500]
print(len(seen) > 100, sum("".join(["can", "ary"]) in text for text in seen))
"""
"""Code that looks through its whole process for a word that it does not hold itself."""


def test_code_that_prints_all_that_it_reaches_finds_no_atoms(monkeypatch):
    monkeypatch.setattr(code_check, "refusal", lambda code: None)
    monkeypatch.setattr(Report, "atoms", property(lambda report: {"canary": report.success}))
    env = AppWorldEnv(split="sample", score="turn", max_turns=4)
    env.reset(seed=0)
    for code in ("print(dir(), globals())", PRINTS_ALL, PRINTS_ALL):
        observation, *_, info = env.step(code)
        assert info["atoms"] == {"canary": False}
        assert "canary" not in observation + info["feedback_text"]
    assert observation.strip() == "True 0"
    env.close()
