"""Reference solutions of MiniAppWorld: all pass, and each its own task alone."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from agentgyms.envs.appworld.mini.generator import COUNTS, MiniTasks, scenarios, task_ids
from agentgyms.envs.appworld.mini.scenarios import CHALLENGE, COMMON
from tests.agentgyms.envs.appworld.mini_play import made, opened, play

TASKS = MiniTasks()


@pytest.mark.parametrize("split", COUNTS)
def test_the_solutions_of_a_split_complete_every_task_and_every_scenario(split: str) -> None:
    solved: dict[str, list[bool]] = defaultdict(list)
    for task_id in TASKS.families(split):
        world = opened(task_id)
        play(world, made(task_id).solution)
        report = world.report()
        assert world.completed
        assert report.score == report.score_over_no_op == 1.0, (task_id, report)
        solved[task_id.split("_")[0]].append(report.success)
    tasks = [success for group in solved.values() for success in group]
    assert 100 * sum(tasks) / len(tasks) == 100
    assert 100 * sum(map(all, solved.values())) / len(solved) == 100


@pytest.mark.parametrize("task_id", ["payback-t502_1", "likesong-n505_3"])
def test_a_solution_finds_the_title_among_more_that_a_search_finds(task_id: str) -> None:
    world = opened(task_id)
    play(world, made(task_id).solution)
    assert world.report().success


def test_solutions_have_few_turns_and_those_of_the_first_difficulty_short_ones() -> None:
    for split in COUNTS:
        for task_id, difficulty in TASKS.families(split).items():
            blocks = made(task_id).solution
            assert 3 <= len(blocks) <= 8, task_id
            assert "complete_task" in blocks[-1]
            assert not any("complete_task" in block for block in blocks[:-1])
            if difficulty == 1:
                assert max(len(block.splitlines()) for block in blocks) <= 3
                assert max(map(len, blocks)) <= 260, task_id


def test_solutions_know_no_more_than_the_instruction() -> None:
    for split in COUNTS:
        for task_id in TASKS.families(split):
            world = opened(task_id)
            code = "\n".join(made(task_id).solution)
            for person in world.outcome.before.table("purse.Account").values():
                assert person.password not in code  # type: ignore[attr-defined]
                email = person.email  # type: ignore[attr-defined]
                assert email not in code or email in world.brief.instruction
            assert not re.search(r"_id=\d", code)


@pytest.mark.parametrize("split", COUNTS)
def test_no_task_is_solved_by_the_solution_of_another_one_of_its_scenario(split: str) -> None:
    for name, _ in scenarios(split):
        for task_id in task_ids(name):
            for other in set(task_ids(name)) - {task_id}:
                world = opened(task_id)
                try:
                    play(world, made(other).solution)
                except Exception:
                    continue
                assert not world.report().success, (task_id, other)


def test_no_instruction_or_solution_is_that_of_a_task_of_another_split() -> None:
    splits: dict[object, set[str]] = defaultdict(set)
    for split in COUNTS:
        for task_id in TASKS.families(split):
            splits[opened(task_id).brief.instruction].add(split)
            splits[made(task_id).solution].add(split)
    assert [what for what, found in splits.items() if len(found) > 1] == []


@pytest.mark.parametrize("template", [each.name for each in (*COMMON, *CHALLENGE)])
def test_a_solution_that_is_given_up_or_unfinished_fails(template: str) -> None:
    letter = "t" if template in {each.name for each in COMMON} else "c"
    task_id = f"{template}-{letter}001_1"
    *blocks, last = made(task_id).solution
    unfinished = opened(task_id)
    play(unfinished, blocks)
    assert not unfinished.report().success
    given_up = opened(task_id)
    play(given_up, [*blocks, last, 'apis.supervisor.complete_task(status="fail")'])
    assert not given_up.report().success
    idle = opened(task_id)
    play(idle, ["apis.supervisor.complete_task()"])
    assert not idle.report().success
