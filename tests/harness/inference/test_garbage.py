"""Garbage of a run that answers again and again is freed."""

import asyncio
import gc
import weakref

import pytest

from harness.inference.completers import Sampling, garbage
from harness.inference.completers.hf import HFCompleter

ANSWERS, CYCLES = 100, 100


class Node:
    def __init__(self):
        self.me = self


@pytest.fixture
def made():
    """The nodes that are left; what was frozen is garbage again afterwards."""
    gc.collect()
    yield weakref.WeakSet()
    garbage.collect()


def test_what_is_left_by_answers_is_collected_meanwhile(policy, made):
    async def answers():
        completer = HFCompleter(policy)
        for seed in range(ANSWERS):
            for node in [Node() for _ in range(CYCLES)]:
                made.add(node)
            del node
            await completer.complete([{"role": "user", "content": "go"}], Sampling(1.0, 1), seed)

    asyncio.run(answers())
    assert len(made) < ANSWERS * CYCLES / 4


def test_what_is_frozen_can_be_freed(made):
    garbage.freeze.cache_clear()
    node = Node()
    made.add(node)
    garbage.freeze()
    del node
    gc.collect()
    assert len(made) == 1
    assert gc.get_freeze_count() > 1000
    garbage.freeze()  # does nothing
    garbage.collect()
    assert len(made) == 0
    assert gc.get_freeze_count() == 0
