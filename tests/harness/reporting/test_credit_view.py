"""`harness credit`: recorded rollouts in, every method's advantages out, and what each one saw."""

import copy
import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from made_rollouts import hostile_rollouts, turn

from agentgyms.core.imports import install
from harness import credit
from harness.cli.main import main
from harness.config import methods
from harness.credit import TurnTable
from harness.credit.estimators import scpo
from harness.reporting.credit_view import compare, figures, page, recordings, text
from harness.rollouts import rollout_files
from harness.types.errors import ConfigError, TableError
from harness.types.rollout import Rollout

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "credit.md"


@pytest.fixture(scope="module")
def played():
    return recordings.load_example()


# --- what is computed ---------------------------------------------------------------------------


def test_every_method_that_learns_from_advantages_is_there_once():
    choices = compare.choose()
    shown_values = [name for choice in choices for name in (choice.name, *choice.aliases)]
    advantages = {row.name for row in methods.METHODS.values() if row.loss != "nll"}
    assert advantages <= set(shown_values)
    assert len(shown_values) == len(set(shown_values))
    supervised = {row.estimator for row in methods.METHODS.values() if row.loss == "nll"}
    assert {choice.estimator for choice in choices} >= set(credit.names()) - supervised
    alike = {choice.name: choice.aliases for choice in choices}
    assert set(alike["grpo"]) == {"dapo", "gspo"}, "they differ in the loss alone"


def test_advantages_are_those_of_the_estimators(played):
    for result in compare.compare(played.turns, compare.choose(["grpo", "ecpo", "salt"])):
        choice = result.choice
        expected = credit.get(choice.estimator)(played.turns, **choice.settings)
        np.testing.assert_array_equal(result.advantage, expected)


def test_settings_are_the_methods_row_the_preset_and_what_is_asked_for():
    (choice,) = compare.choose(["salt_rloo"], ["salt_rloo.history=1"])
    assert choice.settings["base"] == "rloo"
    assert choice.settings["history"] == 1
    (choice,) = compare.choose(["gigpo"], ["gigpo.norm=mean"], "verl_agent")
    assert choice.settings["norm"] == "mean"
    assert choice.settings["statistics"] == "turn"


def test_by_default_no_model_is_asked():
    (choice,) = compare.choose(["scpo"])
    assert choice.settings["scorer"] == "lexical"
    assert choice.note == "scorer lexical in place of cross-encoder"
    (choice,) = compare.choose(["scpo"], ['scpo.scorer="exact"'])
    assert choice.settings["scorer"] == "exact"
    assert choice.note == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((["grp"],), "`harness methods` lists; did you mean grpo?"),
        ((["grpo"], ["grpo.kappa=1"]), "has no hyperparameter 'kappa'"),
        ((["grpo"], ["ecpo.kappa=1"]), "nothing named 'ecpo' is computed"),
        ((["grpo"], ["ddof=1"]), "METHOD.KEY=VALUE, got 'ddof=1'"),
        ((["grpo"], [], "papers"), "unknown preset 'papers'"),
    ],
)
def test_wrong_choices_are_named(arguments, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        compare.choose(*arguments)


def test_what_a_file_lacks_is_said_and_no_error(played):
    results = compare.compare(played.turns, compare.choose(["ppo", "grpo"]))
    assert results[0].advantage is None
    assert results[0].missing == ("value",)
    assert results[1].advantage is not None
    assert "ppo                   not computed: needs value" in text.summary(played, results)


def test_a_penalty_on_the_divergence_is_left_out_where_there_is_none(played):
    (result,) = compare.compare(played.turns, compare.choose(["reinforce_pp"]))
    assert result.choice.note == "kl_coefficient 0 in place of 0.01"
    asked = compare.choose(["reinforce_pp"], ["reinforce_pp.kl_coefficient=0.5"])
    (result,) = compare.compare(played.turns, asked)
    assert result.missing == ("kl",)
    with_kl = replace(played.turns, kl=np.ones(len(played.turns)))
    (result,) = compare.compare(with_kl, compare.choose(["reinforce_pp"]))
    assert result.choice.settings["kl_coefficient"] == 0.01


# --- what is read -------------------------------------------------------------------------------


def test_the_example_is_the_same_every_time_and_worth_looking_at(played):
    assert recordings.example_rollouts() == list(played.rollouts)
    for group in range(3):
        won = [rollout.success for rollout in played.rollouts if rollout.group == group]
        assert 2 <= sum(won) <= 6
    data = page.contents(played, compare.compare(played.turns, compare.choose()))
    for group in data["groups"]:
        assert any(matrix["credited"] for matrix in group["matrices"])
        assert group["anchors"]["divergent"]
        assert group["graph"]["sets"]


def test_files_become_one_table_and_their_groups_stay_apart(tmp_path, played):
    rollouts = list(played.rollouts)
    n = len(played.turns)
    rollout_files.write(tmp_path / "a.jsonl", rollouts, {"value": np.arange(n), "kl": np.ones(n)})
    rollout_files.write(tmp_path / "b.jsonl.gz", rollouts, {"value": np.ones(n)})
    both = recordings.load([tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"])
    assert both.source == "a.jsonl, b.jsonl.gz"
    assert both.turns.group[:n].max() == 2
    np.testing.assert_array_equal(both.turns.group[n:], played.turns.group + 3)
    np.testing.assert_array_equal(both.turns.value, [*range(n), *[1.0] * n])
    assert both.turns.kl is None, "only one of the files has it"
    assert both.turns.reward.max() == 10


def test_a_runs_folder_says_what_was_trained_on(tmp_path, played):
    with pytest.raises(ConfigError, match=r"has no rollouts yet: .*--set run\.keep_rollo"):
        recordings.load([tmp_path])
    for step, rollouts in ((5, played.rollouts[:2]), (10, played.rollouts)):
        path = tmp_path / "rollouts" / f"step-{step:06d}.jsonl.gz"
        rollout_files.write(path, list(rollouts))
    config = {"method": {"reward": "success", "reward_scale": 2.0}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    recorded = recordings.load([tmp_path])
    assert len(recorded.rollouts) == 24
    assert recorded.reward == "1 for success, times 2"
    assert recorded.turns.reward.max() == 2
    assert recordings.load([tmp_path], reward_scale=1.0).reward == "1 for success"


def test_rollouts_that_cannot_be_credited_are_left_out_with_their_columns():
    good = hostile_rollouts(2)
    lost = copy.deepcopy(good[0])
    lost.error = "EnvUnavailable: gone"
    empty = Rollout("t", "f", 0, 0, 0)
    columns = {"value": np.arange(27.0)}
    recorded = recordings.from_rollouts([good[0], lost, empty, good[1]], "x", columns=columns)
    assert recorded.left_out == 2
    assert recorded.turns.value.tolist() == [*range(9), *range(18, 27)]
    with pytest.raises(TableError, match="x has no rollout with turns and without an error"):
        recordings.from_rollouts([lost, empty], "x")


# --- what the methods saw -----------------------------------------------------------------------


def pictured(recorded, *names):
    data = page.contents(recorded, compare.compare(recorded.turns, compare.choose(names)))
    return data, data["groups"]


def test_the_graph_is_connected_and_merged_turns_share_their_ends(played):
    data, groups = pictured(played, "salt")
    assert data["groups"][0]["anchors"] is None
    for group in groups:
        graph = group["graph"]
        ends = list(zip(graph["before"], graph["after"], strict=True))
        sets = {}
        for row, label in enumerate(graph["merged"]):
            sets.setdefault(label, []).append(row)
        alone = sets.pop(-1)
        for rows in sets.values():
            assert len({ends[row] for row in rows}) == 1
            assert len({graph["value"][row] for row in rows}) == 1
        assert len(sets) == graph["sets"]
        assert [graph["value"][r] for r in alone] == [graph["base"][r] for r in alone]
        for rollout in group["rollouts"]:
            first, last = rollout["start"], rollout["start"] + rollout["length"] - 1
            assert graph["before"][first] == 0
            assert graph["after"][first:last] == graph["before"][first + 1 : last + 1]


def test_the_graph_of_a_history_of_one_is_that_of_actions_and_states(played):
    choices = compare.choose(["salt"], ["salt.history=1"])
    data = page.contents(played, compare.compare(played.turns, choices))
    assert data["groups"][0]["graph"]["history"] == 1
    table, graph = played.turns, data["groups"][0]["graph"]
    pairs = list(zip(table.action_key, table.next_state_key, strict=True))[: len(graph["after"])]
    assert len(set(pairs)) == len(set(graph["after"]))
    assert len(set(zip(pairs, graph["after"], strict=True))) == len(set(pairs))


def test_matrices_hold_the_credit_that_scpo_gives(played):
    _, groups = pictured(played, "scpo")
    settings = compare.choose(["scpo"])[0].settings
    names = ("theta", "lam", "scorer", "order", "reference", "monotone", "no_ops")
    plans = scpo.plan(played.turns, **{name: settings[name] for name in names})
    total = scpo.credit(played.turns, plans)
    assert total.max() > 0
    offset = 0
    for group in groups:
        rows = len(group["action"])
        found = np.zeros(rows)
        for matrix in group["matrices"]:
            assert len(matrix["score"]) == len(matrix["rows"]) * len(matrix["columns"])
            assert group["rollouts"][matrix["reference"]]["success"]
            assert not group["rollouts"][matrix["failed"]]["success"]
            for position, step, value in matrix["credited"]:
                found[matrix["columns"][step]] += value
                assert matrix["score"][position * len(matrix["columns"]) + step] >= 60
        np.testing.assert_allclose(found, total[offset : offset + rows], atol=1e-3)
        offset += rows


def test_an_anchor_by_hand():
    # In state s: a twice, returns 1 and 0; b once, return 1. b looks better than a: divergent.
    rollouts = []
    for member, (action, reward) in enumerate((("a", 1.0), ("a", 0.0), ("b", 1.0))):
        rollout = Rollout("t", "f", 7, member, 0, success=reward > 0)
        rollout.turns = [turn(action, "s", f"end {member}", reward, seen="a room")]
        rollouts.append(rollout)
    recorded = recordings.from_rollouts(rollouts, "x", reward_scale=1.0)
    data, groups = pictured(recorded, "ecpo")
    assert groups[0]["id"] == 7
    anchors = groups[0]["anchors"]
    assert (anchors["total"], anchors["comparable"], anchors["divergent"]) == (1, 1, 1)
    (anchor,) = anchors["shown"]
    assert data["texts"][anchor["state"]] == "a room"
    assert anchor["visits"] == 3
    assert anchor["mean"] == 0.6667
    shown_values = [
        (data["texts"][a["action"]], a["n"], a["q"], a["shrunk"]) for a in anchor["actions"]
    ]
    # q~ = (n q + 2 mu) / (n + 2): (1 + 4/3) / 4 = 0.5833 and (1 + 4/3) / 3 = 0.7778.
    assert shown_values == [("a", 2, 0.5, 0.5833), ("b", 1, 1, 0.7778)]
    assert anchor["actions"][1]["at"] == (2, 0)


def test_parts_count_from_zero_when_groups_are_mixed():
    table = TurnTable.from_columns(
        rollout=[0, 0, 1, 2, 2, 3], group=[5, 5, 3, 5, 5, 3], reward=[0, 1, 1, 0, 0, 0]
    )
    first, second = figures.group_rows(table)
    assert (first.group, first.rows.tolist(), first.rollouts.tolist()) == (3, [2, 5], [1, 3])
    assert second.row[second.rows].tolist() == [0, 1, 2, 3]
    assert second.rollout[second.rollouts].tolist() == [0, 1]


# --- the command --------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(main, list(arguments), catch_exceptions=False)


def test_the_terminal_shows_every_turn_beside_every_method(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run(
        "credit", "--example", "--group", "1", "--methods", "grpo,gigpo,ecpo,scpo,salt,gvpo"
    )
    assert result.exit_code == 0
    assert "24 rollouts in 3 groups" in result.output
    assert "group 1, rollout 7:" in result.output
    assert "group 0, rollout" not in result.output
    assert "--group shows another" not in result.output
    tables = result.output.split("group 1, rollout 0", 1)[1]
    assert max(map(len, tables.splitlines())) <= 80
    assert tables.count("turn  action") == 2 * 8, "six methods take two blocks a rollout"


def test_without_a_group_one_rollout_follows_the_summary_with_whole_names(played, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    result = run("credit", "--example")
    (title,) = re.findall(r"^group \d+, rollout \d+: .*$", result.output, re.M)
    assert title.startswith("group 0, rollout 0: ")
    assert "1 of 24 rollouts: --group 0 prints its group, --html all of them" in result.output
    blocks = result.output.partition(title)[2]
    computed = [c for c in compare.compare(played.turns, compare.choose()) if not c.missing]
    heads = [line for line in blocks.splitlines() if line.startswith("turn")]
    assert [name for line in heads for name in line.split()[3:]] == [
        credit_.choice.name for credit_ in computed
    ]
    assert max(map(len, blocks.splitlines())) <= 100
    assert not re.search(r"-0\.0+(?!\d)", result.output)
    rounded = np.concatenate([np.round(credit_.advantage, 2) for credit_ in computed])
    assert (np.signbit(rounded) & (rounded == 0)).any(), "some would be printed as -0.00"


def test_csv_and_json_have_all_digits(tmp_path, played):
    result = run("credit", "--example", "--methods", "gigpo,ppo", "--csv", "-")
    rows = list(csv.DictReader(io.StringIO(result.output)))
    expected = credit.get("gigpo")(played.turns, penalty_on="row")
    assert [float(row["gigpo"]) for row in rows] == expected.tolist()
    path = tmp_path / "new" / "out.json"
    run("credit", "--example", "--methods", "gigpo,ppo", "--json", str(path))
    shown_values = json.loads(path.read_text())
    assert shown_values["methods"]["ppo"]["needs"] == ["value"]
    assert [row["gigpo"] for row in shown_values["turns"]] == expected.tolist()
    assert {"group", "rollout", "turn", "action", "reward"} <= set(shown_values["turns"][0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give files of rollouts or runs' folders, or --example"),
        (("x.jsonl", "--example"), "give files of rollouts or runs' folders, or --example"),
        (("--example", "--group", "3"), "there is no group 3: expected 0 to 2"),
    ],
)
def test_wrong_use_is_said(arguments, said):
    result = run("credit", *arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_many_turns_are_not_all_printed(tmp_path):
    rollouts = [copy.deepcopy(r) for _ in range(9) for r in hostile_rollouts()]
    for index, rollout in enumerate(rollouts):
        rollout.group = index // 2
    rollout_files.write(tmp_path / "many.jsonl", rollouts)
    result = run("credit", str(tmp_path / "many.jsonl"), "--methods", "grpo")
    assert "1 of 54 rollouts: --group 0 prints its group, --html all of them" in result.output
    assert "group 1, rollout" not in result.output
    assert "\x1b" not in result.output, "what a rollout says is no command for the terminal"
    assert "\x07" not in result.output


def test_methods_are_listed_in_one_line_each():
    lines = run("methods").output.splitlines()
    assert [line.split()[0] for line in lines] == ["method", *methods.METHODS]
    (ppo,) = (line for line in lines if line.startswith("ppo "))
    assert "gae" in ppo
    assert "value" in ppo
    assert "arXiv:1707.06347" in ppo
    (plus,) = (line for line in lines if line.startswith("reinforce_pp "))
    assert " kl " in plus


def without_packages(names, *commands):
    """Run commands of `harness` in a process in which these packages cannot be imported."""
    code = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refuse())
from harness.cli.main import main
for command in {commands!r}:
    main(command, standalone_mode=False)
assert "torch" not in sys.modules
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_no_model_and_none_of_its_packages_is_needed(tmp_path):
    path = tmp_path / "page.html"
    names = ("torch", "transformers", "matplotlib", "httpx2", "pydantic")
    done = without_packages(names, ["credit", "--example", "--html", str(path)], ["methods"])
    assert done.returncode == 0, done.stderr
    assert path.read_text().startswith("<!doctype html>")


def test_the_example_imports_no_remote_transport():
    """Its environments play in this process: neither servers nor Ray are asked for."""
    code = """
import sys
from harness.cli.main import main
main(["credit", "--example"], standalone_mode=False)
transports = {"agentgyms.remote", "ray", "http.client", "httpx2", "torch"}
found = [m for m in sys.modules if any(m == t or m.startswith(t + ".") for t in transports)]
assert not found, found
assert "agentgyms.envs.alfworld.env" in sys.modules  # it has played
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "gigpo" in done.stdout


def test_only_the_page_needs_the_template_engine(tmp_path):
    names, path = ("jinja2", "torch", "transformers", "matplotlib"), tmp_path / "page.html"
    done = without_packages(names, ["credit", "--example"], ["methods"])
    assert done.returncode == 0, done.stderr
    done = without_packages(names, ["credit", "--example", "--html", str(path)])
    assert done.returncode == 2
    needed = f"jinja2 is not installed, run: {install('eval')}"
    assert done.stderr == f"error: {needed}\n"
    assert not path.exists()


def test_what_the_documentation_says_is_so(tmp_path):
    text_ = DOCUMENTATION.read_text(encoding="utf-8")
    (lines,) = re.findall(r"```json\n(.*?)```", text_, re.S)
    (tmp_path / "brought.jsonl").write_text(lines)
    result = run("credit", str(tmp_path / "brought.jsonl"), "--methods", "gigpo,salt")
    assert "2 rollouts in 1 group, 3 turns" in result.output
    (snippet,) = re.findall(r"```python\n(.*?)```", text_, re.S)
    exec(snippet, {})
    found = re.findall(r"^\| `(\w+)` \| ([\w, ]*)\|.*\| ([`\w ]*?) ?\|$", text_, re.M)
    rows = [
        (name, list(filter(None, of.strip().split(", "))), column) for name, of, column in found
    ]
    shown_values = {name: estimator for estimator, names, _ in rows for name in names}
    assert shown_values == {row.name: row.estimator for row in methods.METHODS.values()}
    assert {estimator for estimator, _, _ in rows} == set(credit.names())
    for estimator, names, column in rows:
        given = methods.METHODS[names[0]].credit if names else {}
        assert column == " ".join(f"`{c}`" for c in compare.columns_of(estimator, given))
