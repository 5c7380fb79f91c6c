"""The generated catalogue: what is promised about its products, and what its goals are like."""

import json
import random
import re
from collections import Counter
from dataclasses import asdict
from hashlib import blake2b
from math import prod

import pytest

from agentgyms.envs.webshop.catalogue.generated import (
    GENERATED_VERSION,
    MAX_COMBINATIONS,
    generated_products,
)
from agentgyms.envs.webshop.catalogue.generated_table import kinds, wording
from agentgyms.envs.webshop.catalogue.generated_texts import LONGEST_TITLE, plural
from agentgyms.envs.webshop.goals.fuzzy import matches
from agentgyms.envs.webshop.rules.session import ShopSession
from agentgyms.envs.webshop.sources import open_shop

PRODUCTS = tuple(generated_products())
BUTTONS = {"back to search", "< prev", "next >", "buy now", "description", "features", "reviews"}
BUTTONS |= {"attributes", "search"}


@pytest.fixture(scope="module", params=["synthetic", "human"])
def shop(request):
    return open_shop(goals=request.param).load()


def goals_of(shop, count):
    """Some goals of a shop, always the same and from all of its list."""
    return [shop.goals[index] for index in range(0, len(shop.goals), len(shop.goals) // count)]


def values_chosen(shop, goal):
    """The goal's options by name, which human goals do not give."""
    options = shop.product(goal.asin).options
    return {name: v for v in goal.option_values for name, known in options.items() if v in known}


def texts(product):
    return "\n".join((product.title, product.description, *product.bullet_points))


def test_a_version_names_one_list_of_products():
    """A new digest takes a new GENERATED_VERSION: stored results name the version alone."""
    lines = [json.dumps(asdict(product), ensure_ascii=False) for product in PRODUCTS]
    digest = blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()
    assert (GENERATED_VERSION, digest) == ("generated-1", "58395a5ae78cbe4b")


def test_there_are_2400_products_in_families():
    assert len(PRODUCTS) == 2400
    assert Counter(product.category for product in PRODUCTS) == dict.fromkeys(
        ("beauty", "electronics", "fashion", "garden", "grocery"), 480
    )
    families = Counter(product.query for product in PRODUCTS)
    assert len(families) == 240
    assert set(families.values()) == {6, 9, 11, 14}
    assert len({p.query for p in PRODUCTS if p.instruction}) == 240
    assert 1300 < sum(bool(product.instruction) for product in PRODUCTS) < 1550
    assert sum(bool(product.human) for product in PRODUCTS) == 300
    assert {len(product.human) for product in PRODUCTS} == {0, 1, 2}


def test_products_differ():
    assert len({product.asin for product in PRODUCTS}) == 2400
    assert len({product.title for product in PRODUCTS}) == 2400
    assert all(re.fullmatch(r"B0GEN[0-9A-Z]{5}", product.asin) for product in PRODUCTS)


@pytest.mark.parametrize("product", PRODUCTS[::97], ids=lambda product: product.asin)
def test_texts_are_short_and_clean(product):
    assert len(product.title) <= LONGEST_TITLE
    assert len(product.description) <= 400
    assert 2 <= len(product.bullet_points) <= 5
    assert max(map(len, product.bullet_points)) <= 120
    for text in (product.title, product.description, *product.bullet_points, product.query):
        assert text == " ".join(text.split())
        assert "{" not in text
    assert product.product_category.count(" › ") >= 2
    assert all(0 < price < 2000 and round(price, 2) == price for price in product.pricing)
    assert list(product.pricing) == sorted(product.pricing)


def test_no_text_is_longer_than_promised():
    assert max(len(product.title) for product in PRODUCTS) <= LONGEST_TITLE
    assert max(len(product.description) for product in PRODUCTS) <= 400
    assert max(len(point) for product in PRODUCTS for point in product.bullet_points) <= 120


def test_texts_name_the_attributes_of_a_product_and_no_others():
    known = set(wording().places)
    for product in PRODUCTS:
        text = texts(product).lower()
        assert {name for name in known if name in text} == set(product.attributes), product.title
        assert 3 <= len(product.attributes) == len(set(product.attributes)) <= 6


def test_attributes_of_one_kind_are_not_taken_for_each_other():
    for kind in kinds():
        for name in kind.attributes:
            similar = [other for other in kind.attributes if matches(name, other)]
            assert similar == [name]


def test_exclusive_attributes_are_not_found_together():
    for product in PRODUCTS:
        for name in product.attributes:
            assert wording().exclusive.get(name, frozenset()).isdisjoint(product.attributes)


def test_options_can_be_clicked():
    for product in PRODUCTS:
        values = [value for listed in product.options.values() for value in listed]
        assert len(set(values)) == len(values), product.title
        assert not BUTTONS.intersection(values)
        assert all(value == " ".join(value.lower().split()) for value in values)
        assert all(2 <= len(listed) <= 8 for listed in product.options.values())
        assert prod(map(len, product.options.values())) <= MAX_COMBINATIONS
    assert {len(product.options) for product in PRODUCTS} == {0, 1, 2, 3}


@pytest.mark.parametrize("part", ["&", "<", '"', "'", "½", "日本語"])
def test_hostile_characters_are_among_the_texts(part):
    assert any(part in texts(product) for product in PRODUCTS)


@pytest.mark.parametrize("part", ["[", "]", "<", ">", '"', "'", "&", "|", "é", "桜"])
def test_hostile_characters_are_among_the_options(part):
    assert any(
        part in value
        for product in PRODUCTS
        for listed in product.options.values()
        for value in listed
    )


def test_instructions_ask_for_what_the_product_has():
    for product in PRODUCTS:
        assert bool(product.instruction) == bool(product.instruction_attributes)
        assert set(product.instruction_attributes) <= set(product.attributes)
        if product.instruction:
            wishes = (product.query, *product.instruction_attributes)
            assert all(wish in product.instruction for wish in wishes)
        for written in product.human:
            assert written.attributes
            assert set(written.attributes) <= set(product.attributes)
            assert all(wish in written.text for wish in (*written.attributes, *written.options))
            assert values_are_of_different_options(product, written.options)


def values_are_of_different_options(product, values):
    names = [name for v in values for name, listed in product.options.items() if v in listed]
    return len(names) == len(set(names)) == len(values)


def test_instructions_do_not_give_the_product_away():
    brands = {word for product in PRODUCTS for word in product.title.lower().split()}
    brands -= {word for kind in kinds() for line in kind.lines for word in line.split()}
    invented = {word for word in brands if word.endswith(("quell", "ombra", "orrow", "undra"))}
    assert len(invented) > 50
    for product in PRODUCTS:
        for text in (product.instruction, *(written.text for written in product.human)):
            assert product.asin.lower() not in text.lower()
            assert product.title.lower() not in text.lower()
            assert invented.isdisjoint(text.lower().split())


def test_people_word_their_instructions_in_many_ways():
    written = [item.text for product in PRODUCTS for item in product.human]
    assert len(set(written)) > 0.97 * len(written) > 400
    beginnings = Counter(" ".join(text.split()[:2]) for text in written)
    assert len(beginnings) >= 8
    assert beginnings.most_common(1)[0][1] < len(written) / 4


@pytest.mark.parametrize(
    ("line", "mass", "expected"),
    [
        ("hair brush", False, "hair brushes"),
        ("body lotion", True, "body lotion"),
        ("oat cookies", False, "oat cookies"),
        ("window box", False, "window boxes"),
        ("table lamp", False, "table lamps"),
        ("photo tray", False, "photo trays"),
        ("body spray kit", False, "body spray kits"),
        ("utility", False, "utilities"),
    ],
)
def test_fine_categories_are_plurals(line, mass, expected):
    assert plural(line, mass) == expected


def test_the_own_product_meets_every_goal(shop):
    for goal in goals_of(shop, 400):
        bought = shop.purchase(goal, goal.asin, values_chosen(shop, goal))
        assert bought.success, goal


def test_instructions_find_their_product(shop):
    goals = goals_of(shop, 400)
    found = [shop.search(f"{goal.instruction_text} {goal.query}".lower()) for goal in goals]
    ranks = [
        hits.index(goal.position) if goal.position in hits else 999
        for goal, hits in zip(goals, found, strict=True)
    ]
    assert sum(rank < 50 for rank in ranks) >= 0.99 * len(ranks)
    assert sum(rank < 10 for rank in ranks) >= 0.9 * len(ranks)
    assert sum(rank == 0 for rank in ranks) < 0.9 * len(ranks)


def test_siblings_score_something_and_seldom_everything(shop):
    scores = []
    for goal in goals_of(shop, 60):
        wanted = values_chosen(shop, goal)
        for position in shop.products_with("query", goal.query):
            product = shop.catalogue[position]
            chosen = {n: v for n, v in wanted.items() if v in product.options.get(n, ())}
            if product.asin != goal.asin:
                bought = shop.purchase(goal, product.asin, chosen)
                assert bought.r_type == 1
                scores.append(bought.reward)
    assert 0.3 < sum(scores) / len(scores) < 0.65
    assert sum(score == 1 for score in scores) < 0.08 * len(scores)


def test_a_random_player_scores_low(shop):
    rng = random.Random(7)
    goals = goals_of(shop, 100)
    rewards = []
    for goal in goals:
        session, reward, words = ShopSession(shop, goal), 0.0, goal.instruction_text.split()
        for _ in range(15):
            query = " ".join(rng.sample(words, 3))
            action = rng.choice(session.admissible()).replace("<query>", query)
            reward = session.act(action).reward
            if session.done:
                break
        rewards.append(reward)
    assert sum(rewards) / len(goals) < 0.2
    assert sum(reward == 1 for reward in rewards) <= 0.05 * len(goals)
