"""Random calls of both sides of the domain `telecom`, right and wrong."""

from agentgyms.envs.tau2.official.telecom.phone import TOOLS as PHONE
from agentgyms.envs.tau2.official.telecom.tables import KEYS, MODES, PERMISSIONS
from agentgyms.envs.tau2.official.tools import TOOLS

JUNK = ["", "X1", "C9", "L1003", "B1004", "555-000-0000", "Permission"]
SETTINGS = [
    {},
    {"apn_name": "broken"},
    {"mmsc_url": None, "mms_port": 80},
    {"reset_at_reboot": True, "mms_proxy": "p"},
]


class PhoneCaller:
    """Draws calls about a database; `side` is whose they are, or either's."""

    def __init__(self, base, chance):
        self.base, self.chance = base, chance
        self.tools = [tool for tool in TOOLS["telecom"] if tool.name != "say"]
        # few, so that calls come back to what calls have changed
        self.customers = [*base["customers"].values()][:2]

    def call(self, side=None):
        """Return a call's name, arguments and side."""
        side = side or self.chance.choice(["assistant", "user"])
        return [*(self.agent_call() if side == "assistant" else self.phone_call()), side]

    def agent_call(self):
        tool, record = self.chance.choice(self.tools), self.record()
        given = {name: self.wrong(record[name]) for name in tool.parameters}
        if self.chance.random() < 0.5:
            given.pop("limit", None)
        return tool.name, given

    def record(self):
        """Return values of arguments that belong together."""
        chance, customer = self.chance, self.chance.choice(self.customers)
        ids = [key for table in KEYS for key in self.base[table]]
        return {
            "phone_number": chance.choice(["555-123-2002", "555-123-1002", "555-123-2004"]),
            "customer_id": customer["customer_id"],
            "full_name": customer["full_name"],
            "dob": customer["date_of_birth"],
            "id": chance.choice(ids),
            "line_id": chance.choice(customer["line_ids"]),
            "bill_id": chance.choice(customer["bill_ids"]),
            "limit": chance.choice([1, 2, 0, -1]),
            "gb_amount": chance.choice([2.0, 1, 0.3, 0, -1.5]),
            "reason": "Lost.",
            "summary": "Help.",
        }

    def wrong(self, value):
        """Return a value, one text in twelve a wrong one."""
        if isinstance(value, str) and self.chance.random() < 1 / 12:
            return self.chance.choice([*JUNK, value.upper()])
        return value

    def phone_call(self):
        chance, name = self.chance, self.chance.choice(list(PHONE))
        values = {
            "mode": [*MODES, "5g"],
            "apn_settings": SETTINGS,
            "app_name": ["messaging", "browser", "camera"],
            "permission": [*PERMISSIONS, "SMS", "camera"],
        }
        wanted = PHONE[name].__code__.co_varnames[1 : PHONE[name].__code__.co_argcount]
        given = {one: chance.choice(values[one]) for one in wanted}
        if chance.random() < 1 / 20:
            given |= {"permission": 5} if "permission" in given else {"x": 1}
        if given and chance.random() < 1 / 20:
            given.popitem()
        return name, given
