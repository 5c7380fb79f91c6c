"""SOTOPIA's own profiles: every form gives the same encounters, and what is wrong is told."""

import json
import os
import zipfile
from dataclasses import replace

import pytest
from small_profiles import (
    EASY,
    PI,
    person,
    scenario,
    small_tables,
    write_json,
    write_space,
    write_store,
)

from agentgyms.cli.data import describe
from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.data import datasets
from agentgyms.data.manifests import read_manifest
from agentgyms.envs.sotopia.official import dataset
from agentgyms.envs.sotopia.official.encounters import PAIRS_PER_SCENARIO, read
from agentgyms.envs.sotopia.official.files import COMBINATIONS, PEOPLE, RELATIONSHIPS, SCENARIOS
from agentgyms.envs.sotopia.profiles import Relationship
from agentgyms.envs.sotopia.sources import open_source

pytestmark = pytest.mark.usefixtures("small_splits")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTGYMS_DATA", str(tmp_path / "home"))
    return tmp_path / "home"


def zipped(tables, folder):
    write_json(tables, folder / "unpacked")
    path = folder / "profiles.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((folder / "unpacked").iterdir()):
            archive.write(file, f"deep/inside/{file.name}")
    return path


def test_a_task_is_a_combination_at_a_seat(tmp_path):
    official = read(write_json(small_tables(), tmp_path))
    tasks = official.tasks("all")
    assert [(task.task_id, task.family) for task in tasks] == [
        ("c0/0", "hand-craft"), ("c0/1", "hand-craft"), ("c1/0", "normbank"), ("c1/1", "normbank"),
    ]  # fmt: skip
    assert [task.task_id for task in official.tasks("hard")] == ["c1/0", "c1/1"]
    encounter = official.encounter("c1/1")
    assert (encounter.task_id, encounter.seat, encounter.hard) == ("c1/1", 1, True)
    assert [someone.name for someone in encounter.people] == ["Ann2 Ørsted", "Ann0 Ørsted"]
    assert encounter.scenario.relationship is Relationship.STRANGER
    assert encounter.game is None
    assert not official.encounter("c0/0").hard
    for unknown in ("c2/0", "c0/2", "c0/", "c0"):
        with pytest.raises(KeyError):
            official.encounter(unknown)


@pytest.mark.parametrize("write", [write_space, write_store, zipped])
def test_every_form_gives_the_same_encounters(write, tmp_path):
    plain = read(write_json(small_tables(), tmp_path / "plain"))
    other = read(write(small_tables(), tmp_path / "other"))
    assert other.encounters == plain.encounters
    assert other.parts == plain.parts


def test_an_import_keeps_every_field_and_says_whose_work_it_is(tmp_path, home):
    tables = small_tables()
    datasets.import_data("sotopia", write_space(tables, tmp_path / "in"), allow_other=True)
    kept = json.loads((home / "sotopia" / PEOPLE.file).read_text("utf-8"))
    assert kept == tables[PEOPLE.file]
    manifest = read_manifest(home / "sotopia")
    assert manifest["licence"] == "CC-BY-SA-4.0"
    assert "Zhou" in manifest["notice"]
    status = datasets.verify("sotopia", progress=False)
    assert describe(status).startswith("all 4, hard 2 in ")
    assert "the release has 900" in describe(status)
    opened = open_source("official", "hard", None)
    assert (list(opened.load()), opened.encounter("c1/0").seat) == (["c1/0", "c1/1"], 0)
    assert opened.version == f"official-{read(tmp_path / 'in').parts['hard'].digest}"


def test_an_import_of_something_else_is_refused_unless_it_is_wanted(tmp_path, home):
    with pytest.raises(DataCorrupt, match=r"not the release of sotopia: all has 4 .*--allow-other"):
        datasets.import_data("sotopia", write_json(small_tables(), tmp_path / "in"), progress=False)
    with pytest.raises(DataMissing, match="agentgyms data import sotopia PATH"):
        open_source("official", "all", None)


def test_a_changed_file_is_noticed(tmp_path, home):
    datasets.import_data("sotopia", write_json(small_tables(), tmp_path / "in"), allow_other=True)
    (home / "sotopia" / SCENARIOS.file).write_text("[]")
    with pytest.raises(DataCorrupt, match=r"environments\.json was changed"):
        datasets.verify("sotopia", progress=False)


def test_files_are_read_again_when_they_change(tmp_path):
    tables = small_tables()
    before = open_source("official", "all", write_json(tables, tmp_path))
    assert open_source("official", "all", tmp_path).version == before.version
    tables[COMBINATIONS.file].append({"pk": "c2", "env_id": EASY, "agent_ids": ["p3", "p0"]})
    write_json(tables, tmp_path)
    after = open_source("official", "all", tmp_path)
    assert (len(before.load()), len(after.load())) == (4, 6)
    assert after.version != before.version


def test_a_version_says_what_models_read(tmp_path):
    """A field that no text shows changes nothing; one that is shown does."""
    tables = small_tables()
    version = read(write_json(tables, tmp_path / "0")).parts
    tables[PEOPLE.file][0]["mbti"] = "ESFP"
    assert read(write_json(tables, tmp_path / "1")).parts == version
    tables[PEOPLE.file][0]["secret"] = "None."
    assert read(write_json(tables, tmp_path / "2")).parts != version


@pytest.mark.parametrize(
    "file", [PEOPLE.file, SCENARIOS.file, RELATIONSHIPS.file, COMBINATIONS.file]
)
def test_what_is_missing_is_named(file, tmp_path):
    write_json(small_tables(), tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(DataMissing, match=f"expected {file}, .*sotopia-space"):
        read(tmp_path)


def test_nothing_at_all(tmp_path):
    with pytest.raises(DataMissing, match="there is no file or folder"):
        open_source("official", "all", tmp_path / "nowhere")


def test_what_is_no_file_is_passed_over(tmp_path):
    write_json(small_tables(), tmp_path)
    (tmp_path / "agents-old.json").symlink_to("nowhere")
    os.mkfifo(tmp_path / "agents-pipe.json")
    assert len(open_source("official", "all", tmp_path).load()) == 4


def changed(file, index, **fields):
    def change(tables):
        row = tables[file][index]
        row |= fields
        for field in [field for field, value in row.items() if value is ...]:
            del row[field]

    return change


def twice(tables):
    tables[PEOPLE.file].append(dict(tables[PEOPLE.file][0]))


def namesakes(tables):
    tables[PEOPLE.file][1]["first_name"] = "Ann0"


DAMAGE = {
    "no id": (changed(PEOPLE.file, 0, pk=...), r"agents\.json in .* person whose id is None"),
    "an odd id": (changed(COMBINATIONS.file, 0, pk="a/b"), "combination whose id is 'a/b'"),
    "twice": (twice, "the person p0 twice, in agents.json and agents.json"),
    "namesakes": (namesakes, "both people are called Ann0"),
    "no such person": (
        changed(COMBINATIONS.file, 1, agent_ids=["p0", "p9"]),
        "c1: agent_ids names the person 'p9', which agents.json does not have",
    ),
    "no such scenario": (
        changed(COMBINATIONS.file, 0, env_id="e9"),
        "c0: env_id names the scenario 'e9', which environments.json does not have",
    ),
    "no such friend": (changed(RELATIONSHIPS.file, 0, agent_2_id="p9"), "r1: agent_2_id names"),
    "one person": (changed(COMBINATIONS.file, 0, agent_ids=["p0"]), "c0: agent_ids is .*two texts"),
    "one goal": (changed(SCENARIOS.file, 0, agent_goals=["x"]), "agent_goals is .*two texts"),
    "goals as a text": (changed(SCENARIOS.file, 0, agent_goals="xy"), "agent_goals is 'xy'"),
    "no situation": (changed(SCENARIOS.file, 0, scenario=" "), "scenario is ' ', expected a text"),
    "no relationship": (changed(SCENARIOS.file, 0, relationship=...), "relationship is 'missing'"),
    "an odd one": (changed(SCENARIOS.file, 0, relationship=6), "relationship is 6, expected 0 to"),
    "a truth": (changed(SCENARIOS.file, 0, relationship=True), "relationship is True"),
    "an odd age": (changed(PEOPLE.file, 0, age="old"), "p0: age is 'old', expected a number"),
    "many digits": (changed(PEOPLE.file, 0, age="9" * 5000), "p0: age is '999.*, expected a num"),
    "an age of stars": (changed(PEOPLE.file, 0, age=10**200), "p0: age is 1000.*, expected a num"),
    "half a character": (changed(PEOPLE.file, 0, tag="\ud83d"), r"agents\.json in .* is damaged"),
    "no name": (changed(PEOPLE.file, 0, first_name=...), "p0: first_name is 'missing'"),
    "a number": (changed(PEOPLE.file, 0, secret=7), "p0: secret is 7, expected a text"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named_and_changes_nothing(damage, reason, tmp_path, home):
    good = write_json(small_tables(), tmp_path / "good")
    folder = datasets.import_data("sotopia", good, allow_other=True, progress=False)
    before = (folder / PEOPLE.file).read_bytes()
    tables = small_tables()
    damage(tables)
    bad = write_json(tables, tmp_path / "bad")
    with pytest.raises(DataCorrupt, match=reason) as raised:
        read(bad)
    assert str(bad) in str(raised.value)
    with pytest.raises(DataCorrupt, match=reason):
        datasets.import_data("sotopia", bad, allow_other=True, progress=False)
    assert (folder / PEOPLE.file).read_bytes() == before


@pytest.mark.parametrize("content", [b'[{"pk": "p0"', b"\xff", b"[3]", b"[" * 100_000, b""])
def test_a_damaged_file_is_named(content, tmp_path):
    write_json(small_tables(), tmp_path)
    (tmp_path / PEOPLE.file).write_bytes(content)
    with pytest.raises(DataCorrupt, match=r"agents\.json"):
        read(tmp_path)


@pytest.mark.parametrize(
    "value", [3, "3", "friend", "RelationshipType.friend"], ids=["int", "text", "name", "enum"]
)
def test_a_relationship_is_read_however_it_is_written(value, tmp_path):
    tables = small_tables()
    tables[SCENARIOS.file][0]["relationship"] = value
    official = read(write_json(tables, tmp_path))
    assert official.encounter("c0/0").scenario.relationship is Relationship.FRIEND


# --- SOTOPIA-pi ---------------------------------------------------------------------------------


def with_pi(**fields):
    tables = small_tables()
    tables[SCENARIOS.file].append(scenario(PI, "", **fields))
    return tables


def test_without_scenarios_of_pi_their_absence_is_explained(tmp_path):
    write_json(small_tables(), tmp_path)
    with pytest.raises(DataMissing, match=r"pi's 1 scenarios.*environment_profiles_pi\.jsonl"):
        open_source("official", "pi", tmp_path)


def test_scenarios_of_pi_lie_in_a_file_of_their_own(tmp_path):
    write_json(small_tables(), tmp_path)
    line = json.dumps(scenario(PI, "pi") | {"env_id": PI, "relationship": "3"})
    (tmp_path / "environment_profiles_pi.jsonl").write_text(line)
    tasks = open_source("official", "pi", tmp_path).load()
    assert len(tasks) == 6  # three pairs of friends at two seats


def test_pi_may_lie_beside_the_release(tmp_path, home, monkeypatch):
    """As what is said where it is missing tells: its import is one of the release."""
    plain = read(write_json(small_tables(), tmp_path / "plain"))
    monkeypatch.setattr(dataset, "DATA_SET", replace(dataset.DATA_SET, parts=plain.parts))
    datasets.import_data("sotopia", write_json(with_pi(), tmp_path / "pi"), progress=False)
    status = datasets.verify("sotopia", progress=False)
    assert (status.parts["pi"].num_items, status.differences) == (6, ())
    tables = with_pi()
    tables[COMBINATIONS.file].pop()
    with pytest.raises(DataCorrupt, match="hard has 0 items"):
        datasets.import_data("sotopia", write_json(tables, tmp_path / "less"), progress=False)


def test_pairs_for_pi_are_friends_where_friends_meet_and_always_the_same(tmp_path):
    tables = with_pi()
    tables[PEOPLE.file] += [person(f"q{n}", f"Eve{n}") for n in range(20)]
    tables[RELATIONSHIPS.file] += [
        {"pk": f"s{n}", "agent_1_id": f"q{n}", "agent_2_id": "p1", "relationship": n % 6}
        for n in range(20)
    ]
    tables[RELATIONSHIPS.file].append(tables[RELATIONSHIPS.file][0] | {"pk": "again"})
    official = read(write_json(tables, tmp_path / "one"))
    tables[RELATIONSHIPS.file].reverse()
    assert read(write_json(tables, tmp_path / "two")).tasks("pi") == official.tasks("pi")
    friends = {
        (row["agent_1_id"], row["agent_2_id"])
        for row in tables[RELATIONSHIPS.file]
        if row["relationship"] == 3
    }
    met = [
        tuple(someone.person_id for someone in official.encounter(task.task_id).people)
        for task in official.tasks("pi")[::2]
    ]
    assert len(met) == len(set(met)) == PAIRS_PER_SCENARIO
    assert set(met) <= friends
    assert "unknown" in {task.family for task in official.tasks("pi")}


def test_ages_limit_who_meets_for_pi(tmp_path):
    tables = with_pi(age_constraint="[(18, 25), (30, 40)]")  # p0 is 20, p1 30, p2 40, p3 50
    official = read(write_json(tables, tmp_path))
    met = {official.encounter(task.task_id).people[1].age for task in official.tasks("pi")}
    assert met == {30, 40}


def test_nobody_fits_for_pi(tmp_path):
    with pytest.raises(DataCorrupt, match=r"no two people fit, .* friend and ages are \(\(90, 95"):
        read(write_json(with_pi(age_constraint="[(90, 95), (18, 70)]"), tmp_path / "ages"))
    with pytest.raises(DataCorrupt, match="age_constraint is 'young', expected"):
        read(write_json(with_pi(age_constraint="young"), tmp_path / "odd"))
    with pytest.raises(DataCorrupt, match="age_constraint is '---.*, expected"):
        read(write_json(with_pi(age_constraint="-" * 200_000 + "1"), tmp_path / "long"))


def test_combinations_for_pi_are_taken_where_they_are_there(tmp_path):
    tables = with_pi()
    tables[COMBINATIONS.file].append({"pk": "mine", "env_id": PI, "agent_ids": ["p3", "p2"]})
    official = read(write_json(tables, tmp_path))
    assert [task.task_id for task in official.tasks("pi")] == ["mine/0", "mine/1"]


def test_other_scenarios_are_counted_and_in_no_split(tmp_path):
    tables = small_tables()
    tables[SCENARIOS.file].append(scenario("mine", "hand-craft"))
    tables[COMBINATIONS.file].append({"pk": "c9", "env_id": "mine", "agent_ids": ["p3", "p2"]})
    official = read(write_json(tables, tmp_path))
    assert official.parts["other"].num_items == 2
    assert len(official.tasks("all")) == 4
