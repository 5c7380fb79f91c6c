"""Random calls of the official tools, right and wrong, about records that belong together."""

from agentgyms.envs.tau2.official.tools import TOOLS

EXPRESSIONS = [
    "2 + 2",
    "(1.5 - 3) * 2 / 7",
    "1 / 0",
    "2 ** 0.5",
    "(",
    "",
    "a",
    "--3",
    "7 // 2",
    "1 2",
]
EXPRESSIONS += ["1(2)", "()", "1.005 * 3", " 3", "9 ** 99", "(-8) ** 0.5", "03", "...", "10 ** 999"]
JUNK = ["", "#W0000000", "nobody_1", "0", "gift_card_0", "2024-05-40"]


class Caller:
    """Draws calls of a domain from its tables."""

    def __init__(self, name, base, chance):
        self.name, self.base, self.chance = name, base, chance
        self.tools = [tool for tool in TOOLS[name] if tool.name != "say"]
        self.tables = {name: list(table.values()) for name, table in base.items()}
        # few, so that calls come back to what calls have changed
        self.few = {
            name: chance.sample(records, min(len(records), 6))
            for name, records in self.tables.items()
        }

    def call(self):
        """Return a call's name and arguments, and that it is the agent's."""
        tool = self.chance.choice(self.tools)
        record = self.record()
        given = {
            name: record[name] if one.choices else self.value(name, record)
            for name, one in tool.parameters.items()
        }
        return [tool.name, given, "assistant"]

    def record(self):
        """Return values of arguments that belong together."""
        return getattr(self, self.name)()

    def value(self, name, record):
        """Return the value of an argument, one in twelve of them wrong."""
        if name not in record:
            return self.chance.choice(EXPRESSIONS if name == "expression" else JUNK)
        value = record[name]
        if self.chance.random() > 1 / 12:
            return value
        if isinstance(value, str):
            return self.chance.choice([*JUNK, value.upper()])
        if isinstance(value, int):
            return self.chance.choice([0, 1, 7, -3])
        return self.chance.choice([[], value + value, value[:1], value[::-1]])

    def retail(self):
        chance = self.chance
        order = chance.choice(self.few["orders"])
        user = self.base["users"][order["user_id"]]
        items = chance.sample(order["items"], chance.randint(1, len(order["items"])))
        swaps = [self.swap(item) for item in items]
        return {
            "order_id": order["order_id"],
            "user_id": order["user_id"],
            "email": user["email"],
            **user["name"],
            **user["address"],
            "city": chance.choice(["Rome", "Köln"]),
            "product_id": items[0]["product_id"],
            "reason": chance.choice(["no longer needed", "ordered by mistake", "why not"]),
            "item_ids": [item["item_id"] for item in items],
            "new_item_ids": swaps,
            "payment_method_id": chance.choice(list(user["payment_methods"])),
            "summary": "Help.",
        }

    def swap(self, item):
        variants = self.base["products"][item["product_id"]]["variants"].values()
        free = [one["item_id"] for one in variants if one["available"]]
        return self.chance.choice(free or [item["item_id"]])

    def airline(self):
        chance = self.chance
        reservation = chance.choice(self.few["reservations"])
        user = self.base["users"][reservation["user_id"]]
        flight = chance.choice(self.tables["flights"])
        date = chance.choice(list(flight["dates"]))
        cabin = chance.choice(["business", "economy", "basic_economy"])
        people = [self.person() for _ in range(chance.choice([1, 1, 2, 3]))]
        if chance.random() < 0.5:
            people = [self.person() for _ in reservation["passengers"]]
        kept = [
            {key: one[key] for key in ("flight_number", "date")} for one in reservation["flights"]
        ]
        new = {"flight_number": flight["flight_number"], "date": date}
        nonfree, insurance = chance.choice([0, 0, 1]), chance.choice(["yes", "no"])
        day = flight["dates"][date]
        price = day.get("prices", {}).get(cabin, 100)
        due = (price + 30 * (insurance == "yes")) * len(people) + 50 * nonfree
        method = chance.choice(list(user["payment_methods"]))
        payments = [{"payment_id": method, "amount": due, "note": "ignored"}]
        if chance.random() < 0.3:
            other = chance.choice(list(user["payment_methods"]))
            payments = [
                {"payment_id": method, "amount": 50},
                {"payment_id": other, "amount": due - 50},
            ]
        update = chance.random() < 0.5
        return {
            "reservation_id": reservation["reservation_id"],
            "user_id": user["user_id"],
            "origin": flight["origin"],
            "destination": flight["destination"],
            "date": date,
            "flight_number": flight["flight_number"],
            "flight_type": chance.choice(["one_way", "round_trip"]),
            "cabin": chance.choice([cabin, reservation["cabin"]]) if update else cabin,
            "flights": [*kept[:1], new] if update else [new],
            "passengers": people,
            "payment_methods": payments,
            "payment_id": method,
            "amount": chance.choice([50, 100, 250]),
            "total_baggages": chance.randint(0, 4),
            "nonfree_baggages": nonfree,
            "insurance": insurance,
            "summary": "Help.",
        }

    def person(self):
        return {"first_name": self.chance.choice("AB"), "last_name": "C", "dob": "1990-01-01"}
