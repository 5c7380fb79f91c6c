"""The settings in which training runs differ, named where their figures stand."""

import json
import re

import pytest
from click.testing import CliRunner
from made_results import LOST, WON, alfworld, keep, keep_run
from recorded_evaluations import summary

from harness import config as configs
from harness.cli.report import report
from harness.config.section import to_dict
from harness.preflight.defaults import resolve
from harness.reporting.evaluation_page import page
from harness.reporting.results.loading import load_all
from harness.reporting.results.run_differences import run_differences

SPLITS = {(9, "valid_seen"): WON, (9, "valid_unseen"): LOST}


def run(folder, *overrides, seed=0, recipe="corridor-tiny"):
    """Write a training run with a real, resolved configuration."""
    keep_run(folder, SPLITS, seed=seed)
    named = [f"run.name='{folder.name}'", f"run.seed={seed}", f"run.output='{folder.parent}'"]
    config = to_dict(resolve(configs.load(recipe, [*named, *overrides])))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def found(*folders):
    (differences,) = run_differences(load_all(folders))
    return differences


def test_runs_that_differ_in_seed_name_and_folder_differ_in_nothing(tmp_path):
    logged = ("log.outputs=[]", "run.threads=1", "run.keep_rollouts=5")
    runs = [run(tmp_path / "a"), run(tmp_path / "b", seed=1), run(tmp_path / "c", *logged)]
    assert run_differences(load_all(runs)) == []
    assert "differ" not in CliRunner().invoke(report, [*map(str, runs)]).output.lower()


def test_what_only_one_method_has_is_named_and_no_warning(tmp_path):
    gigpo, gvpo = run(tmp_path / "a"), run(tmp_path / "b", "method.name='gvpo'")
    told = found(gigpo, gvpo)
    assert told.settings["method.name"] == {"gigpo": ["a"], "gvpo": ["b"]}
    assert told.settings["method.credit.b"] == {"not set": ["a"], "0.2": ["b"]}
    assert told.settings["method.loss.clip_high"] == {"0.2": ["a"], "0.28": ["b"]}  # by its row
    explained = {"method.credit.b", "method.loss.clip_high", "rollout.enough_share"}
    assert not explained & set(told.unexplained)


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("method.credit.statistics='turn'", "method.credit.statistics"),
        ("method.credit.invalid_penalty=0.3", "method.credit.invalid_penalty"),
        ("method.loss={dual_clip=3.0}", "method.loss.dual_clip"),
        ("method.loss.kl_coefficient=0.2", "method.loss.kl_coefficient"),  # in both methods' rows
        ("optimizer.learning_rate=1e-2", "optimizer.learning_rate"),
        ("env.kwargs.length=7", "env.kwargs.length"),
        ("env.max_turns=7", "env.max_turns"),
    ],
)
def test_what_two_methods_have_in_common_is_a_warning_where_it_differs(tmp_path, setting, key):
    base = ("method.preset='paper'",)
    gigpo = run(tmp_path / "a", *base)
    alike = found(gigpo, run(tmp_path / "b", *base, "method.name='hgpo'"))
    other = found(gigpo, run(tmp_path / "c", *base, "method.name='hgpo'", setting))
    assert key not in alike.unexplained
    assert key in other.unexplained
    assert key in other.warning


@pytest.mark.parametrize("third", ["", "alfworld-grpo-1.5b", "alfworld-ppo-1.5b"])
def test_another_method_in_a_report_excuses_no_difference_between_two(tmp_path, third):
    changed = {"statistics": "'rollout'", "gamma": "1.0", "norm": "'mean'"}
    gigpo = run(tmp_path / "gigpo", recipe="alfworld-gigpo-1.5b")
    set_to = [f"method.credit.{key}={value}" for key, value in changed.items()]
    scpo = run(tmp_path / "scpo", *set_to, recipe="alfworld-scpo-1.5b")
    more = [run(tmp_path / "third", recipe=third)] if third else []
    told = found(gigpo, scpo, *more)
    assert set(told.unexplained) == {f"method.credit.{key}" for key in changed}


@pytest.mark.parametrize("beside", [False, True])
def test_what_one_method_sets_excuses_it_in_no_other(tmp_path, beside):
    recipe = "appworld-grpo-32b"
    gvpo = ("method.name='gvpo'", "method.loss.aggregation='token_mean'")
    plain = ("rollout.dynamic_sampling=false", "method.overlong_share=0")
    dapo = [run(tmp_path / "c", "method.name='dapo'", *plain, recipe=recipe)] if beside else []
    told = found(
        run(tmp_path / "a", recipe=recipe), run(tmp_path / "b", *gvpo, recipe=recipe), *dapo
    )
    assert told.unexplained == ["method.loss.aggregation"]


def test_methods_beyond_the_papers_are_told_by_their_rows_and_hyperparameters(tmp_path):
    """GraphGPO and RTMC are in no table of the papers, and so not in `comparisons.toml`."""
    gamma, other = "method.credit.gamma=0.9", "method.credit.gamma=0.5"
    gigpo = run(tmp_path / "a", gamma)
    graphgpo = run(tmp_path / "b", "method.name='graphgpo'")  # without gamma
    rtmc = run(tmp_path / "c", gamma, "method.name='rtmc'")
    told = found(gigpo, graphgpo, rtmc)
    assert {"method.name", "method.credit.step_weight"} <= set(told.settings)
    assert told.unexplained == []
    told = found(gigpo, graphgpo, run(tmp_path / "d", other, "method.name='rtmc'"))
    assert told.unexplained == ["method.credit.gamma"]
    ppo = run(tmp_path / "e", "method.name='ppo'", "rollout.group_size=1")  # PPO's gamma and groups
    assert found(graphgpo, ppo).unexplained == []


def test_versions_of_one_method_are_told_by_its_own_settings_alone(tmp_path):
    ppo, rate = "method.name='ppo'", "method.credit.lam=0.5"
    apart = run(tmp_path / "b", ppo, rate, "rollout.group_size=2", "method.loss.dual_clip=3.0")
    told = found(run(tmp_path / "a", ppo), apart)
    assert "method.credit.lam" in told.settings
    assert set(told.unexplained) == {"rollout.group_size", "method.loss.dual_clip"}


def test_a_methods_own_settings_and_swept_ones_are_explained_others_are_not(tmp_path):
    swept = "swept=['optimizer.learning_rate']"
    step_weight = "method.credit.step_weight=0.5"
    told = found(
        run(tmp_path / "a", swept),
        run(tmp_path / "b", swept, "optimizer.learning_rate=1e-2", step_weight),
        run(tmp_path / "c", "rollout.group_size=2"),
    )
    assert set(told.settings) >= {"method.credit.step_weight", "optimizer.learning_rate"}
    assert told.unexplained == ["rollout.group_size"]
    assert told.settings["rollout.group_size"] == {"4": ["a", "b"], "2": ["c"]}


def test_an_earlier_versions_missing_setting_is_no_difference(tmp_path):
    old = run(tmp_path / "old")
    config = json.loads((old / "config.json").read_text())
    del config["rollout"]["gateway"]
    (old / "config.json").write_text(json.dumps(config))
    told = found(old, run(tmp_path / "new", "run.steps=3"))
    assert list(told.settings) == ["run.steps"]


def test_an_earlier_version_hides_no_difference_between_later_ones(tmp_path):
    old = run(tmp_path / "old")
    config = json.loads((old / "config.json").read_text())
    del config["run"]["steps"]
    (old / "config.json").write_text(json.dumps(config))
    told = found(old, run(tmp_path / "b", "run.steps=3"), run(tmp_path / "c", "run.steps=4"))
    assert told.settings == {"run.steps": {"3": ["b"], "4": ["c"]}}
    assert told.unexplained == ["run.steps"]


def with_kwargs(folder, **kwargs):
    config = json.loads((run(folder) / "config.json").read_text())
    config["env"]["kwargs"] = kwargs
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_long_values_are_compared_whole_and_shown_where_they_differ(tmp_path):
    same = "/data/" + "deep/" * 40
    paths = {"a": f"{same}first", "b": f"{same}second/{'more/' * 40}"}
    families = {"a": ["heat"] * 40, "b": ["heat"] * 39 + ["cool"]}
    told = found(
        *(with_kwargs(tmp_path / n, data_path=paths[n], families=families[n]) for n in paths)
    )
    assert told.unexplained == ["env.kwargs.data_path", "env.kwargs.families"]
    first, second = told.settings["env.kwargs.data_path"]
    assert re.fullmatch(r"\.\.\.(deep/){4}first \(SHA-256 \w{8}\)", first)
    assert re.fullmatch(r"\.\.\.(deep/){4}second/(more/)+m?\w*\.\.\. \(SHA-256 \w{8}\)", second)
    assert len(second) < 130
    first, second = told.settings["env.kwargs.families"]
    assert '"heat"] (' in first
    assert '"cool"] (' in second


def test_three_long_values_are_shown_differently_beyond_what_is_shown(tmp_path):
    """The first two differ where the third differs from both already."""
    values = {"a": "x" * 300 + "a", "b": "x" * 300 + "b", "c": "x" * 50 + "y" * 300}
    told = found(*(with_kwargs(tmp_path / n, data_path=v) for n, v in values.items()))
    assert sorted(told.settings["env.kwargs.data_path"].values()) == [["a"], ["b"], ["c"]]


def test_a_text_is_not_the_number_that_it_reads_as(tmp_path):
    told = found(with_kwargs(tmp_path / "a", level="3"), with_kwargs(tmp_path / "b", level=3))
    assert told.settings == {"env.kwargs.level": {'"3"': ["a"], "3": ["b"]}}


def test_tables_in_markdown_and_latex_and_the_page_name_them_first(tmp_path):
    rates = {"a_1": 0.25, "b": 0.5}
    runs = [str(run(tmp_path / n, f"optimizer.learning_rate={v}")) for n, v in rates.items()]
    told = CliRunner().invoke(report, [*runs, str(keep(tmp_path / "c", alfworld()))]).output
    listed = told.index("- optimizer.learning_rate: 0.25 in a_1; 0.5 in b")
    assert listed < told.index("WARNING: ") < told.index("| Model |")
    latex = CliRunner().invoke(report, [*runs, "--format", "latex"]).output
    item = latex.index(r"\item \texttt{optimizer.learning\_rate}: 0.25 in a\_1; 0.5 in b")
    assert item < latex.index(r"\textbf{Warning:}") < latex.index(r"\begin{table}")
    (shown,) = summary(page.render(load_all(runs)))["differences"]
    assert ["optimizer.learning_rate", "0.25 in a_1; 0.5 in b"] in shown["settings"]
    assert shown["warning"].endswith("may come from optimizer.learning_rate")
    assert summary(page.render(load_all(runs[:1])))["differences"] == []


def test_environments_are_compared_apart(tmp_path):
    corridor, other = run(tmp_path / "a"), run(tmp_path / "b", "env.max_turns=5")
    lamps = run(tmp_path / "d")
    config = json.loads((lamps / "config.json").read_text())
    config["env"]["id"] = "agentgyms/ALFWorld-v0"
    (lamps / "config.json").write_text(json.dumps(config))
    (told,) = run_differences(load_all([corridor, lamps, other]))
    assert (told.env, list(told.settings)) == ("Corridor", ["env.max_turns"])
