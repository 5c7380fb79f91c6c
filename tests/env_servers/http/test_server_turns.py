"""The turn law: a request that is sent again never acts again."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from server_faults import CORRIDOR, Api, FaultyEnv, code

from env_servers import create_app


def test_the_same_turn_again_returns_the_stored_reply(api):
    path = api.begun()
    first = api.step(path, "right", 1)
    again = api.response.get_data()
    for action in ("right", "left", "anything"):
        assert api.step(path, action, 1) == first
        assert api.response.get_data() == again
    assert api.get(path)[1]["turn"] == 1
    assert api.step(path, "right", 2)[1]["turn"] == 2


def test_gaps_and_older_turns_are_refused(api):
    path = api.begun()
    for turn in (1, 2, 3):
        api.step(path, "right", turn)
    for turn in (-1, 0, 1, 2, 5, 100):
        reply = api.step(path, "right", turn)
        assert code(reply) == (409, "turn_conflict")
        assert f"turn {turn} was sent" in reply[1]["error"]["message"]
        assert "expected turn 4" in reply[1]["error"]["message"]
    assert api.get(path)[1]["turn"] == 3


def test_a_turn_of_an_earlier_episode_is_refused(api):
    path = api.begun()
    _, first = api.post(f"{path}/reset", {"seed": 1})
    _, second = api.post(f"{path}/reset", {"seed": 2})
    assert second["episode"] == first["episode"] + 1
    late = api.step(path, "right", 1, episode=first["episode"])
    assert code(late) == (409, "turn_conflict")
    assert api.step(path, "right", 1, episode=second["episode"])[0] == 200
    assert code(api.step(path, "right", 1, episode=first["episode"])) == (409, "turn_conflict")


def test_a_reset_sent_twice_begins_the_same_episode(api):
    path = api.open()
    one, two = (api.post(f"{path}/reset", {"seed": 9}) for _ in range(2))
    one[1].pop("episode"), two[1].pop("episode")
    assert one == two


def test_after_reset_and_restore_there_is_no_stored_reply(api):
    path = api.begun()
    api.step(path, "right", 1)
    _, saved = api.post(f"{path}/snapshot")
    api.post(f"{path}/restore", saved)
    assert code(api.step(path, "right", 1)) == (409, "turn_conflict")
    assert api.step(path, "right", 2)[0] == 200
    api.post(f"{path}/reset", {"seed": 0})
    assert code(api.step(path, "right", 0)) == (409, "turn_conflict")


@pytest.mark.parametrize("operation", ["reset", "restore"])
def test_what_begins_an_episode_begins_it_once(api, operation):
    path = api.begun(seed=3)
    api.step(path, "right", 1)
    _, saved = api.post(f"{path}/snapshot")
    asked = ({"seed": 4} if operation == "reset" else saved) | {"episode": 1}
    first = api.post(f"{path}/{operation}", asked)
    assert first[1]["episode"] == 2
    assert api.post(f"{path}/{operation}", asked) == first
    other = {"seed": 5, "episode": 1}
    assert code(api.post(f"{path}/reset", other)) == (409, "turn_conflict"), "not its reply"
    assert api.get(path)[1]["episode"] == 2
    turn = first[1]["turn"] + 1
    api.step(path, "right", turn, episode=2)
    assert code(api.post(f"{path}/{operation}", asked)) == (409, "turn_conflict"), "a late one"
    assert (api.get(path)[1]["episode"], api.get(path)[1]["turn"]) == (2, turn)
    assert api.post(f"{path}/{operation}", asked | {"episode": 2})[1]["episode"] == 3


def test_restoring_an_ended_episode_keeps_it_ended(api):
    path = api.begun(max_turns=1)
    api.step(path, "right", 1)
    _, saved = api.post(f"{path}/snapshot")
    api.post(f"{path}/reset", {"seed": 0})
    assert api.post(f"{path}/restore", saved)[1]["truncated"] is True
    assert code(api.step(path, "right", 2)) == (409, "reset_needed")


def test_one_request_id_opens_one_session():
    api = Api(create_app(CORRIDOR))
    body = {"kwargs": {"split": "sample"}, "request_id": "r-1"}
    one, two = api.post("/v1/sessions", body), api.post("/v1/sessions", body)
    assert one == two
    path = f"/v1/sessions/{one[1]['session_id']}"
    api.post(f"{path}/reset", {"seed": 0})
    api.step(path, "right", 1)
    forks = [api.post(f"{path}/fork", {"request_id": "r-2"}) for _ in range(2)]
    assert forks[0] == forks[1]
    assert len(api.app.extensions["agentgyms"].sessions) == 2
    api.call("DELETE", path)
    late = api.post("/v1/sessions", body)
    assert code(late) == (410, "session_expired"), "nobody would ever close another one"
    assert len(api.app.extensions["agentgyms"].sessions) == 1


@pytest.mark.parametrize(
    "other",
    [{"split": "test"}, {"length": 1}, {"length": True}, {"split": "sample", "length": 1.0}, {}],
    ids=str,
)
def test_one_request_id_is_of_one_request(other):
    api = Api(create_app(CORRIDOR, token=""))
    given = {"split": "sample", "max_turns": 1}
    _, opened = api.post("/v1/sessions", {"kwargs": given, "request_id": "r-1"})
    again = {"kwargs": dict(reversed(given.items())), "request_id": "r-1"}
    assert api.post("/v1/sessions", again) == (201, opened), "the order of arguments is none"
    reply = api.post("/v1/sessions", {"kwargs": other, "request_id": "r-1"})
    assert code(reply) == (409, "request_conflict")
    batch = {"items": [{"kwargs": other, "request_id": "r-1"}, again]}
    conflict, same = api.post("/v1/batch/create", batch)[1]["results"]
    assert conflict["error"]["code"] == "request_conflict"
    assert same == opened
    path = f"/v1/sessions/{opened['session_id']}"
    assert code(api.post(f"{path}/fork", {"request_id": "r-1"})) == (409, "request_conflict")
    assert api.post(f"{path}/fork", {"request_id": "r-2"})[0] == 201
    second = api.open()
    assert code(api.post(f"{second}/fork", {"request_id": "r-2"})) == (409, "request_conflict")
    assert len(api.app.extensions["agentgyms"].sessions) == 3


def test_a_request_id_under_way_is_of_one_request(faulty):
    body = {"kwargs": {"broken": "slow making"}, "request_id": "r-1"}
    first = threading.Thread(target=Api(faulty.app).post, args=("/v1/sessions", body))
    first.start()
    assert FaultyEnv.waiting.wait(60)
    reply = faulty.post("/v1/sessions", {"kwargs": {}, "request_id": "r-1"})
    FaultyEnv.go_on.set()
    first.join()
    assert code(reply) == (409, "request_conflict")
    assert FaultyEnv.open_ones == 1


def test_a_failed_request_id_can_be_used_again(api):
    wrong = {"kwargs": {"split": "no"}, "request_id": "r-3"}
    assert code(api.post("/v1/sessions", wrong)) == (422, "unknown_split")
    assert api.post("/v1/sessions", {"kwargs": {}, "request_id": "r-3"})[0] == 201


def test_many_copies_of_one_turn_at_once_act_once(api):
    path = api.begun(seed=1, max_turns=500)
    for turn in range(1, 20):
        with ThreadPoolExecutor(8) as pool:
            replies = list(
                pool.map(lambda _, t=turn: Api(api.app).step(path, "right", t), range(8))
            )
        assert all(reply == replies[0] for reply in replies)
        assert replies[0][1]["info"]["turn"] == turn
        if replies[0][1]["terminated"]:
            break
