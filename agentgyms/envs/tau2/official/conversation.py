"""One conversation of an official task: what the agent says and calls, and what comes of it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agentgyms.core.outcome import MAX_ACTION, Feedback
from agentgyms.core.tools import BadCall, ToolCall
from agentgyms.envs.tau2.official import calls
from agentgyms.envs.tau2.official.customer import Customer, Heard
from agentgyms.envs.tau2.official.database import CallError, Database, Tables, same
from agentgyms.envs.tau2.official.files import Domain, GoldCall, OfficialTask
from agentgyms.envs.tau2.official.state import State
from agentgyms.envs.tau2.official.suggestions import CLOSE, MORE
from agentgyms.envs.tau2.official.telecom import scenario
from agentgyms.envs.tau2.official.telecom.requests import request
from agentgyms.envs.tau2.official.tools import TOOLS

UNHEARD: Final = "unrated: the conversation has become too long for the customer's model"

_TOO_LATE: Final = "the conversation was over before it"
_SAY: Final = "say:"
_TRANSFER: Final = "transfer_to_human_agents"
_CUSTOMER_ID: Final = re.compile(r'"customer_id": "(\w+)"')


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
    nothing: Tables = {table: {} for table in task.base}
    facts = (False,) * len(task.facts)
    state = State(nothing, facts, frozenset(), frozenset(), frozenset(), seed=seed)
    hands = _Hands(domain, task, state)
    heard = customer.begin(task, seed, hands.make)
    state = _heard(hands.state, heard)
    return Turn(state, f"{domain.policy}\n\n{heard.before}Customer: {heard.words}", "")


def step(domain: Domain, task: OfficialTask, customer: Customer, state: State, action: str) -> Turn:
    """Say something, or make a call; the errors are those of `begin`."""
    text = action.strip()
    if len(action) > MAX_ACTION:
        text = ""  # what is left of it is another action
    if state.ended:  # a model has ended it with its first words
        return Turn(state, f"Nothing happens: {_TOO_LATE}.", text, Feedback.NO_EFFECT, _TOO_LATE)
    if text.startswith(_SAY) and text[len(_SAY) :].strip():
        return _say(domain, task, customer, state, text[len(_SAY) :].strip())
    try:
        call = TOOLS[domain.name].read(text)
    except BadCall as e:
        after = state._replace(errors=state.errors + 1)
        return Turn(after, f"Error: {e}", "", Feedback.MALFORMED, str(e))
    return _call(domain, task, state, call)


class _Hands:
    """Makes the customer's calls, from a state on; `make` is None if there are no tools."""

    def __init__(self, domain: Domain, task: OfficialTask, state: State) -> None:
        self.state = state
        self._domain, self._task = domain, task
        self.make = self._make if calls.has_user_tools(domain.name) else None

    def _make(self, call: ToolCall) -> tuple[str, bool]:
        self.state, seen, _ = _made(self._domain, self._task, self.state, call, "user")
        return seen, self.state.ended


def _say(domain: Domain, task: OfficialTask, customer: Customer, state: State, words: str) -> Turn:
    said = words.lower().replace(",", "")
    facts = tuple(
        known or fact.lower() in said for known, fact in zip(state.facts, task.facts, strict=True)
    )
    hands = _Hands(domain, task, state._replace(facts=facts))
    heard = customer.hear(task, state, words, hands.make)
    after = _heard(hands.state, heard)
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
        rounds=heard.rounds,
        unheard=heard.unheard,
        usage=state.usage + heard.usage,
    )


def _call(domain: Domain, task: OfficialTask, state: State, call: ToolCall) -> Turn:
    key = TOOLS[domain.name].action(call)
    after, seen, reason = _made(domain, task, state, call, "assistant")
    if reason:
        return Turn(after, seen, key, Feedback.FAILED, " ".join(reason.split()))
    if after == state:
        return Turn(after, seen, key, Feedback.NO_EFFECT, "nothing changed")
    return Turn(after, seen, key)


def _made(
    domain: Domain, task: OfficialTask, state: State, call: ToolCall, side: calls.Side
) -> tuple[State, str, str]:
    """Make a call; return the state, the text of the result, and why it failed if it did."""
    db = Database(task.base, state.changes)
    made = state.made | {i for i, gold in enumerate(task.calls) if _matches(gold, call)}
    next_gold = task.calls[state.step : state.step + 1] if calls.has_user_tools(domain.name) else ()
    try:
        seen, reason = calls.run(domain.name, db, call, side), ""
    except CallError as e:
        seen, reason = f"Error: {e}", str(e) or "the call failed"
    is_seen = side == "assistant" and not reason
    after = state._replace(
        changes=db.changes,
        made=made,
        step=state.step + any(_matches(gold, call) for gold in next_gold),
        opened=state.opened | _named(db, call, seen) if is_seen else state.opened,
        transferred=state.transferred or (side == "assistant" and call.name == _TRANSFER),
        errors=state.errors + bool(reason),
    )
    return after, seen, reason


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
    keys = [*texts, seen, *_CUSTOMER_ID.findall(seen)]
    return {f"{table}:{key}" for key in keys for table in tables if db.has(table, key)}


def atoms(task: OfficialTask, state: State) -> dict[str, bool]:
    """Return what the reward needs by name, and whether it is so now.

    The records that must change (`change 1`), the facts that must be told (`fact 1`), the calls
    that must be made (`call 1`), what must hold at the end (`assertion 1`), and that no other
    record was changed (`nothing else`).
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
    if task.assertions:
        db = Database(task.base, state.changes)
        found = {f"assertion {i}": one for i, one in enumerate(task.assertions, 1)}
        named |= {name: scenario.holds(db, one) for name, one in found.items()}
    if "DB" in task.basis:
        named["nothing else"] = not breaches(task, state)
    return named


def breaches(task: OfficialTask, state: State) -> int:
    """Return how many records were changed that the solution leaves or changes otherwise.

    Where the reward does not ask for the database, there are none.
    """
    if "DB" not in task.basis:
        return 0
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
    if calls.has_user_tools(domain.name):
        step = next(iter(task.calls[state.step :]), None)  # the order is part of a solution
        return _text(domain, step) if step else _ending(task, state)
    known = {tool.name for tool in TOOLS[domain.name]}
    for last in (False, True):
        for i, gold in enumerate(task.calls):
            playable = gold.name in known and (gold.name == _TRANSFER) == last
            if playable and i not in state.made:
                return _text(domain, gold)
        if not last and not all(state.facts):
            return _tell(task, state)
    return _ending(task, state)


def _text(domain: Domain, gold: GoldCall) -> str:
    """Return the action of a call, or that asks the customer to make it."""
    call = ToolCall(gold.name, gold.arguments)
    return f"{_SAY} {request(call)}" if gold.side == "user" else TOOLS[domain.name].action(call)


def _tell(task: OfficialTask, state: State) -> str:
    untold = [fact for fact, told in zip(task.facts, state.facts, strict=True) if not told]
    return f"{_SAY} {'; '.join(untold)}"


def _ending(task: OfficialTask, state: State) -> str:
    """Return the action that ends a conversation in which all else is done."""
    if not all(state.facts):
        return _tell(task, state)
    is_done = bool(state.said) or set(task.pieces) <= state.told  # a model ends when it likes
    return CLOSE if is_done or state.transferred else MORE
