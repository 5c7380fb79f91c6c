"""The usual returns of seats: by hand, whatever the order, and after a restart."""

import dataclasses

import numpy as np
import pytest
import torch
from random_rollouts import some_rollouts

from harness import annotators
from harness.annotators import AnnotatorContext
from harness.credit import TurnTable
from harness.types.errors import ConfigError


def at_seats(policy, seed=0):
    """Two groups of four rollouts; the first group's are at seat 0, the second's at seat 1."""
    rollouts = some_rollouts(policy, groups=2, seed=seed)
    return [
        dataclasses.replace(one, task_id=f"talk/{one.group}", family="talk") for one in rollouts
    ]


def step(annotator, rollouts):
    """The baselines of the rollouts' first turns, and then learn from them."""
    turns = annotator.annotate(TurnTable.from_rollouts(rollouts), rollouts)
    annotator.learn(turns, rollouts, step=0, seed=0)
    return turns.value[turns.starts].tolist()


def made(policy, **settings):
    return annotators.make("seat_baseline", settings, AnnotatorContext(policy))


@pytest.mark.parametrize("update", ["before", "after"])
def test_averages_by_hand(policy, update):
    rollouts = at_seats(policy)
    for rollout in rollouts[4:]:  # seat 1 never succeeds
        rollout.turns[-1] = dataclasses.replace(rollout.turns[-1], reward=0.0)
    annotator = made(policy, decay=0.5, update=update)
    first, second = step(annotator, rollouts), step(annotator, rollouts)
    once = (1 - 0.5**4) * 0.5  # two of four succeed
    twice = 0.5**4 * once + once
    expected = {"before": (once, twice), "after": (0.0, once)}[update]
    np.testing.assert_allclose([first[:4], second[:4]], [[x] * 4 for x in expected])
    assert first[4:] == second[4:] == [0.0] * 4


def test_seats_and_families_have_averages_of_their_own_in_any_order(policy):
    rollouts = at_seats(policy)
    one, other = made(policy), made(policy)
    assert step(one, rollouts)[::-1] == step(other, rollouts[::-1])
    assert one.state_dict() == other.state_dict()
    assert set(one.state_dict()["averages"]) == {"talk/0", "talk/1"}
    shared = made(policy, seat=r"(talk)")
    step(shared, rollouts)
    assert set(shared.state_dict()["averages"]) == {"talk/talk"}


def test_averages_go_on_after_a_restart(policy, tmp_path):
    annotator, resumed = made(policy), made(policy)
    step(annotator, at_seats(policy))
    torch.save(annotator.state_dict(), tmp_path / "state.pt")
    resumed.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    later = at_seats(policy, seed=1)
    assert step(resumed, later) == step(annotator, later)


@pytest.mark.parametrize("wrong", [{"seat": "("}, {"seat": "x"}, {"decay": 2}, {"update": "never"}])
def test_wrong_settings_are_named(wrong):
    with pytest.raises(ConfigError, match="seat_baseline"):
        annotators.complete("seat_baseline", wrong)
