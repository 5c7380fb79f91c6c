"""Exact match, F1 and substring match: recorded cases of the usual scripts, and numbers by hand."""

import json
import os
from pathlib import Path

import pytest

from agentgyms.searchqa import scoring


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


def test_mentions_are_of_whole_words():
    assert scoring.mentions("It lies on the Foo-Bar, they say.", ["foobar"])
    assert scoring.mentions("Born in Upper Foo.", ["Foo"])
    assert not scoring.mentions("Born in Foohill.", ["Foo"])


def test_canonical_forms():
    assert scoring.canonical(" The  Old-Town? ") == "oldtown"
    assert scoring.canonical("THE") == "the"
    assert scoring.canonical("?!") == "?!"
