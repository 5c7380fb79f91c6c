"""The clock of agents' code stands still, by whatever name it is asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kettle import BRIEF

from agentgyms.envs.appworld.sandbox.executors import Executor, executor
from agentgyms.envs.appworld.world import ApiResponse

NOW = "2024-02-29 08:30:15"
"""The date and time of `BRIEF`."""

IMPORTS = """
import _datetime, _strptime, calendar, datetime, os, pickle, posix, threading, time, uuid
import collections, email.utils, logging
class Own(datetime.datetime): pass
class OwnDate(datetime.date): pass
UTC = datetime.timezone.utc
TOKYO = datetime.timezone(datetime.timedelta(hours=9))
"""

DATETIMES = [
    "datetime.datetime.now()",
    "datetime.datetime.utcnow()",
    "datetime.datetime.today()",
    "datetime.datetime.min.now()",
    "datetime.datetime.max.utcnow()",
    "datetime.datetime.min.today()",
    "type(datetime.datetime.min).now()",
    "type(datetime.datetime.now()).now()",
    "type(datetime.datetime.strptime('1', '%d')).now()",
    "type(datetime.datetime.combine(datetime.date.min, datetime.time.min)).now()",
    "datetime.datetime(2020, 1, 1).now()",
    "datetime.datetime.now(tz=UTC).replace(tzinfo=None)",
    "datetime.datetime.now(TOKYO).astimezone(UTC).replace(tzinfo=None)",
    "datetime.datetime.fromtimestamp(time.time())",
    "pickle.loads(pickle.dumps(datetime.datetime.min)).now()",
    "_datetime.datetime.now()",
    "_datetime.datetime.today()",
    "_datetime.datetime.utcnow()",
    "Own.now()",
    "super(Own, Own).now()",
    "DateTime.now()",
    "DateTime.min.now()",
    "calendar.datetime.datetime.now()",
    "email.utils.localtime().replace(tzinfo=None)",
]

DATES = [
    "datetime.date.today()",
    "datetime.date.min.today()",
    "type(datetime.date.max).today()",
    "type(datetime.datetime.min.date()).today()",
    "_datetime.date.today()",
    "_strptime.datetime_date.today()",
    "OwnDate.today()",
    "Date.today()",
]

SECONDS = [
    "time.time()",
    "time.time_ns() / 1e9",
    "time.monotonic()",
    "time.perf_counter()",
    "time.perf_counter_ns() / 1e9",
    "time.clock_gettime(time.CLOCK_REALTIME)",
    "time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e9",
    "calendar.timegm(time.gmtime())",
    "time.mktime(time.localtime())",
    "calendar.timegm(time.strptime(time.ctime()))",
    "calendar.timegm(time.strptime(time.asctime()))",
    "int(time.strftime('%s'))",
    "threading._time()",
    "logging.LogRecord('', 0, '', 0, '', (), None).created",
    "datetime.datetime.min.now().timestamp()",
]

ZEROS = [
    "time.process_time()",
    "time.thread_time_ns()",
    "sum(os.times())",
    "sum(posix.times())",
]


@pytest.fixture(
    scope="module", params=["mini", pytest.param("appworld", marks=pytest.mark.appworld)]
)
def asked(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """An executor that has imported what the questions need."""
    leased = executor(request.param)
    leased.begin(BRIEF)
    assert printed(leased, f"{IMPORTS}print('ready')") == "ready"
    yield leased
    leased.close()


def printed(process: Executor, code: str) -> str:
    """Return what code prints."""
    answer = ApiResponse(value=None)
    return process.run(code, lambda *_: answer, timeout_s=20, max_calls=1).output.strip()


@pytest.mark.parametrize("question", DATETIMES)
def test_dates_and_times_are_the_tasks(asked, question):
    assert printed(asked, f"print(str({question})[:19].replace('T', ' '))") == NOW


@pytest.mark.parametrize("question", DATES)
def test_dates_are_the_tasks(asked, question):
    assert printed(asked, f"print({question})") == NOW[:10]


@pytest.mark.parametrize("question", SECONDS)
def test_seconds_are_the_tasks(asked, question):
    assert printed(asked, f"print(int({question}))") == "1709195415"


@pytest.mark.parametrize("question", ZEROS)
def test_no_time_is_used(asked, question):
    assert float(printed(asked, f"print({question})")) == 0


@pytest.mark.parametrize(
    "question",
    [
        "pendulum.now()",
        "pendulum.DateTime.now()",
        "pendulum.now().now()",
        "pendulum.datetime(2020, 1, 1).now()",
    ],
)
@pytest.mark.appworld
def test_pendulums_clock_is_the_tasks(question):
    leased = executor("appworld")
    leased.begin(BRIEF)
    assert printed(leased, f"print(str({question})[:19].replace('T', ' '))") == NOW
    leased.close()


def test_what_else_dates_do_stays(process):
    code = (
        f"{IMPORTS}print(repr(datetime.datetime.min.now().date()), Own.now().__class__.__name__)\n"
        "try: datetime.datetime.min.now('UTC')\nexcept TypeError as e: print(e)\n"
        "print(datetime.datetime.now() - datetime.datetime(2024, 2, 28))"
    )
    date, *rest = printed(process, code).split("\n")
    assert date.endswith("(2024, 2, 29) Own")
    assert rest == [
        "tzinfo argument must be None or of a tzinfo subclass, not type 'str'",
        "1 day, 8:30:15",
    ]
