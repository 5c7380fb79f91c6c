"""Settings that estimators share: keywords for callers, one object for estimators."""

import inspect
from dataclasses import fields

import pytest

from harness import credit
from harness.credit import TurnTable, registry
from harness.credit.estimators.gigpo import gigpo
from harness.credit.groups import standardise
from harness.credit.shared import OUTCOMES, Shared, with_shared
from harness.types.errors import ConfigError

TABLE = TurnTable.from_columns(
    rollout=[0, 0, 1], group=[0, 0, 0], reward=[0.0, 1.0, 0.0], valid=[True, False, True]
)


@with_shared("ddof", *OUTCOMES, gamma=0.5)
def scored(turns, shared, *, offset=0.0, **settings):
    """Return the scores of the turns, and what else was given."""
    return shared, offset, settings


def test_callers_give_fields_as_keywords_and_the_rest_stays_with_the_estimator():
    assert scored(TABLE) == (Shared(gamma=0.5), 0.0, {})
    got = scored(TABLE, penalty_on="row", gamma=0.9, offset=2.0, eps=0.1)
    # It does not take `eps`, so that its base may get it.
    assert got == (Shared(penalty_on="row", gamma=0.9), 2.0, {"eps": 0.1})


def test_the_signature_has_the_keywords_in_place_of_the_object():
    parameters = inspect.signature(scored).parameters
    assert list(parameters) == [
        *("turns", "offset", "ddof", "statistics", "invalid_penalty", "penalty_on", "gamma"),
        "settings",
    ]
    assert (parameters["gamma"].default, parameters["ddof"].default) == (0.5, 1)
    assert scored.__doc__.endswith(
        "Keywords of `harness.credit.shared.Shared`: "
        "ddof, statistics, invalid_penalty, penalty_on, gamma.\n"
    )


def test_a_name_that_is_no_field_is_refused_where_the_estimator_is_defined():
    with pytest.raises(AttributeError, match="gama"):
        with_shared("gama")(lambda turns, shared: None)
    with pytest.raises(TypeError, match="gama"):
        with_shared(gama=1.0)


def test_one_name_has_one_meaning_in_every_estimator():
    own = {
        (key, name)
        for name in credit.names()
        for key in {field.name for field in fields(Shared)}.intersection(
            registry.hyperparameters_of(name)
        )
        if f" {key}: " in inspect.getdoc(credit.get(name)).split("Keywords of")[0]
    }
    # The preferences' discount is no setting of step returns: DMPO's must be above 0.
    assert own == {("gamma", name) for name in ("dmpo", "dpo", "ipo", "kto")}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("norm", "max", "norm must be one of 'std', 'mean', got 'max'"),
        ("ddof", 2, "ddof must be one of 0, 1, got 2"),
        ("eps", -1.0, "eps must be a number of at least 0, got -1.0"),
        ("statistics", "group", "statistics must be one of 'rollout', 'turn', got 'group'"),
        ("gamma", 1.5, r"gamma must be a number in \[0, 1\], got 1.5"),
        ("invalid_penalty", -0.1, "invalid_penalty must be a number of at least 0, got -0.1"),
        ("penalty_on", "all", "penalty_on must be one of 'step', 'row', 'return', got 'all'"),
        ("singleton", "one", "singleton must be one of 'zero', 'raw', got 'one'"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(key, value, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        gigpo(TABLE, **{key: value})


def test_a_setting_out_of_range_is_refused_where_it_would_not_be_read():
    with pytest.raises(ConfigError, match="gamma must be a number in"):
        credit.get("reinforce_pp")(TABLE, baseline=True, gamma=1.5)


def test_standardise_takes_the_settings():
    x, label = TABLE.reward, TABLE.group
    for settings in ({"norm": "mean"}, {"ddof": 0}, {"eps": 0.5}):
        want = standardise(x, label, **{"norm": "std", "ddof": 1, "eps": 1e-6} | settings)
        assert Shared(**settings).standardise(x, label).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("grpo", {}),
        ("tree_grpo", {}),
        *((name, {}) for name in ("aem", "cast", "empg", "oprl", "salt")),
        ("gvpo", {"base": "grpo"}),
    ],
)
def test_the_former_name_of_norm_is_refused_with_the_present_one(name, settings):
    with pytest.raises(ConfigError, match=r'\'scale_by_std\': give norm = "std" for true'):
        credit.check(name, {**settings, "scale_by_std": False})
    with pytest.raises(ConfigError, match=r'norm = "mean" for false'):
        credit.check("salt", {"base": {"name": "grpo", "scale_by_std": False}})


def test_an_estimator_may_have_a_keyword_of_the_former_name():
    def plain(turns, *, norm="std", scale_by_std=True):
        return turns.reward * scale_by_std

    registry.estimator("plain_with_the_former_name")(plain)
    try:
        got = credit.get("plain_with_the_former_name")(TABLE, scale_by_std=False)
        assert got.tolist() == [0.0, 0.0, 0.0]
    finally:
        del registry._ESTIMATORS._entries["plain_with_the_former_name"]
