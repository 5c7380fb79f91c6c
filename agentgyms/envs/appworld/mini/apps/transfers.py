"""Transfers of money between the accounts of the purse app."""

from __future__ import annotations

from dataclasses import replace

from agentgyms.envs.appworld.mini.api import ApiError, Session
from agentgyms.envs.appworld.mini.records import Balance, Payment, PurseAccount


def pay(session: Session, receiver_id: int, cents: int, note: str, private: bool) -> Payment:
    """Move cents (above 0) to another account; `ApiError` if the caller's balance is too low."""
    available = balance_of(session, session.me).cents
    if cents > available:
        raise ApiError(
            409,
            f"Your balance of {available / 100:.2f} is below {cents / 100:.2f}; top_up adds to it.",
        )
    payment = Payment(
        payment_id=session.database.next_id(Payment),
        sender_id=session.me,
        receiver_id=receiver_id,
        cents=cents,
        note=note,
        private=private,
        created_at=session.now,
    )
    session.add(payment)
    add_money(session, session.me, -cents)
    add_money(session, receiver_id, cents)
    return payment


def add_money(session: Session, account_id: int, cents: int) -> Balance:
    """Add cents, which may be negative, to an account's balance; return the new balance."""
    balance = balance_of(session, account_id)
    changed = replace(balance, cents=balance.cents + cents)
    session.database.replace(changed)
    return changed


def balance_of(session: Session, account_id: int) -> Balance:
    """Return an account's balance."""
    return session.database.of(Balance)[account_id]


def other_account(session: Session, email: str) -> PurseAccount:
    """Return the account with an email; refuse an unknown one and the caller's."""
    for account in session.database.of(PurseAccount).values():
        if account.email == email:
            if account.account_id == session.me:
                raise ApiError(409, f"{email} is your own account.")
            return account
    raise ApiError(404, f"Nobody here has the email {email}.")


def person(session: Session, account_id: int) -> dict[str, str]:
    """Return name and email of an account, for responses."""
    account = session.database.of(PurseAccount)[account_id]
    return {"name": account.name, "email": account.email}
