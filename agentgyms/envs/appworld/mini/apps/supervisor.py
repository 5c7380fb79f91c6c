"""The supervisor app: the supervisor's data, and the API that completes the task."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from agentgyms.envs.appworld.mini.api import App, Plain, Session
from agentgyms.envs.appworld.mini.parameters import Answer, Choice
from agentgyms.envs.appworld.mini.records import ACCOUNTS, Address, Card, PurseAccount, Task

SUPERVISOR: Final = App(
    "supervisor", "Tells about the person you work for, and takes the completed task."
)

_PROFILE: Final = {
    "first_name": "string",
    "last_name": "string",
    "email": "someone@example.org",
    "phone_number": "string",
    "birthday": "2000-01-31",
}
_ADDRESS: Final = {
    "name": "Home",
    "street_address": "string",
    "city": "string",
    "state": "string",
    "country": "string",
    "zip_code": "string",
}
_CARD: Final = {
    "card_name": "string",
    "owner_name": "string",
    "card_number": "string",
    "expiry_year": 2026,
    "expiry_month": 1,
    "cvv_number": "string",
}


@SUPERVISOR.api(
    "Show the task that you are to do, its status and the answer given so far.",
    returns={"instruction": "string", "status": "active", "answer": None},
)
def show_active_task(session: Session) -> Plain:
    """Return the task."""
    task = session.database.of(Task)[1]
    answer = json.loads(task.answer) if task.answer else None
    return {"instruction": task.instruction, "status": task.status, "answer": answer}


@SUPERVISOR.api(
    "Complete the task. Call it once, when everything is done.",
    Answer(
        "answer",
        "The answer and nothing else, such as 10 or 'Ann Lee'; None if the task asks nothing.",
        default=None,
    ),
    Choice(
        "status",
        "success if the task is done, fail if it cannot be done.",
        default="success",
        options=("success", "fail"),
    ),
    returns={"message": "string"},
)
def complete_task(session: Session, answer: Plain, status: str) -> Plain:
    """Return a message."""
    task = session.database.of(Task)[1]
    session.database.replace(replace(task, answer=json.dumps(answer), status=status))
    return {"message": "The task is marked as completed."}


@SUPERVISOR.api(
    "Show name, email, phone number and birthday of the person you work for.",
    returns=_PROFILE,
)
def show_profile(session: Session) -> Plain:
    """Return the profile."""
    return session.supervisor.reply(_PROFILE)


@SUPERVISOR.api(
    "List the addresses of the person you work for.",
    returns=[_ADDRESS],
)
def show_addresses(session: Session) -> Plain:
    """Return the addresses."""
    return [address.reply(_ADDRESS) for address in session.database.of(Address).values()]


@SUPERVISOR.api(
    "List the payment cards of the person you work for.",
    returns=[_CARD],
)
def show_payment_cards(session: Session) -> Plain:
    """Return the cards, which are those of the purse app."""
    mine = {
        account.account_id
        for account in session.database.of(PurseAccount).values()
        if account.email == session.supervisor.email
    }
    return [
        card.reply(_CARD) for card in session.database.of(Card).values() if card.account_id in mine
    ]


@SUPERVISOR.api(
    "List the passwords of the person you work for: one for each app. Usernames are the email.",
    returns=[{"account_name": "string", "password": "string"}],
)
def show_account_passwords(session: Session) -> Plain:
    """Return the passwords."""
    return [
        {"account_name": app, "password": account.password}
        for app, accounts in ACCOUNTS.items()
        for account in session.database.of(accounts).values()
        if account.email == session.supervisor.email
    ]
