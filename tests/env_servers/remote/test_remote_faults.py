"""Requests that are lost, late, doubled, overtaken or cut: no turn is taken twice or skipped."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from audited import ACTIONS, HASTY, PATIENT, Books, Pair, kept, made, pair
from fault_proxy import QUICK, SLOW, FaultProxy, Request, by_chance
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ledger import LedgerEnv
from vector_comparison import assert_equal

from agentgyms.remote import Patience, RemoteVectorEnv

OPERATIONS = ("sessions", "reset", "step", "snapshot", "restore", "fork", "render")


def once_each(fate: str) -> Callable[[Request], str]:
    """Return what chooses `fate` for the first request of each operation."""
    left = set(OPERATIONS)

    def choose(request: Request) -> str:
        if request.operation not in left:
            return "normal"
        left.remove(request.operation)
        return fate

    return choose


def _play_each_operation_once(both: Pair, books: Books) -> None:
    both.begin(1)
    for action in ("debit", "credit"):
        both.step(action)
    saved = both.here.snapshot()
    assert both.there.snapshot() == saved
    both.step("credit")
    assert both.there.restore(saved) == both.here.restore(saved)
    twins = Pair(both.there.fork(), both.here.fork(), both.rng)
    assert both.there.render() == both.here.render()
    for one in (both, twins):
        one.step("wait")
        assert books.acts(one.there) == ["debit", "credit", "wait"]
        one.there.close()


@pytest.mark.parametrize("fate", QUICK)
def test_one_accident_of_each_operation_changes_nothing(books, fate):
    with FaultProxy(books.url, once_each(fate)) as proxy:
        _play_each_operation_once(pair(proxy, 0), books)
        proxy.settle()
        assert proxy.counts()[fate] == len(OPERATIONS)
    assert books.is_empty_within(10), "a session was left behind"
    if fate != "reply_cut":  # which may look like the reply of another server
        again = fate not in ("twice", "again_later", "again_at_last")
        assert proxy.asked().count("reset") == 1 + again, "the session was given up"


@pytest.mark.slow
@pytest.mark.parametrize("fate", SLOW)
def test_what_is_late_changes_nothing(books, fate):
    with FaultProxy(books.url, once_each(fate)) as proxy:
        _play_each_operation_once(pair(proxy, 0, HASTY), books)
        proxy.settle()
        assert proxy.counts()[fate] == len(OPERATIONS)
    # Nobody knows of a session whose opening or forking was given up; it expires.
    assert len(books.sessions) <= (0 if fate == "trickled" else 2), "a session was left behind"


@pytest.mark.parametrize("seed", range(4))
def test_accidents_by_chance(books, seed):
    with FaultProxy(books.url, by_chance(seed, 0.5, QUICK)) as proxy:
        both = pair(proxy, seed)
        both.play(seed, 40)
        assert proxy.counts().total() - proxy.counts()["normal"] > 20
        both.there.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "fates"), [(0.15, (*QUICK, *SLOW)), (0.6, QUICK)], ids=["all", "quick"]
)
def test_hundreds_of_accidents(rate, fates):
    with kept(ttl_s=3.0) as books:
        accidents = 0
        for seed in range(6):
            with FaultProxy(books.url, by_chance(seed, rate, fates)) as proxy:
                both = pair(proxy, seed, HASTY if "late" in fates else PATIENT)
                both.play(seed, 60)
                both.there.close()
                proxy.settle()
                accidents += proxy.counts().total() - proxy.counts()["normal"]
        assert accidents > (30 if "late" in fates else 300)
        assert books.is_empty_within(8), "what nobody closed has not expired"


MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)


def _compare_vectors(
    proxies: list[FaultProxy], mode: AutoresetMode, seed: int, steps: int, patience: Patience
) -> None:
    rng, n = random.Random(seed), 8
    here = SyncVectorEnv([lambda: LedgerEnv(max_turns=6)] * n, autoreset_mode=mode)
    urls = [proxy.url for proxy in proxies]
    kwargs = {"autoreset_mode": mode, "max_turns": 6}
    there = made(RemoteVectorEnv, n, url=urls, patience=patience, **kwargs)
    assert_equal(here.reset(seed=seed), there.reset(seed=seed), "reset")
    for turn in range(steps):
        actions = [rng.choice([*ACTIONS, "end"]) for _ in range(n)]
        assert_equal(here.step(actions), there.step(actions), f"seed {seed}, step {turn}")
    assert here.call("snapshot") == there.call("snapshot")
    there.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_vector_meets_with_accidents(books, mode):
    with (
        FaultProxy(books.url, by_chance(1, 0.4, QUICK)) as one,
        FaultProxy(books.url, by_chance(2, 0.4, QUICK)) as two,
    ):
        _compare_vectors([one, two], mode, 1, 20, PATIENT)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_vector_meets_with_accidents_of_all_kinds(mode):
    with kept(ttl_s=3.0) as books:
        accidents = 0
        for seed in range(3):
            with (
                FaultProxy(books.url, by_chance(seed, 0.2, (*QUICK, *SLOW))) as one,
                FaultProxy(books.url, by_chance(-seed - 1, 0.2, (*QUICK, *SLOW))) as two,
            ):
                _compare_vectors([one, two], mode, seed, 25, HASTY)
                normal = one.counts()["normal"] + two.counts()["normal"]
                accidents += len(one.requests) + len(two.requests) - normal
        assert accidents > 30
        assert books.is_empty_within(8), "what nobody closed has not expired"
