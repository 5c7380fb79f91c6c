"""States of episodes as JSON-plain values and back, checked: a snapshot may come from anywhere."""

from __future__ import annotations

import math
from typing import Any

from agentgyms.sotopia import reading
from agentgyms.sotopia.dialogue import Act, Ending, Turn
from agentgyms.sotopia.episode import Episode, State
from agentgyms.sotopia.parties import RANGES, Rating, Spent, Verdict


def write(state: State, seed: int) -> dict[str, Any]:
    """Return a state and the seed of its episode."""
    verdict = state.verdict
    return {
        "seed": seed,
        "dialogue": [[[seat, *_write_act(act)] for seat, act in turn] for turn in state.dialogue],
        "pending": None if state.pending is None else _write_act(state.pending),
        "malformed": state.malformed,
        "partner_malformed": state.partner_malformed,
        "refusals": list(state.refusals),
        "spent": _write_spent(state.spent),
        "verdict": None if verdict is None else _write_verdict(verdict),
    }


def read_seed(value: Any) -> int:
    """Return the seed in what `write` returned.

    Raises:
        ValueError: It is none.
    """
    return _count(value["seed"], "'seed'")


def read(value: Any, episode: Episode) -> State:
    """Return the state in what `write` returned.

    Raises:
        LookupError: A part is missing.
        TypeError: A part is of another type.
        ValueError: It is no state of this episode in which the caller acts, or at its end.
    """
    pending, verdict = value["pending"], value["verdict"]
    state = State(
        dialogue=tuple(_read_turn(turn) for turn in value["dialogue"]),
        pending=None if pending is None else _read_act(pending),
        malformed=_count(value["malformed"], "'malformed'"),
        partner_malformed=_count(value["partner_malformed"], "'partner_malformed'"),
        refusals=_read_refusals(value["refusals"]),
        spent=_read_spent(value["spent"]),
        verdict=None if verdict is None else _read_verdict(verdict),
    )
    _check(state, episode)
    return state


def _write_act(act: Act) -> list[str]:
    return [act.kind.value, act.argument]


def _read_act(value: Any) -> Act:
    kind, argument = value
    act = reading.read_fields({"action_type": kind, "argument": argument})
    if not isinstance(act, Act) or _write_act(act) != [kind, argument]:
        raise ValueError(f"an act has a type and what goes with it, got {value!r:.80}")
    return act


def _read_turn(value: Any) -> Turn:
    turn = []
    for seat, *act in value:
        if type(seat) is not int:
            raise TypeError(f"a seat is 0 or 1, got {seat!r:.80}")
        turn.append((seat, _read_act(act)))
    return tuple(turn)


def _read_refusals(value: Any) -> tuple[str, str]:
    first, second = value
    if type(first) is not str or type(second) is not str:
        raise TypeError(f"'refusals' are two texts, got {value!r:.80}")
    return first, second


def _write_spent(spent: Spent) -> list[Any]:
    cost = spent.cost if math.isfinite(spent.cost) else None
    return [spent.prompt, spent.response, spent.calls, cost]


def _read_spent(value: Any) -> Spent:
    *counts, cost = value
    prompt, response, calls = (_count(count, "a part of 'spent'") for count in counts)
    if cost is not None and (type(cost) is not float or not 0 <= cost < math.inf):
        raise ValueError(f"a cost is a number or null, got {cost!r:.80}")
    return Spent(prompt, response, calls, math.nan if cost is None else cost)


def _write_verdict(verdict: Verdict) -> dict[str, Any]:
    ratings = verdict.ratings
    told = ratings and [[dict(one.scores), dict(one.reasons)] for one in ratings]
    return {"ratings": told, "reason": verdict.reason, "spent": _write_spent(verdict.spent)}


def _read_verdict(value: Any) -> Verdict:
    ratings, reason = value["ratings"], value["reason"]
    if type(reason) is not str:
        raise TypeError(f"a reason is a text, got {reason!r:.80}")
    spent = _read_spent(value["spent"])
    if ratings is None:
        return Verdict(None, reason, spent)
    first, second = (_read_rating(*rating) for rating in ratings)
    return Verdict((first, second), reason, spent)


def _read_rating(scores: Any, reasons: Any) -> Rating:
    if set(scores) != set(RANGES) or not set(reasons) <= set(RANGES):
        raise ValueError(f"a rating has the dimensions {', '.join(RANGES)}, got {scores!r:.80}")
    for name, (lowest, highest) in RANGES.items():
        if type(scores[name]) is not int or not lowest <= scores[name] <= highest:
            raise ValueError(f"{name} must be from {lowest} to {highest}, got {scores[name]!r:.80}")
    if any(type(reason) is not str for reason in reasons.values()):
        raise TypeError(f"reasons are texts, got {reasons!r:.80}")
    return Rating({name: scores[name] for name in RANGES}, dict(reasons))


def _count(value: Any, what: str) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{what} must be a count, got {value!r:.80}")
    return value


def _check(state: State, episode: Episode) -> None:
    """Raise `ValueError` unless an episode can have come to this state."""
    rules, dialogue = episode.rules, state.dialogue
    for number, turn in enumerate(dialogue):
        if tuple(seat for seat, _ in turn) != rules.acting(number):
            raise ValueError(f"turn {number} is another seat's: {turn!r:.80}")
        if rules.ending(dialogue[:number]) is not Ending.OPEN:
            raise ValueError(f"the dialogue was over before turn {number}")
    taken = episode.taken(state)
    over = rules.ending(dialogue) is not Ending.OPEN or taken >= episode.max_turns
    if over != (state.verdict is not None) and not (over and taken == 0):
        raise ValueError("a verdict is there exactly when the episode is over")
    in_self_chat = episode.partner is None and rules.order == "simultaneous"
    if state.pending is not None and not in_self_chat:
        raise ValueError("no act waits for another one's")
    learner = episode.encounter.seat
    if not over and episode.partner is not None and learner not in rules.acting(len(dialogue)):
        raise ValueError(f"it is not the turn of seat {learner}")
