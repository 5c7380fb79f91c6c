"""Rate limits, pauses between attempts and statistics of requests to a server of models."""

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

from agentgyms.core.errors import BadOption, ModelUnavailable
from agentgyms.models.setting_names import SETTING_NAMES, SettingNames

MAX_PAUSE_S: Final = 600.0
"""A server that requests a longer wait counts as unavailable."""

TOTAL_TIMEOUTS: Final = 5
"""Total time limit of a request, as a multiple of `timeout_s` (the maximum time without data)."""

_LONGEST_PAUSE_S: Final = 60.0
_FIRST_SPACE_S, _LEAST_SPACE_S, _LONGEST_SPACE_S = 0.05, 0.005, 2.0
_FASTER: Final = 0.98
_SLICE_S: Final = 1.0  # waits are recomputed this often: answers may shorten them


class RetryableError(Exception):
    """An attempt failed and may be retried.

    Attributes:
        cause: Category for statistics, such as `"status 503"`.
        message: The error, on one line.
        status: Status code of the reply; 0 without a reply.
        retry_after_s: Seconds that the server asks to wait, or None.
    """

    def __init__(
        self, cause: str, message: str, status: int = 0, retry_after_s: float | None = None
    ) -> None:
        """Store the attributes."""
        super().__init__(message)
        self.cause, self.message, self.status = cause, message, status
        self.retry_after_s = retry_after_s


class RateLimiter:
    """Delays requests: first in, first out, within the rate limits, and none during a pause.

    Requests are spaced evenly, so that no interval of one minute exceeds the limits.

    The limiter also adapts to the server's own limit: each status 429 doubles the interval between
    requests, each answer reduces it a little. Otherwise all waiting requests would be rejected
    together again and again.

    Args:
        requests_per_minute: Maximum requests, or None.
        tokens_per_minute: Maximum tokens of prompts and responses, or None.
        names: Names of settings in errors.

    Attributes:
        waited_s: Total seconds that requests have waited here.

    Raises:
        BadOption: A limit is not positive.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        names: SettingNames = SETTING_NAMES,
    ) -> None:
        self._names = names
        self._request_s = _seconds_each(f"{names.service}requests_per_minute", requests_per_minute)
        self._token_s = _seconds_each(f"{names.service}tokens_per_minute", tokens_per_minute)
        self._next_request = self._next_token = self._paused_until = 0.0
        self._interval_s = self._slowed_at = 0.0
        self._queue = asyncio.Lock()  # first in, first out
        self.waited_s = 0.0

    async def acquire(self, tokens: float) -> float:
        """Wait until a request may be sent.

        Args:
            tokens: Expected tokens of the request.

        Returns:
            The monotonic time at which it may be sent.

        Raises:
            ModelUnavailable: The pause is longer than `MAX_PAUSE_S`.
        """
        arrived = time.monotonic()
        try:
            async with self._queue:
                while (wait_s := self._wait_s()) > 0:
                    await asyncio.sleep(min(wait_s, _SLICE_S))
                now = time.monotonic()
                space_s = max(self._request_s, self._interval_s)
                self._next_request = max(self._next_request, now) + space_s
                self._next_token = max(self._next_token, now) + tokens * self._token_s
                return now
        finally:
            self.waited_s += time.monotonic() - arrived

    def correct(self, tokens: float) -> None:
        """Correct the estimate by the number of tokens above it; negative if below."""
        self._next_token += tokens * self._token_s

    def slow_down(self, sent: float) -> None:
        """Increase the interval after a status 429.

        Args:
            sent: Time at which the request was sent. Only one 429 per interval change counts.
        """
        if sent >= self._slowed_at:
            self._interval_s = min(max(2 * self._interval_s, _FIRST_SPACE_S), _LONGEST_SPACE_S)
            self._slowed_at = time.monotonic()

    def speed_up(self) -> None:
        """Reduce the interval after an answer."""
        self._interval_s = self._interval_s * _FASTER if self._interval_s > _LEAST_SPACE_S else 0.0

    def pause(self, seconds: float) -> None:
        """Delay all requests by at least this long."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    def _wait_s(self) -> float:
        now = time.monotonic()
        if self._paused_until - now > MAX_PAUSE_S:
            raise ModelUnavailable(
                f"the server of the model asks to wait {self._paused_until - now:.0f} s, longer "
                f"than the {MAX_PAUSE_S:.0f} s it is given: {self._names.later}"
            )
        return max(self._next_request, self._next_token, self._paused_until) - now


def _seconds_each(name: str, per_minute: float | None) -> float:
    if per_minute is None:
        return 0.0
    if not 0 < per_minute < math.inf:
        raise BadOption(f"{name} must be greater than 0, got {per_minute:g}")
    return 60.0 / per_minute


class RequestStats:
    """Statistics of requests; they are recorded beside a result, not part of it.

    Attributes:
        requests: Number of attempts, failed ones included.
        answers: Number of successful attempts.
        retries: Number of failed attempts by cause.
        paused_s: Total seconds of pauses after failed attempts.
        served: Names of models in answers.
        fingerprints: `system_fingerprint` values in answers.
    """

    def __init__(self) -> None:
        """Start at 0."""
        self.requests = self.answers = 0
        self.retries: Counter[str] = Counter()
        self.paused_s = 0.0
        self.served: set[str] = set()
        self.fingerprints: set[str] = set()

    def report(self) -> dict[str, Any]:
        """Return the statistics, JSON-plain."""
        return {
            "requests": self.requests,
            "answers": self.answers,
            "retries": dict(sorted(self.retries.items())),
            "paused_s": round(self.paused_s, 3),
            "served": sorted(self.served),
            "fingerprints": sorted(self.fingerprints),
        }


def pause_s(fault: RetryableError, attempt: int, seed: int, first_s: float) -> float:
    """Return the pause after a failed attempt: exponential backoff with seeded jitter.

    A `Retry-After` of the server takes precedence, with a small jitter.

    Args:
        fault: The error.
        attempt: Number of the attempt, from 1.
        seed: Seed of the decision, for the jitter.
        first_s: Maximum pause after the first attempt.
    """
    longest = min(first_s * 2.0 ** min(attempt - 1, 16), _LONGEST_PAUSE_S)
    jitter = random.Random(f"{seed}:{attempt}").random()
    if fault.retry_after_s is not None:
        return fault.retry_after_s + 0.1 * jitter * longest
    return longest * (0.5 + 0.5 * jitter)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the headers ask to wait, or None.

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
    """Context of one attempt: limits its total time and turns HTTP errors into `RetryableError`.

    Args:
        timeout_s: Maximum time without data; the total limit is `TOTAL_TIMEOUTS` times as long.

    Raises:
        RetryableError: The connection failed, or a time limit was exceeded.
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
            raise RetryableError("timeout", f"no whole answer within {seconds:g} s") from None
        if isinstance(error, httpx2.ConnectTimeout):
            raise RetryableError("connection", "no connection in time") from None
        if isinstance(error, httpx2.TimeoutException):
            raise RetryableError("timeout", f"nothing came for {self._timeout_s:g} s") from None
        if isinstance(error, httpx2.HTTPError):
            text = str(error) or type(error).__name__
            raise RetryableError("connection", f"the connection failed: {text}") from None
