"""The tools of the domains as models read them: the benchmark's names, described in our words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.tau2.official.airline import CABINS, FLIGHT_TYPES, INSURANCE
from agentgyms.envs.tau2.official.common_tools import CALCULATE, SAY, TRANSFER
from agentgyms.envs.tau2.official.retail import REASONS
from agentgyms.envs.tau2.official.telecom.tools import TELECOM

_USER: Final = "The user's id, such as sara_doe_496."
_GET_USER: Final = Tool("get_user_details", "Look a user up.", arguments={"user_id": _USER})

_ORDER: Final = "The order's id with its #, such as #W0000000."
_METHOD: Final = "The id of a payment method of the user, such as gift_card_0000000."
_ADDRESS: Final[Mapping[str, str]] = {
    "address1": "The first line of the address.",
    "address2": "The second line, which may be empty.",
    "city": "The city.",
    "state": "The state, such as CA.",
    "country": "The country, such as USA.",
    "zip": "The zip code, such as 12345.",
}


def _ids(words: str) -> Argument:
    return Argument(words, "array", items=Argument("An item's id, such as 1008292230."))


_SWAP: Final[Mapping[str, str | Argument]] = {
    "order_id": _ORDER,
    "item_ids": _ids("The items to give up; one that is given up twice stands twice."),
    "new_item_ids": _ids("The new items, each of the product in the same place of item_ids."),
    "payment_method_id": "The id of the user's payment method for the difference of prices.",
}

RETAIL: Final = Tools(
    SAY,
    CALCULATE,
    Tool(
        "cancel_pending_order",
        "Cancel a pending order and refund it; the customer has to agree first.",
        arguments={"order_id": _ORDER, "reason": f"The reason: {' or '.join(REASONS)}."},
    ),
    Tool(
        "exchange_delivered_order_items",
        "Exchange items of a delivered order, only once; the customer has to agree first.",
        arguments=_SWAP,
    ),
    Tool(
        "find_user_id_by_name_zip",
        "Find a user's id by name and zip code, where the email is not known.",
        arguments={
            "first_name": "The first name.",
            "last_name": "The last name.",
            "zip": _ADDRESS["zip"],
        },
    ),
    Tool(
        "find_user_id_by_email",
        "Find a user's id by email.",
        arguments={"email": "The email, such as something@example.com."},
    ),
    Tool("get_order_details", "Look an order up.", arguments={"order_id": _ORDER}),
    Tool(
        "get_product_details",
        "Look a product up: its items, their options, prices and whether they are in stock.",
        arguments={"product_id": "The product's id, which is no item's, such as 6086499569."},
    ),
    _GET_USER,
    Tool("list_all_product_types", "List all products and their ids."),
    Tool(
        "modify_pending_order_address",
        "Change the address of a pending order; the customer has to agree first.",
        arguments={"order_id": _ORDER, **_ADDRESS},
    ),
    Tool(
        "modify_pending_order_items",
        "Change items of a pending order, only once; the customer has to agree first.",
        arguments=_SWAP,
    ),
    Tool(
        "modify_pending_order_payment",
        "Change the payment of a pending order; the customer has to agree first.",
        arguments={"order_id": _ORDER, "payment_method_id": _METHOD},
    ),
    Tool(
        "modify_user_address",
        "Change a user's address; the customer has to agree first.",
        arguments={"user_id": _USER, **_ADDRESS},
    ),
    Tool(
        "return_delivered_order_items",
        "Take items of a delivered order back; the customer has to agree first.",
        arguments={
            "order_id": _ORDER,
            "item_ids": _ids("The items; one that is returned twice stands twice."),
            "payment_method_id": "The id of the payment method that gets the refund.",
        },
    ),
    TRANSFER,
)

_RESERVATION: Final = "The reservation's id, such as ZFA04Y."
_DATE: Final = "The day, such as 2024-05-01."
_CABIN: Final = Argument("The cabin.", choices=CABINS)
_PAID_WITH: Final = "The id of a payment method of the user, such as credit_card_7815826."


def _objects(words: str, properties: Mapping[str, Argument]) -> Argument:
    return Argument(words, "array", items=Argument("One.", "object", properties=properties))


_FLIGHTS: Final = _objects(
    "All flights of the reservation, those too that stay.",
    {"flight_number": Argument("Its number, such as HAT001."), "date": Argument(_DATE)},
)
_PASSENGERS: Final = _objects(
    "All passengers.",
    {
        "first_name": Argument("The first name."),
        "last_name": Argument("The last name."),
        "dob": Argument("The day of birth, such as 1990-01-31."),
    },
)
_PAYMENTS: Final = _objects(
    "The payments, which add up to the price.",
    {"payment_id": Argument(_PAID_WITH), "amount": Argument("The amount.", "integer")},
)
_BAGS: Final[Mapping[str, Argument]] = {
    "total_baggages": Argument("The number of bags.", "integer"),
    "nonfree_baggages": Argument("How many of them are paid for.", "integer"),
}
_SEARCH: Final[Mapping[str, str | Argument]] = {
    "origin": "The airport of departure, such as JFK.",
    "destination": "The airport of arrival, such as LAX.",
    "date": _DATE,
}

AIRLINE: Final = Tools(
    SAY,
    Tool(
        "book_reservation",
        "Book flights; the customer has to agree first.",
        arguments={
            "user_id": _USER,
            "origin": "The airport of departure, such as SFO.",
            "destination": "The airport of arrival, such as JFK.",
            "flight_type": Argument("Whether there is a way back.", choices=FLIGHT_TYPES),
            "cabin": _CABIN,
            "flights": _FLIGHTS,
            "passengers": _PASSENGERS,
            "payment_methods": _PAYMENTS,
            **_BAGS,
            "insurance": Argument("Whether it is insured.", choices=INSURANCE),
        },
    ),
    CALCULATE,
    Tool(
        "cancel_reservation",
        "Cancel a whole reservation and refund it; the customer has to agree first.",
        arguments={"reservation_id": _RESERVATION},
    ),
    Tool(
        "get_reservation_details",
        "Look a reservation up.",
        arguments={"reservation_id": _RESERVATION},
    ),
    _GET_USER,
    Tool("list_all_airports", "List all airports and their cities."),
    Tool("search_direct_flight", "Search for direct flights on a day.", arguments=_SEARCH),
    Tool("search_onestop_flight", "Search for flights with one stop.", arguments=_SEARCH),
    Tool(
        "send_certificate",
        "Give a user a certificate.",
        arguments={"user_id": _USER, "amount": Argument("Its amount.", "integer")},
    ),
    TRANSFER,
    Tool(
        "update_reservation_baggages",
        "Change the bags of a reservation; the customer has to agree first.",
        arguments={"reservation_id": _RESERVATION, **_BAGS, "payment_id": _PAID_WITH},
    ),
    Tool(
        "update_reservation_flights",
        "Change flights or cabin of a reservation; the customer has to agree first.",
        arguments={
            "reservation_id": _RESERVATION,
            "cabin": _CABIN,
            "flights": _FLIGHTS,
            "payment_id": _PAID_WITH,
        },
    ),
    Tool(
        "update_reservation_passengers",
        "Change the passengers of a reservation, but not how many they are.",
        arguments={"reservation_id": _RESERVATION, "passengers": _PASSENGERS},
    ),
    Tool(
        "get_flight_status",
        "Look up the status of a flight on a day.",
        arguments={"flight_number": "Its number, such as HAT001.", "date": _DATE},
    ),
)

TOOLS: Final[Mapping[str, Tools]] = {"retail": RETAIL, "airline": AIRLINE, "telecom": TELECOM}
"""The tools of each domain."""


WORKFLOW: Final = "-workflow"
"""The end of the name of a domain that differs from another one in its policy alone."""


def engine_of(domain: str) -> str:
    """Return the domain whose tools and records a domain has."""
    return domain.removesuffix(WORKFLOW) if domain == f"telecom{WORKFLOW}" else domain


def tools_of(domain: Any) -> Tools | None:
    """Return the tools of a domain; None if it is none of the benchmark's."""
    return TOOLS.get(engine_of(domain)) if isinstance(domain, str) else None
