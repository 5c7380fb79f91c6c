"""Tests of the tasks and solutions of our engine that need no traces of the real one."""

from __future__ import annotations

import random

import pytest

from agentgyms.envs.scienceworld.own.gold.covering import CoveringWalk
from agentgyms.envs.scienceworld.own.random import JavaRandom
from agentgyms.envs.scienceworld.own.tasks.draws import subsampled
from agentgyms.envs.scienceworld.own.tasks.maker import TASK_NAMES, TaskMaker1
from agentgyms.envs.scienceworld.own.world import World
from agentgyms.envs.scienceworld.tasks import VARIATIONS

Graph = dict[str, list[str]]


def house(seed: int) -> tuple[Graph, str]:
    """Return a small house with one way at most between two rooms, and where a walk starts."""
    drawn = random.Random(seed)
    rooms = [f"room {number}" for number in range(drawn.randint(2, 6))]
    graph: Graph = {room: [] for room in rooms}
    for at in range(1, len(rooms)):
        join(graph, rooms[at], rooms[drawn.randrange(at)])
    join(graph, *drawn.sample(rooms, 2))
    return graph, drawn.choice(rooms)


def join(graph: Graph, room: str, other: str) -> None:
    if other not in graph[room]:
        graph[room].append(other)
        graph[other].append(room)


def first_covering_walk(graph: Graph, start: str, drawn: JavaRandom) -> list[str]:
    """Return what the real engine finds, by making all walks as it does."""
    walks = [[start]]
    while True:
        walks = [[*walk, end] for walk in walks for end in drawn.shuffle(graph[walk[-1]])]
        for walk in walks:
            if len(set(walk)) == len(graph):
                return walk


@pytest.mark.parametrize("seed", range(40))
def test_covering_walk_is_the_one_that_all_walks_give(seed: int) -> None:
    graph, start = house(seed)
    slow, fast = JavaRandom(seed), JavaRandom(seed)
    search = CoveringWalk(graph, start, fast)
    assert search.can_skip()
    assert search.places() == first_covering_walk(graph, start, slow)
    assert fast.state == slow.state


def test_covering_walk_has_no_steps_where_a_room_is_shut() -> None:
    graph: Graph = {"kitchen": ["hallway"], "hallway": ["kitchen"], "attic": []}
    assert CoveringWalk(graph, "kitchen", JavaRandom(0)).steps > 20


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_generator_skips_what_it_would_draw(count: int) -> None:
    drawn, skipped = JavaRandom(3), JavaRandom(3)
    for _ in range(count):
        drawn.next_boolean()
    skipped.skip(count)
    assert skipped.state == drawn.state


def test_draws_below_a_bound_are_irregular_only_at_the_end_of_the_range() -> None:
    assert JavaRandom(0).is_regular(1000, 9)
    assert not JavaRandom(0).is_regular(1000, 1 << 31)


def test_all_tasks_have_their_variations() -> None:
    assert sorted(TASK_NAMES) == sorted(VARIATIONS)
    for name, count in VARIATIONS.items():
        maker = TaskMaker1(World(), name, 0)
        assert maker.task is not None
        assert maker.task.num_combinations() == count


@pytest.mark.parametrize("name", sorted(VARIATIONS))
def test_first_and_last_variation_are_made(name: str) -> None:
    for number in (0, VARIATIONS[name] - 1):
        world = World(number)
        maker = TaskMaker1(world, name, number)
        assert maker.modifiers
        task = maker.make_goals()
        assert task.description
        assert task.goal_sequence.score() == 0
        assert len(task.goal_sequence.subgoals) >= 1


def test_subsamples_are_of_each_set() -> None:
    chosen = subsampled(875, 0.5)
    assert len(chosen) == VARIATIONS["measure-melting-point-known-substance"]
    assert [sum(at < 437 for at in chosen), sum(at >= 656 for at in chosen)] == [218, 109]
