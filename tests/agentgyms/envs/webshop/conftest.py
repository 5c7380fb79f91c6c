"""A small shop of our own, and the official 1000 products for the tests that are marked `data`."""

import json
import os
from pathlib import Path

import pytest

from agentgyms.envs.webshop.product import Product

SMALL = (
    Product(
        asin="B0TEST0001",
        title="Walnut Desk Lamp with Dimmer",
        description="A lamp for desks & shelves.",
        bullet_points=("Warm light <soft>", ""),
        category="garden",
        query="desk lamps",
        product_category="Home › Lamps › Desk Lamps",
        attributes=("dimmable", "solid wood"),
        options={"color": ("walnut", "oak [light]"), "size": ("small", "large")},
        pricing=(34.0,),
        instruction="Find me dimmable desk lamps with solid wood",
        instruction_attributes=("dimmable", "solid wood"),
    ),
    Product(
        asin="B0TEST0002",
        title="Oak Desk Lamp",
        description="",
        bullet_points=("Cold light",),
        category="garden",
        query="desk lamps",
        product_category="Home › Lamps › Desk Lamps",
        attributes=("solid wood",),
        options={
            "color": ("black", "reviews", 'white "snow"', "漆黒"),
            "shade": ("black", "grey"),
        },
        pricing=(5.99, 12.99),
        instruction="Find me desk lamps with solid wood",
        instruction_attributes=("solid wood",),
    ),
    *(
        Product(
            asin=f"B0TESTC{number:03}",
            title=f"Beeswax Candle No. {number}",
            description="It burns.",
            bullet_points=("Slow",),
            category="beauty" if number % 2 else "garden",
            query="candles",
            product_category="Home › Candles",
            attributes=("beeswax",),
            options={},
            pricing=(float(number + 1),),
            instruction="Find me candles of beeswax" if number < 6 else "",
            instruction_attributes=("beeswax",) if number < 6 else (),
        )
        for number in range(23)
    ),
)
"""Two lamps and 23 candles; the lamps' options have brackets, quotes and equal values."""


@pytest.fixture(scope="session")
def small_shop():
    """The shop of `SMALL`, with its real search, goals and reward."""
    from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
    from agentgyms.envs.webshop.goals.goal_list import GoalList
    from agentgyms.envs.webshop.goals.nouns import open_extractor
    from agentgyms.envs.webshop.shop import Shop

    catalogue = Catalogue.of(SMALL, "small-1")
    return Shop(catalogue, GoalList.of(catalogue), open_extractor("builtin"))


@pytest.fixture
def visit(small_shop):
    """Make a visit for a goal of the walnut lamp; each call makes a new one."""
    from agentgyms.envs.webshop.rules.session import ShopSession

    goal = small_shop.goals.find("B0TEST0001/0")

    def make(*acts, **mode):
        session = ShopSession(small_shop, goal, **mode)
        for action in acts:
            result = session.act(action)
            assert not result.reason, (action, result)
        return session

    return make


@pytest.fixture(scope="session")
def official_folder():
    """The folder with the official files of 1000 products."""
    given = os.environ.get("AGENTGYMS_TEST_DATA")
    source = Path(given, "webshop") if given else None
    if source is None or not (source / "items_shuffle_1000.json").is_file():
        pytest.skip("AGENTGYMS_TEST_DATA names no folder with webshop/items_shuffle_1000.json")
    return source


@pytest.fixture(scope="session")
def official_products(official_folder):
    """The 1000 products of WebShop's small catalogue."""
    from agentgyms.envs.webshop.build.official_items import product_of

    source = official_folder
    items, about = (
        json.loads((source / name).read_text(encoding="utf-8"))
        for name in ("items_shuffle_1000.json", "items_ins_v2_1000.json")
    )
    (human,) = source.glob("items_human_ins*.json")
    people = json.loads(human.read_text(encoding="utf-8"))
    return tuple(
        product_of(item, about.get(item["asin"]), people.get(item["asin"]), f"item {number}")
        for number, item in enumerate(items)
    )


@pytest.fixture(scope="session")
def recorded_sessions():
    """Sessions as the original played them: `cases/webshop/sessions.json`."""
    given = os.environ.get("AGENTGYMS_TEST_CASES")
    file = Path(given, "webshop", "sessions.json") if given else None
    if file is None or not file.is_file():
        pytest.skip("AGENTGYMS_TEST_CASES names no folder with webshop/sessions.json")
    return json.loads(file.read_text(encoding="utf-8"))["sessions"]
