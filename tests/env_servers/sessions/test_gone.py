"""Which sessions are remembered when they are gone, and in how much memory."""

import threading

from agentgyms.serving.connection_limits import LatestFirst
from env_servers.sessions.closed_sessions import ClosedSessions


def test_the_last_ones_are_remembered():
    gone = ClosedSessions(3)
    for i, reason in enumerate(["closed", "expired", "expired", "failed"]):
        gone.add(f"s{i}", f"r{i}" if i else "", reason)
    assert [gone.reason(f"s{i}") for i in range(5)] == ["", "expired", "expired", "failed", ""]
    assert [gone.reason_of_request(f"r{i}") for i in range(5)] == [
        "", "expired", "expired", "failed", "",
    ]  # fmt: skip


def test_no_name_is_no_session():
    gone = ClosedSessions(3)
    assert gone.reason("") == gone.reason_of_request("") == gone.reason("\ud800") == ""
    gone.add("s", "", "closed")
    assert gone.reason_of_request("") == ""


def test_reasons_that_a_caller_invents_take_no_more_room():
    gone = ClosedSessions(1000)
    for i in range(1000):
        gone.add(str(i), "", f"reason {i}")
    assert len(gone._reasons) <= 256
    assert gone.reason("999") == "reason 999"


def test_who_began_to_wait_last_is_woken_first():
    lock = threading.Lock()
    condition = LatestFirst(lock)
    woken = []

    def wait(name):
        with lock:
            condition.wait()
            woken.append(name)

    threads = []
    for name in "abc":
        threads.append(threading.Thread(target=wait, args=name))
        threads[-1].start()
        while True:
            with lock:
                if len(condition._waiting) == len(threads):
                    break
    with lock:
        condition.notify()
    threads[2].join(5)
    with lock:
        condition.notify_all()
        condition.notify()
    for thread in threads:
        thread.join(5)
    assert woken[0] == "c"
    assert sorted(woken) == ["a", "b", "c"]
