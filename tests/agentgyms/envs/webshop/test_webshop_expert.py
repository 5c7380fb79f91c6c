"""The expert buys the goal's product, from wherever it is asked."""

import pytest

import agentgyms
from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
from agentgyms.envs.webshop.env import WebShopEnv
from agentgyms.envs.webshop.expert import best
from agentgyms.envs.webshop.goals.goal_list import GoalList
from agentgyms.envs.webshop.goals.nouns import open_extractor
from agentgyms.envs.webshop.product import HumanInstruction, Product
from agentgyms.envs.webshop.rules.session import ShopSession
from agentgyms.envs.webshop.shop import Shop
from agentgyms.envs.webshop.sources import open_shop

MAX_TURNS = 15


def play(session, limit=MAX_TURNS):
    """Let the expert play; return its actions and the last one's reward."""
    played, reward = [], 0.0
    while not session.done and len(played) < limit:
        played.append(best(session))
        result = session.act(played[-1])
        assert not result.reason, (played[-1], result)
        reward = result.reward
    return played, reward


def shop_of(*products, goals="synthetic"):
    catalogue = Catalogue.of(products, "expert-test")
    return Shop(catalogue, GoalList.of(catalogue, goals), open_extractor("builtin"))


def product_of(asin="B0TESTX001", **fields):
    common = {
        "asin": asin,
        "title": f"Tin Kettle No. {asin[-3:]}",
        "description": "It boils.",
        "bullet_points": ("Loud",),
        "category": "garden",
        "query": "kettles",
        "product_category": "Home › Kitchen › Kettles",
        "attributes": ("easy clean",),
        "options": {},
        "pricing": (20.0,),
        "instruction": "Find me easy clean kettles",
        "instruction_attributes": ("easy clean",),
    }
    return Product(**{**common, **fields})


@pytest.mark.parametrize("goals", ["synthetic", "human"])
@pytest.mark.parametrize("split", ["train", "valid", "test", "sample"])
def test_it_succeeds_on_generated_products(split, goals):
    env = WebShopEnv(split=split, goals=goals)
    expert = agentgyms.expert(env)
    for task_id in env.tasks[:: max(1, len(env.tasks) // 30)]:
        _, info = env.reset(options={"task_id": task_id})
        terminated = truncated = False
        while not terminated and not truncated:
            action = expert()
            _, reward, terminated, truncated, info = env.step(action)
            assert info["feedback"] == "ok", action
        assert (reward, info["success"], truncated) == (1, True, False), task_id
        assert info["metrics"]["goal_product_bought"] == 1


def test_it_takes_no_click_too_many():
    shop = open_shop().load()
    goal = shop.goals[0]
    played, reward = play(ShopSession(shop, goal))
    assert reward == 1
    assert played[0].startswith("search[")
    assert f"click[{goal.asin.lower()}]" in played
    assert sorted(played[2:-1]) == sorted(f"click[{value}]" for value in goal.option_values)
    assert played[-1] == "click[buy now]"
    assert "price lower" not in played[0]


DETOURS = {
    "another product": ["search[{query}]", "{other}"],
    "a sub page of another product": ["search[{query}]", "{other}", "click[features]"],
    "a search that finds nothing": ["search[zzzz]"],
    "the last page of results": ["search[{query}]", *["click[next >]"] * 4],
    "back at the start": ["search[{query}]", "click[back to search]"],
    "an action that does nothing": ["click[nonsense]", "search[{query}]", "nonsense"],
    "a sub page of the product": ["search[{title}]", "click[{asin}]", "click[description]"],
    "the wrong option": ["search[{title}]", "click[{asin}]", "click[{wrong}]"],
}


@pytest.mark.parametrize("detour", DETOURS.values(), ids=DETOURS)
def test_it_goes_on_from_any_page(detour):
    shop = open_shop().load()
    goal = next(
        goal
        for goal in map(shop.goals.__getitem__, range(200))
        if any(len(v) > 1 for v in shop.product(goal.asin).options.values())
    )
    listed = [v for values in shop.product(goal.asin).options.values() for v in values]
    wrong = next(value for value in listed if value not in goal.option_values)
    session = ShopSession(shop, goal)
    for step in detour:
        keys = [action for action in session.admissible() if action.startswith("click[b0")]
        other = next((key for key in keys if goal.asin.lower() not in key), "")
        words = {"query": goal.query, "title": goal.name, "asin": goal.asin.lower()}
        session.act(step.format(**words, other=other, wrong=wrong))
    played, reward = play(session)
    assert reward == 1, played


def test_chosen_options_are_left_alone(small_shop):
    goal = small_shop.goals.find("B0TEST0001/3")
    assert goal.option_values == ("oak [light]", "large")
    session = ShopSession(small_shop, goal)
    for action in ("search[desk lamp]", "click[b0test0001]", "click[oak [light]]"):
        session.act(action)
    assert play(session) == (["click[large]", "click[buy now]"], 1)


def test_it_returns_to_the_results_where_that_is_shorter(small_shop):
    goal = small_shop.goals.find("B0TEST0001/0")
    session = ShopSession(small_shop, goal)
    for action in ("search[desk lamp]", "click[b0test0002]", "click[features]"):
        session.act(action)
    assert best(session).startswith("search[")  # one action instead of two
    session.act("click[< prev]")
    assert best(session) == "click[< prev]"


@pytest.mark.parametrize("number", range(8))
def test_equal_values_of_two_options_are_told_apart(small_shop, number):
    goal = small_shop.goals.find(f"B0TEST0002/{number}")
    session = ShopSession(small_shop, goal)
    _, reward = play(session)
    assert session.state.chosen == dict(goal.goal_options)
    assert reward == small_shop.purchase(goal, goal.asin, dict(goal.goal_options)).reward


def test_in_the_original_mode_it_leaves_out_what_cannot_be_clicked():
    shop = shop_of(product_of(options={"size": ("small", "one litre [steel]")}))
    goal = shop.goals.find("B0TESTX001/1")
    played, reward = play(ShopSession(shop, goal, compat=True))
    assert played[-2:] == ["click[b0testx001]", "click[buy now]"]
    assert reward == pytest.approx(2 / 3)
    assert play(ShopSession(shop, goal))[1] == 1


def test_a_value_that_the_reward_takes_for_the_wanted_one_will_do():
    wish = HumanInstruction("i want a kettle of 120ml", ("easy clean",), ("120 ML", "steel"))
    kettle = product_of(options={"size": ("60 ml", "120 ml"), "lid": ("tin",)}, human=(wish,))
    shop = shop_of(kettle, goals="human")
    session = ShopSession(shop, shop.goals[0])
    play(session)
    assert session.state.chosen == {"size": "120 ml"}


def test_the_title_finds_what_the_instruction_does_not():
    crowd = [product_of(f"B0TESTY{number:03}", title="Easy Clean Kettle") for number in range(60)]
    odd = product_of(title="Samovar", query="kettles", description="", bullet_points=("",))
    shop = shop_of(*crowd, odd)
    session = ShopSession(shop, shop.goals.find("B0TESTX001/0"))
    played, reward = play(session)
    assert (played[0], reward) == ("search[samovar]", 1)


def test_a_product_that_no_search_finds_is_searched_for_ever():
    lost = product_of(title="The Of", description="", bullet_points=("",), query="it")
    crowd = [product_of(f"B0TESTY{number:03}", title="Easy Clean Kettle") for number in range(60)]
    shop = shop_of(lost, *crowd)
    session = ShopSession(shop, shop.goals.find("B0TESTX001/0"))
    played, reward = play(session, limit=4)
    assert (played, reward) == (["search[the of]"] * 4, 0)


@pytest.mark.data
@pytest.mark.parametrize("compat", [False, True])
def test_on_official_products_it_scores_what_their_own_options_score(official_products, compat):
    shop = shop_of(*official_products)
    own = []
    for index in range(0, len(shop.goals), 53):
        goal = shop.goals[index]
        ceiling = shop.purchase(goal, goal.asin, dict(goal.goal_options)).reward
        _, reward = play(ShopSession(shop, goal, compat=compat))
        assert reward >= ceiling, goal
        own.append(reward == 1)
    assert sum(own) / len(own) > 0.9
