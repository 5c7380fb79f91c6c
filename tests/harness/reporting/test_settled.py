"""`harness report`: how many seeds would settle which of several methods is better."""

from click.testing import CliRunner
from made_results import keep_run, rows

from harness.cli.main import main
from harness.reporting.tables.formats import NONE

TITLE = "**How many seeds would settle this?**"


def runs(folder, method, wins, **more):
    """Runs of a method, a seed each, that solve so many of ten tasks."""
    return [
        keep_run(
            folder / f"{method}-{seed}-{more.get('model', '')[-2:]}",
            {(10, "valid_seen"): {f"pick-{i}": i < won for i in range(10)}},
            seed=seed,
            method=method,
            **more,
        )
        for seed, won in wins.items()
    ]


def report(*paths):
    result = CliRunner().invoke(main, ["report", *map(str, paths)], catch_exceptions=False)
    return result.output.partition(TITLE)[2]


def test_methods_are_compared_with_the_first_at_their_common_seeds(tmp_path):
    grpo = runs(tmp_path, "grpo", {0: 3, 1: 4, 2: 5, 3: 4})
    gigpo = runs(tmp_path, "gigpo", {1: 8, 2: 8, 3: 9, 7: 0})
    _, row = rows(report(*grpo, *gigpo))
    assert row[0] == "GRPO (Base-1B) - GiGPO (Base-1B)"
    # Differences of -40, -30 and -50: 4.3027 * 10 / sqrt(3) = 24.8 to both sides.
    assert row[2:7] == ["All", "3", "-40.0", "-64.8 to -15.2", "settled"]
    small, middle, large = row[7].split(", ")
    assert int(small[:-1]) < int(middle[:-1]) < int(large[:-1])
    assert row[8].startswith("199-")
    assert row[9] == "3-5"


def test_equal_methods_are_not_told_apart_and_other_models_are_not_compared(tmp_path):
    wins = {0: 3, 1: 7, 2: 5}
    shifted = {0: 7, 1: 3, 2: 5}
    output = report(
        *runs(tmp_path, "grpo", wins),
        *runs(tmp_path, "rloo", shifted),
        *runs(tmp_path, "rloo", wins, model="org/Other-7B"),
    )
    _, row = rows(output)
    assert (row[4], row[6], row[9]) == ("+0.0", "not told apart", NONE)


def test_one_seed_or_one_method_has_no_such_table(tmp_path):
    assert not report(*runs(tmp_path, "grpo", {0: 3, 1: 7}))
    assert not report(*runs(tmp_path, "gigpo", {0: 3}), *runs(tmp_path, "rloo", {0: 5, 9: 4}))
