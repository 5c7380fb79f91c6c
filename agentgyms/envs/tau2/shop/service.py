"""One conversation of the shop: what the agent may call and say, and what comes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from agentgyms.envs.tau2.shop import customer, policy
from agentgyms.envs.tau2.shop.customer import Mood
from agentgyms.envs.tau2.shop.database import (
    PAYMENTS,
    Database,
    Refused,
    Write,
    changed,
    order_of,
    stock_of,
    total,
)
from agentgyms.envs.tau2.shop.tasks import ShopTask

CONFIRM: Final = "say: Shall I do it?"
DONE: Final = "say: It is done."
REFUSE: Final = "say: I am sorry, that is not possible."

FORMS: Final = (
    "say: <words>",
    "order <number>",
    "product <name>",
    "cancel <order>",
    "return <item> of <order> to <payment>",
    "exchange <item> of <order> for <colour>",
)
_PATTERNS: Final = {
    "say": re.compile(r"say:\s*(\S.*)", re.DOTALL),
    "order": re.compile(r"order (\w+)"),
    "product": re.compile(r"product (\w+)"),
    "cancel": re.compile(r"cancel (\w+)"),
    "return": re.compile(r"return (\w+) of (\w+) to (\w+)"),
    "exchange": re.compile(r"exchange (\w+) of (\w+) for (\w+)"),
}


class State(NamedTuple):
    """A conversation: database, calls that changed it, sorted lookups, and the customer's state."""

    database: Database
    writes: tuple[Write, ...]
    opened: tuple[str, ...]
    mood: Mood


class Call(NamedTuple):
    """An action that was read: its kind, its words, and its canonical text."""

    kind: str
    words: tuple[str, ...]
    text: str


def begin(task: ShopTask) -> tuple[State, str]:
    """Return the first state and the customer's first words."""
    mood, words = task.customer.begin()
    return State(task.database, (), (), mood), words


def read(action: str) -> Call | None:
    """Return the call that an action stands for; None if it has no form of one."""
    text = " ".join(action.split())
    for kind, pattern in _PATTERNS.items():
        if found := pattern.fullmatch(text):
            canonical = f"say: {found[1]}" if kind == "say" else text
            return Call(kind, found.groups(), canonical)
    return None


def step(task: ShopTask, state: State, call: Call) -> tuple[State, str]:
    """Return the next state and what the agent reads; raise `Refused` if it cannot be done."""
    return _STEPS[call.kind](task, state, call)


def write_of(call: Call) -> Write:
    """Return the change that a call makes."""
    if call.kind == "cancel":
        return Write("cancel", call.words[0])
    item, order, choice = call.words
    return Write(call.kind, order, item, choice)


def apply(state: State, write: Write) -> State:
    """Return the state after a change; `Refused` if the order was not opened before."""
    if write.order not in state.opened:
        order_of(state.database, write.order)
        raise Refused(f"open order {write.order} first")
    database = changed(state.database, write)
    return state._replace(database=database, writes=(*state.writes, write))


def suggestions(task: ShopTask, state: State) -> list[str]:
    """Return actions that are possible now: those about what was named or looked up."""
    if state.mood.stage == customer.OVER:
        return []
    named = task.customer.requests[: state.mood.request + 1]
    found = [f"order {request.order}" for request in named]
    orders = [number for number in state.opened if number in state.database["orders"]]
    if state.mood.stage == customer.WHY:
        found += [_reason(reason) for reason in policy.REASONS]
        found += [_reason(str(state.database["orders"][number]["days"])) for number in orders]
    elif state.mood.stage == customer.AMOUNT:
        found += [REFUSE, *_amounts(state.database, orders)]
    else:
        found += [CONFIRM, DONE, REFUSE]
    for number in orders:
        found += _changes(state.database, number)
    return list(dict.fromkeys(found))


def _amounts(database: Database, orders: list[str]) -> list[str]:
    opened = [database["orders"][number] for number in orders]
    prices = [item["price"] for order in opened for item in order["items"].values()]
    return [_amount(str(known)) for known in [*map(total, opened), *prices]]


def _reason(reason: str) -> str:
    return f"say: The reason is: {reason}."


def _amount(known: str) -> str:
    return f"say: It is {known}."


def _changes(database: Database, number: str) -> list[str]:
    order = database["orders"][number]
    if order["status"] == "cancelled":
        return []
    found = [f"cancel {number}"]
    for name, item in order["items"].items():
        found.append(f"product {name}")
        if item["state"] == "bought":
            colours = [c for c in database["products"][name] if c != item["colour"]]
            found += [f"return {name} of {number} to {payment}" for payment in PAYMENTS]
            found += [f"exchange {name} of {number} for {colour}" for colour in colours]
    return found


def _say(task: ShopTask, state: State, call: Call) -> tuple[State, str]:
    mood, answer = task.customer.hear(state.mood, call.words[0])
    return state._replace(mood=mood), f"Customer: {answer}"


def _order(_: ShopTask, state: State, call: Call) -> tuple[State, str]:
    order = order_of(state.database, call.words[0])
    shown = {**order, "total": total(order)}
    return _opened(state, call.words[0]), json.dumps(shown)


def _product(_: ShopTask, state: State, call: Call) -> tuple[State, str]:
    shown = stock_of(state.database, call.words[0])
    return _opened(state, call.words[0]), json.dumps({"in_stock": shown})


def _opened(state: State, name: str) -> State:
    return state._replace(opened=tuple(sorted({*state.opened, name})))


def _write(_: ShopTask, state: State, call: Call) -> tuple[State, str]:
    return apply(state, write_of(call)), "The system has done it."


_STEPS: Final[dict[str, Callable[[ShopTask, State, Call], tuple[State, str]]]] = {
    "say": _say,
    "order": _order,
    "product": _product,
    "cancel": _write,
    "return": _write,
    "exchange": _write,
}


def atoms(task: ShopTask, state: State) -> dict[str, bool]:
    """Return what the task needs by name, and whether it is so now.

    The names are `change 1` and so on for changes that must be made, `fact 1` and so on for facts
    that must be told, and last `nothing else`: no other order was changed.
    """
    orders, goal, told = state.database["orders"], task.goal_database["orders"], state.mood.told
    writes = [orders[one.order] == goal[one.order] for one in task.writes if one is not None]
    wanted = [i for i, fact in enumerate(task.customer.facts) if fact is not None]
    facts = [i < len(told) and told[i] for i in wanted]
    named = {f"change {i}": done for i, done in enumerate(writes, 1)}
    named |= {f"fact {i}": done for i, done in enumerate(facts, 1)}
    return named | {"nothing else": not breaches(task, state)}


def breaches(task: ShopTask, state: State) -> int:
    """Return how many orders were changed otherwise than the policy and the customer allow."""
    return sum(
        order not in (task.database["orders"][number], task.goal_database["orders"][number])
        for number, order in state.database["orders"].items()
    )


def is_solved(task: ShopTask, state: State) -> bool:
    """Return whether the conversation is over, the database right, and every fact told."""
    over = state.mood.stage == customer.OVER
    right = state.database == task.goal_database
    return over and right and all(atoms(task, state).values())


def expert_action(task: ShopTask, state: State) -> str:
    """Return the next action of an expert that knows only what was said and looked up."""
    mood = state.mood
    if mood.stage == customer.OVER:
        return ""
    request = task.customer.requests[mood.request]
    if request.order not in state.opened:
        return f"order {request.order}"
    needs_stock = request.kind == "exchange" and mood.stage == customer.OPEN
    order = state.database["orders"][request.order]
    known = order["status"] == "delivered" and order["name"] == task.customer.name
    if needs_stock and known and request.item not in state.opened:
        return f"product {request.item}"
    reason = task.reasons[mood.request]
    if mood.stage == customer.WHY:
        return _reason(reason or order["status"])
    if mood.stage == customer.AMOUNT and not (reason and request.kind == "question"):
        return _amount(policy.amount(task.database, request))
    if reason:
        return REFUSE
    if mood.stage == customer.OPEN:
        return CONFIRM
    write = task.writes[mood.request]
    if write is None or text_of(write) not in _changes(state.database, request.order):
        return DONE
    return text_of(write)


def text_of(write: Write) -> str:
    """Return the action that makes a change."""
    if write.kind == "cancel":
        return f"cancel {write.order}"
    word = "to" if write.kind == "return" else "for"
    return f"{write.kind} {write.item} of {write.order} {word} {write.choice}"
