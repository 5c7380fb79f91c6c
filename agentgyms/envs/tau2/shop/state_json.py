"""Writes a conversation's state, not its database, as JSON; reading checks untrusted input."""

from __future__ import annotations

from typing import Any

from agentgyms.envs.tau2.shop import customer, service
from agentgyms.envs.tau2.shop.customer import Mood
from agentgyms.envs.tau2.shop.database import Refused, Write
from agentgyms.envs.tau2.shop.service import State
from agentgyms.envs.tau2.shop.tasks import ShopTask


def write(state: State) -> dict[str, Any]:
    """Return a state as JSON values."""
    request, stage, told = state.mood
    return {
        "writes": [list(one) for one in state.writes],
        "opened": list(state.opened),
        "customer": [request, stage, list(told)],
    }


def read(value: Any, task: ShopTask) -> State:
    """Return the state; raise `LookupError`, `TypeError` or `ValueError` if it is not valid."""
    opened = [_text(name) for name in value["opened"]]
    known = {*task.database["orders"], *task.database["products"]}
    if opened != sorted(set(opened)) or not known.issuperset(opened):
        raise ValueError(f"'opened' are orders and products, got {opened!r:.80}")
    state = State(task.database, (), tuple(opened), _mood(value["customer"], task))
    for given in value["writes"]:
        kind, order, item, choice = map(_text, given)
        if kind not in ("cancel", "return", "exchange"):
            raise ValueError(f"there is no change {kind!r:.80}")
        try:
            state = service.apply(state, Write(kind, order, item, choice))
        except Refused as e:
            raise ValueError(f"'writes' cannot be made: {e}") from None
    return state


def _mood(value: Any, task: ShopTask) -> Mood:
    request, stage, told = value
    count = len(task.customer.requests)
    if type(request) is not int or not 0 <= request <= count or len(told) != request:
        raise ValueError(f"a customer has settled from 0 to {count} requests, got {value!r:.80}")
    if stage not in customer.STAGES or (stage == customer.OVER) != (request == count):
        raise ValueError(f"a customer is in no stage {stage!r:.80} at request {request}")
    if any(type(one) is not bool for one in told):
        raise TypeError(f"facts were told or not, got {told!r:.80}")
    return Mood(request, stage, tuple(told))


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"expected a text, got {value!r:.80}")
    return value
