"""The shop's tasks: the expert wins them all, and who ignores the rules wins few."""

import random
from collections import Counter

import pytest

from agentgyms.envs.tau2.env import Tau2Env
from agentgyms.envs.tau2.shop import customer, policy, service, tasks
from agentgyms.envs.tau2.shop.database import Refused

CHANCE = random.Random(0)


def wins(split, act):
    """Return the numbers of tasks won and played, and the most turns."""
    env, won, most = Tau2Env(split=split), 0, 0
    for name in env.tasks:
        _, info = env.reset(seed=0, options={"task_id": name})
        over = False
        while not over:
            *_, terminated, truncated, info = env.step(act(env, info))
            over = terminated or truncated
        won, most = won + info["success"], max(most, info["turn"])
    return won, len(env.tasks), most


def obedient(env, info):
    """Do what the customer says at once, tell what is asked, and never refuse."""
    mood, shop = env._game._state.mood, env._game.shop
    request = shop.customer.requests[mood.request]
    if request.order not in env._game._state.opened:
        return f"order {request.order}"
    if mood.stage == customer.AMOUNT:
        return f"say: It is {policy.amount(shop.database, request)}."
    write = policy.write_for(shop.database, request)
    try:
        service.apply(env._game._state, write)
    except Refused:
        return service.DONE
    return service.text_of(write)


def refusing(env, info):
    """Refuse everything, with one reason for all."""
    return service.REFUSE if env._game._state.mood.stage != customer.WHY else "say: It is shipped."


def by_chance(env, info):
    return CHANCE.choice(info["admissible_actions"])


def test_the_expert_goes_on_after_any_mistake_by_listed_actions():
    env, chance = Tau2Env(split="train"), random.Random(1)
    for name in env.tasks:
        _, info = env.reset(seed=0, options={"task_id": name})
        over = False
        while not over:
            best = env.expert_actions()["best"]
            assert best in info["admissible_actions"]
            action = best if chance.random() < 0.5 else chance.choice(info["admissible_actions"])
            *_, terminated, truncated, info = env.step(action)
            over = terminated or truncated


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_the_expert_wins_all(split):
    won, count, most = wins(split, lambda env, info: env.expert_actions()["best"])
    assert (won, count) == (tasks.COUNTS[split], tasks.COUNTS[split])
    assert most <= 10


@pytest.mark.parametrize(("act", "most"), [(obedient, 0.27), (refusing, 0.15), (by_chance, 0.07)])
def test_who_ignores_the_rules_wins_few(act, most):
    won, count, _ = wins("test", act)
    assert won / count < most


def test_no_two_tasks_are_equal_and_every_rule_is_met():
    made = [tasks.shop_task(t.task_id) for split in tasks.COUNTS for t in tasks.task_list(split)]
    contents = {repr(task[1:]) for task in made}
    assert len(contents) == 420  # those of `sample` are of `train`
    reasons = Counter(
        "days" if reason.isdecimal() else reason for task in made for reason in task.reasons
    )
    known = {"", "another name", "final sale", "out of stock", "days"}
    assert set(reasons) == known | {"pending", "shipped", "delivered", "cancelled"}
    assert 0.4 < reasons[""] / reasons.total() < 0.6
    for task in made:
        assert any(fact for fact in task.customer.facts) or any(task.writes)
        assert len({request.order for request in task.customer.requests}) == len(task.reasons)


@pytest.mark.parametrize(
    ("words", "fact", "told"),
    [
        ("It came 45 days ago.", "45", True),
        ("It was delivered 45 days ago, the limit is 30.", "45", True),
        ("The limit is 30.", "45", False),
        ("45 or 46 days", "45", False),
        ("The total of O45 is 12.", "45", False),
        ("The total of O45 is 12.", "12", True),
        ("It is 30.", "30", True),
        ("It is 12.5", "12", False),
        ("It is final sale", "final sale", True),
        ("It is final sale, and out of stock", "final sale", False),
        ("12 for the shipped order", "12", False),
    ],
)
def test_what_tells_a_fact(words, fact, told):
    assert policy.tells(words, fact) is told
