"""The agent's tools of the domain `telecom` as models read them, described in our words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.tau2.official.common_tools import SAY, TRANSFER

_CUSTOMER: Final = "The customer's id, such as C1001."
_LINE: Final[Mapping[str, str | Argument]] = {
    "customer_id": _CUSTOMER,
    "line_id": "The id of a line of the customer, such as L1001.",
}

TELECOM: Final = Tools(
    SAY,
    Tool(
        "get_customer_by_phone",
        "Find a customer by their own phone number or that of one of their lines.",
        arguments={"phone_number": "The number, such as 555-123-2002."},
    ),
    Tool("get_customer_by_id", "Look a customer up.", arguments={"customer_id": _CUSTOMER}),
    Tool(
        "get_customer_by_name",
        "Find customers by name and day of birth.",
        arguments={
            "full_name": "The whole name.",
            "dob": "The day of birth, such as 1990-01-31.",
        },
    ),
    Tool(
        "get_details_by_id",
        "Look up a customer, line, device, bill or plan.",
        arguments={"id": "The id, whose first letter tells what it is: C, L, D, B or P."},
    ),
    Tool(
        "suspend_line",
        "Suspend an active line for at most six months, for 5 dollars a month.",
        arguments={**_LINE, "reason": "The reason."},
    ),
    Tool("resume_line", "Resume a line that is suspended or pending.", arguments=_LINE),
    Tool(
        "get_bills_for_customer",
        "Look a customer's bills up, the newest first.",
        arguments={
            "customer_id": _CUSTOMER,
            "limit": Argument("The most bills, 12 if it is left out.", "integer", required=False),
        },
    ),
    Tool(
        "send_payment_request",
        "Ask a customer to pay a bill; one at a time. It does not check whether it was paid.",
        arguments={"customer_id": _CUSTOMER, "bill_id": "The bill's id, such as B1001."},
    ),
    Tool(
        "get_data_usage",
        "Look up how much data a line has used, its limit, and when the month ends.",
        arguments=_LINE,
    ),
    Tool("enable_roaming", "Enable roaming abroad on a line.", arguments=_LINE),
    Tool("disable_roaming", "Disable roaming abroad on a line.", arguments=_LINE),
    TRANSFER,
    Tool(
        "refuel_data",
        "Add data to a line, which the customer pays; the customer has to agree first.",
        arguments={**_LINE, "gb_amount": Argument("How many gigabytes.", "number")},
    ),
)
