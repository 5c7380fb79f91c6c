"""Recipes against where their settings come from: `harness/config/sources.toml`."""

import json
import tomllib
from fnmatch import fnmatch
from functools import cache

import pytest

from harness import config as configs
from harness.config.files import SOURCES, departures
from harness.preflight import defaults

RECIPES = configs.list_recipes()
TABLES = tomllib.loads(SOURCES.read_text(encoding="utf-8"))["source"]
OWN = [name for name in RECIPES if "tiny" in name or "smollm2" in name]
"""Recipes that follow nobody: demos of this harness."""
OURS = "Ours: "
NAMED = "What its name says: "
PLACES = (
    "SCPO, ",
    "ECPO, ",
    "GVPO, ",
    "SALT, ",
    "OPRL, ",
    "GVPO's and SALT's ",
    "GiGPO on Sokoban: ",
)
SCRIPTS = ("verl-agent", "verl: ")


def flat(values, above=""):
    """Return nested settings by their dotted names; None is the text of it, as TOML has none."""
    found = {}
    for key, value in values.items():
        nested = isinstance(value, dict) and value
        found |= flat(value, f"{above}{key}.") if nested else {f"{above}{key}": _told(value)}
    return found


def _told(value):
    return "None" if value is None else json.loads(json.dumps(value))


DEFAULTS = flat(configs.to_dict(configs.Config()))


@cache
def resolved(recipe):
    return flat(configs.to_dict(defaults.resolve(configs.load(recipe))))


def sources_of(recipe, tables=TABLES):
    return [t for t in tables if any(fnmatch(recipe, name) for name in t["recipes"])]


def told_of(recipe, found, tables=TABLES):
    """What tables tell of a recipe, without settings of ours that its method does not have."""
    told = {}
    for source in sources_of(recipe, tables):
        for key, value in flat(source["settings"]).items():
            if key in found or not source["name"].startswith(OURS):
                assert told.setdefault(key, value) == value, (
                    f"{source['name']} contradicts on {key}"
                )
    return told


def untold(recipe, found, tables=TABLES, departs=()):
    """The settings that are not the schema's default and that no table tells of this recipe."""
    chosen = {key for key, value in found.items() if DEFAULTS.get(key, ...) != value}
    return chosen - told_of(recipe, found, tables).keys() - set(departs) - {"run.name"}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_its_sources_settings_or_names_the_departure(recipe):
    found, departs = resolved(recipe), departures(recipe)
    assert sources_of(recipe), "no source tells of this recipe"
    told = told_of(recipe, found)
    differing = {key for key, value in told.items() if found.get(key) != value}
    assert differing == departs.keys(), "what differs is named, and nothing else is"
    assert all(len(reason) > 20 for reason in departs.values())


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_setting_of_a_recipe_comes_from_somewhere(recipe):
    """Through `extends`, presets and rows of methods: nothing is inherited unseen."""
    assert not untold(recipe, resolved(recipe), departs=departures(recipe))


def test_every_table_is_of_some_recipe_and_says_something():
    for table in TABLES:
        assert set(table) == {"name", "recipes", "settings"}
        assert table["settings"], table["name"]
        for pattern in table["recipes"]:
            assert any(fnmatch(name, pattern) for name in RECIPES), (table["name"], pattern)


def test_every_table_names_a_paper_a_script_or_a_reason():
    for table in TABLES:
        name = table["name"]
        assert name.startswith((OURS, NAMED, *PLACES, *SCRIPTS)), name
        assert len(name.removeprefix(OURS)) > 20 or not name.startswith(OURS), name


def test_every_setting_of_ours_is_some_recipes():
    for table in [table for table in TABLES if table["name"].startswith(OURS)]:
        recipes = [name for name in RECIPES if sources_of(name, [table])]
        for key, value in flat(table["settings"]).items():
            assert any(resolved(name).get(key) == value for name in recipes), (table["name"], key)


def test_recipes_of_this_harness_follow_nobody():
    for name in OWN:
        assert all(t["name"].startswith((OURS, NAMED)) for t in sources_of(name)), name
        assert not departures(name)


@pytest.mark.parametrize("recipe", ["alfworld-gigpo-1.5b", "appworld-gvpo-32b", "webshop-salt-7b"])
def test_a_setting_that_no_table_tells_is_noticed(recipe):
    found = resolved(recipe)
    added = {**found, "method.loss.entropy_coefficient": 0.5, "policy.ema": 0.9}
    assert untold(recipe, added) == {"policy.ema"}
    for table in sources_of(recipe):
        others = [t for t in TABLES if t is not table]
        here = {
            key
            for key, value in flat(table["settings"]).items()
            if key in found and DEFAULTS.get(key, ...) != found[key]
        }
        assert untold(recipe, found, others) == here - told_of(recipe, found, others).keys()


def test_a_recipe_of_another_paper_takes_nothing_from_its_base_unseen():
    """The same settings under a name that verl-agent's tables do not match."""
    missed = untold("alfworld-newest-1.5b", resolved("alfworld-gigpo-1.5b"))
    expected = {"statistics", "invalid_penalty", "penalty_on", "gamma", "step_weight"}
    assert {f"method.credit.{key}" for key in expected} <= missed
    assert {"method.preset", "method.loss.dual_clip", "method.loss.entropy_coefficient"} <= missed
    assert "rollout.backend" not in missed, "a machine's settings are every recipe's"
