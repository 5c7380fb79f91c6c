"""Reads requests; keeps no more of one than its client may make the server keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from waitress.buffers import OverflowableBuffer
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.utilities import BadRequest

MOST_HEADER_BYTES: Final = 1 << 15
"""Longest head of a request, and most bytes between the chunks of a body."""

IN_MEMORY: Final = 1 << 40
"""More than a body or a reply can have, so that none takes a file."""

_FORM_BYTES: Final = 4096


class Terms(NamedTuple):
    """The conditions on which a server keeps requests.

    `has_token` decides from the headers Authorization and Cookie whether a client has the token,
    `max_body_bytes` is the longest body of one that has.
    """

    has_token: Callable[[str, str], bool]
    max_body_bytes: int


class Parser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """Reads a request; numbers and addresses that Python refuses are the client's mistake.

    `met` is called as soon as the head shows that the client has the token.
    """

    def __init__(self, adj: Any, terms: Terms, met: Callable[[], None]) -> None:
        super().__init__(adj)
        self._terms, self._met = terms, met

    @property
    def held(self) -> int:
        """How many bytes of it are kept so far."""
        body = self.body_rcv
        return len(self.header_plus) + (body.getbuf().held if body is not None else 0)

    def received(self, data: bytes) -> int:
        """Read a part of the request and return how many bytes belong to it."""
        count = int(super().received(data))
        body = self.body_rcv
        if (
            isinstance(body, ChunkedReceiver)
            and len(body.control_line) + len(body.trailer) > MOST_HEADER_BYTES
        ):
            self.error, self.completed = BadRequest("a line between two chunks is too long"), True
        return count

    def parse_header(self, header_plus: bytes) -> Any:
        """Read the request line and the headers; raise `ParsingError` if they are no HTTP."""
        try:
            parsed = super().parse_header(header_plus)
        except ValueError as e:
            raise ParsingError("a number or an address that is none") from e
        headers = self.headers
        known = self._terms.has_token(headers.get("AUTHORIZATION", ""), headers.get("COOKIE", ""))
        if known:
            self._met()
        if self.body_rcv is not None:
            self.body_rcv.buf = _Body(self._terms.max_body_bytes if known else _FORM_BYTES)
        return parsed


class _Body(OverflowableBuffer):  # type: ignore[misc]
    """Keeps a body if it is not too long, else its length alone.

    The application refuses a long one by its length, or because the client has no token.
    """

    def __init__(self, most: int) -> None:
        super().__init__(IN_MEMORY)
        self._most, self._length = most, 0

    def append(self, data: bytes) -> None:
        self._length += len(data)
        if self._length <= self._most:
            super().append(data)
        else:
            self.close()
            self.buf, self.strbuf = None, b""

    @property
    def held(self) -> int:
        return int(super().__len__())

    def __len__(self) -> int:
        return self._length
