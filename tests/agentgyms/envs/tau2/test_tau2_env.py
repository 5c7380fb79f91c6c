"""The generated shop: contract, conversations, rewards, state keys, snapshots."""

import gymnasium as gym
import pytest

import agentgyms
from agentgyms import testing
from agentgyms.core import keys
from agentgyms.core.errors import BadOption, BadSnapshot, UnknownSplit
from agentgyms.core.outcome import MAX_ACTION
from agentgyms.core.tools import ToolCall
from agentgyms.envs.tau2.env import Tau2Env
from agentgyms.envs.tau2.shop import service, tasks
from agentgyms.envs.tau2.shop.tasks import shop_task
from agentgyms.remote import RemoteEnv
from env_servers import Server, create_app

ENV_ID = "agentgyms/Tau2-v0"


def task_id(kind, reason="", *, agrees=True):
    """Return the first task of train with one request of this kind, reason and answer."""
    return next(
        task.task_id
        for task in tasks.task_list("train")
        if len(shop_task(task.task_id).customer.requests) == 1
        and task.family == kind
        and shop_task(task.task_id).reasons == (reason,)
        and shop_task(task.task_id).customer.requests[0].agrees == agrees
    )


def started(name, **kwargs):
    env = Tau2Env(**kwargs)
    seen, info = env.reset(seed=0, options={"task_id": name})
    return env, seen, info


def play(env, *actions):
    for action in actions:
        step = env.step(action)
    return step


def request_of(env):
    return env._game.shop.customer.requests[0]


def test_it_keeps_the_contract():
    maker = lambda: gym.make(ENV_ID, split="sample", oracle=True)
    testing.check_env(maker)
    testing.check_determinism(maker)
    testing.check_snapshot(maker)
    testing.check_forks(maker)
    testing.check_group(lambda: agentgyms.make_group(ENV_ID, 4))
    testing.check_vector(ENV_ID, num_envs=3, split="valid")


def test_on_a_server_it_is_the_same():
    with Server(create_app(ENV_ID, token="")) as server:
        testing.check_remote_parity(
            lambda: gym.make(ENV_ID), lambda: RemoteEnv(ENV_ID, url=server.url)
        )


def test_a_return_from_the_first_word_to_the_last():
    env, seen, info = started(task_id("return"))
    request, order = request_of(env), env._game.shop.database["orders"][request_of(env).order]
    assert seen.startswith("Policy of the shop:")
    said = f"Customer: Hello, my name is {order['name']}. I want to return the {request.item}"
    assert f"{said} of order {request.order}." in seen
    assert (info["progress"], info["score"]) == (0.0, 0.0)
    seen, *_ = env.step(f"order {request.order}")
    assert f'"paid_with": "{order["paid_with"]}"' in seen
    assert env.step("say: Shall I do it?")[0] == "Customer: Yes, please."
    seen, *_, info = env.step(f"return {request.item} of {request.order} to {order['paid_with']}")
    assert (seen, info["progress"], info["metrics"]["writes"]) == (
        "The system has done it.",
        0.5,
        1,
    )
    assert env.step("say: It is done.")[0] == "Customer: Good. How much do I get back?"
    price = order["items"][request.item]["price"]
    seen, reward, terminated, _, info = env.step(f"say: You get {price} dollars back.")
    assert (seen, reward, terminated) == ("Customer: Thank you. Goodbye.", 1.0, True)
    assert (info["success"], info["progress"], info["admissible_actions"]) == (True, 1.0, [])


def test_a_refund_to_another_place_is_a_breach_that_the_database_tells():
    env, *_ = started(task_id("return"))
    request = request_of(env)
    paid = env._game.shop.database["orders"][request.order]["paid_with"]
    other = {"card": "voucher", "voucher": "card"}[paid]
    play(env, f"order {request.order}", "say: May I?")
    *_, info = env.step(f"return {request.item} of {request.order} to {other}")
    assert (info["metrics"]["breaches"], info["progress"]) == (1.0, 0.0)
    assert info["atoms"]["nothing else"] is False
    price = env._game.shop.database["orders"][request.order]["items"][request.item]["price"]
    _, reward, terminated, _, info = play(env, "say: Done.", f"say: It is {price}.")
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    assert info["metrics"]["facts_told"] == 1.0


@pytest.mark.parametrize("obeys", [False, True])
def test_who_does_what_is_forbidden_loses(obeys):
    env, *_ = started(task_id("cancel", "shipped"))
    request = request_of(env)
    play(env, f"order {request.order}")
    if obeys:
        play(env, "say: Shall I do it?", f"cancel {request.order}")
    seen, *_ = env.step("say: I am sorry, that is not possible.")
    assert seen == "Customer: Why is that?"
    _, reward, terminated, _, info = env.step("say: The order is shipped already.")
    assert (reward, terminated) == (float(not obeys), True)
    assert info["metrics"]["breaches"] == float(obeys)


def test_who_does_not_ask_changes_what_the_customer_takes_back():
    name = task_id("cancel", agrees=False)
    env, *_ = started(name)
    request = request_of(env)
    _, *_, info = play(env, f"order {request.order}", f"cancel {request.order}")
    assert info["metrics"]["breaches"] == 1.0
    twin, *_ = started(name)
    play(twin, f"order {request.order}")
    seen, *_ = twin.step("say: Shall I do it?")
    assert seen == "Customer: No, leave it. But what did I pay for the order?"
    items = twin._game.shop.database["orders"][request.order]["items"].values()
    _, reward, *_ = twin.step(f"say: {sum(item['price'] for item in items)}")
    assert reward == 1.0


@pytest.mark.parametrize(
    ("words", "reward"),
    [
        ("It is shipped.", 1.0),
        ("IT IS SHIPPED", 1.0),
        ("It is pending, shipped, delivered or cancelled.", 0.0),
        ("It is not pending any more, it is shipped.", 0.0),
        ("It is final sale.", 0.0),
        ("The policy says so.", 0.0),
    ],
)
def test_one_reason_and_no_other_is_a_reason(words, reward):
    env, *_ = started(task_id("cancel", "shipped"))
    play(env, "say: Sorry.")
    assert env.step(f"say: {words}")[1] == reward


def test_an_action_that_is_none_or_cannot_be_done_takes_a_turn():
    env, _, before = started(task_id("cancel"))
    order = request_of(env).order
    for action, feedback, told in (
        ("hello", "malformed", "expected one of say: <words>"),
        ("say:  ", "malformed", "expected one of"),
        ("say: " + "x" * MAX_ACTION, "malformed", "expected one of"),
        ("order O99", "failed", "there is no order O99"),
        ("product boat", "failed", "there is no product boat"),
        (f"cancel {order}", "failed", f"open order {order} first"),
        ("say: Good day!", "no_effect", "nothing changed"),
    ):
        seen, reward, terminated, _, info = env.step(action)
        assert (info["feedback"], reward, terminated) == (feedback, 0.0, False)
        assert told in info["feedback_text"]
        assert info["state_key"] == before["state_key"]
        assert (info["action_key"] == keys.INVALID_ACTION) == (feedback == "malformed")
        assert (info["feedback_text"] in seen) == (feedback != "no_effect")


def test_states_are_equal_when_the_same_is_known_and_done():
    name = task_id("exchange")
    env, _, first = started(name)
    twin, _, other = started(name)
    order, item = request_of(env).order, request_of(env).item
    assert first["state_key"] == other["state_key"]
    *_, ahead = play(env, f"order {order}", f"product {item}", "say: Shall I do it?")
    *_, behind = play(twin, f"product {item}", f"order {order}", "say: Is that so?")
    assert ahead["state_key"] != behind["state_key"]
    *_, behind = twin.step("say: do you want that?")
    assert ahead["state_key"] == behind["state_key"]
    *_, told = twin.step("say: I do not know.")
    assert told["state_key"] != behind["state_key"]
    assert started(task_id("return"))[2]["state_key"] != first["state_key"]


def test_a_fork_goes_its_own_way():
    env, *_ = started(task_id("cancel"))
    order = request_of(env).order
    play(env, f"order {order}", "say: Shall I do it?")
    twin = env.fork()
    kept = env.snapshot()
    *_, info = twin.step(f"cancel {order}")
    assert info["progress"] == 0.5
    assert env._game._state.database["orders"][order]["status"] == "pending"
    observation, again = twin.restore(kept)
    assert (observation, again["progress"]) == ("Customer: Yes, please.", 0.0)
    assert twin.step(f"cancel {order}")[0::4] == env.step(f"cancel {order}")[0::4]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state | {"opened": ["O99"]},
        lambda state: state | {"opened": state["opened"] * 2},
        lambda state: state | {"opened": [3]},
        lambda state: state | {"writes": [["burn", *state["writes"][0][1:]]]},
        lambda state: state | {"writes": state["writes"] * 2},
        lambda state: state | {"customer": [0, "asleep", []]},
        lambda state: state | {"customer": [0, "over", []]},
        lambda state: state | {"customer": [1, "open", [True]]},
        lambda state: state | {"customer": [0, "open", [True]]},
        lambda state: state | {"customer": [True, "over", [True]]},
        lambda state: state | {"customer": [1, "over", [1]]},
        lambda state: {},
    ],
)
def test_a_state_that_no_conversation_has_is_refused(change):
    env, *_ = started(task_id("cancel"))
    order = request_of(env).order
    play(env, f"order {order}", f"cancel {order}")
    saved = env.save()
    env.load(env._game.shop.task, saved)
    with pytest.raises((LookupError, TypeError, ValueError)):
        env.load(env._game.shop.task, change(saved))
    assert env.save() == saved
    with pytest.raises(BadSnapshot):
        env.restore(env.snapshot()[:-9])


def test_every_action_of_the_expert_is_a_call():
    env = Tau2Env(split="valid")
    for name in env.tasks:
        env.reset(seed=0, options={"task_id": name})
        over = False
        while not over:
            action = env.expert_actions()["best"]
            call = env.tools.call(action)
            assert call is not None
            assert env.tools.action(call) == action
            assert action in env._game._outcome("").admissible or action.startswith("say: ")
            over = env.step(action)[2]
    assert env.expert_actions() == {"best": ""}
    call = ToolCall("return_item", {"item": "mug", "order": "O1", "payment": "card"})
    assert env.tools.action(call) == "return mug of O1 to card"


def test_the_turn_limit_truncates():
    env, *_ = started(task_id("cancel"), max_turns=2)
    *_, terminated, truncated, info = play(env, "say: Hello", "say: Hello")
    assert (terminated, truncated, info["success"]) == (False, True, False)


def test_wrong_arguments_are_named():
    with pytest.raises(BadOption, match="domain must be one of 'shop', .*-workflow', got 3"):
        Tau2Env(domain=3)
    with pytest.raises(BadOption, match="families must be a list of some of cancel"):
        Tau2Env(families=["steal"])
    with pytest.raises(UnknownSplit, match="expected one of train, valid"):
        Tau2Env(split="all")
    env = Tau2Env(families=["several", "cancel", "cancel"], split="valid")
    assert env.tasks.families() == {"cancel": 15, "several": 15}
    assert env.arguments["families"] == ["cancel", "several"]
    assert (env.data_source, dict(env.parties)) == ("generated", {"partner": "scripted-v1"})
    assert service.FORMS[0] == "say: <words>"
