"""`harness report --checkpoint`: which evaluation of a run counts, and the table over its seeds."""

import pytest
from click.testing import CliRunner
from made_results import keep, keep_run, rows
from test_repeated import checkpoint

from harness.cli.main import main
from harness.evaluation.statistics import student_interval
from harness.reporting.results.loading import load_all
from harness.reporting.results.training_runs import Choice
from harness.reporting.tables import formats
from harness.reporting.tables import rows as tables
from harness.types.errors import ResultError

SEEN, UNSEEN = "valid_seen", "valid_unseen"


def won(count):
    return {f"pick-{i}": i < count for i in range(4)}


def trained(folder, curves, split=SEEN):
    """Runs whose evaluations solve so many of four tasks, at the steps 0, 10, 20, ..."""
    return [
        keep_run(
            folder / f"r-seed{seed}",
            {(10 * place, split): won(count) for place, count in enumerate(curve)},
            seed=seed,
        )
        for seed, curve in enumerate(curves)
    ]


def shown(folders, choice):
    (table,) = tables.build(load_all(folders, Choice.parse(choice)))
    text = formats.tables_to_markdown([table])
    return [(cells[2], cells[-1]) for cells in rows(text)[1:]], table.notes


@pytest.mark.parametrize(
    ("choice", "cell", "steps"),
    [
        ("last", "62.5 ± 17.7", "step 30 of training"),  # 50 and 75 %
        ("best", "87.5 ± 17.7", "steps 10, 20 of training"),  # 100 and 75 %, the earlier 75
        ("last-2", "68.8 ± 8.8", "steps 20, 30 of training, mean over 2 steps"),  # 62.5 and 75
    ],
)
def test_which_evaluation_of_each_run_counts(tmp_path, choice, cell, steps):
    found, notes = shown(trained(tmp_path, [(0, 4, 3, 2), (0, 1, 3, 3)]), choice)
    assert found == [("GiGPO", cell)]
    assert f"training seeds 0, 1, {steps};" in notes[0]


def test_the_mean_over_steps_of_one_run_has_no_deviation(tmp_path):
    assert shown(trained(tmp_path, [(0, 4, 3, 2)]), "last-3")[0] == [("GiGPO", "75.0")]


def test_best_is_by_the_figure_that_keeps_the_best_checkpoint():
    figures = ((0, 0.5, 0.6), (10, 0.6, 0.5), (20, 0.5, 0.6))
    given = [{"step": s, "split": SEEN, "success": a, "score": b} for s, a, b in figures]
    best = Choice.parse("best")
    assert [best.steps(given, name, "run") for name in ("success", "score")] == [[10], [0]]


def test_another_split_counts_at_the_chosen_steps_or_is_left_out(tmp_path, caplog):
    (run,) = trained(tmp_path, [(0, 4, 2)])
    both = {(10, SEEN): won(4), (20, SEEN): won(2), (20, UNSEEN): won(1)}
    other = keep_run(tmp_path / "both", both, method="scpo")
    loaded = load_all([other], Choice.parse("last"))
    assert [one.figures["success"]["mean"] for one in loaded] == [0.5, 0.25]
    (only,) = load_all([other], Choice.parse("best"))
    assert only.split == SEEN
    words = f"--model {other} --env agentgyms/ALFWorld-v0 --checkpoint best --split {UNSEEN}"
    assert f"harness eval {words}" in caplog.text
    assert len(load_all([run, other], Choice.parse("last-1"))) == 3


@pytest.mark.parametrize("text", ["", "newest", "last-0", "last-", "best-2", "last-5 "])
def test_a_wrong_choice_is_named(text):
    with pytest.raises(ResultError, match="last, best, or last-N"):
        Choice.parse(text)


def test_too_few_evaluations_are_named(tmp_path):
    with pytest.raises(ResultError, match=r"has 3 evaluations of valid_seen.* needs 4"):
        load_all(trained(tmp_path, [(0, 4, 2)]), Choice.parse("last-4"))


def test_checkpoints_that_were_evaluated_alone_make_a_mean_over_steps(tmp_path):
    given = [
        keep(tmp_path / f"e{seed}-{step}", checkpoint(count, training=seed, step=step))
        for (seed, step), count in {(0, 10): 4, (0, 20): 2, (1, 10): 1, (1, 20): 2}.items()
    ]
    (one,), _ = shown(given, "last-2")
    assert one == ("GiGPO", "56.2 ± 26.5")  # 75 and 37.5
    assert len(shown(given, "last")[0]) == 2
    with pytest.raises(ResultError, match="training seed 1 has 1"):
        shown(given[:3], "last-2")


def test_best_checkpoints_of_several_runs_are_one_row_whatever_their_steps(tmp_path):
    given = [checkpoint(4, training=0, step=10), checkpoint(2, training=1, step=20)]
    for one in given:
        one["config"]["model"]["checkpoint"] = "best"
    (row,), _ = shown([keep(tmp_path / str(i), one) for i, one in enumerate(given)], "last")
    assert row == ("GiGPO", "75.0 ± 35.4")


def test_evaluations_of_earlier_versions_stand_beside_new_ones(tmp_path):
    given = [checkpoint(4, training=0), checkpoint(2, training=1)]
    given[1]["config"]["model"]["checkpoint"] = "newest"
    assert len(shown([keep(tmp_path / str(i), one) for i, one in enumerate(given)], "last")[0]) == 1


def test_the_table_over_training_seeds_follows(tmp_path):
    runs = trained(tmp_path, [(4, 2), (0, 3), (0, 4)])
    result = report(*runs, trained(tmp_path / "x", [(1, 1)])[0])
    table = rows(result.output.partition("**Over training seeds**")[2])
    # Of 50, 75 and 100 %: 75 ± 25, and 4.3027 * 25 / sqrt(3) = 62.1 to both sides.
    cells = ["All", "75.0", "25.0", "12.9 to 137.1", "0: 50.0, 1: 75.0, 2: 100.0"]
    assert [row[2:] for row in table[1:]] == [cells]
    assert "Over training seeds" not in report(runs[0], "--checkpoint", "best").output


@pytest.mark.parametrize("form", ["latex", "csv"])
def test_other_formats_count_the_same_evaluations(tmp_path, form):
    runs = trained(tmp_path, [(0, 4, 2), (0, 4, 2)])
    assert "100.0" in report(*runs, "--checkpoint", "best", "--format", form).output


def test_a_comparison_is_not_of_several_steps(tmp_path):
    runs = trained(tmp_path, [(0, 4, 2)])
    refused = report(*runs, "--paired", "--checkpoint", "last-2")
    assert refused.exit_code == 2
    assert "--paired compares evaluations" in refused.output


def report(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_students_interval_has_the_quantiles_of_tables():
    for count, quantile in {2: 12.706, 3: 4.303, 4: 3.182, 10: 2.262, 100: 1.984}.items():
        low, high = student_interval([0.0] * (count - 1) + [float(count)])
        assert (low + high) / 2 == pytest.approx(1)
        assert high - 1 == pytest.approx(quantile, rel=1e-3)  # std = sqrt(count)
    assert student_interval([0.5]) is None
