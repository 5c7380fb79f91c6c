"""The purse app: a balance, payments, requests for money, and cards."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agentgyms.envs.appworld.mini.api import PAGE, ApiError, App, Plain, Session, matches, page
from agentgyms.envs.appworld.mini.parameters import Amount, Choice, Email, Flag, Integer, Text
from agentgyms.envs.appworld.mini.records import (
    Balance,
    Card,
    Payment,
    PurseAccount,
    Request,
    TopUp,
)

PURSE: Final = App("purse", "Sends money to people and asks them for money.", PurseAccount)

_REQUEST_ID: Final = Integer("request_id", "Id of the request.")
_AMOUNT: Final = Amount("amount", "Amount in dollars.")
_NOTE: Final = Text("note", "What it is for.", default="", longest=500)
_PERSON: Final = {"name": "string", "email": "someone@example.org"}
_PAYMENT: Final = {
    "payment_id": 1,
    "amount": 1.0,
    "note": "string",
    "private": False,
    "created_at": "2024-05-18T12:00:00",
    "sender": _PERSON,
    "receiver": _PERSON,
}
_REQUEST: Final = {
    "request_id": 1,
    "amount": 1.0,
    "note": "string",
    "status": "pending",
    "created_at": "2024-05-18T12:00:00",
    "requester": _PERSON,
    "payer": _PERSON,
}
_CARD: Final = {
    "card_id": 1,
    "card_name": "string",
    "owner_name": "string",
    "last_digits": "1234",
    "expiry_year": 2026,
    "expiry_month": 1,
}


@PURSE.api("Show how much money you have, in dollars.", returns={"balance": 1.0})
def show_balance(session: Session) -> Plain:
    """Return the balance."""
    return {"balance": balance_of(session, session.me).cents / 100}


@PURSE.api(
    "List people who have an account here, other than you, by name.",
    Text("query", "Words that the name or the email must have; any case.", default=""),
    *PAGE,
    returns=[_PERSON],
)
def search_people(session: Session, query: str, page_index: int, page_limit: int) -> Plain:
    """Return a page of people."""
    found = [
        account
        for account in session.database.of(PurseAccount).values()
        if account.account_id != session.me and matches(query, account.name, account.email)
    ]
    found.sort(key=lambda account: (account.name, account.account_id))
    return [person(session, each.account_id) for each in page(found, page_index, page_limit)]


@PURSE.api(
    "List payments that you sent or received, newest first.",
    Choice(
        "direction", "Only those you sent or received.", default=None, options=("sent", "received")
    ),
    *PAGE,
    returns=[_PAYMENT],
)
def show_payments(
    session: Session, direction: str | None, page_index: int, page_limit: int
) -> Plain:
    """Return a page of payments."""
    me = session.me
    found = [
        payment
        for payment in session.database.of(Payment).values()
        if (payment.sender_id == me and direction != "received")
        or (payment.receiver_id == me and direction != "sent")
    ]
    found.sort(key=lambda payment: (payment.created_at, payment.payment_id), reverse=True)
    return [
        payment.reply(
            _PAYMENT,
            amount=payment.cents / 100,
            sender=person(session, payment.sender_id),
            receiver=person(session, payment.receiver_id),
        )
        for payment in page(found, page_index, page_limit)
    ]


@PURSE.api(
    "Send money to somebody.",
    Email("receiver_email", "Email of the receiver's account."),
    _AMOUNT,
    _NOTE,
    Flag("private", "Whether others cannot see the payment.", default=False),
    returns={"message": "string", "payment_id": 1},
)
def send_payment(
    session: Session, receiver_email: str, amount: int, note: str, private: bool
) -> Plain:
    """Return the payment's id."""
    receiver = other_account(session, receiver_email)
    payment = pay(session, receiver.account_id, amount, note, private)
    return {"message": "The money was sent.", "payment_id": payment.payment_id}


@PURSE.api(
    "List requests for money, newest first.",
    Choice(
        "direction",
        "Requests that you received, to be paid by you, or that you sent to others.",
        default="received",
        options=("received", "sent"),
    ),
    Choice(
        "status",
        "Only requests with this status.",
        default="pending",
        options=("pending", "approved", "declined", "all"),
    ),
    *PAGE,
    returns=[_REQUEST],
)
def show_requests(
    session: Session, direction: str, status: str, page_index: int, page_limit: int
) -> Plain:
    """Return a page of requests."""
    me = session.me
    found = [
        request
        for request in session.database.of(Request).values()
        if me == (request.payer_id if direction == "received" else request.requester_id)
        and status in (request.status, "all")
    ]
    found.sort(key=lambda request: (request.created_at, request.request_id), reverse=True)
    return [
        request.reply(
            _REQUEST,
            amount=request.cents / 100,
            requester=person(session, request.requester_id),
            payer=person(session, request.payer_id),
        )
        for request in page(found, page_index, page_limit)
    ]


@PURSE.api(
    "Ask somebody for money.",
    Email("payer_email", "Email of the account that shall pay."),
    _AMOUNT,
    _NOTE,
    returns={"message": "string", "request_id": 1},
)
def create_request(session: Session, payer_email: str, amount: int, note: str) -> Plain:
    """Return the request's id."""
    payer = other_account(session, payer_email)
    request = session.new(
        Request,
        requester_id=session.me,
        payer_id=payer.account_id,
        cents=amount,
        note=note,
        created_at=session.now,
    )
    return {"message": "The request was sent.", "request_id": request.request_id}


@PURSE.api(
    "Pay what a pending request that you received asks for.",
    _REQUEST_ID,
    returns={"message": "string", "payment_id": 1},
)
def approve_request(session: Session, request_id: int) -> Plain:
    """Return the payment's id."""
    request = _pending(session, request_id)
    payment = pay(session, request.requester_id, request.cents, request.note, private=False)
    session.database.replace(replace(request, status="approved"))
    return {"message": "The request was paid.", "payment_id": payment.payment_id}


@PURSE.api(
    "Decline a pending request that you received.", _REQUEST_ID, returns={"message": "string"}
)
def decline_request(session: Session, request_id: int) -> Plain:
    """Return a message."""
    session.database.replace(replace(_pending(session, request_id), status="declined"))
    return {"message": "The request was declined."}


@PURSE.api(
    "List your payment cards.",
    returns=[_CARD],
)
def show_cards(session: Session) -> Plain:
    """Return the cards."""
    cards = session.mine(Card)
    return [card.reply(_CARD, last_digits=card.card_number[-4:]) for card in cards]


@PURSE.api(
    "Add money from one of your cards to your balance.",
    Integer("card_id", "Id of the card."),
    _AMOUNT,
    returns={"message": "string", "balance": 1.0},
)
def top_up(session: Session, card_id: int, amount: int) -> Plain:
    """Return the new balance."""
    card = session.find_mine(Card, card_id, "card")
    if f"{card.expiry_year:04}-{card.expiry_month:02}" < session.now[:7]:
        raise ApiError(409, f"The card with card_id {card_id} has expired.")
    session.new(TopUp, account_id=session.me, card_id=card_id, cents=amount, created_at=session.now)
    balance = add_money(session, session.me, amount)
    return {"message": "The money was added.", "balance": balance.cents / 100}


def _pending(session: Session, request_id: int) -> Request:
    request = session.database.of(Request).get(request_id)
    if request is None or request.payer_id != session.me:
        raise ApiError(404, f"You received no request with request_id {request_id}.")
    if request.status != "pending":
        raise ApiError(409, f"The request with request_id {request_id} is {request.status}.")
    return request


def pay(session: Session, receiver_id: int, cents: int, note: str, private: bool) -> Payment:
    """Move cents (above 0) to another account; `ApiError` if the caller's balance is too low."""
    available = balance_of(session, session.me).cents
    if cents > available:
        raise ApiError(
            409,
            f"Your balance of {available / 100:.2f} is below {cents / 100:.2f}; top_up adds to it.",
        )
    payment = session.new(
        Payment,
        sender_id=session.me,
        receiver_id=receiver_id,
        cents=cents,
        note=note,
        private=private,
        created_at=session.now,
    )
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
