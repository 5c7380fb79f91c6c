"""The rules and formulas of generated games, against cases worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgyms.core.randomness import Chance
from agentgyms.envs.sotopia.dialogue import Act, Kind
from agentgyms.envs.sotopia.generated.acts import Commitment, Verb, commitment
from agentgyms.envs.sotopia.generated.scenarios import FAMILIES, draw_game
from tests.agentgyms.envs.sotopia.generated_play import LAMP, PARTY, TOYS, act, talk


def share(game: Any, dialogue: Any) -> float:
    """Return the share of seat 0's subgoals that are reached."""
    reached = game.subgoals(dialogue, 0).values()
    return sum(reached) / len(reached)


SHARED = talk("act: offer balls=0 dolls=2 boxes=1", "act: accept")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("offer 480", Commitment(Verb.OFFER, "480")),
        (" Offer: $80. ", Commitment(Verb.OFFER, "$80")),
        ("ACCEPT!", Commitment(Verb.ACCEPT, "")),
        ("accept the offer", Commitment(Verb.ACCEPT, "the offer")),
        ("name Alma", Commitment(Verb.NAME, "Alma")),
        ("accept 80", None),
        ("accept, but later", None),
        ("offering 80", None),
        ("I offer 80", None),
        ("offer " + "9" * 300, None),
    ],
)
def test_what_commits(text: str, expected: Commitment | None) -> None:
    assert commitment(Act(Kind.ACTION, text)) == expected
    assert commitment(Act(Kind.SPEAK, text)) is None
    assert commitment(Act(Kind.NONVERBAL, text)) is None


@pytest.mark.parametrize(
    ("price", "buyer", "seller"),
    [
        (110, 0, 10),  # the buyer's limit, beyond the seller's target
        (85, 5, 5),  # half way for both
        (62, 10, 0),  # 48/50 rounds up; below the seller's limit
        (60, 10, 0),
        (10, 10, 0),
        (107, 1, 10),  # 3/50 rounds to 1
        (108, 0, 10),  # 2/50 rounds to 0
        (73, 7, 1),  # 37/50; 3/30
        (72, 8, 1),  # 38/50; 2/30
    ],
)
def test_goals_of_a_price(price: int, buyer: int, seller: int) -> None:
    dialogue = talk(f"act: offer {price}", "act: accept")
    assert [LAMP.goal_score(dialogue, seat) for seat in (0, 1)] == [buyer, seller]


def test_reasons_have_their_articles() -> None:
    game = replace(LAMP, reasons=("inheritance", "wedding"))
    assert "Your reason: an inheritance." in game.goal(0)
    assert "Your reason: a wedding." in game.goal(1)


def test_material_benefit_of_a_price_may_be_a_loss() -> None:
    dialogue = talk("act: offer 60", "act: accept")
    assert [LAMP.material(dialogue, seat) for seat in (0, 1)] == [5, -2]
    assert LAMP.material(talk("act: offer 60"), 0) == 0


def test_goals_of_a_division() -> None:
    assert [TOYS.goal_score(SHARED, seat) for seat in (0, 1)] == [8, 8]
    assert [TOYS.material(SHARED, seat) for seat in (0, 1)] == [4, 4]
    greedy = talk("act: offer balls=2 dolls=1", "act: accept")
    assert [TOYS.goal_score(greedy, seat) for seat in (0, 1)] == [4, 0]
    assert [TOYS.material(greedy, seat) for seat in (0, 1)] == [2, -1]


def test_a_share_is_what_its_maker_takes() -> None:
    from_seat_1 = talk("none", "act: offer balls=2", "act: accept")
    assert TOYS.offer_state(from_seat_1).deal == TOYS.offer_state(SHARED).deal == (0, 2, 1)
    assert TOYS.format_offer(1, (0, 2, 1)) == "balls=2 dolls=0 boxes=0"


@pytest.mark.parametrize(
    "text", ["", "balls", "balls=3", "balls=1 balls=1", "cups=1", "balls=1 and more", "balls=-1"]
)
def test_what_is_no_share(text: str) -> None:
    assert TOYS.parse_offer(0, text) is None
    told = TOYS.no_effect_reason((), 0, act(f"act: offer {text}"))
    assert "act: offer balls=1 dolls=1 boxes=1" in told, "of nobody's points"


@pytest.mark.parametrize("text", ["", "eighty", "80.50", "-5", "80 or 90", "1e2"])
def test_what_is_no_price(text: str) -> None:
    assert LAMP.parse_offer(0, text) is None
    assert "act: offer 80" in LAMP.no_effect_reason((), 0, act(f"act: offer {text}"))


@pytest.mark.parametrize("text", ["80", "$80", "80$", "80.00", "80 dollars"])
def test_what_is_a_price(text: str) -> None:
    assert LAMP.parse_offer(0, text) == 80


@pytest.mark.parametrize(
    ("lines", "deal"),
    [
        (("act: offer 80", "act: accept"), 80),
        (("act: offer 80", "speak: Yes, I accept."), None),
        (("act: accept", "act: accept"), None),
        (("act: offer 80", "none", "act: accept"), None),  # its own
        (("act: offer 80", "act: offer 80"), None),  # nobody accepted
        (("act: offer 80", "act: reject", "none", "act: accept"), None),
        (("act: offer 80", "none", "act: offer 70", "act: accept"), 70),
        (("act: offer 80", "act: offer 90", "act: reject", "act: accept"), 80),
        (("act: offer 80", "act: offer 90", "act: accept", "act: accept"), 90),
        (("act: offer 80", "act: accept", "act: offer 70", "act: accept"), 80),
        (("act: offer 80", "none", "leave", "act: accept"), None),
    ],
)
def test_when_there_is_a_deal(lines: tuple[str, ...], deal: int | None) -> None:
    assert LAMP.offer_state(talk(*lines)).deal == deal


def test_acts_of_one_turn_meet_what_stood_before_it() -> None:
    both = [((0, act("act: offer 80")), (1, act("act: accept")))]
    assert LAMP.offer_state(both).deal is None
    crossed = [*both, ((0, act("act: offer 75")), (1, act("act: accept")))]
    assert LAMP.offer_state(crossed).deal == 80
    offers = [((0, act("act: offer 80")), (1, act("act: offer 90")))]
    assert (
        LAMP.offer_state([*offers, ((0, act("act: accept")), (1, act("act: accept")))]).deal == 90
    )
    for price in (80, 85):
        replaced = [*offers, ((0, act(f"act: offer {price}")), (1, act("act: reject")))]
        assert LAMP.offer_state(replaced).standing == (price, 90)
    left = [*offers, ((0, act("leave")), (1, act("act: accept")))]
    assert LAMP.offer_state(left).deal == 80


def test_goals_of_a_common_contact() -> None:
    straight = talk("act: name Alma", "act: name alma")
    assert [PARTY.goal_score(straight, seat) for seat in (0, 1)] == [10, 10]
    assert PARTY.goal_score(straight[:1], 0) == 0
    astray = talk("speak: Boris, perhaps?", "act: name Clara", "act: name Alma", "act: name Alma")
    assert [PARTY.goal_score(astray, seat) for seat in (0, 1)] == [8, 8]
    later = talk("act: name Alma", "act: name Alma", "act: name Boris")
    assert [PARTY.goal_score(later, seat) for seat in (0, 1)] == [10, 10]
    assert [share(PARTY, later[:n]) for n in range(4)] == [0.0, 0.5, 1.0, 1.0]
    never = talk("act: name Alma", "act: name Clara", "act: name Boris", "act: name Alma")
    assert [PARTY.goal_score(never, seat) for seat in (0, 1)] == [0, 0]
    assert share(PARTY, never) == 0.5


def test_names_of_many_contacts_cost_much_but_not_all() -> None:
    game = draw_game(Chance("many"), "contact", "test")
    names = ", ".join(game.names(0))
    dialogue = talk(f"speak: {names}", f"act: name {game.common}", f"act: name {game.common}")
    assert [game.goal_score(dialogue, seat) for seat in (0, 1)] == [2, 10]


def test_progress_of_offers() -> None:
    lines = talk("act: offer 80", "none", "none", "act: offer 90", "act: accept")
    progress = [share(LAMP, lines[:n]) for n in range(6)]
    assert progress == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3, 2 / 3, 1])


@pytest.mark.parametrize(
    ("game", "line", "reason"),
    [
        (LAMP, "act: accept", "there is no offer"),
        (LAMP, "act: reject", "there is no offer"),
        (LAMP, "act: accept 80", "nothing else"),
        (LAMP, f"act: offer 80 {'now ' * 60}", "no offer"),
        (LAMP, "act: name Alma", "nobody is to be named"),
        (PARTY, "act: name Clara", "none of your contacts"),
        (PARTY, "act: name Alma Lister", "no name"),
        (PARTY, "act: offer 5", "nothing to deal in"),
    ],
)
def test_objections(game: Any, line: str, reason: str) -> None:
    assert reason in game.no_effect_reason((), 0, act(line))


@pytest.mark.parametrize("line", ["act: offer 70", "act: accept", "act: reject"])
def test_after_a_deal_nothing_commits_any_more(line: str) -> None:
    assert "there is a deal" in LAMP.no_effect_reason(
        talk("act: offer 80", "act: accept"), 0, act(line)
    )


@pytest.mark.parametrize("own", [115, 500, 999999])
def test_nobody_is_advised_to_lose_after_a_foolish_offer(own: int) -> None:
    dialogue = talk(f"act: offer {own}", "act: reject")
    assert LAMP.suggestions(dialogue, 0) == ("act: offer 105",)


@pytest.mark.parametrize("line", ["speak: offer what", "act: smile", "none", "leave"])
def test_what_is_no_commitment_meets_no_objection(line: str) -> None:
    assert not any(game.no_effect_reason((), 0, act(line)) for game in (LAMP, TOYS, PARTY))


@given(st.sampled_from(FAMILIES), st.integers(0, 30), st.lists(st.integers(0, 8), max_size=8))
@settings(max_examples=40, deadline=None)
def test_what_is_suggested_is_possible(family: str, number: int, choices: list[int]) -> None:
    game = draw_game(Chance("suggested", number), family, "train")
    dialogue = talk()
    for choice in choices:
        seat = len(dialogue) % 2
        suggested = game.suggestions(dialogue, seat)
        assert 1 <= len(set(suggested)) == len(suggested) <= 6
        assert not any(game.no_effect_reason(dialogue, seat, act(line)) for line in suggested)
        dialogue.append(((seat, act(suggested[choice % len(suggested)])),))
        for who in (0, 1):
            assert 0 <= game.goal_score(dialogue, who) <= 10
            assert -5 <= game.material(dialogue, who) <= 5
            assert set(game.subgoals(dialogue, who).values()) <= {True, False}
    if game.settled(dialogue):
        assert game.suggestions(dialogue, 0) == ("leave",)
