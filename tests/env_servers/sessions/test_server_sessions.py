"""How long sessions live, how many there may be, and who gives way."""

from __future__ import annotations

import gc
import threading
import time
import weakref

from server_faults import CORRIDOR, FAULTY, Api, FaultyEnv, code

from env_servers import create_app


def _sessions(api: Api):
    return api.app.extensions["agentgyms"].sessions


def test_an_idle_session_expires(clock):
    api = Api(create_app(CORRIDOR, ttl_s=600, clock=clock))
    path = api.begun()
    clock.now += 599
    assert api.step(path, "right", 1)[0] == 200
    clock.now += 599
    assert api.get(path)[0] == 200, "every use puts the end off"
    clock.now += 601
    reply = api.step(path, "right", 2)
    assert code(reply) == (410, "session_expired")
    assert "600 s" in reply[1]["error"]["message"]
    assert code(api.get(path)) == (410, "session_expired")
    assert len(_sessions(api)) == 0


def test_the_time_to_live_is_told(api):
    status, opened = api.post("/v1/sessions")
    assert (status, opened["ttl_s"]) == (201, 600)


def test_sweeping_closes_environments(faulty, clock):
    api = Api(create_app(FAULTY, ttl_s=10, clock=clock))
    used, *_ = (api.open() for _ in range(5))
    clock.now += 6
    api.get(used)
    clock.now += 6
    assert _sessions(api).sweep() == 4
    assert FaultyEnv.open_ones == 1
    assert api.get(used)[0] == 200


def test_the_sweeper_runs_by_itself():
    api = Api(create_app(CORRIDOR, ttl_s=0.1))
    api.open()
    deadline = time.monotonic() + 5
    while len(_sessions(api)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(_sessions(api)) == 0


def test_the_sweeper_ends_with_its_application():
    before = set(threading.enumerate())
    api = Api(create_app(CORRIDOR, ttl_s=60))
    [sweeper] = set(threading.enumerate()) - before
    sessions = weakref.ref(_sessions(api))
    del api
    gc.collect()
    assert sessions() is None
    sweeper.join(timeout=5)
    assert not sweeper.is_alive()


def test_a_session_in_use_does_not_expire(faulty, clock):
    api = Api(create_app(FAULTY, ttl_s=10, clock=clock))
    path = api.begun()
    replies = []
    thread = threading.Thread(target=lambda: replies.append(api.step(path, "wait", 1)))
    thread.start()
    assert FaultyEnv.waiting.wait(60)
    clock.now += 100
    assert _sessions(api).sweep() == 0
    FaultyEnv.go_on.set()
    thread.join()
    assert replies[0][0] == 200
    assert api.step(path, "left", 2)[0] == 200, "the time counts from the end of its last use"


def test_a_full_server_says_when_to_come_back(clock):
    api = Api(create_app(CORRIDOR, max_sessions=2, ttl_s=600, clock=clock))
    first, _ = api.begun(), api.begun()
    reply = api.post("/v1/sessions")
    assert code(reply) == (429, "server_full")
    assert reply[1]["error"]["retryable"] is True
    assert api.response.headers["Retry-After"] == "5"
    clock.now += 598
    api.post("/v1/sessions")
    assert api.response.headers["Retry-After"] == "2"
    assert code(api.post(f"{first}/fork")) == (429, "server_full")
    assert api.step(first, "right", 1)[0] == 200, "those inside go on"
    api.call("DELETE", first)
    assert api.post("/v1/sessions")[0] == 201


def test_expired_sessions_make_room(clock):
    api = Api(create_app(CORRIDOR, max_sessions=1, ttl_s=600, clock=clock))
    api.begun()
    clock.now += 601
    assert api.post("/v1/sessions")[0] == 201


def test_the_finished_session_unused_for_longest_gives_way(clock):
    api = Api(create_app(CORRIDOR, max_sessions=3, clock=clock))
    running = api.begun()
    old, new = api.begun(max_turns=1), api.begun(max_turns=1)
    for path in (old, new):
        clock.now += 1
        api.step(path, "left", 1)
    assert api.post("/v1/sessions")[0] == 201
    reply = api.step(old, "left", 1)
    assert code(reply) == (410, "session_expired")
    assert "finished" in reply[1]["error"]["message"]
    assert api.step(new, "left", 1)[0] == 200
    assert api.step(running, "left", 1)[0] == 200
    assert api.post("/v1/sessions")[0] == 201
    assert code(api.post("/v1/sessions")) == (429, "server_full"), "unfinished ones stay"


def test_the_cap_holds_when_all_come_at_once():
    api = Api(create_app(CORRIDOR, max_sessions=10))
    statuses = []
    threads = [
        threading.Thread(target=lambda: statuses.append(Api(api.app).post("/v1/sessions")[0]))
        for _ in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201] * 10 + [429] * 30


def test_a_failed_creation_gives_its_place_back():
    api = Api(create_app(CORRIDOR, max_sessions=1))
    for _ in range(3):
        assert code(api.post("/v1/sessions", {"kwargs": {"split": "no"}}))[0] == 422
    assert api.post("/v1/sessions")[0] == 201


def test_only_so_many_gone_sessions_are_remembered():
    api = Api(create_app(CORRIDOR, max_sessions=1))
    first = api.open()
    api.call("DELETE", first)
    assert code(api.get(first)) == (410, "session_expired")
    for _ in range(4096):
        session_id = _sessions(api).create({}, "").session_id
        _sessions(api).close(session_id)
    assert code(api.get(first)) == (404, "unknown_session")


def test_two_copies_of_a_request_under_way_open_one_session(faulty):
    body = {"kwargs": {"broken": "slow making"}, "request_id": "r-1"}
    replies = []
    first = threading.Thread(
        target=lambda: replies.append(Api(faulty.app).post("/v1/sessions", body))
    )
    first.start()
    assert FaultyEnv.waiting.wait(60)
    _sessions(faulty).busy_s = 0.01
    assert code(faulty.post("/v1/sessions", body)) == (504, "timeout"), "to be asked again"
    _sessions(faulty).busy_s = 5
    threading.Timer(0.1, FaultyEnv.go_on.set).start()
    second = faulty.post("/v1/sessions", body)
    first.join()
    assert [second] == replies
    assert FaultyEnv.open_ones == 1


def test_a_session_closed_while_a_request_waits_for_it(faulty):
    path = faulty.begun()
    replies = {}

    def ask(name, *arguments):
        replies[name] = Api(faulty.app).call(*arguments)

    step = threading.Thread(
        target=ask, args=("step", "POST", f"{path}/step", {"action": "wait", "turn": 1})
    )
    step.start()
    assert FaultyEnv.waiting.wait(60)
    others = [
        threading.Thread(target=ask, args=(i, "DELETE" if i < 2 else "GET", path)) for i in range(4)
    ]
    for thread in others:
        thread.start()
    time.sleep(0.1)
    FaultyEnv.go_on.set()
    for thread in [step, *others]:
        thread.join()
    assert replies["step"][0] == 200
    deleted = sorted(replies[i][0] for i in (0, 1))
    assert deleted == [204, 410], "only one of them closed it"


def test_an_environment_that_does_not_close_is_gone_all_the_same(faulty, caplog):
    path = faulty.open(broken="closing")
    assert faulty.call("DELETE", path) == (204, None)
    assert "it does not close" in caplog.text
    assert code(faulty.get(path)) == (410, "session_expired")


def test_readiness_is_tried_by_one_request_at_a_time(faulty):
    api = Api(create_app(FAULTY, broken="slow making"))
    replies = []
    first = threading.Thread(target=lambda: replies.append(Api(api.app).get("/readyz")))
    first.start()
    assert FaultyEnv.waiting.wait(60)
    assert code(api.get("/readyz")) == (503, "not_ready")
    FaultyEnv.go_on.set()
    first.join()
    assert replies[0][0] == api.get("/readyz")[0] == 200
