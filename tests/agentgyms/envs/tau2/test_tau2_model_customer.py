"""A model as the customer: its prompt, its stop words, snapshots, faults, and servers."""

import json
import math
import threading

import chat_server as faults
import gymnasium as gym
import pytest
from chat_server import ChatServer

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadOption, DataMissing, ModelUnavailable, PromptTooLong
from agentgyms.envs.tau2.env import Tau2Env
from agentgyms.envs.tau2.official.conversation import CLOSE, MORE
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app
from tests.agentgyms.envs.tau2 import small_official
from tests.agentgyms.envs.tau2.playing_tau2 import model
from tests.agentgyms.envs.tau2.small_official import CANCEL, GUIDELINES, LOOK, SCENARIO

ENV_ID = "agentgyms/Tau2-v0"
HELLO = "Hi! How can I help you today?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(small_official.write(tmp_path_factory.mktemp("data")))


def talk(messages):
    """Answer as a customer: with the number of the turn, until there is nothing else."""
    is_done = "anything else" in messages[-1]["content"]
    return "No.\n###STOP### " if is_done else f"Cancel #W1, please ({len(messages) // 2})."


def make(server, folder, **changes):
    return Tau2Env(
        domain="retail", split="base", data_path=folder, customer=model(server, **changes)
    )


def call(name, arguments):
    return f"{name} {json.dumps(arguments)}"


def begin(env, task_id="0", seed=0):
    return env.reset(seed=seed, options={"task_id": task_id})


def test_it_keeps_the_contract_here_and_behind_a_server(folder, tmp_path):
    with ChatServer(talk) as server:
        asked = model(server, cache=True, cache_path=str(tmp_path / "answers.sqlite"))
        data = {"domain": "retail", "split": "base", "data_path": folder, "customer": asked}
        make = lambda: gym.make(ENV_ID, oracle=True, **data)
        testing.check_env(make)
        testing.check_determinism(make)
        testing.check_snapshot(make)
        testing.check_forks(make)
        testing.check_group(lambda: agentgyms.make_group(ENV_ID, 3, **data))
        with Server(create_app(ENV_ID, token="", **data)) as served:
            remote = lambda: RemoteEnv(ENV_ID, url=served.url)
            testing.check_remote_parity(lambda: gym.make(ENV_ID, **data), remote)
            env = remote()
            assert env.parties == {"partner": "scripted"}  # the model's name
            begin(env)
            assert server.url.encode() not in env.snapshot()
            env.close()
            with pytest.raises(BadOption, match="'customer' is the server's to set"):
                RemoteEnv(ENV_ID, url=served.url, customer=asked)


def test_a_conversation_and_what_the_model_is_asked(folder):
    with ChatServer(talk) as server:
        env = make(server, folder, price_prompt=2.0, price_response=8.0)
        assert (env.parties, env.blocking) == ({"partner": "scripted"}, True)
        seen, info = begin(env)
        assert seen == (f"# Policy\nBe kind.\n\nYou: {HELLO}\n\nCustomer: Cancel #W1, please (1).")
        assert info["metrics"]["model_calls"] == 1.0
        assert env.step("say:  Who are you? ")[0] == "Customer: Cancel #W1, please (2)."
        env.step(call(*LOOK))
        env.step(call(*CANCEL))
        env.step("say: You get 1,020.5 on your gift card.")
        seen, reward, terminated, _, info = env.step(CLOSE)
        env.close()
    assert (seen, reward, terminated) == ("Customer: No.\n###STOP### ", 1.0, True)
    assert (info["score"], info["admissible_actions"]) == (1.0, [])
    bodies = [asked.body for asked in server.requests]
    system = f"{GUIDELINES}\n\n<scenario>\n{SCENARIO}\n</scenario>"
    said = [
        ("system", system),
        ("user", HELLO),
        ("assistant", "Cancel #W1, please (1)."),
        ("user", "Who are you?"),
        ("assistant", "Cancel #W1, please (2)."),
        ("user", "You get 1,020.5 on your gift card."),
        ("assistant", "Cancel #W1, please (3)."),
        ("user", CLOSE.removeprefix("say: ")),
    ]
    messages = [{"role": role, "content": words} for role, words in said]
    assert [body["messages"] for body in bodies] == [messages[:n] for n in (2, 4, 6, 8)]
    assert {body["temperature"] for body in bodies} == {0.0}
    assert len({body["seed"] for body in bodies}) == 1, "as the benchmark's user"
    metrics = info["metrics"]
    words = metrics["model_prompt_tokens"], metrics["model_response_tokens"]
    assert metrics["model_calls"] == 4.0
    assert metrics["cost"] == pytest.approx((2 * words[0] + 8 * words[1]) / 1e6)


@pytest.mark.parametrize("word", ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"])
def test_each_stop_word_ends_wherever_it_stands(folder, word):
    answers = iter(["Hello.", "STOP ### stop", f"So.{word}Bye.", f"{word} at once"])
    with ChatServer(lambda _: next(answers)) as server:
        env = make(server, folder)
        begin(env, "1")
        assert env.step("say: Well?")[1:3] == (0.0, False)
        assert env.step("say: Well?")[:3] == (f"Customer: So.{word}Bye.", 1.0, True)
        _, info = begin(env, "1")
        assert info["admissible_actions"] == []
        _, reward, terminated, _, info = env.step(call(*CANCEL))
        assert (reward, terminated, info["feedback"]) == (1.0, True, "no_effect")
        assert info["feedback_text"] == "the conversation was over before it"
        assert len(server.requests) == 4
        env.close()


def test_forks_replays_and_snapshots_ask_the_cache_or_nobody(folder, tmp_path):
    lines = iter(range(100))
    with ChatServer(lambda _: f"Line {next(lines)}") as server:
        asked = {"cache": True, "cache_path": str(tmp_path / "answers.sqlite")}
        env = make(server, folder, **asked)
        begin(env)
        env.step("say: Hello.")
        twin, other = env.fork(), make(server, folder, **asked)
        count = len(server.requests)
        other.restore(env.snapshot())
        assert len(server.requests) == count == 2
        results = [testing.playing.plain(it.step(MORE)) for it in (env, twin, other)]
        assert results[0] == results[1] == results[2]
        assert len(server.requests) == 3, "the first asks, the others read its answer"
        begin(other)
        again = [other.step(action) for action in ("say: Hello.", MORE)]
        assert testing.playing.plain(again[-1]) == results[0]
        assert len(server.requests) == 3
        begin(other, seed=1)
        assert len(server.requests) == 4, "another seed is another conversation"
        for it in (env, twin, other):
            it.close()


def test_states_are_apart_when_something_else_was_said(folder):
    with ChatServer(talk) as server:
        env = make(server, folder)

        def key(*actions, seed=0):
            begin(env, seed=seed)
            for action in actions:
                info = env.step(action)[4]
            return info["state_key"]

        one = key("say: Hello.", call(*LOOK))
        assert key(call(*LOOK), "say: Hello.") == one
        assert key("say: Hello!", call(*LOOK)) != one
        assert key("say: Hello.", call(*LOOK), seed=1) != one
        env.close()


@pytest.mark.parametrize(
    "change",
    [
        {"said": []},
        {"said": ["Hello.", "Hello."]},
        {"said": [1]},
        {"seed": -1},
        {"seed": 1.0},
        {"unheard": 0},
        {"spent": [1, 1, -1, None]},
        {"spent": [1, 1]},
    ],
)
def test_a_state_that_no_conversation_has_is_refused(folder, change):
    with ChatServer(talk) as server:
        env = make(server, folder)
        begin(env)
        saved, task = env.save(), env.tasks.find("0")
        env.load(task, saved)
        with pytest.raises((LookupError, TypeError, ValueError)):
            env.load(task, saved | change)
        assert env.save() == saved
        with pytest.raises(ValueError, match="of another customer"):
            Tau2Env(domain="retail", split="base", data_path=folder).load(task, saved)
        env.close()


@pytest.mark.parametrize(
    "fault",
    [faults.status(500), faults.hang_up(), faults.empty()],
    ids=["500", "hung up", "no text"],
)
def test_a_model_that_is_lost_costs_nothing_but_the_wait(folder, tmp_path, fault):
    down = threading.Event()
    down.set()
    asks = lambda number, body: fault if down.is_set() else None
    with ChatServer(talk, asks) as server:
        env = make(server, folder, cache=True, cache_path=str(tmp_path / "a"))
        with pytest.raises(ModelUnavailable):
            begin(env)
        down.clear()
        begin(env)
        env.step(call(*LOOK))
        before = env.snapshot()
        down.set()
        for _ in range(2):
            with pytest.raises(ModelUnavailable):
                env.step("say: Are you there?")
            assert env.snapshot() == before
        down.clear()
        seen, *_, info = env.step("say: Are you there?")
        assert (seen, info["turn"]) == ("Customer: Cancel #W1, please (2).", 2)
        env.close()


def test_an_interrupt_ends_the_wait(folder):
    asked = threading.Event()

    def wait(handler):
        asked.set()
        faults.stall()(handler)

    with ChatServer(talk, lambda number, body: wait if number == 1 else None) as server:
        env = make(server, folder)
        begin(env)
        waiting = threading.Thread(target=lambda: (asked.wait(20), env.interrupt()))
        waiting.start()
        with pytest.raises(ModelUnavailable, match="cancelled"):
            env.step("say: Hello.")
        waiting.join()
        env.step("say: Hello.")
        env.close()


def test_a_conversation_too_long_for_the_model_is_unrated(folder):
    long = faults.status(400, "This model's maximum context length is 100 tokens.")
    with ChatServer(talk, lambda number, body: long if number in (0, 2) else None) as server:
        env = make(server, folder)
        with pytest.raises(PromptTooLong):
            begin(env)
        begin(env)
        _, reward, terminated, _, info = env.step("say: Hello.")
        assert (terminated, info["success"], info["admissible_actions"]) == (True, False, [])
        assert math.isnan(reward)
        assert math.isnan(info["score"])
        assert info["feedback_text"].startswith("unrated: the conversation has become too long")
        assert math.isnan(env.restore(env.snapshot())[1]["score"])
        env.close()


def test_the_expert_wins_with_a_model_too(folder):
    with ChatServer(talk) as server:
        env = make(server, folder)
        for task_id in env.tasks:
            begin(env, task_id)
            over = False
            while not over:
                _, reward, over, _, _ = env.step(env.expert_actions()["best"])
            assert reward == 1.0
        env.close()


def test_wrong_customers_are_named(folder, tmp_path):
    given = {"domain": "retail", "data_path": folder}
    with pytest.raises(BadOption, match="customer must be 'scripted', or a model: .*got 'gpt'"):
        Tau2Env(customer="gpt", **given)
    with pytest.raises(BadOption, match="customer has no url"):
        Tau2Env(customer={"name": "gpt"}, **given)
    with pytest.raises(BadOption, match="customer's retries must be an integer"):
        Tau2Env(customer={"name": "x", "url": "http://h/v1", "retries": -1}, **given)
    with pytest.raises(BadOption, match="the customer of the domain 'shop' is a program"):
        Tau2Env(customer="gpt@http://127.0.0.1:9/v1")
    assert "customer" not in Tau2Env(customer="scripted", **given).arguments
    without = small_official.write(tmp_path)
    (without / "tau2" / "user_simulator" / "simulation_guidelines.md").unlink()
    Tau2Env(domain="retail", data_path=without)
    with pytest.raises(DataMissing, match=r"simulation_guidelines\.md, which tells a model how"):
        Tau2Env(domain="retail", data_path=without, customer="gpt@http://127.0.0.1:9/v1")
