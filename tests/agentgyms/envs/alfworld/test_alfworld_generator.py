"""The generator's promises: counts, balance, disjoint splits, plausible rooms, equal everywhere."""

import subprocess
import sys
import time
from collections import Counter

import pytest

from agentgyms.core.randomness import Chance
from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.generated.catalogue import FURNITURE, ROOMS, THINGS
from agentgyms.envs.alfworld.generated.generator import COUNTS, generate, household, list_tasks
from agentgyms.envs.alfworld.generated.layouts import SIZES, floor_plans
from agentgyms.envs.alfworld.problem import FAMILIES

ALL_TASKS = [
    (size, split, task.task_id)
    for size in SIZES
    for split in COUNTS
    for task in list_tasks(size, split)
]


@pytest.mark.parametrize("size", SIZES)
def test_counts_and_balance(size):
    counts = {"train": 600, "valid_seen": 40, "valid_unseen": 40, "sample": 2}
    for split, number in counts.items():
        families = Counter(task.family for task in list_tasks(size, split))
        assert families == dict.fromkeys(FAMILIES, number)


def test_ids_are_unique_over_sizes_and_splits():
    assert len({task_id for _, _, task_id in ALL_TASKS}) == len(ALL_TASKS)


def test_listing_is_fast():
    before = time.process_time()
    list_tasks("large", "train")
    assert time.process_time() - before < 0.2


@pytest.fixture(scope="module", params=SIZES)
def households(request):
    """Every household of one size, by split."""
    return {
        split: [household(task.task_id) for task in list_tasks(request.param, split)]
        for split in COUNTS
    }


def test_splits_share_no_contents_and_train_repeats_none(households):
    contents = [made.content for split in households.values() for made in split]
    assert len(set(contents)) == len(contents)


def test_unseen_rooms_never_occur_in_training(households):
    seen = {
        made.plan.furniture
        for split in COUNTS
        for made in households[split]
        if split != "valid_unseen"
    }
    unseen = {made.plan.furniture for made in households["valid_unseen"]}
    assert not seen & unseen
    assert len(seen) >= 60
    assert len(unseen) >= 20


def test_seen_rooms_are_those_of_training(households):
    train = {made.plan for made in households["train"]}
    assert {made.plan for made in households["valid_seen"]} <= train


@pytest.mark.parametrize("size", SIZES)
def test_every_kind_of_room_has_several_layouts(size):
    for seen in (True, False):
        kinds = Counter(plan.room.name for plan in floor_plans(size, seen=seen))
        assert set(kinds) == {room.name for room in ROOMS}
        assert min(kinds.values()) >= 6


def test_households_are_plausible(households):
    for made in (made for split in households.values() for made in split):
        for name, r in made.stored:
            assert THINGS[name].sort in FURNITURE[made.plan.furniture[r]].holds
            assert name in made.plan.room.things or "lamp" in THINGS[name].traits
        for inner, outer in made.inner:
            assert "vessel" in THINGS[made.stored[outer][0]].traits
            assert made.stored[inner][1] == made.stored[outer][1]


@pytest.mark.parametrize(("size", "low", "high"), [("small", 5, 7), ("large", 16, 20)])
def test_sizes_of_rooms(size, low, high):
    for seen in (True, False):
        numbers = [len(plan.furniture) for plan in floor_plans(size, seen=seen)]
        assert (min(numbers), max(numbers)) == (low, high)


def test_small_rooms_are_small():
    for task in list_tasks("small", "valid_seen"):
        made = household(task.task_id)
        assert 3 <= len(made.stored) <= 5
        assert len(set(made.plan.furniture)) == len(made.plan.furniture)


def test_some_large_rooms_have_shared_locations_and_filled_vessels():
    made = [household(task.task_id) for task in list_tasks("large", "valid_seen")]
    assert 0.5 < sum(len(set(m.plan.places)) < len(m.plan.places) for m in made) / len(made) < 1
    assert 0.1 < sum(bool(m.inner) for m in made) / len(made) < 0.9


@pytest.mark.parametrize("size", SIZES)
def test_games_begin_unsolved_and_their_sentences_name_what_is_wanted(size):
    for task in list_tasks(size, "valid_unseen")[::2]:
        problem = generate(task.task_id)
        game = build_game(problem, task.task_id)
        assert game.aim.reached(game.initial) == 0
        assert problem.goal.target in problem.sentence
        assert problem.goal.place in problem.sentence
        assert problem.goal.family == task.family
        assert game.targets.bit_count() == (2 if task.family == "pick2" else 1)


def test_both_sentences_of_a_family_occur():
    for family, templates in generator._SENTENCES.items():
        sentences = [generate(f"small-train-{family}-{i:04d}").sentence for i in range(20)]
        assert len({sentence.split()[0] for sentence in sentences}) == len(
            {template.split()[0] for template in templates}
        )


@pytest.mark.parametrize(
    ("family", "target", "place", "sentences"),
    [
        ("pick", "Apple", "Fridge", ("put an apple in a fridge.", "bring an apple to a fridge.")),
        (
            "pick",
            "Book",
            "ArmChair",
            ("put a book on an armchair.", "bring a book to an armchair."),
        ),
        ("heat", "Bread", "Shelf", ("put some hot bread on a shelf.", "warm up some bread and")),
        (
            "cool",
            "Lettuce",
            "Fridge",
            ("put some cold lettuce in a", "chill some lettuce and put it"),
        ),
        (
            "clean",
            "Egg",
            "Desk",
            ("put a clean egg on a desk.", "wash an egg and put it on a desk."),
        ),
        ("look", "AlarmClock", "DeskLamp", ("look at an alarmclock under a desklamp.", "hold an")),
        (
            "pick2",
            "Knife",
            "Drawer",
            ("put a knife in a drawer, then another one.", "bring a knife"),
        ),
        (
            "pick2",
            "ToiletPaper",
            "Shelf",
            ("put some toiletpaper on a shelf, then some more.", "bring"),
        ),
    ],
)
def test_sentences_are_english(family, target, place, sentences):
    plan = floor_plans("small", seen=True)[0]
    for wording, start in enumerate(sentences):
        made = generator.Household(plan, (), (), family, target, place, wording)
        assert generator._sentence(made).startswith(start)


def test_traits_and_sorts_are_known():
    sorts = {sort for furniture in FURNITURE.values() for sort in furniture.holds}
    for thing in THINGS.values():
        assert thing.sort in sorts, f"no furniture holds a {thing.name}"
    for room in ROOMS:
        assert set(room.always) | set(room.sometimes) | set(room.repeated) <= set(FURNITURE)
        assert set(room.things) <= set(THINGS)


DIGEST = """
from hashlib import sha256
from agentgyms.envs.alfworld.generated.generator import COUNTS, household, list_tasks
for size in ("small", "large"):
    text = "".join(
        task.task_id + household(task.task_id).content + str(household(task.task_id).wording)
        for split in COUNTS for task in list_tasks(size, split)[::7]
    )
    print(size, sha256(text.encode()).hexdigest()[:16])
"""
EXPECTED = "small a7f8ffa3bcf5fb91 large 3719b7909cb502fa"


def test_tasks_are_the_same_in_every_process_and_release():
    """A difference means that task ids have come to mean other tasks: raise generator.VERSION."""
    run = subprocess.run(
        [sys.executable, "-c", DIGEST],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7"},
    )
    assert run.stdout.split() == EXPECTED.split()


def test_chance_draws_from_its_name_alone():
    one, two = Chance("a", 1), Chance("a", 1)
    drawn = [one.below(1000) for _ in range(50)]
    assert drawn == [two.below(1000) for _ in range(50)]
    assert drawn != [Chance("a", 2).below(1000) for _ in range(50)]
    assert set(Chance("x").sample(range(5), 9)) == set(range(5))
    assert {Chance("y", i).between(3, 5) for i in range(60)} == {3, 4, 5}
