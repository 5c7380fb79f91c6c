"""Results as tables and comparisons: Markdown, LaTeX, CSV."""

import csv
import io
import re

import pytest
from made_results import (
    ALFWORLD,
    LOST,
    WON,
    alfworld,
    episode,
    episodes,
    keep,
    keep_run,
    result,
    rows,
)

from harness.reporting.results.loading import load, load_all
from harness.reporting.tables import details, formats
from harness.reporting.tables import rows as tables
from harness.types.errors import PairingError


def webshop(**more):
    records = [*episodes({"g1": True}), episode("g2", False, index=1, score=0.5)]
    return result(records, env_id="agentgyms/WebShop-v0", split="test", **more)


def test_runs_that_differ_in_their_seed_are_one_row(tmp_path):
    runs = [
        keep_run(tmp_path / "a", {(9, "valid_seen"): WON}, seed=0),
        keep_run(tmp_path / "b", {(9, "valid_seen"): LOST}, seed=1),
        keep_run(tmp_path / "c", {(9, "valid_seen"): LOST}, seed=1, method="grpo"),
        keep_run(tmp_path / "d", {(9, "valid_seen"): WON}, seed=0),
        keep_run(tmp_path / "e", {(5, "valid_seen"): WON}, seed=2),
    ]
    loaded = load_all(runs)
    assert [one.result["seeds"] for one in loaded] == [[0, 1], [1], [0], [2]]
    assert loaded[0].label == "a (2 seeds)"
    success = loaded[0].figures["success"]
    assert (success["mean"], success["per_seed"]) == (0.5, [0.75, 0.25])
    assert success["std"] == pytest.approx(0.35355, abs=1e-5)
    text = formats.tables_to_markdown(tables.build(loaded[:2]))
    assert rows(text)[1] == [
        *("Base-1B", "RL", "GiGPO", "25.0 ± 35.4", "–", "–", "75.0 ± 35.4", "–", "–"),
        "50.0 ± 35.4",
    ]
    assert rows(text)[2][2] == "GRPO"
    assert "1 of 5 episodes are MISSING" in text


def test_alfworld_and_webshop_stand_side_by_side(tmp_path):
    paths = [keep(tmp_path / "shop", webshop()), keep(tmp_path / "house", alfworld())]
    (table,) = tables.build(load_all(paths))
    assert table.title == "ALFWorld valid_seen, WebShop test"
    (row,) = table.rows
    shown = {heading: cell.mean for (_, heading), cell in row.cells.items()}
    assert shown == {"Pick": 50, "Heat": 100, "All": 75, "Score": 75, "Succ.": 50}
    heading, line = rows(formats.tables_to_markdown([table]))
    assert heading[3] == "ALFWorld valid_seen: Pick"
    assert heading[-2:] == ["WebShop test: Score", "WebShop test: Succ."]
    assert line[3:] == [
        *("50.0 (9.5 to 90.5)", "–", "–", "100.0 (34.2 to 100.0)", "–", "–"),
        *("75.0 (30.1 to 95.4)", "75.0 (19.8 to 97.3)", "50.0 (9.5 to 90.5)"),
    ]


def test_other_splits_and_environments_have_tables_of_their_own(tmp_path):
    given = [alfworld(), alfworld(split="valid_unseen"), webshop()]
    built = tables.build([load(keep(tmp_path / str(i), t)) for i, t in enumerate(given)])
    assert [t.title for t in built] == [
        "ALFWorld valid_seen, WebShop test",
        "ALFWorld valid_unseen",
    ]
    splits = [
        result(episodes({"a_1": True}), env_id="agentgyms/AppWorld-v0", split=split)
        for split in ("test_normal", "test_challenge")
    ]
    (table,) = tables.build([load(keep(tmp_path / s["environment"]["split"], s)) for s in splits])
    assert [(b.setting.split, [c.heading for c in b.columns]) for b in table.blocks] == [
        ("test_normal", ["TGC", "SGC"]),
        ("test_challenge", ["TGC", "SGC"]),
    ]


def test_rows_alike_are_told_apart_by_their_labels(tmp_path):
    paths = [keep(tmp_path / name, alfworld()) for name in ("cold", "warm")]
    (table,) = tables.build(load_all(paths))
    assert [row.agent.method for row in table.rows] == ["ReAct (cold)", "ReAct (warm)"]


def test_an_environment_of_ones_own_has_its_families(tmp_path):
    records = [
        episode("x", True, family="easy", score=0.5),
        episode("y", False, index=1, family="hard", score=0.25),
    ]
    given = result(records, env_id="mine:Own-v0", split="test", kind="direct")
    (table,) = tables.build([load(keep(tmp_path / "own", given))])
    assert [c.heading for c in table.blocks[0].columns] == ["easy", "hard", "All", "Score"]
    assert table.title == "Own test"


def test_who_played():
    given = alfworld()
    for model, kind, expected in (
        ({"backend": "expert", "name": "best"}, "react", ("", "", "Expert")),
        ({"backend": "random", "name": "random"}, "react", ("", "", "Random")),
        ({"backend": "hf", "name": "org/X"}, "reflexion", ("X", "Prompting", "Reflexion")),
        (
            {"name": "runs/a", "trained": {"method": "salt", "model": "org/X"}},
            "trained",
            ("X", "RL", "GRPO+SALT"),
        ),
        ({"name": "runs/a", "method": "rft"}, "trained", ("a", "SFT", "RFT")),
        ({"backend": "hf", "name": "runs/a"}, "trained", ("a", "RL", "trained")),
    ):
        agent = tables.agent_name({**given, "model": model, "agent": {"kind": kind}})
        assert (agent.model, agent.type, agent.method) == expected


def test_best_numbers_are_bold_among_rows_of_one_model(tmp_path):
    worse = result(episodes({"p1": False, "p2": False}, family="pick"), kind="direct")
    alone = alfworld(model="Other-7B")
    given = [alfworld(), worse, alone]
    built = tables.build([load(keep(tmp_path / str(i), t)) for i, t in enumerate(given)])
    text = formats.tables_to_markdown(built, bold=True)
    first, second, third = rows(text)[1:]
    assert first[3].startswith("**50.0")
    assert first[-1].startswith("**75.0")
    assert not any("**" in cell for cell in [*second, *third])
    assert "**" not in formats.tables_to_markdown(built).replace("**ALFWorld valid_seen**", "")


def test_papers_numbers_are_not_measured_against_ours(tmp_path):
    worst = result(episodes({"p1": False}, family="pick"), model="Qwen/Qwen2.5-1.5B-Instruct")
    loaded = [load(keep(tmp_path / "worst", worst))]
    lines = rows(formats.tables_to_markdown(tables.build(loaded, with_reported=True), bold=True))
    assert "**" not in "".join(lines[1]), "our only row"
    assert [line[2] for line in lines if line[4] == "**96.7 ± 2.7**"] == ["ECPO"]


def test_reported_numbers_are_labelled_and_never_mixed(tmp_path):
    mine = alfworld(model="Qwen/Qwen2.5-1.5B-Instruct")
    one = load(keep(tmp_path / "mine", mine))
    (plain,) = tables.build([one])
    (table,) = tables.build([one], with_reported=True)
    ours = [row for row in table.rows if not row.reported]
    assert [row.cells for row in ours] == [row.cells for row in plain.rows]
    assert table.rows[0].source == "ours"
    assert all(row.source.startswith("reported: ") for row in table.rows[1:])
    react = [r for r in table.rows if r.agent.method == "ReAct" and "1.5B" in r.agent.model]
    assert [row.source for row in react] == [
        "ours",
        "reported: SCPO, Table 1; ECPO, Table 1; SALT, Table 1",
    ]
    models = [row.agent.model for row in table.rows]
    assert models.index("Qwen2.5-1.5B-Instruct") == 0, "rows of one base model are together"
    text = formats.tables_to_markdown([table])
    assert rows(text)[0][3] == "Source"
    assert "96.0 ± 4.4" in text
    assert "nothing here is computed from them" in " ".join(text.split())
    assert "Source" not in formats.tables_to_markdown([plain])


def test_latex_compiles_in_the_head(tmp_path):
    hostile = alfworld(model="100%_a&b$c#d{e}~f^g\\h")
    paths = [keep(tmp_path / "x_1", hostile), keep(tmp_path / "shop", webshop())]
    text = formats.to_latex(tables.build(load_all(paths)), bold=True)
    assert r"100\%\_a\&b\$c\#d\{e\}\textasciitilde{}f\textasciicircum{}g\textbackslash{}h" in text
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert r"\multicolumn{7}{c}{ALFWorld valid\_seen} & \multicolumn{2}{c}{WebShop test} \\" in text
    assert r"\cmidrule(lr){3-9} \cmidrule(lr){10-11}" in text
    body = [line for line in text.splitlines() if line.startswith("Prompting &")]
    assert [len(re.split(r"(?<!\\)&", line)) for line in body] == [11, 11]
    assert text.count(r"\begin{") == text.count(r"\end{") == 2


def test_csv_has_every_number_apart(tmp_path):
    given = load_all([keep(tmp_path / "x", alfworld(seeds=(0, 1), model="=cmd"))])
    read = list(csv.DictReader(io.StringIO(formats.to_csv(tables.build(given)))))
    assert [row["column"] for row in read] == ["Pick", "Heat", "All"]
    overall = read[-1]
    assert overall["model"] == "'=cmd", "no spreadsheet takes it for a formula"
    assert (overall["mean"], overall["std"]) == ("75.0000", "0.0000")
    assert float(overall["low"]) < 75 < float(overall["high"])


def test_texts_of_a_table_stay_in_their_cells(tmp_path):
    given = alfworld(model="a|b\n| c <b>*x*")
    text = formats.tables_to_markdown(tables.build([load(keep(tmp_path / "x", given))]))
    assert r"| a\|b \| c \<b\>\*x\* |" in text


def test_details_of_one_evaluation(tmp_path):
    records = [
        episode("p1", False, family="pick", invalid=1),
        episode("p1", True, family="pick", trial=2),
        episode("h1", False, index=1, family="heat"),
    ]
    given = result(records, trials=2, kind="reflexion", planned=4)
    text = details.to_markdown(load(keep(tmp_path / "x", given)))
    assert "2 of 4 episodes are MISSING" in text
    assert "- MISSING: 2 episodes; they count nowhere: ModelUnavailable: the server is gone" in text
    assert ["1", "0.0 (0.0 to 65.8)", "2"] in rows(text)
    assert ["2", "50.0 (9.5 to 90.5)", "2"] in rows(text)
    assert "- of the turns: invalid 16.7 %" in text
    assert "- tokens: prompt 300, response 30, calls 3" in text
    goals = [episode("c", True, metrics={"goal": 7.25}), episode("d", True, index=1)]
    given = result(goals, env_id="agentgyms/SOTOPIA-v0", split="all")
    text = details.to_markdown(load(keep(tmp_path / "y", given)))
    assert ["Goal", "7.25", "1"] in rows(text)
    assert "breakdown" not in text, "each dimension is told once"
    assert "Goals are from 0 to 10." in text


@pytest.mark.parametrize("many", [False, True])
def test_many_answers_that_were_cut_off_come_with_advice(tmp_path, many):
    given = result([episode("p1", False, turns=20, unfinished=2 if many else 1)])
    given["sampling"]["max_tokens"] = 64
    text = details.to_markdown(load(keep(tmp_path / "x", given)))
    assert f"answer cut off {10 if many else 5}.0 %" in text
    assert ("- answers were cut off at sampling.max_tokens = 64: a larger" in text) == many


def test_a_comparison_in_words(tmp_path):
    played = enumerate(ALFWORLD.items())
    other = result([episode(n, n == "p2", index=i, family=f) for i, (n, (f, _)) in played])
    pair = load_all([keep(tmp_path / "a", alfworld()), keep(tmp_path / "b", other)])
    text = details.comparison(pair)
    assert "**a against b**" in text
    assert "- wins 3, losses 1, ties 0 (0 solved by both, 0 by none)" in text
    assert "- difference of success: +50.0 points (95 % interval -50.0 to +100.0)" in text
    assert "- exact McNemar test: p = 0.6250" in text  # 2 (1 + 4) / 16
    assert "- solved by the first alone: h1 (seed 0), h2 (seed 0), p1 (seed 0)" in text
    assert "- solved by the second alone: p2 (seed 0)" in text
    assert "arguments" not in text
    other["environment"]["kwargs"] = {"goal": 9}
    changed = load_all([tmp_path / "a", keep(tmp_path / "b", other)])
    differ = '- the environment\'s arguments differ, and so may the tasks: {} and {"goal": 9}'
    assert differ in details.comparison(changed)
    with pytest.raises(PairingError, match="needs two evaluations of one environment"):
        details.comparison(pair[:1])
