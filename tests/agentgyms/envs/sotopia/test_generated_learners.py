"""How learners fare against the scripted partner: the documented order, and the experts."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from agentgyms.core.errors import BadOption
from agentgyms.envs.sotopia.dialogue import ORDERS, Dialogue, Ending, Rules, Turn
from agentgyms.envs.sotopia.generated import expert
from agentgyms.envs.sotopia.generated.scenarios import FAMILIES, encounter, task_ids
from agentgyms.envs.sotopia.profiles import Encounter
from tests.agentgyms.envs.sotopia.generated_play import (
    LAMP,
    Learner,
    act,
    best,
    changed,
    generous,
    leaving,
    plain,
    play,
    random,
    silent,
    stubborn,
    talk,
)

TASKS = [task.task_id for task in task_ids("test")[:120]]


def mean_goal(learner: Learner, tasks: list[str] = TASKS, order: str = "round-robin") -> float:
    scores = []
    for task_id in tasks:
        met = encounter(task_id)
        assert met.game is not None
        scores.append(met.game.goal_score(play(task_id, learner, Rules(order)), met.seat))
    return sum(scores) / len(scores)


def test_goals_have_the_documented_order_and_figures() -> None:
    means = [mean_goal(learner) for learner in (best, plain, stubborn, generous, random)]
    page = (Path(__file__).parents[4] / "docs" / "sotopia.md").read_text(encoding="utf-8")
    table = page.partition("| learner | goal |")[2].partition("## Partner and judge")[0]
    told = re.findall(r"^\| .* \| ([\d.]+) \|$", table, re.MULTILINE)
    assert told == [*(f"{mean:.1f}" for mean in means), "0"]
    assert all(better > worse + 0.8 for better, worse in pairwise([*means, 0.0])), means
    assert mean_goal(silent) == mean_goal(leaving) == 0
    assert means[0] > 8.5


def test_firm_play_that_concedes_beats_all_others_in_simultaneous_order_too() -> None:
    tasks = TASKS[::2]
    means = {
        learner: mean_goal(learner, tasks, "simultaneous")
        for learner in (plain, stubborn, generous, random, silent)
    }
    assert min(means[plain] - mean for learner, mean in means.items() if learner != plain) > 3
    assert means[generous] > means[random] + 0.8 > means[silent] + 0.8 == 0.8


@pytest.mark.parametrize("family", FAMILIES)
def test_the_best_expert_wins_nearly_always_with_any_seed(family: str) -> None:
    won = 0
    tasks = [task_id for task_id in TASKS if family in task_id]
    for number, task_id in enumerate(tasks):
        met = encounter(task_id)

        def informed(met: Encounter, rules: Rules, dialogue: Dialogue, seat: int) -> str:
            return expert.next_action(met, rules, dialogue, seat, number)  # noqa: B023

        assert met.game is not None
        won += met.game.goal_score(play(task_id, informed, seed=number), met.seat) > 6
    assert won >= 0.9 * len(tasks)


@pytest.mark.parametrize("kind", expert.KINDS)
@pytest.mark.parametrize("order", ORDERS)
def test_two_experts_come_to_an_end_with_each_other(kind: str, order: str) -> None:
    rules, settled = Rules(order), 0
    tasks = TASKS[:36:2]
    for task_id in tasks:
        met, dialogue = encounter(task_id), list[Turn]()
        while rules.ending(dialogue) is Ending.OPEN:
            acting = rules.acting(len(dialogue))
            dialogue.append(
                tuple(
                    (seat, act(expert.actions(met, rules, dialogue, seat, 0)[kind]))
                    for seat in acting
                )
            )
        assert met.game is not None
        settled += min(met.game.goal_score(dialogue, seat) for seat in (0, 1)) > 0
    assert settled > 0.8 * len(tasks)


def test_the_plain_expert_sees_the_own_numbers_alone() -> None:
    differ = 0
    for task_id in TASKS[:30]:
        met = encounter(task_id)
        other = replace(met, game=changed(met, 1 - met.seat))
        dialogue = play(task_id, plain)
        for number in range(len(dialogue)):
            told, also = (
                expert.actions(encountered, Rules(), dialogue[:number], met.seat, 0)
                for encountered in (met, other)
            )
            assert told["plain"] == also["plain"]
            differ += told["best"] != also["best"]
    assert differ > 30


@pytest.mark.parametrize(("before", "expected"), [(16, "act: offer 105"), (18, "act: accept")])
def test_the_plain_expert_takes_what_is_worth_anything_on_its_last_turn(
    before: int, expected: str
) -> None:
    met = replace(encounter(TASKS[0]), game=LAMP)
    lines = ["speak: Hello."] * (before - 1) + ["act: offer 106"]
    dialogue = talk(*lines)
    assert expert.next_action(met, Rules(), dialogue, 0, 0, "plain") == expected


def test_with_contacts_the_best_expert_names_nobody_before_it_can_know() -> None:
    for task_id in [task_id for task_id in TASKS if "contact" in task_id][:10]:
        met, dialogue = encounter(task_id), play(task_id, best)
        other = replace(met, game=changed(met, 1 - met.seat))
        for number in range(len(dialogue)):
            so_far = dialogue[:number]
            assert best(met, Rules(), so_far, met.seat) == best(other, Rules(), so_far, met.seat)
        assert met.game.goal_score(dialogue, met.seat) == 10


def test_who_has_no_expert() -> None:
    with pytest.raises(BadOption, match="best, plain"):
        expert.next_action(encounter(TASKS[0]), Rules(), (), 0, 0, "worst")
