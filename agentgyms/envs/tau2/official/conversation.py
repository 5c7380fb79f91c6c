"""One conversation of an official task: what the agent says and calls, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from agentgyms.core.outcome import MAX_ACTION, Feedback
from agentgyms.core.tools import BadCall, ToolCall
from agentgyms.envs.tau2.official import calls
from agentgyms.envs.tau2.official.customer import Customer, Heard
from agentgyms.envs.tau2.official.database import CallError, Database, Tables, same
from agentgyms.envs.tau2.official.files import Domain, GoldCall, OfficialTask
from agentgyms.envs.tau2.official.retail import REASONS
from agentgyms.envs.tau2.official.state import State
from agentgyms.envs.tau2.official.tools import TOOLS

ASK: Final = "say: May I have your name and zip code, or your email?"
CONFIRM: Final = "say: Shall I proceed?"
MORE: Final = "say: Please tell me more."
CLOSE: Final = "say: Is there anything else?"

UNHEARD: Final = "unrated: the conversation has become too long for the customer's model"

_TOO_LATE: Final = "the conversation was over before it"
_SAY: Final = "say:"
_TRANSFER: Final = "transfer_to_human_agents"


class Turn(NamedTuple):
    """The result of a turn; `key` is the canonical action, "" if it was none."""

    state: State
    seen: str
    key: str
    feedback: Feedback = Feedback.OK
    reason: str = ""


def begin(domain: Domain, task: OfficialTask, customer: Customer, seed: int) -> Turn:
    """Return the first state, and the policy with the customer's first words.

    `EnvUnavailable` if the customer is a model that does not respond.
    """
    heard = customer.begin(task, seed)
    nothing: Tables = {table: {} for table in domain.base}
    facts = (False,) * len(task.facts)
    state = _heard(State(nothing, facts, frozenset(), frozenset(), frozenset(), seed=seed), heard)
    return Turn(state, f"{domain.policy}\n\n{heard.before}Customer: {heard.words}", "")


def step(domain: Domain, task: OfficialTask, customer: Customer, state: State, action: str) -> Turn:
    """Say something, or make a call; the errors are those of `begin`."""
    text = action.strip()
    if len(action) > MAX_ACTION:
        text = ""  # what is left of it is another action
    if state.ended:  # a model has ended it with its first words
        return Turn(state, f"Nothing happens: {_TOO_LATE}.", text, Feedback.NO_EFFECT, _TOO_LATE)
    if text.startswith(_SAY) and text[len(_SAY) :].strip():
        return _say(task, customer, state, text[len(_SAY) :].strip())
    try:
        call = TOOLS[domain.name].read(text)
    except BadCall as e:
        after = state._replace(errors=state.errors + 1)
        return Turn(after, f"Error: {e}", "", Feedback.MALFORMED, str(e))
    return _call(domain, task, state, call)


def _say(task: OfficialTask, customer: Customer, state: State, words: str) -> Turn:
    said = words.lower().replace(",", "")
    facts = tuple(
        known or fact.lower() in said for known, fact in zip(state.facts, task.facts, strict=True)
    )
    heard = customer.hear(task, state, words)
    after = _heard(state._replace(facts=facts), heard)
    turn = Turn(after, f"Customer: {heard.words}", f"{_SAY} {words}")
    if heard.unheard:
        return turn._replace(seen="", reason=UNHEARD)
    if heard.nothing_new and after == state:
        return turn._replace(feedback=Feedback.NO_EFFECT, reason="nothing changed")
    return turn


def _heard(state: State, heard: Heard) -> State:
    """Return the state after the customer's answer."""
    return state._replace(
        told=heard.told,
        over=heard.over,
        said=heard.said,
        unheard=heard.unheard,
        usage=state.usage + heard.usage,
    )


def _call(domain: Domain, task: OfficialTask, state: State, call: ToolCall) -> Turn:
    db, key = Database(domain.base, state.changes), TOOLS[domain.name].action(call)
    made = state.made | {i for i, gold in enumerate(task.calls) if _matches(gold, call)}
    try:
        seen, reason = calls.run(domain.name, db, call), ""
    except CallError as e:
        seen, reason = f"Error: {e}", str(e) or "the call failed"
    after = state._replace(
        changes=db.changes,
        made=made,
        opened=state.opened if reason else state.opened | _named(db, call, seen),
        transferred=state.transferred or call.name == _TRANSFER,
        errors=state.errors + bool(reason),
    )
    if reason:
        return Turn(after, seen, key, Feedback.FAILED, " ".join(reason.split()))
    if after == state:
        return Turn(after, seen, key, Feedback.NO_EFFECT, "nothing changed")
    return Turn(after, seen, key)


def _matches(gold: GoldCall, call: ToolCall) -> bool:
    """Return whether a call is one of the solution, by the benchmark's comparison."""
    compared = call.arguments if gold.compared is None else gold.compared
    pairs = (
        {name: one[name] for name in one if name in compared}
        for one in (gold.arguments, call.arguments)
    )
    return gold.name == call.name and (not compared or next(pairs) == next(pairs))


def _named(db: Database, call: ToolCall, seen: str) -> set[str]:
    """Return the records that a call names, or whose key it returns."""
    texts = [one for one in call.arguments.values() if isinstance(one, str)]
    tables = db.changes
    return {f"{table}:{key}" for key in [*texts, seen] for table in tables if db.has(table, key)}


def suggestions(domain: Domain, state: State) -> list[str]:
    """Return actions that are possible now: fixed sentences, and calls about what was looked up."""
    if state.ended:
        return []
    db, found = Database(domain.base, state.changes), [ASK, CONFIRM, MORE, CLOSE]
    for name in sorted(state.opened):
        table, _, key = name.partition(":")
        found += _SUGGESTED[table](db.get(table, key))
    return list(dict.fromkeys(found))


def _text(name: str, **arguments: Any) -> str:
    return f"{name} {json.dumps(arguments, ensure_ascii=False)}"


def _about_user(user: Mapping[str, Any]) -> list[str]:
    orders = [_text("get_order_details", order_id=one) for one in user.get("orders", ())]
    booked = [
        _text("get_reservation_details", reservation_id=one) for one in user.get("reservations", ())
    ]
    return [_text("get_user_details", user_id=user["user_id"]), *orders, *booked]


def _about_order(order: Mapping[str, Any]) -> list[str]:
    number, items = order["order_id"], order["items"]
    found = [_text("get_product_details", product_id=item["product_id"]) for item in items]
    if order["status"] == "pending":
        found += [
            _text("cancel_pending_order", order_id=number, reason=reason) for reason in REASONS
        ]
    if order["status"] == "delivered":
        paid_with = order["payment_history"][0]["payment_method_id"]
        for item in items:
            given = {"order_id": number, "item_ids": [item["item_id"]]}
            found.append(
                _text("return_delivered_order_items", **given, payment_method_id=paid_with)
            )
    return found


def _about_reservation(reservation: Mapping[str, Any]) -> list[str]:
    if reservation["status"] == "cancelled":
        return []
    return [_text("cancel_reservation", reservation_id=reservation["reservation_id"])]


_SUGGESTED: Final[Mapping[str, Callable[[Mapping[str, Any]], list[str]]]] = {
    "users": _about_user,
    "orders": _about_order,
    "reservations": _about_reservation,
    "products": lambda _: [],
    "flights": lambda _: [],
}


def atoms(task: OfficialTask, state: State) -> dict[str, bool]:
    """Return what the reward needs by name, and whether it is so now.

    The records that must change (`change 1`), the facts that must be told (`fact 1`), the calls
    that must be made (`call 1`), and that no other record was changed (`nothing else`).
    """
    named: dict[str, bool] = {}
    if "DB" in task.basis:
        wanted = [(table, key) for table, records in task.goal.items() for key in records]
        for i, (table, key) in enumerate(wanted, 1):
            named[f"change {i}"] = same(state.changes[table].get(key), task.goal[table][key])
    if "COMMUNICATE" in task.basis:
        named |= {f"fact {i}": told for i, told in enumerate(state.facts, 1)}
    if "ACTION" in task.basis:
        named |= {f"call {i + 1}": i in state.made for i in range(len(task.calls))}
    if "DB" in task.basis:
        named["nothing else"] = not breaches(task, state)
    return named


def breaches(task: OfficialTask, state: State) -> int:
    """Return how many records were changed that the solution leaves or changes otherwise."""
    return sum(
        not same(record, task.goal[table].get(key))
        for table, records in state.changes.items()
        for key, record in records.items()
    )


def is_solved(task: OfficialTask, state: State) -> bool:
    """Return whether the customer has ended the conversation and all that the reward needs is so.

    The benchmark compares a hash of the whole database with that after the solution's calls.
    """
    return state.over and all(atoms(task, state).values())


def expert_action(domain: Domain, task: OfficialTask, state: State) -> str:
    """Return the next action of an expert that knows the solution: its calls, then the facts."""
    if state.ended:
        return ""
    tools, known = TOOLS[domain.name], {tool.name for tool in TOOLS[domain.name]}
    for last in (False, True):
        for i, gold in enumerate(task.calls):
            playable = gold.name in known and (gold.name == _TRANSFER) == last
            if playable and i not in state.made:
                return tools.action(ToolCall(gold.name, gold.arguments))
        if not last and not all(state.facts):
            untold = [fact for fact, told in zip(task.facts, state.facts, strict=True) if not told]
            return f"{_SAY} {'; '.join(untold)}"
    is_done = bool(state.said) or set(task.pieces) <= state.told  # a model ends when it likes
    return CLOSE if is_done or state.transferred else MORE
