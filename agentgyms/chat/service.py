"""How a server of models is treated: one gate for its limits, and pauses after what failed."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx2

from agentgyms.chat.terms import TERMS, Terms
from agentgyms.errors import BadOption, ModelUnavailable

LONGEST_CLOSED_S: Final = 600.0
"""A server that asks for a longer wait is given up for now."""

TOTAL_TIMEOUTS: Final = 5
"""A request may take so many times `timeout_s`, which is the longest time of silence."""

_LONGEST_PAUSE_S: Final = 60.0
_FIRST_SPACE_S, _LEAST_SPACE_S, _LONGEST_SPACE_S = 0.05, 0.005, 2.0
_FASTER: Final = 0.98
_SLICE_S: Final = 1.0  # a wait is looked at again this often: answers may have made it shorter


class Fault(Exception):
    """An attempt failed and may be made again.

    Attributes:
        cause: What it is counted as, such as `"status 503"`.
        words: What happened, in one line.
        status: Of the answer; 0 where there was none.
        retry_after_s: How long the server asks to wait, or None.
    """

    def __init__(
        self, cause: str, words: str, status: int = 0, retry_after_s: float | None = None
    ) -> None:
        """Keep what happened."""
        super().__init__(words)
        self.cause, self.words, self.status = cause, words, status
        self.retry_after_s = retry_after_s


class Gate:
    """Lets requests go one after the other, no faster than the limits, and none while it is closed.

    Requests are spaced evenly, so that no minute, wherever it begins, has more than its share. They
    go in the order they came in.

    A server's own limit is found out: each refusal doubles a space between requests, each answer
    makes it a little smaller. Without it, all that wait would be refused together again and again.

    Args:
        requests_per_minute: Most requests, or None.
        tokens_per_minute: Most tokens of prompts and responses, or None.
        terms: What settings are called.

    Attributes:
        waited_s: Seconds that requests have waited here, all together.

    Raises:
        BadOption: A limit is not positive.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        terms: Terms = TERMS,
    ) -> None:
        self._terms = terms
        self._request_s = _seconds_each(f"{terms.service}requests_per_minute", requests_per_minute)
        self._token_s = _seconds_each(f"{terms.service}tokens_per_minute", tokens_per_minute)
        self._next_request = self._next_token = self._closed_until = 0.0
        self._space_s = self._slowed_at = 0.0
        self._line = asyncio.Lock()  # serves in the order of arrival
        self.waited_s = 0.0

    async def enter(self, tokens: float) -> float:
        """Wait until a request may be sent that is expected to take so many tokens.

        Returns:
            The time then, by the monotonic clock.

        Raises:
            ModelUnavailable: The gate is closed for longer than `LONGEST_CLOSED_S`.
        """
        came = time.monotonic()
        try:
            async with self._line:
                while (wait_s := self._wait_s()) > 0:
                    await asyncio.sleep(min(wait_s, _SLICE_S))
                now = time.monotonic()
                space_s = max(self._request_s, self._space_s)
                self._next_request = max(self._next_request, now) + space_s
                self._next_token = max(self._next_token, now) + tokens * self._token_s
                return now
        finally:
            self.waited_s += time.monotonic() - came

    def correct(self, tokens: float) -> None:
        """Take account of so many more tokens than expected; fewer than 0 give time back."""
        self._next_token += tokens * self._token_s

    def slow_down(self, sent: float) -> None:
        """Take account of a refusal for haste.

        Args:
            sent: When the request was. Of those sent at one pace, the first one refused counts.
        """
        if sent >= self._slowed_at:
            self._space_s = min(max(2 * self._space_s, _FIRST_SPACE_S), _LONGEST_SPACE_S)
            self._slowed_at = time.monotonic()

    def speed_up(self) -> None:
        """Take account of an answer."""
        self._space_s = self._space_s * _FASTER if self._space_s > _LEAST_SPACE_S else 0.0

    def close(self, seconds: float) -> None:
        """Let no request go for so long."""
        self._closed_until = max(self._closed_until, time.monotonic() + seconds)

    def _wait_s(self) -> float:
        now = time.monotonic()
        if self._closed_until - now > LONGEST_CLOSED_S:
            raise ModelUnavailable(
                f"the server of the model asks to wait {self._closed_until - now:.0f} s, longer "
                f"than the {LONGEST_CLOSED_S:.0f} s it is given: {self._terms.later}"
            )
        return max(self._next_request, self._next_token, self._closed_until) - now


def _seconds_each(name: str, per_minute: float | None) -> float:
    if per_minute is None:
        return 0.0
    if not 0 < per_minute < math.inf:
        raise BadOption(f"{name} must be greater than 0, got {per_minute:g}")
    return 60.0 / per_minute


class Tally:
    """What a server's treatment came to: for a record of the run, not for its result.

    Attributes:
        requests: Attempts, failed ones included.
        answers: Attempts that brought an answer.
        retries: Attempts that failed, by cause.
        paused_s: Seconds of pauses after failed attempts, all together.
        served: Names of models that answers came from.
        fingerprints: `system_fingerprint` of answers.
    """

    def __init__(self) -> None:
        """Begin at nothing."""
        self.requests = self.answers = 0
        self.retries: Counter[str] = Counter()
        self.paused_s = 0.0
        self.served: set[str] = set()
        self.fingerprints: set[str] = set()

    def report(self) -> dict[str, Any]:
        """Return all of it, JSON-plain."""
        return {
            "requests": self.requests,
            "answers": self.answers,
            "retries": dict(sorted(self.retries.items())),
            "paused_s": round(self.paused_s, 3),
            "served": sorted(self.served),
            "fingerprints": sorted(self.fingerprints),
        }


def pause_s(fault: Fault, attempt: int, seed: int, first_s: float) -> float:
    """Return how long to wait after a failed attempt.

    What the server asks for; else twice as long as after the attempt before, with a random part
    that depends on the seed, so that requests which failed together do not come back together.

    Args:
        fault: What failed.
        attempt: Of which attempt, from 1.
        seed: Of the decision.
        first_s: After the first attempt, at most.
    """
    longest = min(first_s * 2.0 ** min(attempt - 1, 16), _LONGEST_PAUSE_S)
    jitter = random.Random(f"{seed}:{attempt}").random()
    if fault.retry_after_s is not None:
        return fault.retry_after_s + 0.1 * jitter * longest
    return longest * (0.5 + 0.5 * jitter)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds from now the headers ask to wait; None if they do not say.

    Reads `Retry-After`, in seconds or as an HTTP date, and the finer `retry-after-ms`.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, date.timestamp() - time.time())


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


class Attempt:
    """Turns what may go wrong with a connection into a `Fault`, and limits the time in total.

    Args:
        timeout_s: Longest silence; the attempt may take `TOTAL_TIMEOUTS` times as long.

    Raises:
        Fault: The connection failed, was silent for too long, or took too long in total.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._total = asyncio.timeout(TOTAL_TIMEOUTS * timeout_s)

    async def __aenter__(self) -> None:
        await self._total.__aenter__()

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            await self._total.__aexit__(kind, error, trace)
        except TimeoutError:
            seconds = TOTAL_TIMEOUTS * self._timeout_s
            raise Fault("timeout", f"no whole answer within {seconds:g} s") from None
        if isinstance(error, httpx2.ConnectTimeout):
            raise Fault("connection", "no connection in time") from None
        if isinstance(error, httpx2.TimeoutException):
            raise Fault("timeout", f"nothing came for {self._timeout_s:g} s") from None
        if isinstance(error, httpx2.HTTPError):
            said = str(error) or type(error).__name__
            raise Fault("connection", f"the connection failed: {said}") from None
