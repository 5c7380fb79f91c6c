"""Makes the shop's tasks: a database, a customer with requests, and what should come of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task
from agentgyms.envs.tau2.shop import customer, policy
from agentgyms.envs.tau2.shop.customer import Customer, Fact
from agentgyms.envs.tau2.shop.database import PAYMENTS, Database, Write, changed
from agentgyms.envs.tau2.shop.policy import Request

VERSION: Final = 1
COUNTS: Final = {"train": 300, "valid": 60, "test": 60, "sample": 12}
FAMILIES: Final = ("cancel", "return", "exchange", "several")

_NAMES: Final = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "June")
_PRODUCTS: Final = ("mug", "lamp", "scarf", "clock", "bowl", "chair", "towel", "vase")
_COLOURS: Final = ("blue", "red", "green", "white", "black")
_ORDERS: Final = 5
_CUSTOMERS: Final = 3
_OUTCOMES: Final = ("allowed", "declined", "forbidden", "forbidden")
"""What comes of requests, in turn; half are forbidden, so that nobody wins by obeying."""


class ShopTask(NamedTuple):
    """A task of the shop; a right conversation ends with `goal_database`.

    For each request, `reasons` says why the policy forbids it, "" if it does not, and `writes` has
    the change that must be made, None if there is none.
    """

    task: Task
    database: Database
    customer: Customer
    reasons: tuple[str, ...]
    writes: tuple[Write | None, ...]
    goal_database: Database


def task_list(split: str) -> list[Task]:
    """Return the tasks of a split; `sample` has the first ones of `train`."""
    return [_task(_base(split), number) for number in range(COUNTS[split])]


@lru_cache(maxsize=512)
def shop_task(task_id: str) -> ShopTask:
    """Return a task by its id, such as `train-017-return`. Nobody changes what it returns."""
    split, number, family = task_id.split("-")
    chance = Chance("tau2-shop", VERSION, split, number)
    database = _database(chance)
    free = chance.sample(sorted(database["orders"]), _ORDERS)
    name = chance.pick(sorted({order["name"] for order in database["orders"].values()}))
    kinds = (family,) if family != "several" else _several(chance)
    first = int(number) // len(FAMILIES)  # outcomes are spread evenly over each family
    requests = tuple(
        _request(chance, database, name, kind, free.pop(), _OUTCOMES[(first + i) % len(_OUTCOMES)])
        for i, kind in enumerate(kinds)
    )
    return _solved(Task(task_id, family), database, name, requests)


def _base(split: str) -> str:
    return "train" if split == "sample" else split


def _task(split: str, number: int) -> Task:
    family = FAMILIES[number % len(FAMILIES)]
    return Task(f"{split}-{number:03d}-{family}", family)


def _several(chance: Chance) -> tuple[str, ...]:
    change = chance.pick(("cancel", "return", "exchange"))
    return change, chance.pick(("question", "cancel", "return", "exchange"))


def _database(chance: Chance) -> dict[str, Any]:
    products = {
        product: {colour: chance.between(1, 5) for colour in chance.sample(_COLOURS, 3)}
        for product in chance.sample(_PRODUCTS, 5)
    }
    names = chance.sample(_NAMES, _CUSTOMERS)
    numbers = chance.sample([f"O{number}" for number in range(10, 60)], _ORDERS)
    orders = {number: _order(chance, names, products) for number in sorted(numbers)}
    return {"orders": orders, "products": products}


def _order(chance: Chance, names: list[str], products: dict[str, Any]) -> dict[str, Any]:
    items = {
        product: {
            "colour": chance.pick(sorted(products[product])),
            "price": chance.between(11, 99),
            "final_sale": False,
            "state": "bought",
        }
        for product in chance.sample(sorted(products), chance.between(1, 2))
    }
    return {
        "name": chance.pick(names),
        "status": "delivered",
        "days": chance.between(2, policy.RETURN_DAYS - 2),
        "paid_with": chance.pick(PAYMENTS),
        "items": items,
    }


def _request(
    chance: Chance, database: dict[str, Any], name: str, kind: str, number: str, outcome: str
) -> Request:
    """Return a request about an order, which is changed so that the request has this outcome."""
    order = database["orders"][number]
    order["name"] = name
    if kind in ("cancel", "question"):
        request = Request(kind, number, agrees=outcome != "declined", asks_amount=True)
        if kind == "cancel":
            order["status"], order["days"] = "pending", 0
    else:
        item = chance.pick(sorted(order["items"]))
        others = sorted(set(database["products"][item]) - {order["items"][item]["colour"]})
        colour = chance.pick(others) if kind == "exchange" else ""
        pays = kind == "return"
        request = Request(kind, number, item, colour, outcome != "declined", asks_amount=pays)
    if outcome == "forbidden":
        _forbid(chance, database, request)
    return request


def _forbid(chance: Chance, database: dict[str, Any], request: Request) -> None:
    """Change one thing about an order for which the policy forbids the request."""
    order = database["orders"][request.order]
    breach = chance.pick(_BREACHES[request.kind])
    if breach == "name":
        order["name"] = next(name for name in _NAMES if name != order["name"])
    elif breach == "days":
        order["days"] = chance.between(policy.RETURN_DAYS + 1, 60)
    elif breach == "final_sale":
        order["items"][request.item]["final_sale"] = True
    elif breach == "stock":
        database["products"][request.item][request.colour] = 0
    else:
        order["status"], order["days"] = breach, 0 if breach != "delivered" else 3


_BREACHES: Final = {
    "cancel": ("name", "shipped", "delivered", "cancelled"),
    "return": ("name", "days", "final_sale", "pending", "shipped"),
    "exchange": ("name", "days", "final_sale", "stock", "pending", "shipped"),
    "question": ("name",),
}


def _solved(task: Task, database: Database, name: str, requests: tuple[Request, ...]) -> ShopTask:
    reasons = tuple(policy.reason_against(database, name, request) for request in requests)
    writes = tuple(
        None if reason or not request.agrees else policy.write_for(database, request)
        for reason, request in zip(reasons, requests, strict=True)
    )
    facts = tuple(
        _fact(database, request, reason) for reason, request in zip(reasons, requests, strict=True)
    )
    goal = database
    for write in writes:
        goal = goal if write is None else changed(goal, write)
    return ShopTask(task, database, Customer(name, requests, facts), reasons, writes, goal)


def _fact(database: Database, request: Request, reason: str) -> Fact | None:
    if reason:
        return Fact(customer.WHY, reason)
    asked = request.kind == "question" or not request.agrees or request.asks_amount
    return Fact(customer.AMOUNT, policy.amount(database, request)) if asked else None
