"""The tables of tau2-bench's domains: the fields of their records, in the benchmark's order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentgyms.envs.tau2.official.records import (
    Optional,
    Reader,
    flag,
    kinds,
    listing,
    number,
    record,
    table,
    text,
    whole,
)
from agentgyms.envs.tau2.official.telecom.tables import TELECOM

ADDRESS: Final = record(address1=text, address2=text, city=text, country=text, state=text, zip=text)
_RETAIL_METHOD: Final = kinds(
    "source",
    {
        "credit_card": record(source=text, id=text, brand=text, last_four=text),
        "gift_card": record(source=text, id=text, balance=number),
        "paypal": record(source=text, id=text),
    },
)
_VARIANT: Final = record(item_id=text, options=table(text), available=flag, price=number)
_ITEM: Final = record(name=text, product_id=text, item_id=text, price=number, options=table(text))

_RETAIL: Final = {
    "products": record(name=text, product_id=text, variants=table(_VARIANT)),
    "users": record(
        user_id=text,
        name=record(first_name=text, last_name=text),
        address=ADDRESS,
        email=text,
        payment_methods=table(_RETAIL_METHOD),
        orders=listing(text),
    ),
    "orders": record(
        order_id=text,
        user_id=text,
        address=ADDRESS,
        items=listing(_ITEM),
        status=text,
        fulfillments=listing(record(tracking_id=listing(text), item_ids=listing(text))),
        payment_history=listing(
            record(transaction_type=text, amount=number, payment_method_id=text)
        ),
        cancel_reason=Optional(text),
        exchange_items=Optional(listing(text)),
        exchange_new_items=Optional(listing(text)),
        exchange_payment_method_id=Optional(text),
        exchange_price_difference=Optional(number),
        return_items=Optional(listing(text)),
        return_payment_method_id=Optional(text),
    ),
}

_NAME: Final = record(first_name=text, last_name=text)
PASSENGER: Final = record(first_name=text, last_name=text, dob=text)
PAYMENT: Final = record(payment_id=text, amount=whole)
_AIRLINE_METHOD: Final = kinds(
    "source",
    {
        "credit_card": record(source=text, id=text, brand=text, last_four=text),
        "gift_card": record(source=text, id=text, amount=number),
        "certificate": record(source=text, id=text, amount=number),
    },
)
_BY_CABIN: Final = table(whole)
_DAY: Final = kinds(
    "status",
    {
        "available": record(status=text, available_seats=_BY_CABIN, prices=_BY_CABIN),
        "on time": record(
            status=text, estimated_departure_time_est=text, estimated_arrival_time_est=text
        ),
        "delayed": record(
            status=text, estimated_departure_time_est=text, estimated_arrival_time_est=text
        ),
        "flying": record(
            status=text, actual_departure_time_est=text, estimated_arrival_time_est=text
        ),
        "landed": record(status=text, actual_departure_time_est=text, actual_arrival_time_est=text),
        "cancelled": record(status=text),
    },
)

_AIRLINE: Final = {
    "flights": record(
        flight_number=text,
        origin=text,
        destination=text,
        scheduled_departure_time_est=text,
        scheduled_arrival_time_est=text,
        dates=table(_DAY),
    ),
    "users": record(
        user_id=text,
        name=_NAME,
        address=record(
            address1=text,
            address2=Optional(text),
            city=text,
            country=text,
            state=text,
            zip=text,
        ),
        email=text,
        dob=text,
        payment_methods=table(_AIRLINE_METHOD),
        saved_passengers=listing(PASSENGER),
        membership=text,
        reservations=listing(text),
    ),
    "reservations": record(
        reservation_id=text,
        user_id=text,
        origin=text,
        destination=text,
        flight_type=text,
        cabin=text,
        flights=listing(
            record(flight_number=text, origin=text, destination=text, date=text, price=whole)
        ),
        passengers=listing(PASSENGER),
        payment_history=listing(PAYMENT),
        created_at=text,
        total_baggages=whole,
        nonfree_baggages=whole,
        insurance=text,
        status=Optional(text),
    ),
}

TABLES: Final[Mapping[str, Mapping[str, Reader]]] = {
    "retail": _RETAIL,
    "airline": _AIRLINE,
    "telecom": TELECOM,
}
"""The readers of the records of each table, by domain."""
