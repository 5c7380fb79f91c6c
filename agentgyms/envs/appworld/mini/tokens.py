"""Access tokens, which `login` returns and other APIs require."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from agentgyms.envs.appworld.mini.database import Database
from agentgyms.envs.appworld.mini.records import ACCOUNTS, Account


class Tokens:
    """The tokens of one world: a function of the account's app, email, password and the salt.

    Tokens are not state: logging in changes nothing in a world.
    """

    def __init__(self, salt: str) -> None:
        """Store the salt, which makes tokens differ between worlds."""
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
