"""What clients' arguments may make a server do is bounded, and the error says how."""

import pytest
from server_faults import Api

from env_servers import create_app
from env_servers.sessions import env_factory

SOKOBAN = "agentgyms/Sokoban-v0"


def refusal(answer):
    status, reply = answer
    assert status == 422, reply
    return reply["error"]["code"], reply["error"]["message"]


@pytest.mark.parametrize(
    ("env_id", "arguments", "message"),
    [
        (SOKOBAN, {"compat_seed": True, "size": [50, 50], "boxes": 20}, "boxes=20 in 2304 cells"),
        (SOKOBAN, {"rooms": 1001}, "rooms 1001 is too large to take from others: at most 1000"),
        (SOKOBAN, {"max_turns": 10_001}, "max_turns 10001 is too large"),
        ("agentgyms/AppWorld-v0", {"timeout_s": 60.5}, "timeout_s 60.5 is too large"),
    ],
)
def test_arguments_that_would_never_end(env_id, arguments, message):
    api = Api(create_app(env_id))
    code, text = refusal(api.post("/v1/sessions", {"kwargs": arguments}))
    assert code == "bad_option"
    assert message in text


def test_generating_for_a_client_ends_in_time(monkeypatch):
    api = Api(create_app(SOKOBAN, rooms=11))
    monkeypatch.setattr(env_factory, "WORK_LIMIT_S", -1.0)
    status, reply = api.post("/v1/sessions", {"kwargs": {"rooms": 12, "walls": 0.3}})
    assert status == 201
    code, text = refusal(api.post(f"/v1/sessions/{reply['session_id']}/reset", {"seed": 1}))
    assert (code, "generating rooms" in text) == ("bad_option", True)
    assert api.get(f"/v1/sessions/{reply['session_id']}")[0] == 200, "the session lives on"
    own = api.post("/v1/sessions", {"kwargs": {"split": "valid"}})[1]["session_id"]
    assert api.post(f"/v1/sessions/{own}/reset", {"seed": 1})[0] == 200
