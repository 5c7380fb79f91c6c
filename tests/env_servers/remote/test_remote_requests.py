"""What a client asks for, no more and no less, and which replies it takes for its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import requests
from audited import pair
from fault_proxy import FaultProxy, Request
from ledger import LEDGER
from server_faults import TOKEN

from agentgyms.core.errors import SessionLost
from agentgyms.remote import Patience, RemoteEnv, RemoteVectorEnv


def test_a_vector_sends_one_request_per_step(books):
    with FaultProxy(books.url) as one, FaultProxy(books.url) as two:
        vector = RemoteVectorEnv(LEDGER, 64, url=[one.url, two.url], token=TOKEN)
        vector.reset(seed=0)
        for _ in range(3):
            vector.step(["debit"] * 64)
        vector.close()
    asked = ["info", "batch/create", "batch/reset", *["batch/step"] * 3, "batch/close"]
    assert one.asked() == two.asked() == asked


def test_a_lost_member_leaves_the_others_alone(books):
    """Its rebuilding costs a few requests, and the others' episodes none."""
    with FaultProxy(books.url) as proxy:
        vector = RemoteVectorEnv(LEDGER, 16, url=proxy.url, token=TOKEN)
        vector.reset(seed=0)
        for _ in range(3):
            vector.step(["debit"] * 16)
        for member in (3, 5, 12):
            books.sessions.close(vector.envs[member].lease.session_id)
        others = [vector.envs[i].lease for i in range(16) if i not in (3, 5, 12)]
        before = len(proxy.requests)
        infos = vector.step(["credit"] * 16)[4]
        assert infos["turn"].tolist() == [4] * 16
        rebuilding = ["batch/close", "batch/create", "batch/reset", *["batch/step"] * 3]
        assert proxy.asked()[before:] == ["batch/step", *rebuilding, "batch/step"]
        assert others == [vector.envs[i].lease for i in range(16) if i not in (3, 5, 12)]
        assert all(books.acts(env) == ["debit"] * 3 + ["credit"] for env in vector.envs)
        vector.close()


@pytest.mark.parametrize("operation", ["reset", "restore"])
def test_a_late_beginning_costs_no_session(books, operation):
    """The episode goes on where it stands when a copy of what began it comes after its turns."""
    with FaultProxy(books.url) as proxy:
        both = pair(proxy, 0)
        both.begin(1)
        both.step("debit")
        saved = both.here.snapshot()
        if operation == "restore":
            assert both.there.restore(saved) == both.here.restore(saved)
        late = next(r for r, _ in proxy.requests if r.operation == operation)
        both.step("credit")
        both.step("credit")
        session = both.there.lease.session_id
        reply = requests.post(
            f"{books.url}{late.path}",
            data=late.raw.partition(b"\r\n\r\n")[2],
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
            timeout=5,
        )
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "turn_conflict")
        both.step("debit")
        assert both.there.lease.session_id == session
        both.there.close()


class _Stray:
    """What a proxy in disorder does: a reply goes to the request after its own."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy, self.kept = proxy, b""

    async def __call__(self, request: Request, writer: Any) -> bool:
        reply = await self.proxy._forward(request)
        writer.write(self.kept or reply)
        self.kept = reply
        return True


@pytest.mark.parametrize("vector", [False, True])
def test_the_reply_to_another_request_is_none(books, vector):
    """A client that takes it is one turn behind for the rest of its life."""
    patience = Patience(attempts=2, pause_s=0.01, lost_s=0)
    stepping = "batch/step" if vector else "step"
    with FaultProxy(books.url) as proxy:
        proxy.choose = lambda r: "stray" if r.operation == stepping else "normal"
        proxy.stray = _Stray(proxy)
        kwargs = {"url": proxy.url, "token": TOKEN, "patience": patience}
        env = RemoteVectorEnv(LEDGER, 2, **kwargs) if vector else RemoteEnv(LEDGER, **kwargs)
        env.reset(seed=0)
        env.step(["debit"] * 2 if vector else "debit")
        with pytest.raises(SessionLost, match="reply to another request"):
            env.step(["credit"] * 2 if vector else "credit")
        proxy.choose = lambda _: "normal"
        turn = env.step(["credit"] * 2 if vector else "credit")[4]["turn"]
        assert np.all(turn == 2), "the episode goes on where it stood"
        env.close()


@pytest.mark.parametrize("vector", [False, True])
def test_after_an_interruption_the_next_action_is_taken(books, vector, monkeypatch):
    """The server has acted, the person at the keyboard has not seen it and does something else."""
    number = 3 if vector else 1
    env = (
        RemoteVectorEnv(LEDGER, 3, url=books.url, token=TOKEN)
        if vector
        else RemoteEnv(LEDGER, url=books.url, token=TOKEN)
    )
    env.reset(seed=0)
    inner = env.envs[0] if vector else env
    transport = inner.lease.endpoint.transport
    send = transport.send

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        send(*args, **kwargs)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(transport, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        env.step(["debit"] * number if vector else "debit")
    env.step(["credit"] * number if vector else "credit")
    assert books.acts(inner) == ["credit"]
    env.close()
