"""Goals: which there are, in which order, and how they are cut into splits."""

import itertools
import json
import random
from collections import Counter
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pytest

from agentgyms.core.errors import BadOption, DataCorrupt, UnknownSplit, UnknownTask
from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
from agentgyms.envs.webshop.goals.goal_list import GoalList, write
from agentgyms.envs.webshop.product import HumanInstruction, Product

MUG = Product(
    asin="B0MUG00001",
    title="Stoneware Mug",
    description="",
    bullet_points=(),
    category="garden",
    query="mugs",
    product_category="Home › Kitchen › Mugs",
    attributes=("dishwasher safe",),
    options={"size": ("small", "large"), "color": ("blue", "rust", "sand")},
    pricing=(12.0,),
    instruction="Find me dishwasher safe mugs",
    instruction_attributes=("dishwasher safe", "stoneware"),
    human=(
        HumanInstruction("a mug, please.", (), ("blue",)),
        HumanInstruction("i want a large mug..", ("stoneware",), ("large",)),
    ),
)
SOAP = replace(
    MUG,
    asin="B0SOAP0001",
    title="Oat Soap",
    category="beauty",
    options={},
    pricing=(3.5, 9.25),
    instruction="Find me soaps with oat",
    instruction_attributes=("stoneware",),
    human=(HumanInstruction("soap", ("oat",), ()),),
)
SAFE = replace(
    MUG, asin="B0SAFE0001", options={"lock": ("key", "dial")}, pricing=(985.0,), human=()
)
SILENT = replace(MUG, asin="B0SILENT01", instruction="", pricing=(1.0, 2.0), human=())
KINDS = ("synthetic", "human")


def shop(*products):
    return Catalogue.of(products, "goals-test")


def many(count):
    """A catalogue of products with goals of both kinds, some with two prices, some with no goal."""
    rng = random.Random(count)
    products = []
    for number in range(count):
        low = round(rng.uniform(1, 1100), 2)
        products.append(
            replace(
                MUG,
                asin=f"B0{rng.randrange(10**6):06}{number:02}",
                category=rng.choice(["beauty", "fashion", "garden"]),
                options={
                    name: tuple(
                        f"{name} {i}" for i in range(rng.randint(0 if name == "c" else 1, 4))
                    )
                    for name in rng.sample("cba", rng.randint(0, 3))
                },
                pricing=(low, low + 5) if rng.random() < 0.4 else (low,),
                instruction="Find me mugs" if rng.random() < 0.7 else "",
                instruction_attributes=tuple(rng.choices("pqrstu", k=rng.randint(1, 3))),
                human=tuple(
                    HumanInstruction(f"number {i}.", ("p",) * rng.randint(0, 2), ("x",))
                    for i in range(rng.randint(0, 12))
                ),
            )
        )
    return shop(*products)


def by_the_book(products, kind, seed):
    """All goals as a plain program makes them: text, attributes, options, bound and weight."""
    rng = random.Random(seed)
    price = {
        p.asin: p.pricing[0] if len(p.pricing) == 1 else rng.uniform(*p.pricing) for p in products
    }
    goals = []
    for product in products:
        above = [x for x in range(10, 1000, 10) if x > price[product.asin]][:4]
        if kind == "human":
            wanted = [(h.text.strip("."), h.attributes, [h.options]) for h in product.human]
            wanted = [w for w in wanted if w[1]]
        elif product.instruction:
            names = sorted(product.options)
            combinations = itertools.product(*(product.options[name] for name in names))
            options = [dict(zip(names, values, strict=True)) for values in combinations]
            wanted = [(product.instruction, product.instruction_attributes, options)]
        else:
            wanted = []
        for text, attributes, choices in wanted:
            bound, suffix = 1_000_000, ""
            if len(above) >= 2:
                bound = sorted(rng.sample([float(x) for x in above], 2))[1]
                suffix = f", and price lower than {bound:.2f} dollars"
            for options in choices:
                named = (
                    ", and ".join(f"{k}: {v}" for k, v in options.items())
                    if kind != "human"
                    else ""
                )
                middle = f" with {named}" if named else ""
                goals.append([product.asin, text + middle + suffix, attributes, options, bound])
    counts = Counter(attribute for goal in goals for attribute in goal[2])
    for goal in goals:
        total = 0.0
        for attribute in goal[2]:
            total += 1.0 / counts[attribute]
        goal.append(1 if kind == "human" else total / len(goal[2]))
    random.Random(233).shuffle(goals)
    return goals, price


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 233])
def test_goals_are_those_of_a_plain_program(kind, seed):
    catalogue = many(60)
    expected, price = by_the_book(list(catalogue), kind, seed)
    goals = GoalList.of(catalogue, kind, seed)
    found = [
        [g.asin, g.instruction_text, g.attributes, g.goal_options, g.price_upper, g.weight]
        for g in goals
    ]
    assert found == expected
    assert [goals.price(i) for i in range(60)] == list(price.values())
    assert {goal.price_upper for goal in goals} > {1_000_000}


def test_the_parts_of_a_synthetic_goal():
    goals = GoalList.of(shop(SILENT, MUG))
    goal = goals.find("B0MUG00001/3")
    assert goal.goal_options == {"color": "rust", "size": "large"}
    assert list(goal.goal_options) == ["color", "size"]
    assert goal.option_values == ("rust", "large")
    assert goal.price_upper in (30.0, 40.0, 50.0)
    assert goal.instruction_text == (
        "Find me dishwasher safe mugs with color: rust, and size: large"
        f", and price lower than {goal.price_upper:.2f} dollars"
    )
    assert (goal.position, goal.category, goal.name) == (1, "garden", "Stoneware Mug")
    assert len({goals.find(f"B0MUG00001/{n}").price_upper for n in range(6)}) == 1
    assert len(goals) == 6


def test_above_970_dollars_no_bound_is_named():
    goal = GoalList.of(shop(SAFE)).find("B0SAFE0001/1")
    assert goal.price_upper == 1_000_000
    assert goal.instruction_text == "Find me dishwasher safe mugs with lock: dial"


def test_human_goals_keep_their_number_among_all_instructions():
    goals = GoalList.of(shop(MUG, SOAP), "human")
    assert sorted(goal.task_id for goal in goals) == ["B0MUG00001/human-1", "B0SOAP0001/human-0"]
    goal = goals.find("B0MUG00001/human-1")
    assert goal.goal_options == goal.option_values == ("large",)
    assert goal.attributes == ("stoneware",)
    assert goal.instruction_text.startswith("i want a large mug, and price lower than ")
    assert goal.weight == 1


def test_weights_are_means_of_shares():
    goals = GoalList.of(shop(MUG, SOAP))
    assert goals.find("B0MUG00001/0").weight == (1 / 6 + 1 / 7) / 2
    assert goals.find("B0SOAP0001/0").weight == 1 / 7


def test_a_product_without_values_for_an_option_makes_no_goal():
    empty = replace(MUG, options={"size": ()})
    after = GoalList.of(shop(empty, SOAP))
    assert len(after) == 1
    assert len(GoalList.of(shop(empty, SOAP), "human")) == 2
    with pytest.raises(UnknownTask, match="has no synthetic goals"):
        after.find("B0MUG00001/0")


@pytest.mark.parametrize("kind", KINDS)
def test_every_id_finds_its_goal(kind):
    goals = GoalList.of(many(30), kind)
    found = [goals.find(goal.task_id) for goal in goals]
    assert found == list(goals)
    assert len({goal.task_id for goal in goals}) == len(goals)


@pytest.mark.parametrize(
    ("task_id", "said"),
    [
        ("", "is not the id of a synthetic goal: expected <asin>/<number>"),
        ("B0MUG00001", "is not the id"),
        ("B0MUG00001/", "is not the id"),
        ("B0MUG00001/-1", "is not the id"),
        ("B0MUG00001/01", "is not the id"),
        ("B0MUG00001/٣", "is not the id"),
        ("B0MUG00001/human-1", "is not the id"),
        ("B0MUG00001/" + "9" * 30, "is not the id"),
        ("B0MUG00001/6", "product B0MUG00001 has goals up to 5"),
        ("b0mug00001/1", "the catalogue has no product 'b0mug00001'"),
        ("B0SILENT01/0", "product B0SILENT01 has no synthetic goals"),
    ],
)
def test_unknown_ids(task_id, said):
    goals = GoalList.of(shop(MUG, SILENT, SOAP, SAFE))
    with pytest.raises(UnknownTask, match=said):
        goals.find(task_id)
    tasks = goals.tasks("train")
    assert task_id not in tasks
    with pytest.raises(UnknownTask, match=f"split 'train' has no task {task_id!r}"):
        tasks.find(task_id)


@pytest.mark.parametrize("kind", KINDS)
def test_splits_share_no_product(kind):
    goals = GoalList.of(many(60), kind)
    splits = {name: list(goals.tasks(name)) for name in ("train", "valid", "test")}
    products = {name: {i.partition("/")[0] for i in ids} for name, ids in splits.items()}
    assert sum(len(ids) for ids in splits.values()) == len(goals)
    total = sum(len(names) for names in products.values())
    assert len(set.union(*products.values())) == total
    assert len(products["valid"]) == len(products["test"]) == total // 10
    for ids in splits.values():
        assert ids == sorted(ids)


def test_splits_depend_on_asins_alone():
    products = list(many(40))
    one = GoalList.of(shop(*products), seed=1)
    other = GoalList.of(shop(*reversed(products)), seed=2)
    for name in ("train", "valid", "test", "sample"):
        assert list(one.tasks(name)) == list(other.tasks(name))


@pytest.mark.parametrize("count", [3, 4, 9])
def test_three_products_suffice_for_every_split(count):
    products = [replace(SOAP, asin=f"B0SOAP000{i}") for i in range(count)]
    goals = GoalList.of(shop(*products))
    sizes = [len(goals.tasks(name)) for name in ("train", "valid", "test")]
    assert sizes == [count - 2, 1, 1]


def test_splits_that_cannot_be_cut():
    goals = GoalList.of(shop(MUG, SOAP))
    assert len(goals.tasks("train")) == 7
    with pytest.raises(BadOption, match="split 'valid' of the synthetic goals is empty"):
        goals.tasks("valid")
    with pytest.raises(BadOption, match=r"at least 1501 goals, but the synthetic list .* has 7"):
        goals.tasks("test", "original")
    with pytest.raises(
        BadOption, match="cut 'random' is unknown: expected one of product, original"
    ):
        goals.tasks("train", "random")
    with pytest.raises(UnknownSplit):
        goals.tasks("dev")
    with pytest.raises(BadOption, match="goals 'both' are unknown"):
        GoalList.of(shop(MUG), "both")
    with pytest.raises(BadOption, match="seed"):
        GoalList.of(shop(MUG), seed=True)


def wide():
    """1,600 goals of four products."""
    options = {"a": tuple(map(str, range(20))), "b": tuple(map(str, range(20)))}
    return shop(*(replace(MUG, asin=f"B0WIDE000{i}", options=options) for i in range(4)))


def test_the_original_cut():
    goals = GoalList.of(wide())
    ids = [goal.task_id for goal in goals]
    assert list(goals.tasks("test", "original")) == sorted(ids[:500])
    assert list(goals.tasks("valid", "original")) == sorted(ids[500:1500])
    assert list(goals.tasks("train", "original")) == sorted(ids[1500:])


@pytest.mark.parametrize("cut", ["product", "original"])
def test_the_sample_is_12_of_train(cut):
    goals = GoalList.of(wide())
    sample = goals.tasks("sample", cut)
    assert len(sample) == 12
    assert set(sample) <= set(goals.tasks("train", cut))
    assert list(sample) == list(GoalList.of(wide(), seed=5).tasks("sample", cut))


def test_a_task_set_is_a_sequence():
    tasks = GoalList.of(wide()).tasks("train")
    ids = list(tasks)
    assert len(tasks) == len(ids) == 800
    assert tasks[3] == ids[3]
    assert tasks[-1] == ids[-1]
    assert tasks[5:100:7] == tuple(ids[5:100:7])
    assert list(reversed(tasks)) == ids[::-1]
    assert all(task_id in tasks for task_id in ids[::37])
    assert 3 not in tasks
    assert tasks.find(ids[40]).family == "garden"
    assert tasks.families() == {"garden": 800}
    assert repr(tasks) == "TaskSet('train', 800 tasks)"
    with pytest.raises(IndexError):
        tasks[800]
    with pytest.raises(UnknownTask, match=f"such as '{ids[-1]}'"):
        tasks.find("ZZZ")


def test_families_are_categories():
    goals = GoalList.of(many(60))
    families = goals.tasks("train").families()
    assert list(families) == ["beauty", "fashion", "garden"]
    expected = Counter(goals.find(task_id).category for task_id in goals.tasks("train"))
    assert families == expected


@pytest.mark.parametrize("kind", KINDS)
def test_written_goals_are_mapped(tmp_path, kind):
    catalogue = many(50)
    made = GoalList.of(catalogue, kind)
    write(catalogue, tmp_path, kind)
    catalogue.folder = tmp_path
    opened = GoalList.of(catalogue, kind)
    assert list(opened) == list(made)
    assert list(opened.tasks("valid")) == list(made.tasks("valid"))
    assert isinstance(opened._table.order.base, np.memmap)
    assert isinstance(opened._price.base, np.memmap)
    other = GoalList.of(catalogue, kind, seed=9)
    catalogue.folder = None
    assert list(other) == list(GoalList.of(catalogue, kind, seed=9))
    assert list(other) != list(made)


def test_goals_of_another_catalogue_are_refused(tmp_path):
    write(many(20), tmp_path, "synthetic")
    catalogue = Catalogue.of(list(many(20)), "another")
    catalogue.folder = tmp_path
    with pytest.raises(DataCorrupt, match="another catalogue"):
        GoalList.of(catalogue)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *itertools.product(
            ["order.npy", "start.npy", "goals.json"], ["cut", "empty", "other", "gone"]
        ),
        ("bound-233.npy", "cut"),
        ("bound-233.npy", "empty"),
        ("bound-233.npy", "other"),
    ],
)
def test_damaged_files_are_refused(tmp_path, name, damage):
    catalogue = many(20)
    write(catalogue, tmp_path, "synthetic")
    catalogue.folder = tmp_path
    file = tmp_path / "goals-synthetic" / name
    if damage == "gone":
        file.unlink()
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:-3])
    elif name.endswith(".npy"):
        np.save(file, np.arange(3))
    else:
        file.write_text("[]", encoding="utf-8")
    with pytest.raises(DataCorrupt, match="goals-synthetic"):
        GoalList.of(catalogue)


def test_a_kind_without_goals(tmp_path):
    catalogue = shop(SILENT, SAFE)
    write(catalogue, tmp_path, "human")
    for catalogue.folder in (None, tmp_path):
        goals = GoalList.of(catalogue, "human")
        assert list(goals) == []
        with pytest.raises(BadOption, match="is empty: the list has 0 goals"):
            goals.tasks("train")


def test_options_that_no_list_can_hold_are_refused():
    options = {letter: tuple(map(str, range(100))) for letter in "abcdefghij"}
    with pytest.raises(DataCorrupt, match="of product B0MUG00001: expected at most 100000000"):
        GoalList.of(shop(SOAP, replace(MUG, options=options)))


def test_the_list_is_the_same_on_every_machine():
    rows = [
        [goal.task_id, goal.instruction_text, goal.price_upper, goal.weight]
        for kind in KINDS
        for goal in GoalList.of(many(40), kind, seed=7)
    ]
    digest = blake2b(json.dumps(rows).encode(), digest_size=8).hexdigest()
    assert digest == "45629d35be63825b"


@pytest.mark.data
def test_goals_of_the_official_products(official_products, recorded_sessions):
    catalogue = Catalogue.of(official_products, "official")
    goals = GoalList.of(catalogue, seed=2024)
    assert len(goals) == 6910
    assert len(GoalList.of(catalogue, "human")) == 13
    for session in recorded_sessions:
        goal = goals[session["goal_index"]]
        found = {name: getattr(goal, name) for name in session["goal"]}
        assert found | {"attributes": list(goal.attributes)} == session["goal"], session["name"]
