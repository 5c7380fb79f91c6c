"""The time limit of work: it ends what checks it, also while another thread holds a lock."""

import math
from threading import Lock, Thread

import pytest

from agentgyms.core.deadlines import check_time, lock_in_time, time_limit
from agentgyms.core.errors import BadOption


def test_without_a_limit_work_may_go_on():
    check_time("counting")
    with time_limit(math.inf):
        check_time("counting")


def test_the_error_says_what_took_how_long():
    with time_limit(-1), pytest.raises(BadOption, match=r"counting takes more than -1 s.*ask for"):
        check_time("counting")
    check_time("counting")


def test_the_limit_that_ends_first_holds():
    with time_limit(1000), time_limit(-1), time_limit(1000), pytest.raises(BadOption):
        check_time("counting")


def test_other_threads_have_their_own_limit():
    passed = []
    with time_limit(-1):
        thread = Thread(target=lambda: passed.append(check_time("counting")))
        thread.start()
        thread.join()
    assert passed == [None]


def test_a_lock_that_another_thread_holds():
    lock = Lock()
    with lock_in_time(lock, "counting"):
        waited = pytest.raises(BadOption, match="counting takes more than")
        with waited, time_limit(0.01), lock_in_time(lock, "counting"):
            pytest.fail("two held the lock")
        assert lock.locked()
    assert not lock.locked()
