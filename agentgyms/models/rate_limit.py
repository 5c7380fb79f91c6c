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
from agentgyms.models.endpoint import scheme_mistake
from agentgyms.models.types import SETTING_NAMES, SettingNames

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

    `cause` is a category for statistics, such as `"status 503"`. `status` is 0 without a reply.
    `retry_after_s` is the pause that the server wants, or None.
    """

    def __init__(
        self, cause: str, message: str, status: int = 0, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.cause, self.message, self.status = cause, message, status
        self.retry_after_s = retry_after_s


class RateLimiter:
    """Delays requests: first in, first out, within the rate limits, and none during a pause.

    They are spaced evenly, so that no interval of one minute exceeds the limits (None for no limit;
    `BadOption` for one that is not positive). Each status 429 doubles the interval, each answer
    reduces it a little. `waited_s` sums all waits.
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
        """Wait until a request of about `tokens` may be sent; return that monotonic time.

        Raises `ModelUnavailable` if the pause is longer than `MAX_PAUSE_S`.
        """
        arrived = time.monotonic()
        try:
            async with self._queue:
                while (wait_s := self._wait_s()) > 0:
                    await asyncio.sleep(min(wait_s, _SLICE_S))
                now = time.monotonic()
                space_s = max(self._request_s, self._interval_s)
                # an idle time is not saved up: no burst after it
                self._next_request = max(self._next_request, now) + space_s
                self._next_token = max(self._next_token, now) + tokens * self._token_s
                return now
        finally:
            self.waited_s += time.monotonic() - arrived

    def correct(self, tokens: float) -> None:
        """Correct the estimate by the number of tokens above it; negative if below."""
        self._next_token += tokens * self._token_s

    def slow_down(self, sent: float) -> None:
        """Increase the interval after a 429 to a request sent since the last increase."""
        # requests sent before the last increase say nothing about the new interval
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

    `requests` counts attempts, failed ones included; `served` are the names of models in answers.
    """

    def __init__(self) -> None:
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
    """Return `Retry-After`, or an exponential pause with jitter, at first of at most `first_s`."""
    longest = min(first_s * 2.0 ** min(attempt - 1, 16), _LONGEST_PAUSE_S)
    # [0, 1): clients that failed together must not return together
    jitter = random.Random(f"{seed}:{attempt}").random()
    if fault.retry_after_s is not None:
        return fault.retry_after_s + 0.1 * jitter * longest
    return longest * (0.5 + 0.5 * jitter)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in `Retry-After` (seconds or HTTP date) or `retry-after-ms`, or None."""
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

    `timeout_s` limits the time without data; the total limit is `TOTAL_TIMEOUTS` times as long.
    Unless the server `has_answered` before, a wrong scheme of its address is a `BadOption`.
    """

    def __init__(self, timeout_s: float, *, has_answered: bool) -> None:
        self._timeout_s, self._has_answered = timeout_s, has_answered
        self._total = asyncio.timeout(TOTAL_TIMEOUTS * timeout_s)

    async def __aenter__(self) -> None:
        await self._total.__aenter__()

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            await self._total.__aexit__(kind, error, trace)
        except TimeoutError:
            seconds = TOTAL_TIMEOUTS * self._timeout_s
            raise RetryableError("timeout", f"no whole answer within {seconds:g} s") from None
        is_new = isinstance(error, httpx2.HTTPError) and not self._has_answered
        if is_new and (mistake := await asyncio.to_thread(scheme_mistake, error)):
            raise BadOption(mistake) from None
        if isinstance(error, httpx2.ConnectTimeout):
            raise RetryableError("connection", "no connection in time") from None
        if isinstance(error, httpx2.TimeoutException):
            raise RetryableError("timeout", f"nothing came for {self._timeout_s:g} s") from None
        if isinstance(error, httpx2.HTTPError):
            text = str(error) or type(error).__name__
            failed = f"the connection failed: {text}"
            raise RetryableError("connection", failed) from None
