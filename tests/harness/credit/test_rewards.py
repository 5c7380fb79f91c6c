"""Rewards by name, and weighted sums of them."""

import numpy as np
import pytest

from harness.credit import TurnTable, rewards
from harness.types.errors import ConfigError
from harness.types.rollout import Completion, Rollout, Turn


def rollout(tokens=(3, 5), success=True):
    own = Rollout("task", "family", 0, 0, 0)
    for t, count in enumerate(tokens):
        said = Completion("a", (1,), tuple(range(count)), (0.0,) * count)
        own.turns.append(
            Turn("", f"s{t}", said, "a", "a", "admissible", 0.25, "", f"s{t + 1}", 0.0)
        )
    own.success, own.score = success, 0.5
    return own


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("success", [0, 1]),
        ("tokens", [3, 5]),
        ("success - 0.01 * turns", [-0.01, 0.99]),
        ("2*success + score", [0, 2.5]),
        ("environment + 1e-3 * tokens - 0.5 * turns", [-0.247, -0.245]),
        (" 0.5 * score ", [0, 0.25]),
    ],
)
def test_a_sum_is_that_of_its_parts(expression, wanted):
    np.testing.assert_allclose(rewards.get(expression)(rollout()), wanted)
    table = TurnTable.from_rollouts([rollout()], reward=expression, reward_scale=10)
    np.testing.assert_allclose(table.reward, 10 * np.asarray(wanted, float))


@pytest.mark.parametrize(
    "expression",
    [
        "success +",
        "success + 2 *",
        "-1 * success",
        "inf * success",
        "1e999 * success",
        ".5 * turns + score",
    ],
)
def test_what_is_no_sum_is_refused(expression):
    with pytest.raises(ConfigError) as caught:
        rewards.get(expression)
    assert len(str(caught.value)) < 300


def test_an_unknown_part_is_named():
    with pytest.raises(ConfigError, match=r"'sucess'.*success"):
        rewards.get("0.5 * sucess + turns")
