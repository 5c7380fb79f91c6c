"""The numbers of the papers: their structure, and some typed again by hand."""

import pytest

from harness.reporting.results import paper_results

PAPERS = {"SCPO", "ECPO", "GVPO", "SALT", "OPRL"}
QWEN_1, QWEN_3, QWEN_7, QWEN_32 = (
    f"Qwen2.5-{size}-Instruct" for size in ("1.5B", "3B", "7B", "32B")
)
LLAMA = "Llama3.1-8B-Instruct"

SPOT_VALUES = [
    # Source, base model, method, environment, heading, mean, deviation: typed from the papers.
    ("SCPO, Table 1", QWEN_1, "SCPO", "ALFWorld", "Cool", 92.8, 12.5),
    ("SCPO, Table 1", QWEN_7, "GiGPO", "WebShop", "Score", 84.4, 2.9),
    ("SCPO, Table 1", QWEN_1, "HGPO (K=2, 160 iterations)", "ALFWorld", "All", 92.77, 1.08),
    ("SCPO, Table 1", "GPT-4o", "Prompting", "ALFWorld", "Clean", 31.2, None),
    ("SCPO, Table 2", QWEN_1, "SCPO, shortest reference", "ALFWorld", "Pick2", 80.5, 10.2),
    ("ECPO, Table 1", QWEN_1, "ECPO", "ALFWorld", "Heat", 100.0, 0.0),
    ("ECPO, Table 1", QWEN_1, "GRPO", "ALFWorld", "Cool", 59.7, 5.0),
    ("ECPO, Table 1", "GLM-5.1", "Prompting", "ALFWorld", "Look", 72.7, 7.4),
    ("ECPO, Table 1", QWEN_7, "ECPO", "WebShop", "Succ.", 74.7, 3.0),
    ("ECPO, Table 2", QWEN_1, "GiGPO", "ALFWorld", "Pick2", 91.7, 4.7),
    ("ECPO, Table 3", QWEN_1, "ECPO, groups of 10", "ALFWorld", "All", 94.5, None),
    ("ECPO, Table 4", QWEN_3, "ECPO", "SearchQA", "PopQA", 44.1, None),
    ("ECPO, Table 4", QWEN_3, "StepSearch", "SearchQA", "Bamboogle", 34.4, None),
    ("GVPO, Table 3", QWEN_32, "GVPO, token-mean", "AppWorld", "SGC", 37.5, None),
    ("GVPO, Table 5", QWEN_32, "Dr.GRPO", "AppWorld", "SGC", 43.75, None),
    ("SALT, Table 1", QWEN_1, "RLOO+SALT", "ALFWorld", "Clean", 95.0, 1.4),
    ("SALT, Table 1", QWEN_7, "GRPO", "ALFWorld", "Cool", 52.7, 8.1),
    ("SALT, Table 1", QWEN_7, "GRPO+SALT", "WebShop", "Score", 84.7, 1.7),
    ("SALT, Table 2", QWEN_32, "GRPO+SALT", "AppWorld", "SGC", 47.9, 4.1),
    ("SALT, Table 3", QWEN_32, "RLOO+SALT", "AppWorld", "SGC D3", 14.3, 4.2),
    ("OPRL, Table 1", QWEN_7, "OPRL", "WebShop", "Succ.", 86.5, 2.8),
    ("OPRL, Table 1", QWEN_7, "OPRL", "WebShop", "Score", 93.6, 1.0),
    ("OPRL, Table 1", "Qwen2.5-VL-7B-Instruct", "OPRL", "VisualSokoban", "All", 91.7, 1.2),
    ("OPRL, Table 4", QWEN_1, "OPRL", "WebShop", "Score", 91.5, None),
]

DIALOGUES = [
    # Base model, method, partner, hard, all, their deviations: OPRL, Table 2.
    (LLAMA, "OPRL", "gpt-4o", (7.16, 0.14), (8.45, 0.03)),
    (QWEN_7, "GRPO", "self", (6.97, 0.24), (8.31, 0.06)),
    (QWEN_7, "OPRL", "self", (7.11, 0.19), (8.42, 0.03)),
    (QWEN_7, "OPRL", "gpt-4o", (6.76, 0.18), (8.36, 0.03)),
    ("GPT-5", "ReAct", "gpt-4o", (7.70, None), (8.90, None)),
    ("GPT-5", "ReAct", "self", (7.21, None), (8.95, None)),
]

TESTS_OF_APPWORLD = [
    # Source, method, split, TGC, SGC.
    ("GVPO, Table 2", "GVPO", "test_challenge", 49.3, 29.5),
    ("GVPO, Table 2", "LOOP", "test_normal", 71.3, 53.6),
    ("GVPO, Table 2", "GRPO with KL", "test_challenge", 38.8, 19.4),
    ("SALT, Table 2", "RLOO+SALT", "test_challenge", 37.4, 18.9),
    ("SALT, Table 2", "EI", "test_normal", 58.3, 36.8),
]


def found(source, **wanted):
    rows = [r for r in paper_results.load() if r.source == source]
    return [r for r in rows if all(getattr(r, k) == v for k, v in wanted.items())]


@pytest.mark.parametrize(
    ("source", "model", "method", "environment", "heading", "mean", "std"), SPOT_VALUES
)
def test_spot_values(source, model, method, environment, heading, mean, std):
    row = found(source, model=model, method=method, environment=environment)[0]
    assert (row.numbers[heading].mean, row.numbers[heading].std) == (mean, std)


@pytest.mark.parametrize(("source", "method", "split", "tgc", "sgc"), TESTS_OF_APPWORLD)
def test_spot_values_of_appworld(source, method, split, tgc, sgc):
    (row,) = found(source, method=method, split=split)
    assert [row.numbers[name].mean for name in ("TGC", "SGC")] == [tgc, sgc]


@pytest.mark.parametrize(("model", "method", "partner", "hard", "whole"), DIALOGUES)
def test_spot_values_of_sotopia(model, method, partner, hard, whole):
    (row,) = found("OPRL, Table 2", model=model, method=method, partner=partner)
    told = [
        (row.numbers[f"Goal ({n})"].mean, row.numbers[f"Goal ({n})"].std) for n in ("Hard", "All")
    ]
    assert told == [hard, whole]


def test_goals_stand_beside_those_with_the_same_partner_and_judge():
    def partners(partner, judge="gpt-4o", split="all"):
        rows = paper_results.comparable_results("SOTOPIA", split, partner=partner, judge=judge)
        return {row.partner for row in rows}

    assert partners("self") == partners("self", "openai/gpt-4o-2024-11-20") == {"self"}
    assert partners("gpt-4o") == partners("GPT-4o-2024-08-06") == {"gpt-4o"}
    assert partners("gpt-4o-mini") == partners("scripted-v1") == partners("") == set()
    assert partners("self", "gpt-5") == partners("self", "") == set()
    assert partners("self", split="test") == set()


def test_every_paper_and_row_is_told_apart():
    rows = paper_results.load()
    assert {row.source.partition(",")[0] for row in rows} == PAPERS
    assert {row.type for row in rows} == {"Prompting", "SFT", "RL"}
    assert {row.kind for row in rows} == {"main", "ablation", "detail"}
    names = [(r.source, r.model, r.method, r.environment, r.split, r.partner) for r in rows]
    assert len(names) == len(set(names))
    assert all(row.note.endswith(".") for row in rows)


def test_numbers_are_in_their_ranges():
    for row in paper_results.load():
        most = 10 if row.environment == "SOTOPIA" else 100
        for number in row.numbers.values():
            assert 0 <= number.mean <= most
            assert number.std is None or 0 <= number.std < most / 4


def test_all_lies_between_the_families():
    checked = 0
    for row in paper_results.load():
        families = [n.mean for heading, n in row.numbers.items() if heading != "All"]
        if row.environment == "ALFWorld" and families:
            assert len(families) == 6
            assert min(families) <= row.numbers["All"].mean <= max(families), row
            checked += 1
    assert checked > 60


def test_scores_are_above_success_and_tasks_above_scenarios():
    for row in paper_results.load():
        for above, below in (("Score", "Succ."), ("TGC", "SGC"), ("Goal (All)", "Goal (Hard)")):
            if above in row.numbers and below in row.numbers:
                assert row.numbers[above].mean >= row.numbers[below].mean, row


def test_rows_that_papers_share_are_equal():
    for method in ("Direct", "ReAct", "Reflexion"):
        for model in (QWEN_1, QWEN_7):
            alike = [
                found(f"{paper}, Table 1", model=model, method=method)
                for paper in ("SCPO", "ECPO", "SALT")
            ]
            for rows in zip(*alike, strict=True):
                assert all(row.numbers == rows[0].numbers for row in rows)


def test_a_split_that_a_paper_names_stands_beside_no_other():
    unseen = {row.source for row in paper_results.comparable_results("ALFWorld", "valid_unseen")}
    assert unseen == {"SALT, Table 1"}, "this paper does not name its split"
    seen = {row.source for row in paper_results.comparable_results("ALFWorld", "valid_seen")}
    assert seen == {"SCPO, Table 1", "ECPO, Table 1", "SALT, Table 1"}, "main results alone"
    assert paper_results.comparable_results("Corridor", "valid") == []


@pytest.mark.parametrize("cell", ["", "-", "92.7+0.7", "±0.7", "92.7±", "1e3", "92.7±0.7x"])
def test_cells_are_numbers(cell):
    with pytest.raises(ValueError, match="expected a number"):
        paper_results.parse(cell)
    assert paper_results.parse("92.77±1.08") == paper_results.Number(92.77, 1.08, 2)
    assert paper_results.parse("13") == paper_results.Number(13, None, 0)
