"""Declares apps and their APIs, calls the APIs, and issues their access tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, TypeVar, cast

from agentgyms.envs.appworld.mini.database import Database
from agentgyms.envs.appworld.mini.parameters import Integer, InvalidValue, Parameter, Text, shown
from agentgyms.envs.appworld.mini.records import ACCOUNTS, Account, Profile, Record


class Tokens:
    """The tokens of one world.

    A token is a function of the account's app, email and password and of the salt, which makes
    tokens differ between worlds. Tokens are not state: logging in changes nothing in a world.
    """

    def __init__(self, salt: str) -> None:
        self._key = blake2b(salt.encode(), digest_size=32).digest()
        self._accounts: dict[str, dict[str, Account]] = {}

    def issue(self, app: str, account: Account) -> str:
        """Return the token of an account."""
        name = "\0".join((app, account.email, account.password))
        return blake2b(name.encode(), key=self._key, digest_size=20).hexdigest()

    def account(self, database: Database, app: str, token: Any) -> Account | None:
        """Return the account of a token in unchanged accounts; None if it is not one of the app."""
        if app not in self._accounts:
            accounts = database.of(ACCOUNTS[app]).values()
            self._accounts[app] = {self.issue(app, account): account for account in accounts}
        return self._accounts[app].get(token) if isinstance(token, str) else None


Plain = Any
"""A JSON value."""

F = TypeVar("F", bound=Callable[..., Plain])
R = TypeVar("R", bound=Record)

MAX_RECORDS: Final = 1000
"""Most records of a kind in a world, which bounds its memory."""

TOKEN: Final = Text(
    "access_token", "Token from login for this app.", shortest=1, longest=500, trimmed=False
)
"""First parameter of every API of an app with accounts, except login."""

PAGE: Final = (
    Integer(
        "page_index", "Page to return, counted from 0.", default=0, lowest=0, highest=1_000_000
    ),
    Integer("page_limit", "Most results on a page.", default=5, lowest=1, highest=20),
)
"""Parameters of APIs that return a list page by page."""


class ApiError(Exception):
    """The error response of an API, with one of the HTTP statuses 401, 404, 409 and 422."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    @property
    def text(self) -> str:
        """The message of the exception that the calling code sees."""
        body = json.dumps({"message": self.message}, separators=(",", ":"), ensure_ascii=False)
        return f"Response status code is {self.status}:\n{body}"


@dataclass(slots=True)
class Session:
    """The context of an API call: the caller, the time and the records."""

    database: Database
    now: str  # ISO 8601
    tokens: Tokens
    account: Account | None = None  # None for apps without accounts and for login

    @property
    def me(self) -> int:
        """Id of the account of the given token."""
        assert self.account is not None
        return self.account.account_id

    @property
    def supervisor(self) -> Profile:
        """The supervisor."""
        return self.database.of(Profile)[1]

    def mine(self, kind: type[R]) -> list[R]:
        """Return the caller's records of a kind that has `account_id`, by id."""
        me = self.me
        return [
            each for each in self.database.of(kind).values() if cast(Any, each).account_id == me
        ]

    def find_mine(self, kind: type[R], key: int, what: str) -> R:
        """Return the caller's record with an id, or raise `ApiError`, which names it as `what`."""
        found = self.database.of(kind).get(key)
        if found is None or cast(Any, found).account_id != self.me:
            raise ApiError(404, f"You have no {what} with {kind.FIELDS[0]} {key}.")
        return found

    def new(self, kind: type[R], **values: Any) -> R:
        """Add a record with the next id; `ApiError` if there are `MAX_RECORDS` of its kind."""
        if len(self.database.of(kind)) >= MAX_RECORDS:
            raise ApiError(409, f"No room: there are {MAX_RECORDS} records of this kind.")
        values[kind.FIELDS[0]] = self.database.next_id(kind)
        record: R = cast(Any, kind)(**values)
        self.database.add(record)
        return record


@dataclass(frozen=True, slots=True)
class Api:
    """One API of an app."""

    app: str
    name: str
    description: str
    parameters: tuple[Parameter, ...]
    returns: Plain
    run: Callable[..., Plain]
    by_name: Mapping[str, Parameter] = field(repr=False)

    def __call__(self, session: Session, given: Mapping[str, Any]) -> Plain:
        """Call the API and return its value; an `ApiError` means that no record was changed."""
        values = dict(given)
        if TOKEN.name in self.by_name:
            token = values.pop(TOKEN.name, None)
            account = session.tokens.account(session.database, self.app, token)
            if account is None:
                raise ApiError(
                    401,
                    f"The access_token is {'missing' if token is None else 'wrong'}. "
                    f"apis.{self.app}.login(username=..., password=...) "
                    f"returns one for the {self.app} app.",
                )
            session.account = account
        return self.run(session, **self._parse(values))

    def _parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all parameters without the token; refuse what is invalid."""
        for name in given:
            if name not in self.by_name:
                raise ApiError(422, self._unknown(name))
        values: dict[str, Any] = {}
        for parameter in self.parameters:
            if parameter.name in given:
                values[parameter.name] = _value(parameter, given[parameter.name])
            elif parameter.required and parameter is not TOKEN:
                raise ApiError(422, f"{parameter.name} is missing: {parameter.description}")
            elif parameter is not TOKEN:
                values[parameter.name] = parameter.default
        return values

    def _unknown(self, name: Any) -> str:
        known = ", ".join(self.by_name) or "none"
        return f"{self.app}.{self.name} has no parameter {shown(name)}; its parameters are: {known}"


def _value(parameter: Parameter, given: Any) -> Any:
    try:
        return parameter.parse(given)
    except InvalidValue as error:
        raise ApiError(422, f"{parameter.name} must be {error}.") from None


class App:
    """An app, and its APIs by name, in the order of the documentation."""

    def __init__(self, name: str, description: str, accounts: type[Account] | None = None) -> None:
        """Make an app; one with a class of accounts has a login API."""
        self.name = name
        self.description = description
        self.accounts = accounts
        self.apis: dict[str, Api] = {}
        if accounts is not None:
            self._add_login(accounts)

    def api(self, description: str, *parameters: Parameter, returns: Plain) -> Callable[[F], F]:
        """Return a decorator that makes a function an API of this app, under the function's name.

        The token is added to the parameters. `returns` is an example of a returned value.
        """

        def declare(run: F) -> F:
            named = parameters if self.accounts is None else (TOKEN, *parameters)
            self._declare(run.__name__, description, named, returns, run)
            return run

        return declare

    def _declare(
        self,
        name: str,
        description: str,
        parameters: tuple[Parameter, ...],
        returns: Plain,
        run: Callable[..., Plain],
    ) -> None:
        by_name = {parameter.name: parameter for parameter in parameters}
        self.apis[name] = Api(self.name, name, description, parameters, returns, run, by_name)

    def _add_login(self, accounts: type[Account]) -> None:
        def login(session: Session, username: str, password: str) -> Plain:
            for account in session.database.of(accounts).values():
                if account.email == username.lower() and account.password == password:
                    token = session.tokens.issue(self.name, account)
                    return {"access_token": token, "token_type": "Bearer"}
            raise ApiError(401, f"The {self.name} app knows no such username and password.")

        self._declare(
            "login",
            "Log in to an account. Other APIs of the app need the token that this returns.",
            (
                Text("username", "Email of the account.", shortest=1),
                Text("password", "Password of the account.", shortest=1, trimmed=False),
            ),
            {"access_token": "string", "token_type": "Bearer"},
            login,
        )


def page(records: list[Plain], page_index: int, page_limit: int) -> list[Plain]:
    """Return one page of a list, counted from 0; pages after the end are empty."""
    start = page_index * page_limit
    return records[start : start + page_limit]


def matches(query: str, *texts: str) -> bool:
    """Return whether the texts contain each word of a query, in any case."""
    if not query:
        return True
    text = "\n".join(texts).lower()
    return all(word in text for word in query.lower().split())
