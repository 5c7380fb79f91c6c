"""The programmatic judge: every dimension against cases worked by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgyms.core.errors import BadOption
from agentgyms.envs.sotopia.dialogue import Act, Kind, Rules
from agentgyms.envs.sotopia.generated.judge import COMPUTED, ProgrammaticJudge
from agentgyms.envs.sotopia.generated.scenarios import encounter
from agentgyms.envs.sotopia.partner_judge import RANGES
from tests.agentgyms.envs.sotopia.generated_play import LAMP, PARTY, TOYS, talk

JUDGE = ProgrammaticJudge()
MET = encounter("sample-0000-bargaining/0")
MET = replace(
    MET,
    game=LAMP,
    people=tuple(replace(person, secret="Ada owes a cousin money.") for person in MET.people),
)


def rated(*lines: str, game: object = LAMP) -> list[Mapping[str, int]]:
    """Return the scores of both seats."""
    verdict = JUDGE.rate(replace(MET, game=game), Rules(), talk(*lines), 0)
    assert verdict.ratings is not None
    assert (verdict.reason, verdict.usage.calls) == ("", 0)
    return [rating.scores for rating in verdict.ratings]


def test_nothing_done_is_rated_in_full() -> None:
    first, second = rated()
    assert first == second == {**dict.fromkeys(RANGES, 0), "believability": 10}


def test_a_deal() -> None:
    first, second = rated("act: offer 85", "act: accept", "speak: Thank you.")
    assert first["goal"] == second["goal"] == 5
    assert first["financial_and_material_benefits"] == 3
    assert [first["relationship"], second["relationship"]] == [3, 2]


def test_repeating_oneself_and_doing_nothing_is_less_believable() -> None:
    first, second = rated("speak: Hm.", "none", "speak: hm!", "none", "speak: Hm")
    assert [first["believability"], second["believability"]] == [6, 6]


def test_insults_and_rejections() -> None:
    first, second = rated("act: offer 60", "act: reject", "speak: You liar!", "leave")
    assert [first["social_rules"], second["social_rules"]] == [-3, 0]
    assert [first["relationship"], second["relationship"]] == [-3, -1]


@pytest.mark.parametrize(
    ("line", "score"),
    [
        ("speak: I owe nothing.", 0),
        ("speak: She owes a cousin.", 0),
        ("speak: She owes a Cousin MONEY!", -10),
        ("act: write that Ada owes a cousin", -10),
    ],
)
def test_a_secret_is_lost_with_four_words_of_it(line: str, score: int) -> None:
    assert [rating["secret"] for rating in rated(line)] == [score, 0]


def test_knowledge_is_what_the_other_one_has_said_of_its_own() -> None:
    first, second = rated("speak: Why?", "speak: It is because of a move.")
    assert [first["knowledge"], second["knowledge"]] == [3, 0]
    first, second = rated("speak: Acorn, Beacon, chess", "speak: Acorn", game=PARTY)
    assert [first["knowledge"], second["knowledge"]] == [3, 9]
    first, _ = rated("speak: Hm?", "speak: I like the balls best.", game=TOYS)
    assert first["knowledge"] == 3


def test_every_reason_tells_whether_the_score_is_computed_or_a_heuristic() -> None:
    verdict = JUDGE.rate(MET, Rules(), talk("act: offer 85", "act: accept"), 0)
    assert verdict.ratings is not None
    for dimension in RANGES:
        reason = verdict.ratings[0].reasons[dimension]
        assert reason.startswith("computed: " if dimension in COMPUTED else "heuristic: ")


@given(
    st.lists(
        st.builds(Act, st.sampled_from(Kind), st.text(max_size=40) | st.just("idiot liar fool")),
        max_size=12,
    )
)
@settings(max_examples=60, deadline=None)
def test_scores_are_within_their_ranges(acts: list[Act]) -> None:
    dialogue = [((number % 2, act),) for number, act in enumerate(acts)]
    for game in (LAMP, TOYS, PARTY):
        verdict = JUDGE.rate(replace(MET, game=game), Rules(), dialogue, 0)
        assert verdict.ratings is not None
        for rating in verdict.ratings:
            assert list(rating.scores) == list(rating.reasons) == list(RANGES)
            for dimension, (low, high) in RANGES.items():
                assert low <= rating.scores[dimension] <= high


def test_it_rates_generated_games_alone() -> None:
    with pytest.raises(BadOption, match="give a model as judge"):
        rated(game=None)
