"""Recipes against what papers and scripts say of their settings: `harness/config/sources.toml`."""

import tomllib
from fnmatch import fnmatch

import pytest

from harness import config as configs
from harness.config.files import SOURCES, departures
from harness.preflight import resolve

RECIPES = configs.list_recipes()
TABLES = tomllib.loads(SOURCES.read_text(encoding="utf-8"))["source"]
OWN = [name for name in RECIPES if "tiny" in name]
"""Recipes that follow nobody: demos of this harness."""


def flat(values, above=""):
    """Return nested settings by their dotted names."""
    found = {}
    for key, value in values.items():
        nested = isinstance(value, dict)
        found |= flat(value, f"{above}{key}.") if nested else {f"{above}{key}": value}
    return found


def sources_of(recipe):
    return [t for t in TABLES if any(fnmatch(recipe, name) for name in t["recipes"])]


@pytest.mark.parametrize("recipe", [name for name in RECIPES if name not in OWN])
def test_a_recipe_has_its_sources_settings_or_names_the_departure(recipe):
    found = flat(configs.to_dict(resolve.resolve(configs.load(recipe))))
    sources, departs = sources_of(recipe), departures(recipe)
    assert sources, "no source tells of this recipe"
    told = {}
    for source in sources:
        for key, value in source["settings"].items():
            assert told.setdefault(key, value) == value, f"{source['name']} contradicts on {key}"
    differing = {key for key, value in told.items() if found.get(key) != value}
    assert differing == departs.keys(), "what differs is named, and nothing else is"
    assert all(len(reason) > 20 for reason in departs.values())


def test_every_table_is_of_some_recipe_and_says_something():
    for table in TABLES:
        assert set(table) == {"name", "recipes", "settings"}
        assert table["settings"], table["name"]
        for pattern in table["recipes"]:
            assert any(fnmatch(name, pattern) for name in RECIPES), (table["name"], pattern)


def test_recipes_of_this_harness_follow_nobody():
    for name in OWN:
        assert not sources_of(name)
        assert not departures(name)


@pytest.mark.parametrize("recipe", ["alfworld-gigpo-1.5b", "appworld-gvpo-32b", "webshop-salt-7b"])
def test_a_changed_setting_is_noticed(recipe):
    """The comparison can fail: each setting that a table tells is read from the resolved recipe."""
    found = flat(configs.to_dict(resolve.resolve(configs.load(recipe))))
    for source in sources_of(recipe):
        assert source["settings"].keys() <= found.keys() | departures(recipe).keys()
