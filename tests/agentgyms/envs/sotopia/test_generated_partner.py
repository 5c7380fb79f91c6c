"""The scripted partner: what it knows, when it agrees, when it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgyms.core.errors import BadOption
from agentgyms.envs.sotopia.dialogue import ORDERS, Act, Dialogue, Kind, Rules, Turn
from agentgyms.envs.sotopia.generated.acts import acts_of
from agentgyms.envs.sotopia.generated.bargaining import Bargaining
from agentgyms.envs.sotopia.generated.concession import CURVES, ConcessionStrategy, draw_strategy
from agentgyms.envs.sotopia.generated.contact import Contact
from agentgyms.envs.sotopia.generated.negotiation import Negotiation
from agentgyms.envs.sotopia.generated.negotiation_partner import count_stalls
from agentgyms.envs.sotopia.generated.partner import ScriptedPartner
from agentgyms.envs.sotopia.generated.scenarios import encounter, task_ids
from agentgyms.envs.sotopia.profiles import Encounter
from tests.agentgyms.envs.sotopia.generated_play import (
    LAMP,
    PARTNER,
    PARTY,
    TOYS,
    act,
    best,
    changed,
    play,
    silent,
    stubborn,
    talk,
)

RULES = Rules()
IDS = [task.task_id for task in task_ids("valid")]
MET = encounter("valid-0000-bargaining/0")
LINES = [
    *["none", "speak: Hello.", "speak: What is your lowest price?", "speak: Why?"],
    *["speak: What do you like best?", "speak: You idiot.", "act: accept", "act: reject"],
    *["act: offer 60", "act: offer 80", "act: offer 100", "act: smile", "act: name Alma"],
    *["speak: Do you know someone at Acorn who likes chess?", "speak: Delta?"],
]


def after(game: Any, *lines: str, seat: int = 1, seed: int = 0) -> Act:
    """Return what the partner does at a seat after a dialogue."""
    return PARTNER.reply(replace(MET, game=game), RULES, talk(*lines), seat, seed).act


@given(
    st.integers(0, len(IDS) - 1),
    st.lists(st.integers(0, 99), min_size=8, max_size=16),
    st.integers(0, 9),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_it_never_depends_on_what_only_the_learner_knows(
    number: int, choices: list[int], seed: int, simultaneous: bool
) -> None:
    met = encounter(IDS[number])
    other = replace(
        met, game=changed(met, met.seat), scenario=replace(met.scenario, goals=("", ""))
    )
    assert other.game != met.game
    rules, seat = Rules(ORDERS[simultaneous]), 1 - met.seat
    dialogue: list[Turn] = []
    for choice in choices:
        turn: list[tuple[int, Act]] = []
        for who in rules.acting(len(dialogue)):
            if who == met.seat:
                turn.append((who, act(_line(met, dialogue, choice))))
                continue
            told = PARTNER.reply(met, rules, dialogue, seat, seed)
            assert PARTNER.reply(other, rules, dialogue, seat, seed) == told
            assert ScriptedPartner().reply(met, rules, list(dialogue), seat, seed) == told
            turn.append((who, told.act))
        dialogue.append(tuple(turn))


def test_it_knows_no_more_of_a_learner_that_plays_to_the_end() -> None:
    for task_id in IDS[:60]:
        met = encounter(task_id)
        other = replace(met, game=changed(met, met.seat))
        for learner in (best, stubborn):
            dialogue = play(task_id, learner)
            for number in range(1 - met.seat, len(dialogue), 2):
                told = PARTNER.reply(other, RULES, dialogue[:number], 1 - met.seat, 0)
                assert dialogue[number] == ((1 - met.seat, told.act),)


def _line(met: Encounter, dialogue: Dialogue, choice: int) -> str:
    lines = [*LINES, *met.game.suggestions(dialogue, met.seat)]
    if isinstance(met.game, Contact):
        lines += [f"act: name {name}" for name in met.game.names(1 - met.seat)]
    return lines[choice % len(lines)]


@pytest.mark.parametrize("order", ORDERS)
def test_its_reservation_is_reached_by_patient_play(order: str) -> None:
    reached = tried = 0
    for task_id in IDS[:60]:
        met = encounter(task_id)
        dialogue = play(task_id, best, Rules(order))
        if isinstance(met.game, Bargaining):
            limit = met.game.limits[1 - met.seat]
            tried += met.game.gain(met.seat, limit) <= met.game.full_gain(met.seat)
            reached += met.game.offer_state(dialogue).deal == limit
        assert met.game.settled(dialogue)
    assert reached >= 0.8 * tried > 5


@pytest.mark.parametrize("order", ORDERS)
def test_it_never_agrees_below_its_reservation(order: str) -> None:
    for task_id in IDS[:60]:
        met = encounter(task_id)
        if not isinstance(met.game, Negotiation):
            continue
        game, seat = met.game, 1 - met.seat
        poor = max(
            (o for o in game.outcomes() if game.gain(seat, o) < game.reservation(seat)),
            key=lambda o: game.gain(seat, o),
        )
        insist = lambda *_: f"act: offer {game.format_offer(met.seat, poor)}"  # noqa: B023
        dialogue = play(task_id, insist, Rules(order))
        assert not game.settled(dialogue)
        for told in acts_of(dialogue, seat):
            made = told.argument.removeprefix("offer ")
            if made != told.argument:
                assert game.gain(seat, game.parse_offer(seat, made)) >= game.reservation(seat)


def test_a_learner_may_refuse_everything() -> None:
    for task_id in IDS[:30]:
        dialogue = play(task_id, lambda *_: "act: reject")
        assert not encounter(task_id).game.settled(dialogue)
        assert dialogue[-1][-1][1].kind is Kind.LEAVE


def test_demands_fall_along_the_curves() -> None:
    strategies = [ConcessionStrategy(curve, 4, 4) for curve in CURVES]
    concession = [
        [float(strategy.concession(turn)) for turn in range(6)] for strategy in strategies
    ]
    assert concession == [
        [0, 1 / 16, 1 / 4, 9 / 16, 1, 1],
        [0, 1 / 4, 1 / 2, 3 / 4, 1, 1],
        [0, 7 / 16, 3 / 4, 15 / 16, 1, 1],
    ]


@pytest.mark.parametrize(("price", "stalls"), [(35, 1), (40, 1), (45, 0)])
def test_an_offer_is_serious_above_minus_the_aspiration(price: int, stalls: int) -> None:
    """The seller of LAMP gains 30 at its target, and minus 30 at 40."""
    assert count_stalls(LAMP, talk(f"act: offer {price}"), 1) == stalls


def test_its_offers_follow_its_curve() -> None:
    seed = next(
        seed
        for seed in range(99)
        if draw_strategy(MET.scenario.scenario_id, RULES, 1, seed)
        == ConcessionStrategy("linear", 6, 5)
    )
    dialogue: list[str] = []
    for low in range(42, 72, 5):
        dialogue.append(f"act: offer {low}")
        dialogue.append(f"act: {after(LAMP, *dialogue, seed=seed).argument}")
    assert dialogue[1::2] == [f"act: offer {price}" for price in (100, 95, 90, 85, 80, 75)]
    assert after(LAMP, *dialogue, "act: offer 69", seed=seed).argument == "offer 70"
    assert after(LAMP, *dialogue, "act: offer 70", seed=seed).argument == "accept"


@pytest.mark.parametrize(
    ("line", "turns", "lowest"),
    [
        (lambda turn: "act: offer 60" if turn == 3 else "speak: Let me think.", 4, 90),
        (lambda turn: f"act: offer {41 + turn // 2}", 1, 75),
        (lambda turn: f"act: offer {10 + 5 * turn}", 0, 100),
    ],
    ids=["talk", "dollars", "absurd"],
)
def test_nobody_gets_a_good_price_by_waiting(
    line: Callable[[int], str], turns: int, lowest: int
) -> None:
    dialogue: list[Turn] = []
    while not dialogue or dialogue[-1][0][1].kind is not Kind.LEAVE:
        dialogue.append(((0, act(line(len(dialogue) // 2))),))
        told = PARTNER.reply(replace(MET, game=LAMP), RULES, dialogue, 1, 0).act
        dialogue.append(((1, told),))
        assert len(dialogue) <= RULES.max_turns
    patience = draw_strategy(MET.scenario.scenario_id, RULES, 1, 0).max_stalls
    assert len(dialogue) == 2 * (turns + patience)
    assert min(LAMP.offer_state(dialogue).offers[1]) >= lowest


def test_tempers_differ_and_leave_time_to_agree() -> None:
    strategies = {draw_strategy("game", RULES, 1, seed) for seed in range(99)}
    assert {strategy.curve for strategy in strategies} == set(CURVES)
    assert {strategy.duration for strategy in strategies} == {4, 5, 6}
    assert {strategy.max_stalls for strategy in strategies} == {4, 5}
    assert draw_strategy("game", Rules(max_turns=8), 1, 0).duration == 1


@pytest.mark.parametrize("order", ORDERS)
def test_it_leaves_when_nothing_moves_and_says_so_before(order: str) -> None:
    for task_id in IDS[:30]:
        met = encounter(task_id)
        rules = Rules(order, stale_turns=99)
        dialogue = play(task_id, silent, rules)
        done = acts_of(dialogue, 1 - met.seat)
        patience = draw_strategy(met.scenario.scenario_id, rules, 1 - met.seat, 0).max_stalls
        assert done[-1].kind is Kind.LEAVE
        assert "leave soon" in done[-2].argument
        before = sum(who == met.seat for turn in dialogue[:-1] for who, _ in turn)
        assert before == patience


def test_it_asks_for_politeness_once_and_then_leaves() -> None:
    assert after(LAMP, "speak: You STUPID man!").argument.startswith("Please be polite")
    assert after(LAMP, "speak: You fool!", "none", "act: offer 60").kind is Kind.ACTION
    assert after(LAMP, "speak: You fool!", "none", "speak: Liar.").kind is Kind.LEAVE


def test_after_a_deal_it_says_goodbye_and_leaves() -> None:
    deal = ("act: offer 100", "act: accept")
    goodbye = after(LAMP, *deal, "none")
    assert goodbye == Act(Kind.SPEAK, "Thank you. Goodbye.")
    assert after(LAMP, *deal, "none", f"speak: {goodbye.argument}", "none").kind is Kind.LEAVE


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("speak: Why do you sell it?", "It is because of a move."),
        ("speak: What is your lowest price?", "I would rather not say. Make me an offer."),
        ("speak: Does it work?", "The lamp is in good order."),
    ],
)
def test_it_answers_questions_once(question: str, answer: str) -> None:
    assert after(LAMP, question).argument == answer
    assert after(LAMP, question, f"speak: {answer}", question).kind is Kind.ACTION


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("speak: Anyone at Acorn who likes chess?",), "speak: Yes, Acorn and chess."),
        (("speak: Anyone at Acorn who likes singing?",), "speak: No, not Acorn and singing."),
        (("speak: Someone at acorn?",), "speak: Yes, Acorn."),
        (("act: name Boris",), "speak: I do not know Boris."),
        (("act: name Alma",), "act: name Alma"),
        (("speak: I know Alma.",), "act: name Alma"),
        (("act: name Alma", "act: name Alma", "none"), "speak: Thank you. Goodbye."),
        (("act: name Clara", "act: name Clara", "none"), "speak: Thank you. Goodbye."),
    ],
)
def test_it_looks_for_the_common_contact(lines: tuple[str, ...], expected: str) -> None:
    assert after(PARTY, *lines) == act(expected)


def test_it_tells_of_each_contact_once_without_the_name() -> None:
    lines: list[str] = []
    for _ in range(3):
        lines += ["speak: Hm.", f"speak: {after(PARTY, *lines, 'speak: Hm.').argument}"]
    assert set(lines[1:5:2]) == {
        "speak: I know someone at Acorn who likes rowing.",
        "speak: I know someone at Acorn who likes chess.",
    }
    assert "all my contacts" in lines[5]


@given(
    st.lists(
        st.builds(Act, st.sampled_from(Kind), st.text() | st.text("0123456789=$ acelnoprt")),
        max_size=9,
    ),
    st.integers(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_it_has_a_short_answer_to_anything(acts: list[Act], seat: int) -> None:
    dialogue = [((number % 2, told),) for number, told in enumerate(acts)]
    for game in (LAMP, TOYS, PARTY):
        told = PARTNER.reply(replace(MET, game=game), RULES, dialogue, seat, 0).act
        assert len(told.argument) < 100
        assert not (told.kind is Kind.ACTION and game.no_effect_reason(dialogue, seat, told))


def test_it_plays_generated_games_alone() -> None:
    with pytest.raises(BadOption, match="give a model as partner"):
        after(None)
