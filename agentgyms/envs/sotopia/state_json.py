"""Converts episode states to JSON values and back; reading checks them as untrusted input."""

from __future__ import annotations

from typing import Any

from agentgyms.envs.sotopia import action_parsing
from agentgyms.envs.sotopia.dialogue import Act, Ending, Turn
from agentgyms.envs.sotopia.partner_judge import RANGES, Rating, Verdict
from agentgyms.envs.sotopia.simulator import DialogueSimulator, DialogueState
from agentgyms.models.usage import Usage


def write(state: DialogueState, seed: int) -> dict[str, Any]:
    """Return a state and its episode's seed as JSON values."""
    verdict = state.verdict
    return {
        "seed": seed,
        "dialogue": [[[seat, *_write_act(act)] for seat, act in turn] for turn in state.dialogue],
        "pending": None if state.pending is None else _write_act(state.pending),
        "malformed": state.malformed,
        "partner_malformed": state.partner_malformed,
        "refusals": list(state.feedback_texts),
        "spent": state.usage.to_json(),
        "verdict": None if verdict is None else _write_verdict(verdict),
    }


def read_seed(value: Any) -> int:
    """Return the seed in a value that `write` returned."""
    return _count(value["seed"], "'seed'")


def read(value: Any, simulator: DialogueSimulator) -> DialogueState:
    """Return the state; raise `LookupError`, `TypeError` or `ValueError` if it is not valid."""
    pending, verdict = value["pending"], value["verdict"]
    state = DialogueState(
        dialogue=tuple(_read_turn(turn) for turn in value["dialogue"]),
        pending=None if pending is None else _read_act(pending),
        malformed=_count(value["malformed"], "'malformed'"),
        partner_malformed=_count(value["partner_malformed"], "'partner_malformed'"),
        feedback_texts=_read_feedback_texts(value["refusals"]),
        usage=Usage.from_json(value["spent"]),
        verdict=None if verdict is None else _read_verdict(verdict),
    )
    _check(state, simulator)
    return state


def _write_act(act: Act) -> list[str]:
    return [act.kind.value, act.argument]


def _read_act(value: Any) -> Act:
    kind, argument = value
    act = action_parsing.parse_fields({"action_type": kind, "argument": argument})
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


def _read_feedback_texts(value: Any) -> tuple[str, str]:
    first, second = value
    if type(first) is not str or type(second) is not str:
        raise TypeError(f"'refusals' are two texts, got {value!r:.80}")
    return first, second


def _write_verdict(verdict: Verdict) -> dict[str, Any]:
    ratings = verdict.ratings
    plain = ratings and [[dict(one.scores), dict(one.reasons)] for one in ratings]
    return {"ratings": plain, "reason": verdict.reason, "spent": verdict.usage.to_json()}


def _read_verdict(value: Any) -> Verdict:
    ratings, reason = value["ratings"], value["reason"]
    if type(reason) is not str:
        raise TypeError(f"a reason is a text, got {reason!r:.80}")
    usage = Usage.from_json(value["spent"])
    if ratings is None:
        return Verdict(None, reason, usage)
    first, second = (_read_rating(*rating) for rating in ratings)
    return Verdict((first, second), reason, usage)


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


def _check(state: DialogueState, simulator: DialogueSimulator) -> None:
    """Raise `ValueError` if the episode cannot reach this state."""
    rules, dialogue = simulator.rules, state.dialogue
    for number, turn in enumerate(dialogue):
        if tuple(seat for seat, _ in turn) != rules.acting(number):
            raise ValueError(f"turn {number} is another seat's: {turn!r:.80}")
        if rules.ending(dialogue[:number]) is not Ending.OPEN:
            raise ValueError(f"the dialogue was over before turn {number}")
    taken = simulator.num_actions(state)
    over = rules.ending(dialogue) is not Ending.OPEN or taken >= simulator.max_turns
    if over != (state.verdict is not None) and not (over and taken == 0):
        raise ValueError("'verdict' must be set if and only if the episode is over")
    in_self_chat = simulator.partner is None and rules.order == "simultaneous"
    if state.pending is not None and not in_self_chat:
        raise ValueError("'pending' must be null: no act is pending in this mode")
    learner = simulator.encounter.seat
    if not over and simulator.partner is not None and learner not in rules.acting(len(dialogue)):
        raise ValueError(f"it is not the turn of seat {learner}")
