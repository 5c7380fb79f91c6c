"""SOTOPIA's encounters: its people, scenarios and combinations, and their splits."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from functools import cache, cached_property
from hashlib import blake2b, sha256
from importlib import resources
from pathlib import Path
from typing import Final

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task
from agentgyms.data.manifests import Item, Part, summarize
from agentgyms.envs.sotopia.official.files import (
    COMBINATIONS,
    PEOPLE,
    RELATIONSHIPS,
    SCENARIOS,
    Rows,
    read_tables,
)
from agentgyms.envs.sotopia.official.row_parser import Pair, RowParser
from agentgyms.envs.sotopia.profiles import Encounter, Relationship, Scenario

PAIRS_PER_SCENARIO: Final = 5
"""Pairs of people sampled for each scenario of SOTOPIA-pi that has no combinations."""

SAMPLE_SIZE: Final = 12


@cache
def scenario_digests() -> Mapping[str, frozenset[str]]:
    """Return the digests of all scenarios of each split, available or not."""
    file = resources.files("agentgyms.envs.sotopia.official").joinpath("scenario_digests.toml")
    digests = tomllib.loads(file.read_text("utf-8"))
    return {split: frozenset(listed.split()) for split, listed in digests.items()}


def scenario_digest(scenario_id: str) -> str:
    """Return the digest that stands for a scenario id in the lists of splits."""
    return blake2b(scenario_id.encode(), digest_size=5).hexdigest()


def splits_of(scenario_id: str) -> frozenset[str]:
    """Return the splits (`all`, `hard`, `pi`) that contain a scenario, or `other` if none does."""
    digest = scenario_digest(scenario_id)
    found = frozenset(split for split, has in scenario_digests().items() if digest in has)
    return found or frozenset({"other"})


@dataclass(frozen=True)
class Official:
    """The encounters in a folder or archive, by combination, with the learner at seat 0."""

    encounters: Mapping[str, Encounter]

    def tasks(self, split: str) -> list[Task]:
        """Return the tasks of a split: each combination at both seats.

        `other` has the scenarios that are in none of `all`, `hard` and `pi`; `sample` has 12 of
        all, from as many families as possible. Raises `DataMissing` if the split has no tasks.
        """
        found = [
            Task(f"{combination}/{seat}", encounter.scenario.source)
            for combination, encounter in sorted(self.encounters.items())
            if ("all" if split == "sample" else split) in splits_of(encounter.scenario.scenario_id)
            for seat in (0, 1)
        ]
        if not found:
            raise DataMissing(_no_tasks_message(split))
        return _sample(found) if split == "sample" else found

    def encounter(self, task_id: str) -> Encounter:
        """Return the encounter of a task; raise `KeyError` if it does not exist."""
        combination, _, seat = task_id.rpartition("/")
        found = self.encounters[combination]
        return replace(found, task_id=task_id, seat={"0": 0, "1": 1}[seat])

    @cached_property
    def parts(self) -> dict[str, Part]:
        """The available splits, with digests of their encounters."""
        return summarize(
            [
                Item(split, task_id, digest)
                for combination, encounter in self.encounters.items()
                for digest in [_digest(encounter)]
                for split in splits_of(encounter.scenario.scenario_id)
                for task_id in (f"{combination}/0", f"{combination}/1")
            ]
        )


def read(source: Path) -> Official:
    """Read the encounters of a folder or archive; a `DataCorrupt` names file and row."""
    return official(read_tables(source), source)


def official(tables: Mapping[str, Rows], source: Path) -> Official:
    """Return the encounters of tables by file name; raise `DataCorrupt` if a row does not fit."""
    try:
        return Official(_encounters(tables))
    except DataCorrupt as e:
        raise DataCorrupt(f"{source} is damaged: {e}; download it again") from None


def _encounters(tables: Mapping[str, Rows]) -> dict[str, Encounter]:
    rows = {
        file: [RowParser(row, file) for row in table.values()] for file, table in tables.items()
    }
    people = {row.key: row.person() for row in rows[PEOPLE.file]}
    scenarios = {row.key: row.scenario() for row in rows[SCENARIOS.file]}
    pairs = {row.key: (row.pair(people), row.relationship()) for row in rows[RELATIONSHIPS.file]}
    encounters = {
        row.key: _encounter(row.key, row.named("env_id", scenarios, SCENARIOS), row.pair(people))
        for row in rows[COMBINATIONS.file]
    }
    played = {encounter.scenario.scenario_id for encounter in encounters.values()}
    for row in rows[SCENARIOS.file]:
        if "pi" in splits_of(row.key) and row.key not in played:
            encounters |= _sample_encounters(row, scenarios[row.key], pairs.items())
    return encounters


def _sample_encounters(
    row: RowParser, scenario: Scenario, pairs: Iterable[tuple[str, tuple[Pair, Relationship]]]
) -> Iterator[tuple[str, Encounter]]:
    """Yield encounters as `ConstraintBasedSampler` does, deterministically, without replacement."""
    ages = row.ages()
    fitting = {
        pair: key
        for key, (pair, relationship) in pairs
        if relationship == scenario.relationship
        and all(low <= person.age <= high for person, (low, high) in zip(pair, ages, strict=True))
    }
    if not fitting:
        raise DataCorrupt(
            f"{row.where}: no two people fit, for whom the relationship is "
            f"{scenario.relationship.name.lower()} and ages are {ages}: add such a relationship, "
            "or combinations"
        )
    for pair in Chance("sotopia-pi", row.key).sample(list(fitting), PAIRS_PER_SCENARIO):
        name = f"{row.key}.{fitting[pair]}"
        yield name, _encounter(name, scenario, pair)


def _encounter(combination: str, scenario: Scenario, people: Pair) -> Encounter:
    hard = "hard" in splits_of(scenario.scenario_id)
    return Encounter(f"{combination}/0", scenario, people, seat=0, hard=hard)


def _sample(tasks: list[Task]) -> list[Task]:
    """Return the first tasks, taking families in turn."""
    seen: dict[str, int] = {}
    ranked = []
    for task in tasks:
        rank = seen[task.family] = seen.get(task.family, -1) + 1
        ranked.append((rank, task.family, task.task_id, task))
    return [task for *_, task in sorted(ranked, key=lambda r: r[:3])[:SAMPLE_SIZE]]


def _no_tasks_message(split: str) -> str:
    if split != "pi":
        return (
            f"these profiles have no combination of split {split!r}: get those of "
            "github.com/sotopia-lab/sotopia-space, then run `agentgyms data import sotopia PATH`"
        )
    return (
        f"these profiles have none of SOTOPIA-pi's {len(scenario_digests()['pi'])} scenarios: "
        "they are in the database dump huggingface.co/datasets/cmu-lti/sotopia-pi. "
        "Load it into redis-stack, write the EnvironmentProfiles to "
        "environment_profiles_pi.jsonl beside the other files, one JSON object a line, and run "
        "`agentgyms data import sotopia PATH` again"
    )


def _digest(encounter: Encounter) -> str:
    scenario = encounter.scenario
    known = [
        *(scenario.scenario_id, scenario.codename, scenario.source, scenario.text),
        *(scenario.goals, int(scenario.relationship)),
        *(astuple(person) for person in encounter.people),
    ]
    return sha256(json.dumps(known).encode()).hexdigest()
