"""Requests that waitress fails to read: answered with 400, as all others that are wrong."""

from __future__ import annotations

from typing import Any

from waitress.parser import HTTPRequestParser, ParsingError


class Parser(HTTPRequestParser):  # type: ignore[misc]  # waitress has no types
    """Reads a request; numbers and addresses that Python refuses are the client's mistake."""

    def parse_header(self, header_plus: bytes) -> Any:
        """Read the request line and the headers.

        Raises:
            ParsingError: They are not what HTTP allows.
        """
        try:
            return super().parse_header(header_plus)
        except ValueError as e:
            raise ParsingError("a number or an address that is none") from e
