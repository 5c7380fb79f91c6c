"""Evaluations that differ in nothing but seeds are one row."""

import csv
import io

import pytest
from made_results import alfworld, episode, episodes, keep, result, rows

from harness.config import ModelConfig, without_seed
from harness.evaluation import open_model
from harness.evaluation.model_source import Source
from harness.reporting.results.loading import load_all
from harness.reporting.results.seed_groups import group_by_seeds
from harness.reporting.tables import formats
from harness.reporting.tables import rows as tables

TASKS = ("a", "b", "c", "d")


def checkpoint(won, *, training=0, seeds=(0,), step=150, settings="x", planned=None):
    """Return the result of a checkpoint that solves the first `won` tasks with every seed."""
    records = [r for s in seeds for r in episodes({t: t in TASKS[:won] for t in TASKS}, seed=s)]
    given = result(records, seeds=seeds, kind="trained", planned=planned)
    trained = {"method": "gigpo", "model": "org/Base-1B", "seed": training, "settings": settings}
    given["config"] = {
        "run": {"name": f"t{training}", "seeds": list(seeds), "tasks": None},
        "model": {"name": f"runs/{training}", "revision": None},
        "service": {"stream": False},
    }
    revision = f"{training}-{step}-{settings}"
    given["model"] = {
        "backend": "hf",
        "name": f"runs/{training}",
        "revision": revision,
        "step": step,
        "trained": trained,
    }
    return given


def kept(tmp_path, *given):
    return load_all([keep(tmp_path / f"r{i}", one) for i, one in enumerate(given)])


def shown(loaded):
    """Return method and overall success of the rows of the only table."""
    (table,) = tables.build(loaded)
    return [(cells[2], cells[-1]) for cells in rows(formats.tables_to_markdown([table]))[1:]]


def test_checkpoints_of_several_training_seeds_are_one_row(tmp_path):
    loaded = kept(tmp_path, *(checkpoint(won, training=won) for won in (1, 2, 4)))
    # Of 25, 50 and 100 %: mean 58.33, squares 1111.1 + 69.4 + 1736.1 = 2916.7, by 2: 38.19^2.
    assert shown(loaded) == [("GiGPO", "58.3 ± 38.2")]
    (table,) = tables.build(loaded)
    assert table.notes == (
        "GiGPO (Base-1B), ALFWorld valid_seen: 4 tasks, seed 0, training seeds 1, 2, 4, at most "
        "50 turns, data made-1, step 150 of training",
    )


def test_the_deviation_is_over_training_seeds_however_many_seeds_each_was_played_with(tmp_path):
    one, other = checkpoint(2, training=0, seeds=(0, 1, 2)), checkpoint(4, training=1, seeds=(0,))
    again = checkpoint(4, training=1, seeds=(1, 2))
    (row,) = group_by_seeds(kept(tmp_path, one, other, again))
    (table,) = tables.build([*row.members])
    cell = table.rows[0].cells[0, "All"]
    assert (cell.mean, cell.std) == (75, pytest.approx(35.355, abs=1e-3))  # of 50 and 100
    assert (row.training_seeds, row.seeds) == ([0, 1], [0, 1, 2])
    assert row.label == "r0 (3 evaluations)"


def test_evaluations_of_one_model_with_other_seeds_are_one_row(tmp_path):
    given = [
        result(episodes({t: t in TASKS[:won] for t in TASKS}, seed=seed), seeds=(seed,))
        for seed, won in ((0, 1), (1, 2), (2, 3))
    ]
    assert shown(kept(tmp_path, *given)) == [("ReAct", "50.0 ± 25.0")]
    whole = result(
        [
            r
            for s, w in ((0, 1), (1, 2), (2, 3))
            for r in episodes({t: t in TASKS[:w] for t in TASKS}, seed=s)
        ],
        seeds=(0, 1, 2),
    )
    assert shown(kept(tmp_path / "whole", whole)) == [("ReAct", "50.0 ± 25.0")]


@pytest.mark.parametrize(
    "other",
    [
        {"training": 1, "step": 100},
        {"training": 1, "settings": "y"},
        {"training": 0},
        {"training": 0, "seeds": (0, 1)},
        {"training": 0, "seeds": (1,), "settings": "y"},
    ],
)
def test_what_differs_otherwise_or_is_there_already_is_a_row_of_its_own(tmp_path, other):
    loaded = kept(tmp_path, checkpoint(2), checkpoint(2, **other))
    assert [method for method, _ in shown(loaded)] == ["GiGPO (r0)", "GiGPO (r1)"]


@pytest.mark.parametrize("section", ["environment", "sampling", "agent", "tasks"])
def test_other_circumstances_are_other_rows(tmp_path, section):
    other = checkpoint(2, training=1)
    if section == "tasks":
        other["tasks"][0][0] = "another"
    else:
        other[section]["new"] = 1
    assert len(group_by_seeds(kept(tmp_path, checkpoint(2), other))) == 2


def test_missing_episodes_of_all_are_told(tmp_path):
    given = [checkpoint(2, training=0, planned=5), checkpoint(2, training=1, planned=6)]
    built = tables.build(kept(tmp_path, *given))
    assert "3 of 11 episodes are MISSING" in built[0].notes[0]
    read = list(csv.DictReader(io.StringIO(formats.to_csv(built))))
    assert [row["missing"] for row in read] == ["3"]
    assert (read[0]["mean"], read[0]["std"], read[0]["low"]) == ("50.0000", "0.0000", "")


def test_a_family_that_one_evaluation_never_finished_is_that_of_the_others(tmp_path):
    one, other = checkpoint(2, training=0), checkpoint(4, training=1)
    for given, won in ((one, 0.5), (other, None)):
        success = {**given["figures"]["success"], "mean": won}
        given["figures"]["families"] = {"pick": {"success": success, "score": success, "count": 4}}
    (table,) = tables.build(kept(tmp_path, one, other))
    assert table.rows[0].cells[0, "Pick"].mean == 50


def appworld(name, wins, split, training):
    hard = {"aa": 1.0, "bb": 3.0}
    records = [
        episode(f"{s}_{n}", won, index=3 * i + n - 1, metrics={"difficulty": hard[s]})
        for i, (s, row) in enumerate(wins.items())
        for n, won in enumerate(row, 1)
    ]
    given = checkpoint(1, training=training)
    ours = result(records, env_id="agentgyms/AppWorld-v0", split=split, kind="trained")
    trained = {**given["model"]["trained"], "method": name, "model": "Qwen/Qwen2.5-32B-Instruct"}
    return {**ours, "model": {**given["model"], "trained": trained}}


def test_appworld_by_difficulty_across_methods_beside_the_papers(tmp_path):
    given = [
        appworld("salt", {"aa": (1, 1, 1), "bb": (1, 0, 0)}, split, training)
        for split in ("test_normal", "test_challenge")
        for training in (0, 1)
    ]
    loaded = kept(tmp_path, *given)
    whole, levels = tables.build(loaded, with_reported=True)
    assert [c.heading for c in whole.blocks[0].columns] == ["TGC", "SGC"]
    assert [c.heading for c in levels.blocks[1].columns] == ["TGC D1", "TGC D3", "SGC D1", "SGC D3"]
    assert levels.title == "AppWorld test_normal, AppWorld test_challenge: breakdown"
    text = formats.tables_to_markdown([levels])
    cells = [row[3:8] for row in rows(text) if row[2] == "GRPO+SALT"]
    assert cells == [
        ["ours", "100.0 ± 0.0", "33.3 ± 0.0", "100.0 ± 0.0", "0.0 ± 0.0"],
        ["reported: SALT, Table 3", "84.9 ± 3.0", "41.6 ± 2.3", "72.6 ± 5.1", "23.8 ± 5.2"],
    ]
    assert {row.source for row in levels.rows} == {"ours", "reported: SALT, Table 3"}
    assert "nothing here is computed from them" in " ".join(formats.to_latex([levels]).split())


def test_sotopia_has_its_dimensions_in_a_second_table(tmp_path):
    metrics = {"goal": 7.0, "relationship": -1.5, "secret": 0.0}
    records = [episode("x", True, metrics={**metrics, "hard": 1.0}, family="bargaining")]
    hard = result(records, env_id="agentgyms/SOTOPIA-v0", split="hard")
    both = [*records, episode("y", True, index=1, metrics={**metrics, "goal": 9.0, "hard": 0.0})]
    given = [hard, result(both, env_id="agentgyms/SOTOPIA-v0", split="all")]
    goals, dimensions = tables.build(kept(tmp_path, *given), with_reported=True)
    assert [[c.heading for c in b.columns] for b in goals.blocks] == [
        ["Goal (Hard)"],
        ["Goal (Hard)", "Goal (All)"],
    ]
    assert goals.rows[0].cells[1, "Goal (All)"].mean == 8
    headings = [c.heading for c in dimensions.blocks[0].columns]
    assert headings == ["Goal", "Relationship", "Secret"]
    assert dimensions.rows[0].cells[0, "Relationship"].mean == -1.5
    assert "-5 to 5" in formats.tables_to_markdown([dimensions])
    assert "-5 to 5" not in formats.tables_to_markdown([goals])


def test_training_runs_and_evaluations_are_not_mixed(tmp_path):
    loaded = kept(tmp_path, alfworld(), alfworld(seeds=(1,), kind="direct"))
    assert [r.label for r in group_by_seeds(loaded)] == ["r0", "r1"]


def test_sokoban_by_boxes_where_their_number_differs(tmp_path):
    wins = {"valid/6x6-1-2f19-00000": True, "valid/6x6-2-00ab-00001": False}
    given = result(episodes(wins), env_id="agentgyms/VisualSokoban-v0", split="valid")
    _, boxes = tables.build(kept(tmp_path, given))
    shown = {heading: cell.mean for (_, heading), cell in boxes.rows[0].cells.items()}
    assert shown == {"1 box": 100, "2 boxes": 0}
    first = result(episodes({"valid/6x6-1-2f19-00000": True}), env_id="agentgyms/Sokoban-v0")
    assert len(tables.build(kept(tmp_path / "one", first))) == 1


def test_repetitions_of_a_training_run_differ_in_seed_and_place_alone():
    run = {"run": {"name": "a", "seed": 0, "output": "x", "threads": 1, "steps": 9}, "lr": 1}
    again = {"run": {"name": "b", "seed": 1, "output": "y", "threads": 2, "steps": 9}, "lr": 1}
    longer = {**again, "run": {**again["run"], "steps": 10}}
    assert (
        without_seed(run)
        == without_seed(again)
        == {
            "run": {"steps": 9},
            "lr": 1,
        }
    )
    assert without_seed(longer) != without_seed(run)
    assert run["run"]["seed"] == 0


def test_checkpoints_tell_which_training_they_are_a_repetition_of(tmp_path):
    def given(seed, **method):
        run = {
            "run": {"name": "a", "seed": seed, "output": "x", "threads": 1},
            "policy": {"model": "org/Base-1B"},
            "method": {"name": "gigpo", **method},
        }
        source = Source(str(tmp_path), local=True, step=5, trained=run)
        return open_model._identity("hf", ModelConfig(name="a"), source)["trained"]

    assert {**given(0), "seed": 1} == given(1)
    assert given(0)["settings"] != given(0, gamma=0.5)["settings"]
