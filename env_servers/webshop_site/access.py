"""Who may enter a shop that has a token: those who typed it once, and those who send it."""

from __future__ import annotations

import hmac
from typing import Final

from flask import Request, Response

_COOKIE: Final = "webshop_access"
_PURPOSE: Final = b"agentgyms webshop access"


class Access:
    """The token of a site and the cookie of those who know it.

    Args:
        token: The token, "" lets everybody in.
    """

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self._proof = hmac.new(self._token, _PURPOSE, "sha256").hexdigest()

    def admits(self, request: Request) -> bool:
        """Return whether a request carries the cookie, or the token as a bearer."""
        if not self._token:
            return True
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        cookie = request.cookies.get(_COOKIE, "").encode("utf-8", "surrogateescape")
        bearer = hmac.compare_digest(given, b"Bearer " + self._token)
        return hmac.compare_digest(cookie, self._proof.encode()) or bearer

    def knows(self, typed: str) -> bool:
        """Return whether `typed` is the token; in constant time."""
        return hmac.compare_digest(typed.strip().encode("utf-8", "surrogatepass"), self._token)

    def admit(self, response: Response, *, secure: bool) -> Response:
        """Return the response with the cookie, which scripts and other sites cannot use."""
        response.set_cookie(
            _COOKIE, self._proof, httponly=True, samesite="Strict", secure=secure, path="/"
        )
        return response
