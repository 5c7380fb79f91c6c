"""Exact match, F1 and substring match: recorded cases of the usual scripts, and numbers by hand."""

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgyms.envs.searchqa import scoring


@pytest.fixture(scope="module")
def cases():
    folder = os.environ.get("AGENTGYMS_TEST_CASES")
    if not folder:
        pytest.skip("AGENTGYMS_TEST_CASES names no folder of recorded cases")
    return json.loads(Path(folder, "searchqa/qa_em.json").read_text(encoding="utf-8"))


def golden_of(case):
    return [case["gold"]] if isinstance(case["gold"], str) else case["gold"]


@pytest.mark.data
def test_normalisation_is_that_of_the_usual_script(cases):
    assert len(cases["normalize"]) >= 10
    for case in cases["normalize"]:
        assert scoring.normalize(case["s"]) == case["out"], case


@pytest.mark.data
def test_matches_are_those_of_the_usual_script_but_for_empty_golden_answers(cases):
    guarded = 0
    for case in cases["em"]:
        golden = golden_of(case)
        ours = (
            scoring.exact_match(case["pred"], golden),
            scoring.substring_match(case["pred"], golden),
        )
        if any(scoring.normalize(gold) for gold in golden):
            assert ours == (bool(case["em"]), bool(case["subem"])), case
        else:
            assert ours == (False, False), case
            guarded += 1
    assert 0 < guarded < len(cases["em"])


def test_answers_that_normalise_to_nothing():
    assert not scoring.exact_match("", [""])
    assert not scoring.exact_match("the", [""])
    assert not scoring.exact_match("", ["the"])
    assert not scoring.exact_match("a", ["The The"])
    assert scoring.exact_match("the  the", ["The The"]), "the band can be named"
    assert not scoring.substring_match("", ["the"])
    assert not scoring.mentions("anything", ["", "the"])


def test_f1_by_hand():
    assert scoring.f1("the green old bridge", ["Old Bridge"]) == pytest.approx(2 * 2 / (3 + 2))
    assert scoring.f1("bridge bridge", ["bridge"]) == pytest.approx(2 * 1 / (2 + 1))
    assert scoring.f1("tower", ["bridge", "a tower"]) == 1
    assert scoring.f1("", ["bridge"]) == scoring.f1("x", []) == 0


@pytest.mark.parametrize("verdict", ["yes", "no", "noanswer"])
def test_yes_and_no_match_nothing_but_themselves(verdict):
    assert scoring.f1(verdict, [verdict]) == scoring.f1(f"The {verdict.upper()}!", [verdict]) == 1
    assert scoring.f1(f"{verdict}, it is", [verdict]) == 0
    assert scoring.f1(verdict, [f"{verdict} it is"]) == 0
    assert scoring.f1(verdict, [f"{verdict} it is", f"A {verdict}."]) == 1
    assert scoring.f1(f"{verdict} indeed", [f"{verdict} it is"]) == pytest.approx(2 * 1 / (2 + 3))


WORDS = ["yes", "no", "noanswer", "No", "YES.", "answer", "bridge", "old", "Bridge,", "the", "a"]
SHORT_TEXTS = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


def flashrag_f1(answer, golden):
    """FlashRAG's token F1 as its documents and HotpotQA's script state it, word by word."""
    best = 0
    words = scoring.normalize(answer).split()
    for gold in golden:
        missing, same = scoring.normalize(gold).split(), 0
        length = len(missing)
        if words != missing and (words in VERDICTS or missing in VERDICTS):
            continue
        for word in words:
            if word in missing:
                missing.remove(word)
                same += 1
        if same:
            precision, recall = Fraction(same, len(words)), Fraction(same, length)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


VERDICTS = (["yes"], ["no"], ["noanswer"])


@settings(max_examples=300, deadline=None)
@given(SHORT_TEXTS, st.lists(SHORT_TEXTS, max_size=3))
def test_f1_is_that_of_flashrag_and_1_for_an_exact_match(answer, golden):
    expected = 1.0 if scoring.exact_match(answer, golden) else float(flashrag_f1(answer, golden))
    assert scoring.f1(answer, golden) == pytest.approx(expected)


def test_mentions_are_of_whole_words():
    assert scoring.mentions("It lies on the Foo-Bar, they say.", ["foobar"])
    assert scoring.mentions("Born in Upper Foo.", ["Foo"])
    assert not scoring.mentions("Born in Foohill.", ["Foo"])


def test_canonical_forms():
    assert scoring.canonical(" The  Old-Town? ") == "oldtown"
    assert scoring.canonical("THE") == "the"
    assert scoring.canonical("?!") == "?!"
