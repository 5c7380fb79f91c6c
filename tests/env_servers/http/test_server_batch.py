"""Batches: one result or one error per item."""

from __future__ import annotations

from server_faults import CORRIDOR, Api, code

from env_servers import create_app


def test_a_batch_equals_single_calls(api):
    items = [{"kwargs": {"split": split}} for split in ("train", "sample", "valid_seen")]
    status, created = api.post("/v1/batch/create", {"items": items})
    assert status == 200
    ids = [result["session_id"] for result in created["results"]]
    singles = [api.open(**item["kwargs"]) for item in items]
    resets = [{"session_id": i, "seed": 10 + n} for n, i in enumerate(ids)]
    _, batched = api.post("/v1/batch/reset", {"items": resets})
    for n, (path, result) in enumerate(zip(singles, batched["results"], strict=True)):
        assert api.post(f"{path}/reset", {"seed": 10 + n}) == (200, result)
    steps = [{"session_id": i, "action": "right", "turn": 1} for i in ids]
    _, batched = api.post("/v1/batch/step", {"items": steps})
    for path, result in zip(singles, batched["results"], strict=True):
        assert api.step(path, "right", 1) == (200, result)
    assert api.post("/v1/batch/step", {"items": steps})[1] == batched, "stored replies here too"


def test_errors_stand_beside_results(api):
    path = api.begun()
    session_id = path.rpartition("/")[2]
    items = [
        {"session_id": session_id, "action": "right", "turn": 1},
        {"session_id": "nobody", "action": "right", "turn": 1},
        {"session_id": session_id, "action": "right", "turn": 9},
        {"session_id": session_id, "action": 5, "turn": 2},
        {"action": "right", "turn": 2},
        "not an object",
        {"session_id": session_id, "action": "right", "turn": 2},
    ]
    status, reply = api.post("/v1/batch/step", {"items": items})
    assert status == 200
    results = reply["results"]
    codes = [result.get("error", {}).get("code", "") for result in results]
    assert codes == [
        *("", "unknown_session", "turn_conflict", "bad_request", "bad_request", "bad_request"),
        "",
    ]
    assert [results[0]["turn"], results[6]["turn"]] == [1, 2]


def test_all_turns_of_one_session_in_one_batch(api):
    path = api.begun(seed=3)
    session_id = path.rpartition("/")[2]
    actions = ["right", "left", "jump", "right"]
    items = [
        {"session_id": session_id, "action": action, "turn": turn}
        for turn, action in enumerate(actions, 1)
    ]
    _, reply = api.post("/v1/batch/step", {"items": items})
    assert [result["info"]["action_key"] for result in reply["results"]] == [
        *("right", "left", "<invalid>", "right")
    ]


def test_creating_more_than_there_is_room_for():
    api = Api(create_app(CORRIDOR, max_sessions=2))
    _, reply = api.post("/v1/batch/create", {"items": [{}, {}, {"kwargs": {"split": "x"}}, {}]})
    assert [sorted(result) == ["error"] for result in reply["results"]] == [
        *(False, False, True, True)
    ]
    assert reply["results"][3]["error"]["code"] == "server_full"


def test_closing(api):
    ids = [api.open().rpartition("/")[2] for _ in range(2)]
    items = [{"session_id": session_id} for session_id in [*ids, ids[0]]]
    _, reply = api.post("/v1/batch/close", {"items": items})
    assert reply["results"][:2] == [{"session_id": i, "closed": True} for i in ids]
    assert reply["results"][2]["error"]["code"] == "session_expired"


def test_a_batch_that_is_none(api):
    for body in ({}, {"items": {}}, {"items": [], "more": 1}, []):
        assert code(api.post("/v1/batch/step", body)) == (422, "bad_request")
    assert api.post("/v1/batch/step", {"items": []}) == (200, {"results": []})
    assert code(api.post("/v1/batch/fork", {"items": []})) == (404, "not_found")
