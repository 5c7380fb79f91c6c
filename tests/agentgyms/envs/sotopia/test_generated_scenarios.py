"""Generated encounters: which there are, what is in them, and what each viewer sees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentgyms.core.errors import UnknownSplit, UnknownTask
from agentgyms.core.keys import state_key
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import TaskSet
from agentgyms.envs.sotopia import render
from agentgyms.envs.sotopia.generated.bargaining import Bargaining
from agentgyms.envs.sotopia.generated.contact import Contact
from agentgyms.envs.sotopia.generated.division import Division
from agentgyms.envs.sotopia.generated.negotiation import Negotiation
from agentgyms.envs.sotopia.generated.scenarios import (
    FAMILIES,
    SPLITS,
    AnyGame,
    draw_game,
    encounter,
    split_of,
    task_ids,
)
from agentgyms.envs.sotopia.generated.words import word_set, words_of
from tests.agentgyms.envs.sotopia.generated_play import best, generous, plain, play, random

SAMPLE = [task.task_id for task in task_ids("sample")]


def test_splits_have_their_sizes_and_all_families_at_both_seats() -> None:
    sizes = {split: len(TaskSet(split, task_ids(split))) for split in SPLITS}
    assert sizes == {"train": 2000, "valid": 200, "test": 200, "sample": 12}
    assert TaskSet("sample", task_ids("sample")).families() == dict.fromkeys(sorted(FAMILIES), 4)
    assert {encounter(task_id).seat for task_id in SAMPLE} == {0, 1}
    for split in SPLITS:
        for task in task_ids(split)[:12]:
            met = encounter(task.task_id)
            assert (met.task_id, met.scenario.source) == (task.task_id, task.family)


def test_an_encounter_hangs_on_its_id_alone_on_every_machine() -> None:
    first = [encounter(task_id) for task_id in SAMPLE]
    encounter.cache_clear()
    assert [encounter(task_id) for task_id in SAMPLE] == first
    talks = [play(task_id, plain, seed=7) for task_id in SAMPLE]
    assert state_key(*[repr((met.scenario, met.people)) for met in first], repr(talks)) == GOLDEN


GOLDEN = "735a79b65db8a96c4855cd8f24c708fc"


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("bargaining", "22dfc352b3b97718486f4dcc4ef2b045"),
        ("contact", "751dab481a2a8a9e1e7a55a29422f803"),
        ("division", "092fd6487f014ba6d441b8cb2eeec725"),
    ],
)
def test_many_encounters_and_their_dialogues_are_the_same_on_every_machine(
    family: str, expected: str
) -> None:
    """Experts meet partners that concede, insist and talk nonsense."""
    ids = [task.task_id for task in task_ids("train") if family in task.task_id][:200]
    found = [repr((met.scenario, met.people, met.game)) for met in map(encounter, ids)]
    found += [
        repr(play(task_id, learner, seed=number))
        for number, task_id in enumerate(ids[:60])
        for learner in (plain, best, generous, random)
    ]
    assert state_key(*found) == expected


def test_both_seats_of_a_combination_meet_the_same_people_in_the_same_scenario() -> None:
    for task_id in SAMPLE[::2]:
        first, second = encounter(task_id), encounter(task_id[:-1] + "1")
        assert replace(first, task_id=second.task_id, seat=1) == second


@pytest.mark.parametrize(
    "task_id", ["", "train-0000-bargaining", "train-0001-bargaining/0", "test-0100-division/0"]
)
def test_unknown_tasks_are_refused(task_id: str) -> None:
    with pytest.raises(UnknownTask, match="train-0000-bargaining/0"):
        encounter(task_id)
    with pytest.raises(UnknownSplit):
        task_ids("all")


def test_no_game_is_in_two_splits() -> None:
    numbers = {split: set() for split in SPLITS}
    for split in SPLITS:
        for task in task_ids(split)[: 300 if split == "train" else None : 2]:
            game = encounter(task.task_id).game
            assert split_of(game) == split_of(_in_other_words(game)) == split
            numbers[split].add(repr(game.signature))
    for split in SPLITS:
        others = set().union(*(numbers[other] for other in SPLITS if other != split))
        assert not numbers[split] & others


def _in_other_words(game: AnyGame) -> AnyGame:
    """Return the same game with things, rows and seats in another order."""
    if isinstance(game, Bargaining):
        return replace(game, item="thing", listed=game.listed + 5)
    if isinstance(game, Contact):
        return replace(game, tables=(game.tables[1][::-1], game.tables[0]))
    return Division(
        game.kinds,
        game.counts[::-1],
        (game.points[1][::-1], game.points[0][::-1]),
        game.minima[::-1],
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_every_game_can_be_won_from_both_seats(family: str) -> None:
    for number in range(40):
        game = draw_game(Chance("win", number), family, "test")
        for seat in (0, 1):
            if isinstance(game, Contact):
                assert game.common in game.names(seat)
                assert len({(e.company, e.hobby) for t in game.tables for e in t}) == 9
                continue
            assert isinstance(game, Negotiation)
            other = 1 - seat
            possible = [
                o for o in game.outcomes() if game.gain(other, o) >= game.reservation(other)
            ]
            assert max(game.worth(seat, outcome) for outcome in possible) > 6
            opening = game.propose(other, game.aspiration(other), None)
            assert game.worth(seat, opening) <= 7 - (family == "division"), "not won at once"


def test_views_are_short_and_hold_nothing_of_the_other_ones() -> None:
    longest = 0
    for task in task_ids("test")[:60]:
        met = encounter(task.task_id)
        shown = render.first_observation(met, met.seat)
        longest = max(longest, len(shown))
        hidden = replace(
            met.scenario,
            goals=tuple(
                goal if seat == met.seat else "Something else."
                for seat, goal in enumerate(met.scenario.goals)
            ),
        )
        assert render.first_observation(replace(met, scenario=hidden), met.seat) == shown
        if isinstance(met.game, Contact):
            assert f"It is {met.game.common}." not in shown
            assert f"It is {met.game.common}." in render.context(met, None)
    assert longest < 960


def test_contacts_names_are_no_other_words_of_scenarios() -> None:
    names = word_set("contact", "names")
    for part in ("women", "men", "last", "occupations", "traits"):
        assert names.isdisjoint(word_set("people", part))
    secrets = words_of(" ".join(word_set("people", "secrets") | word_set("people", "infos")))
    assert names.isdisjoint(secrets)
    assert names.isdisjoint(word_set("contact", "companies") | word_set("contact", "hobbies"))
    assert word_set("manners", "insults").isdisjoint(secrets)
