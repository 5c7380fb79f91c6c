"""Whose turn it is and when a dialogue is over, on dialogues small enough to count by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgyms.envs.sotopia.dialogue import NOTHING, ORDERS, Act, Ending, Kind, Rules

SAY = Act(Kind.SPEAK, "Hello.")
LEAVE = Act(Kind.LEAVE)


def in_turns(*acts):
    """Return a dialogue in round-robin order."""
    return [((number % 2, act),) for number, act in enumerate(acts)]


def at_once(*pairs):
    """Return a dialogue in simultaneous order."""
    return [((0, first), (1, second)) for first, second in pairs]


def test_seats_take_turns_or_act_at_once():
    assert [Rules().acting(number) for number in range(3)] == [(0,), (1,), (0,)]
    assert [Rules("simultaneous").acting(number) for number in range(2)] == [(0, 1), (0, 1)]


@pytest.mark.parametrize(
    ("acts", "ending"),
    [
        ([], Ending.OPEN),
        ([SAY], Ending.OPEN),
        ([LEAVE], Ending.LEFT),
        ([SAY, LEAVE], Ending.LEFT),
        ([SAY, NOTHING, NOTHING], Ending.OPEN),
        ([SAY, NOTHING, NOTHING, NOTHING], Ending.STALE),
        ([NOTHING, NOTHING, NOTHING], Ending.STALE),
        ([NOTHING, SAY, NOTHING, NOTHING], Ending.OPEN),
        ([SAY] * 19, Ending.OPEN),
        ([SAY] * 20, Ending.TURN_LIMIT),
        ([SAY] * 19 + [LEAVE], Ending.LEFT),
        ([SAY] * 17 + [NOTHING] * 3, Ending.STALE),
        ([SAY] * 18 + [NOTHING] * 2, Ending.TURN_LIMIT),
    ],
)
def test_in_turns(acts, ending):
    assert Rules().ending(in_turns(*acts)) is ending


@pytest.mark.parametrize(
    ("acts", "ending"),
    [
        ([NOTHING], Ending.OPEN),  # its own and the other one's: two
        ([SAY], Ending.OPEN),  # one
        ([SAY, NOTHING], Ending.STALE),  # of the second turn two, and the second one's of the first
        ([NOTHING, SAY], Ending.OPEN),  # the last act in the record is speech
        ([NOTHING, SAY, NOTHING], Ending.OPEN),
        ([NOTHING, SAY, NOTHING, NOTHING], Ending.STALE),
        ([SAY, SAY, NOTHING], Ending.OPEN),
        ([SAY, SAY, SAY, NOTHING], Ending.STALE),
    ],
)
def test_turns_of_the_other_one_count_as_in_the_package(acts, ending):
    assert Rules(masked_turns_count=True).ending(in_turns(*acts)) is ending


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("pairs", "ending"),
    [
        ([(SAY, SAY)], Ending.OPEN),
        ([(NOTHING, NOTHING)], Ending.OPEN),
        ([(SAY, NOTHING), (NOTHING, NOTHING)], Ending.STALE),
        ([(NOTHING, SAY), (NOTHING, NOTHING)], Ending.OPEN),
        ([(LEAVE, SAY)], Ending.LEFT),
        ([(SAY, LEAVE)], Ending.LEFT),
        ([(SAY, SAY)] * 20, Ending.TURN_LIMIT),
    ],
)
def test_at_once(pairs, ending, masked):
    rules = Rules("simultaneous", masked_turns_count=masked)
    assert rules.ending(at_once(*pairs)) is ending


def test_the_numbers_are_arguments():
    assert Rules(max_turns=2).ending(in_turns(SAY, SAY)) is Ending.TURN_LIMIT
    assert Rules(stale_turns=0).ending(in_turns(SAY, NOTHING)) is Ending.STALE
    assert Rules(stale_turns=5).ending(in_turns(*[NOTHING] * 5)) is Ending.OPEN


@given(st.data(), st.sampled_from(ORDERS), st.booleans())
def test_what_someone_does_puts_staleness_off(data, order, masked):
    rules = Rules(order, max_turns=1000, masked_turns_count=masked)
    acts = st.sampled_from([SAY, NOTHING, Act(Kind.ACTION, "nods")])
    dialogue = [
        tuple((seat, data.draw(acts)) for seat in rules.acting(number))
        for number in range(data.draw(st.integers(0, 12)))
    ]
    busy = tuple((seat, SAY) for seat in rules.acting(len(dialogue)))
    assert rules.ending([*dialogue, busy]) is Ending.OPEN
    counted_more = Rules(order, max_turns=1000, masked_turns_count=True).ending(dialogue)
    if rules.ending(dialogue) is Ending.STALE:
        assert counted_more is Ending.STALE
