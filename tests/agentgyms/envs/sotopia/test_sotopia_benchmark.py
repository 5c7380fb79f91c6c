"""The benchmark's own profiles: the release is recognised, and so is each scenario."""

import json
import shutil

import pytest
from small_profiles import scenario, write_space

from agentgyms.data import datasets
from agentgyms.envs.sotopia.official.encounters import (
    PAIRS_PER_SCENARIO,
    read,
    scenario_digest,
    scenario_digests,
    splits_of,
)
from agentgyms.envs.sotopia.official.files import COMBINATIONS, PEOPLE, RELATIONSHIPS, SCENARIOS
from agentgyms.envs.sotopia.sources import open_source


def listed(benchmark):
    """Return the ids of each split, as they are published."""
    lists = json.loads((benchmark / "env_lists.json").read_text("utf-8"))
    rounds = json.loads((benchmark / "sotopia_pi_env_ids.json").read_text("utf-8"))
    pi = [key for name, keys in rounds.items() if "round" in name for key in keys]
    return {"all": set(lists["all"]), "hard": set(lists["hard"]), "pi": set(pi)}


def test_the_lists_of_scenarios():
    digests = scenario_digests()
    assert {split: len(listed) for split, listed in digests.items()} == {
        "all": 90, "hard": 14, "pi": 410,
    }  # fmt: skip
    assert digests["hard"] < digests["all"]
    assert not digests["pi"] & digests["all"]


@pytest.mark.data
def test_the_splits_are_those_that_are_published(benchmark):
    ids = listed(benchmark)
    assert {split: len(keys) for split, keys in ids.items()} == {"all": 90, "hard": 14, "pi": 410}
    every = ids["all"] | ids["pi"]
    assert len({scenario_digest(key) for key in every}) == len(every) == 500
    for key in every:
        assert splits_of(key) == {split for split, keys in ids.items() if key in keys}
    for split, keys in ids.items():
        assert scenario_digests()[split] == set(map(scenario_digest, keys))


@pytest.mark.data
def test_the_benchmark_is_recognised_in_both_forms(benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    tables = {
        table.file: json.loads((benchmark / table.file).read_text("utf-8"))
        for table in (PEOPLE, SCENARIOS, RELATIONSHIPS, COMBINATIONS)
    }
    for folder in (benchmark, write_space(tables, tmp_path / "space")):
        datasets.import_data("sotopia", folder, progress=False)
        assert datasets.verify("sotopia", progress=False).differences == ()
    shutil.rmtree(tmp_path / "space")
    sizes = {split: len(open_source("official", split, None).load()) for split in ("all", "hard")}
    assert sizes == {"all": 900, "hard": 140}
    sample = open_source("official", "sample", None).load()
    assert (len(sample), len(sample.families())) == (12, 8)
    assert open_source("official", "all", None).load().families() == {
        "craigslist_bargains": 100, "deal-or-no-deal": 100, "hand-craft": 60, "mutual_friends": 100,
        "normbank": 90, "persuation_for_good": 100, "social_chemistry": 200, "social_iqa": 150,
    }  # fmt: skip


@pytest.mark.data
def test_pairs_for_pi_exist_in_the_benchmarks_relationships(benchmark, tmp_path):
    """Whatever relationship one of its scenarios is for, five pairs are drawn."""
    shutil.copytree(benchmark, tmp_path / "in")
    scenarios = [
        scenario(key, "pi", relationship=number % 6)
        for number, key in enumerate(sorted(listed(benchmark)["pi"]))
    ]
    (tmp_path / "in" / "environments_pi.json").write_text(json.dumps(scenarios))
    official = read(tmp_path / "in")
    assert len(official.tasks("pi")) == 410 * PAIRS_PER_SCENARIO * 2
    assert official.parts["all"] == read(benchmark).parts["all"]
