"""`harness report --sweep`: success over the values of swept settings, as a table and a picture."""

import json

import pytest
from click.testing import CliRunner
from made_results import keep_run, rows

from harness.cli.main import main
from harness.reporting.results.loading import load_all
from harness.reporting.tables import rows as tables
from harness.reporting.tables import sweeps
from harness.types.errors import ConfigError, ResultError


def swept(folder, method="gigpo", won=2, seed=0, steps=(10,), **values):
    """A run whose settings are of a sweep, and which solves so many of four tasks."""
    split = "valid_seen"
    wins = {f"pick-{i}": i < won for i in range(4)}
    evaluations = {(step, name): wins for step in steps for name in (split, "valid_unseen")}
    run = keep_run(folder, evaluations, seed=seed, method=method)
    config = json.loads((run / "config.json").read_text())
    config["swept"] = [f"method.credit.{key}" for key in values]
    config["method"]["credit"] = values
    (run / "config.json").write_text(json.dumps(config))
    return run


PLAYED = "ALFWorld valid_seen, generated tasks, not the benchmark"


def report(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)], catch_exceptions=False)


def by_value(output):
    return rows(output.partition("**By value**")[2])


def of_thetas(tmp_path):
    won = {(0.5, 0): 1, (0.5, 1): 3, (0.25, 0): 4, (0.25, 1): 4}
    return [
        swept(tmp_path / f"s-{theta}-{seed}", won=count, seed=seed, theta=theta)
        for (theta, seed), count in won.items()
    ]


def test_runs_of_a_sweep_are_a_row_for_each_value(tmp_path):
    assert by_value(report(*of_thetas(tmp_path)).output) == [
        ["Method", "Tasks", "method.credit.theta", "Success", "Seeds"],
        ["GiGPO (Base-1B)", PLAYED, "0.25", "100.0 ± 0.0", "2"],
        ["GiGPO (Base-1B)", PLAYED, "0.5", "50.0 ± 35.4", "2"],
    ]


def test_values_are_sorted_by_size_and_words_come_last(tmp_path):
    given = [10, "all", 4, None, True]
    runs = [swept(tmp_path / f"s{i}", depth=value) for i, value in enumerate(given)]
    shown = [row[2] for row in by_value(report(*runs).output)[1:]]
    assert shown == ["4", "10", "all", "null", "true"]


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_picture_is_drawn_and_the_table_printed(tmp_path, kind):
    picture = tmp_path / f"theta.{kind}"
    result = report(*of_thetas(tmp_path), "--sweep", picture, "--checkpoint", "best")
    assert result.exit_code == 0
    assert "**By value**" in result.output
    assert picture.stat().st_size > 1000


def drawn(monkeypatch, tmp_path, *runs):
    """The lines of the picture: label, places, means and error bars."""
    from matplotlib.axes import Axes

    lines = {}
    monkeypatch.setattr(
        Axes,
        "errorbar",
        lambda axes, x, y, yerr, label, **_: lines.update({label: (list(x), [*y], yerr)}),
    )
    monkeypatch.setattr(Axes, "legend", lambda *_, **__: None)
    assert report(*runs, "--sweep", tmp_path / "sweep.svg").exit_code == 0
    return lines


def test_error_bars_are_deviations_over_seeds(tmp_path, monkeypatch):
    (line,) = drawn(monkeypatch, tmp_path, *of_thetas(tmp_path)).items()
    label, (x, y, bars) = line
    assert (label, x, y) == ("GiGPO (Base-1B)", [0.25, 0.5], [100, 50])
    assert [list(side) for side in bars] == [[0, pytest.approx(35.355, abs=1e-3)]] * 2


def test_methods_and_further_settings_are_lines_and_numbers_the_axis(tmp_path, monkeypatch):
    given = [(m, b, t) for m in ("gigpo", "scpo") for b in ("x", "y") for t in (0.5, 0.25)]
    runs = [
        swept(tmp_path / f"s{i}", method=m, base=b, theta=t) for i, (m, b, t) in enumerate(given)
    ]
    lines = drawn(monkeypatch, tmp_path, *runs)
    assert set(lines) == {
        f"{method} (Base-1B), method.credit.base={base}"
        for method in ("GiGPO", "SCPO")
        for base in ("x", "y")
    }
    x, _, bars = lines["SCPO (Base-1B), method.credit.base=x"]
    assert x == [0.25, 0.5]
    assert min(bars[0] + bars[1]) > 10  # Wilson's interval of two of four tasks, in percent


def test_words_alone_are_drawn_one_beside_the_other(tmp_path, monkeypatch):
    runs = [swept(tmp_path / name, order=name) for name in ("temporal", "greedy")]
    (line,) = drawn(monkeypatch, tmp_path, *runs).values()
    assert line[0] == [0, 1]


def points(*runs):
    return sweeps.points(tables.build(load_all(runs)))


def test_runs_that_are_of_no_sweep_have_no_table(tmp_path):
    run = keep_run(tmp_path / "r", {(0, "valid_seen"): {"pick-1": True}})
    assert points(run) == []
    assert sweeps.markdown([]) == ""
    assert "By value" not in report(run, run).output


def test_what_cannot_be_drawn_is_named(tmp_path):
    plain = keep_run(tmp_path / "r", {(0, "valid_seen"): {"pick-1": True}})
    theta = swept(tmp_path / "t", theta=0.5)
    cases = {
        "vary none": [plain, plain],
        "vary method.credit.theta; method.credit.lam": [theta, swept(tmp_path / "l", lam=0.5)],
        "method.credit.theta=0.5 has two results": [
            theta,
            swept(tmp_path / "u", theta=0.5, steps=(10, 20)),
        ],
    }
    for told, runs in cases.items():
        with pytest.raises(ResultError, match=told):
            report(*runs, "--sweep", tmp_path / "x.svg")
    with pytest.raises(ConfigError, match=r"\.png or \.svg"):
        report(theta, "--sweep", tmp_path / "x.pdf")
