"""Distillation by hand."""

import numpy as np
import pytest

from harness import credit
from harness.credit import TurnTable
from harness.types.errors import ConfigError, TableError

KL = [0.5, -1.0, 3.0, 0.25, -0.5]


def table(**columns):
    given = {"rollout": [0, 0, 0, 1, 1], "reward": [0, 0, 1, 0, 0], "teacher_kl": KL}
    return TurnTable.from_columns(**{**given, **columns})


def advantage(**settings):
    return credit.get("distill")(table(), **settings)


def test_rows_answer_for_themselves_or_for_what_follows():
    np.testing.assert_allclose(advantage(), [-0.5, 1.0, -3.0, -0.25, 0.5])
    np.testing.assert_allclose(advantage(weight=0.1), [-0.05, 0.1, -0.3, -0.025, 0.05])
    np.testing.assert_allclose(advantage(clip=1.0), [-0.5, 1.0, -1.0, -0.25, 0.5])
    np.testing.assert_allclose(advantage(discount=1.0), [-2.5, -2.0, -3.0, 0.25, 0.5])
    np.testing.assert_allclose(advantage(discount=0.5), [-0.75, -0.5, -3.0, 0.0, 0.5])
    np.testing.assert_allclose(
        advantage(discount=0.5, clip=2.0, weight=2.0), [-0.5 * 2, 0.0, -4.0, 0.0, 1.0]
    )


def test_a_base_adds_its_advantage():
    own = credit.get("gigpo")(table(), gamma=0.9)
    np.testing.assert_allclose(advantage(base="gigpo", gamma=0.9), own + advantage())
    with_name = {"name": "gigpo", "gamma": 0.9}
    np.testing.assert_allclose(
        advantage(base=with_name, weight=0.0), own, err_msg="without a weight it is the base"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": float("inf")}, "weight must be"),
        ({"discount": 1.5}, "discount must be"),
        ({"clip": -1.0}, "clip must be"),
        ({"base": "none"}, "unknown estimator"),
        ({"gamma": 1.0}, "no hyperparameter 'gamma'"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ConfigError, match=message):
        advantage(**settings)


def test_the_column_is_needed():
    with pytest.raises(TableError, match="needs the column 'teacher_kl'"):
        credit.get("distill")(table(teacher_kl=None))
