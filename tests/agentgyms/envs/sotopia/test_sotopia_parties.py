"""The environment with models as partner and judge, here and behind a server; they misbehave."""

import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import chat_server as faults
import gymnasium as gym
import pytest
from chat_server import ChatServer
from small_profiles import small_tables, write_json
from talking import SCORES, rated, saying

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadOption, ModelUnavailable
from agentgyms.envs.sotopia.env import SOTOPIAEnv
from agentgyms.recording import recorder
from agentgyms.remote import InProcessTransport, Patience, RemoteEnv, RemoteVectorEnv
from env_servers import create_app

ENV_ID = "agentgyms/SOTOPIA-v0"
TASK = "sample-0000-bargaining/0"
SECOND = "sample-0000-bargaining/1"
HELLO = saying("speak", "Hello!")
GOOD = json.dumps(rated(other=SCORES | {"goal": 3}))
PATIENCE = Patience(connect_s=2, read_s=20, attempts=2, pause_s=0.01, full_s=0, lost_s=0.5)

pytestmark = pytest.mark.usefixtures("short_pauses")


def both(partner=HELLO, judge=GOOD):
    """Return a server's answers: those of a judge to a judge's prompt, else a partner's."""

    def answer(messages):
        asks = "evaluate how well participants" in messages[0]["content"]
        said = judge if asks else partner
        return said() if callable(said) else said

    return answer


def model(server, **changes):
    return {
        "name": server.model,
        "url": server.url,
        "timeout_s": 5.0,
        "retries": 1,
        "cache": False,
        "price_prompt": 2.0,
        "price_response": 8.0,
        **changes,
    }


def make(server, task_id=TASK, **kwargs):
    asked = model(server)
    env = SOTOPIAEnv(split="sample", **{"partner": asked, "judge": asked} | kwargs)
    observation, info = env.reset(seed=3, options={"task_id": task_id})
    return env, observation, info


def remote(*, client=None, **kwargs):
    app = create_app(ENV_ID, **kwargs)
    transport = InProcessTransport({"http://server": app})
    return RemoteEnv(
        ENV_ID, url="http://server", transport=transport, patience=PATIENCE, **client or {}
    )


def test_an_episode_with_models():
    with ChatServer(both()) as server:
        env, *_ = make(server)
        assert env.parties == {"partner": "scripted", "judge": "scripted"}  # the model's name
        seen, *_ = env.step("speak: Good day.")
        assert 'said: "Hello!"' in seen
        _, reward, terminated, _, info = env.step("leave")
        env.close()
    metrics = info["metrics"]
    assert (terminated, reward, info["score"], info["success"]) == (True, 0.7, 0.7, True)
    assert {name: metrics[name] for name in SCORES} == SCORES
    assert (metrics["partner_goal"], metrics["rated"], metrics["model_calls"]) == (3.0, 1.0, 2.0)
    words = metrics["model_prompt_tokens"], metrics["model_response_tokens"]
    assert metrics["cost"] == pytest.approx((2 * words[0] + 8 * words[1]) / 1e6)
    assert metrics["cost"] > 0


@pytest.mark.parametrize(
    "fault",
    [faults.status(500), faults.stall(), faults.hang_up(), faults.cut_body()],
    ids=["500", "silence", "hung up", "cut"],
)
def test_a_partner_that_is_lost_costs_nothing_but_the_wait(fault):
    down = threading.Event()
    asks = lambda number, body: fault if down.is_set() else None
    with ChatServer(both(), asks) as server:
        env, *_ = make(server, partner=model(server, timeout_s=0.2, retries=0))
        env.step("speak: Good day.")
        before = env.snapshot()
        down.set()
        for _ in range(2):
            with pytest.raises(ModelUnavailable):
                env.step("speak: Are you there?")
            assert env.snapshot() == before
        down.clear()
        seen, *_, info = env.step("speak: Are you there?")
        assert (info["turn"], info["metrics"]["dialogue_turns"]) == (2, 4.0)
        assert 'said: "Hello!"' in seen
        env.close()


def test_an_interrupt_ends_the_wait_for_a_partner():
    asked = threading.Event()

    def wait(handler):
        asked.set()
        faults.stall()(handler)

    with ChatServer(both(), lambda number, body: wait if number == 0 else None) as server:
        env, *_ = make(server)
        waiting = threading.Thread(target=lambda: (asked.wait(20), env.interrupt()))
        waiting.start()
        with pytest.raises(ModelUnavailable, match="cancelled"):
            env.step("speak: Hello.")
        waiting.join()
        env.step("speak: Hello.")
        env.close()


def test_a_partner_that_is_lost_at_the_beginning():
    with ChatServer(both(), [faults.status(500)] * 2) as server:
        asked = model(server)
        env = SOTOPIAEnv(split="sample", partner=asked)
        with pytest.raises(ModelUnavailable):
            env.reset(seed=3, options={"task_id": SECOND})
        seen, info = env.reset(seed=3, options={"task_id": SECOND})
        assert "Turn #0: " in seen
        assert (info["metrics"]["dialogue_turns"], info["metrics"]["model_calls"]) == (1.0, 1.0)
        env.close()


def test_a_partner_that_leaves_at_once():
    with ChatServer(both(partner=saying("leave"))) as server:
        env, seen, info = make(server, SECOND)
        assert seen.endswith("left the conversation\n")
        assert info["metrics"]["rated"] == 0.0
        twin = env.fork()
        for it in (env, twin):
            _, reward, terminated, _, info = it.step("speak: Good day.")
            assert (terminated, reward, info["feedback"]) == (True, 0.3, "no_effect")
            assert info["feedback_text"] == "the conversation was over before it"
            assert info["metrics"]["dialogue_turns"] == 1.0
            it.restore(it.snapshot())
            it.close()


def test_a_partner_that_talks_nonsense_is_counted():
    with ChatServer(both(partner="???")) as server:
        env, *_ = make(server)
        seen, *_, info = env.step("speak: Good day.")
        env.close()
    assert seen.endswith("Turn #1: \n")
    assert (info["metrics"]["partner_malformed"], info["metrics"]["model_calls"]) == (1.0, 2.0)
    assert info["metrics"]["malformed_turns"] == 0.0


OVER = json.dumps(rated(SCORES | {"goal": 11}))
WRONG = [
    ("I think 8.", None, "cannot be used"),
    (OVER, None, "must be an integer from 0 to 10: 11"),
    (GOOD, faults.status(500), "gave no answer"),
    (GOOD, faults.hang_up(), "gave no answer"),
]


@pytest.mark.parametrize("place", ["here", "behind a server"])
@pytest.mark.parametrize(("said", "fault", "why"), WRONG)
def test_an_episode_that_nobody_rates_is_no_zero(said, fault, why, place, tmp_path):
    with ChatServer(both(judge=said), lambda number, body: fault) as server:
        kwargs = {"split": "sample", "judge": model(server)}
        env = SOTOPIAEnv(**kwargs) if place == "here" else remote(**kwargs)
        env.spec = gym.spec(ENV_ID)
        recorded = recorder.RecordEpisodes(env, tmp_path / "episode.jsonl")
        recorded.reset(seed=3, options={"task_id": TASK})
        _, reward, terminated, truncated, info = recorded.step("leave")
        assert (terminated, truncated, info["success"]) == (True, False, False)
        assert math.isnan(reward)
        assert math.isnan(info["score"])
        assert "goal" not in info["metrics"]
        assert info["metrics"]["rated"] == 0.0
        assert info["feedback"] == "ok"
        assert info["feedback_text"].startswith("unrated: ")
        assert why in info["feedback_text"]
        asked = len(server.requests)
        restored = env.restore(env.snapshot())[1]
        assert len(server.requests) == asked
        assert math.isnan(restored["score"])
        recorded.close()
        [kept] = recorder.read(tmp_path / "episode.jsonl")
        assert math.isnan(kept.turns[-1].reward)
        assert kept.header["parties"] == {"partner": "scripted-v1", "judge": server.model}
        if place == "here":
            with pytest.raises(
                BadOption, match="gives judge=.*which servers get your keys: give it yourself"
            ):
                recorder.replay(kept)
            assert recorder.replay(kept, judge=kwargs["judge"]) == 2


def test_after_a_snapshot_nobody_is_asked_again():
    with ChatServer(both()) as server:
        env, *_ = make(server, SECOND)
        env.step("speak: Good day.")
        twin, other = env.fork(), SOTOPIAEnv(**env.arguments)
        other.reset(seed=9, options={"task_id": TASK})
        asked = len(server.requests)
        assert other.restore(env.snapshot())[1]["state_key"] == env._episode.last.info["state_key"]
        assert len(server.requests) == asked
        results = [testing.playing.plain(it.step("leave")) for it in (env, twin, other)]
        assert results[0] == results[1] == results[2]
        for it in (env, twin, other):
            it.close()


def test_members_of_a_group_hear_one_opening():
    lines = iter(range(100))
    with ChatServer(both(partner=lambda: saying("speak", f"Line {next(lines)}"))) as server:
        kwargs = {"split": "sample", "partner": model(server)}
        with agentgyms.make_group(ENV_ID, 4, **kwargs) as group:
            seen, _ = group.reset(seed=1, options={"task_id": SECOND})
        assert len(server.requests) == 1
    assert all("Line 0" in text for text in seen)


def test_equal_members_ask_one_question_where_answers_are_kept(tmp_path):
    lines = iter(range(100))
    with ChatServer(both(partner=lambda: saying("speak", f"Line {next(lines)}"))) as server:
        asked = model(server, cache=True, cache_path=str(tmp_path / "answers.sqlite"))
        with agentgyms.make_group(ENV_ID, 4, split="sample", partner=asked) as group:
            group.reset(seed=1, options={"task_id": TASK})
            results = group.step(["speak: Good day.", "speak: Good   day.", "speak: Hey", "none"])
        assert len(server.requests) == 3
    first, second, *others = [result[0] for result in results]
    assert first == second
    assert all(other != first for other in others)


def test_members_of_a_group_wait_for_their_partners_at_once():
    gathered = threading.Barrier(3, timeout=10)

    def talk():
        gathered.wait()  # all are asked, or nobody is answered
        return HELLO

    with ChatServer(both(talk)) as server:
        asked = model(server, retries=0)
        with agentgyms.make_group(ENV_ID, 4, split="sample", partner=asked) as group:
            group.reset(seed=0, options={"task_id": TASK})
            *results, idle = group.step([*(f"speak: I am {i}." for i in range(3)), None])
    assert idle is None
    assert all(f"I am {i}." in result[0] for i, result in enumerate(results))


def test_official_scenarios_with_models(tmp_path, small_splits):
    write_json(small_tables(), tmp_path)
    with ChatServer(both()) as server:
        asked = model(server)
        env = SOTOPIAEnv(
            source="official", split="hard", data_path=tmp_path, partner=asked, judge=asked
        )
        _, info = env.reset(seed=0, options={"task_id": "c1/0"})
        assert (info["metrics"]["hard"], info["admissible_actions"][0]) == (1.0, "speak: <words>")
        env.step("speak: Good day.")
        _, reward, *_, info = env.step("leave")
        env.close()
    assert (reward, info["family"]) == (0.7, "normbank")


@pytest.mark.parametrize("kwargs", [{}, {"partner": "self"}, {"order": "simultaneous"}], ids=str)
def test_a_server_plays_as_the_environment_here_does(kwargs):
    testing.check_remote_parity(
        lambda: gym.make(ENV_ID, split="sample", **kwargs),
        lambda: remote(split="sample", client=kwargs),
    )


def test_defaults_that_a_server_spells_out_are_the_same():
    given = {"partner": "scripted", "judge": "programmatic", "source": "generated"}
    testing.check_remote_parity(
        lambda: gym.make(ENV_ID, split="sample"), lambda: remote(split="sample", **given)
    )


def test_a_server_tells_who_takes_part():
    with ChatServer(both()) as server:
        asked = model(server)
        there = remote(split="sample", partner=asked, judge=asked)
        assert there.parties == {"partner": server.model, "judge": server.model}
        chosen = remote(split="sample", partner=asked, client={"partner": "self"})
        assert chosen.parties == {"partner": "self", "judge": "programmatic-v1"}
        there.reset(seed=3, options={"task_id": TASK})
        there.step("speak: Good day.")
        assert there.step("leave")[1] == 0.7
        snapshot = there.snapshot()
        assert server.url.encode() not in snapshot
        here, *_ = make(server)
        assert here.restore(snapshot)[1]["score"] == 0.7


@pytest.mark.parametrize("name", ["partner", "judge"])
@pytest.mark.parametrize("value", ["x@http://127.0.0.1:9/v1", {"name": "x", "url": "http://h/v1"}])
def test_clients_cannot_send_a_server_anywhere(name, value):
    with pytest.raises(BadOption, match=f"'{name}' is the server's to set"):
        remote(client={name: value})


def test_a_partner_that_a_server_loses_is_waited_for_there():
    down, lines = threading.Event(), iter(range(100))
    asks = lambda number, body: faults.status(500) if down.is_set() else None
    with ChatServer(both(lambda: saying("speak", f"Line {next(lines)}")), asks) as server:
        there = remote(split="sample", partner=model(server))
        there.reset(seed=3, options={"task_id": TASK})
        there.step("speak: Good day.")
        down.set()
        for _ in range(2):
            with pytest.raises(ModelUnavailable):
                there.step("speak: Are you there?")
        down.clear()
        seen, *_, info = there.step("speak: Are you there?")
        assert (info["turn"], info["metrics"]["dialogue_turns"]) == (2, 4.0)
        assert 'said: "Line 1"' in seen, "the episode is not played again from its beginning"
        there.close()


def test_a_batch_waits_for_all_its_partners_at_once():
    gathered = threading.Barrier(4, timeout=10)

    def talk():
        gathered.wait()  # all are asked, or nobody is answered
        return HELLO

    with ChatServer(both(talk)) as server:
        app = create_app(ENV_ID, split="sample", partner=model(server, retries=0))
        transport = InProcessTransport({"http://server": app})
        many = RemoteVectorEnv(
            ENV_ID, 4, url="http://server", transport=transport, patience=PATIENCE
        )
        many.reset(seed=[0] * 4, options={"task_id": TASK})
        seen, *_ = many.step([f"speak: I am {i}." for i in range(4)])
        many.close()
    assert all(f"I am {i}." in seen[i] and "Hello!" in seen[i] for i in range(4))


def test_without_models_no_client_is_imported():
    program = (
        "import sys, gymnasium as gym, agentgyms\n"
        f"env = gym.make({ENV_ID!r}); env.reset(seed=0); env.step('leave')\n"
        "found = {'httpx2', 'agentgyms.models.sync_client', 'pydantic', 'sqlite3'}\n"
        "found &= set(sys.modules)\n"
        "assert not found, found\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.data
def test_the_benchmarks_own_scenarios_with_models():
    folder = Path(os.environ.get("AGENTGYMS_TEST_DATA", "/none"), "sotopia")
    if not folder.is_dir():
        pytest.skip("AGENTGYMS_TEST_DATA names no folder with sotopia/environments.json")
    with ChatServer(both()) as server:
        asked = model(server)
        env = SOTOPIAEnv(
            source="official", split="all", data_path=folder, partner=asked, judge=asked
        )
        for task_id in list(env.tasks)[::31]:
            seen, info = env.reset(seed=0, options={"task_id": task_id})
            assert " ".join(info["goal"].split()) in " ".join(seen.split())
            assert "<" not in info["goal"]
            second = task_id.endswith("/1")
            assert ('said: "Hello!"' in seen) == second
            over = False
            while not over:
                seen, reward, terminated, truncated, info = env.step("speak: And you?")
                over = terminated or truncated
            assert (terminated, info["metrics"]["dialogue_turns"]) == (False, 20.0)
            assert reward == (0.3 if second else 0.7)
        env.close()
