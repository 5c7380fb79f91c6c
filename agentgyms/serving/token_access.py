"""Access to a site with a token: as a bearer token, or as the cookie of a person who typed it."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from flask import Request, Response

TOKEN_HEADERS: Final = ("AUTHORIZATION", "X_API_KEY")
"""Headers in which clients send a token, by their names in WSGI."""

_BEARER: Final = b"Bearer "


class Access:
    """A token ("" admits all), and the cookie that proves that somebody typed it.

    With `takes_key`, the header `X-Api-Key` may hold the token. The cookie holds a proof of it for
    one `purpose`, such as a page; neither scripts nor other sites' pages have it.
    """

    def __init__(self, token: str, purpose: str, *, takes_key: bool = False) -> None:
        self._token, self._takes_key = token.encode(), takes_key
        self._proof = hmac.new(self._token, purpose.encode(), "sha256").hexdigest()

    @property
    def is_open(self) -> bool:
        """Whether there is no token."""
        return not self._token

    def bears(self, authorization: str) -> bool:
        """Return whether an Authorization header carries the token; in constant time."""
        given = authorization.encode("utf-8", "surrogateescape")
        return not self._token or hmac.compare_digest(given, _BEARER + self._token)

    def has_token(self, headers: Mapping[str, str]) -> bool:
        """Return, in constant time, whether headers (WSGI names) hold the token or the cookie."""
        if self.bears(headers.get("AUTHORIZATION", "")):
            return True
        if self._takes_key and self.knows(headers.get("X_API_KEY", "")):
            return True
        proof = self._proof.encode()
        given = (
            part.partition("=")[2].strip() for part in headers.get("COOKIE", "").split(";") if part
        )
        return any(
            hmac.compare_digest(value.encode("utf-8", "surrogateescape"), proof) for value in given
        )

    def holds(self, request: Request, cookie: str) -> bool:
        """Return whether a request carries the proof as the cookie of that name."""
        given = request.cookies.get(cookie, "").encode("utf-8", "surrogateescape")
        return not self._token or hmac.compare_digest(given, self._proof.encode())

    def admits(self, request: Request, cookie: str) -> bool:
        """Return whether a request carries the token as a bearer, or its proof as a cookie."""
        return self.bears(request.headers.get("Authorization", "")) or self.holds(request, cookie)

    def knows(self, typed: str) -> bool:
        """Return whether `typed` is the token, but for white space around it; in constant time."""
        return hmac.compare_digest(typed.strip().encode("utf-8", "surrogatepass"), self._token)

    def admit(self, response: Response, cookie: str, *, secure: bool) -> Response:
        """Return the response with the cookie; `secure` keeps it from connections in the clear."""
        response.set_cookie(
            cookie, self._proof, httponly=True, samesite="Strict", secure=secure, path="/"
        )
        return response
