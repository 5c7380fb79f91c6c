"""Faults of a gateway: its process ends, connections break, agents vanish, strangers come."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import requests

from soaking.gateway_agents import Agent
from soaking.gateway_process import HEADERS, TOKEN, USER, GatewayProcess

_LASTS_S: Final = 5.0
_STRANGERS: Final = 300
_SLOW: Final = 8
_PIPELINED: Final = 50
_WRONG_BODIES: Final = (
    *(b"{", b"[]", b"\xff", b'{"messages": []}', b"[" * 5000, b'{"messages": [{"role": "user"}]}'),
    *(b'{"messages": [{"role": "user", "content": "\\ud800"}]}', b'{"messages": NaN}'),
)
_WRONG_REPORTS: Final = (
    *(b'{"reward": NaN}', b'{"reward": 1e308}', b'{"reward": 1e400}', b'{"reward": "1"}', b"{}"),
    *(b'{"reward": 1, "turns": []}', b'{"turns": [{"reward": 1}, {"reward": 1}]}', b'{"x": 1}'),
    b'{"turns": [{"reward": 9e17}], "score": 1e300}',
)


class Faults:
    """The kinds of faults, for `soaking.faults.Schedule`.

    Args:
        agents: The agents that meet with mishaps.
        environments: The address of a server of the corridor, on which strangers open sessions.
    """

    def __init__(self, agents: Sequence[Agent], environments: str) -> None:
        self._agents, self._environments = agents, environments
        self._turn = self._strangers = self._ends = 0

    def kinds(self) -> list[Callable[[GatewayProcess], bool]]:
        """Return all kinds in order; two of them end the process, in turn, once it is old."""
        strangers = (
            *(self.crowds_of_strangers, self.tokens_are_wrong, self.connections_trickle),
            *(self.bodies_are_wrong, self.readers_are_slow, self.bodies_are_too_long),
            *(self.reports_are_wrong, self.rollouts_are_wrong, self.episodes_are_others),
        )
        own = (self.agents_vanish, self.requests_break, self.answers_are_left, self.agents_vanish)
        ends = (self.gateway_killed, self.gateway_drained)
        first = (self.links_break, *own, *strangers[:5], *ends)
        return [*first, self.links_trickle, *own, *strangers[5:], *ends]

    # --- agents and their connections ------------------------------------------------------------

    def links_break(self, gateway: GatewayProcess) -> bool:
        """Let requests and replies of agents be lost, cut, doubled and late for some seconds."""
        gateway.be_faulty(_LASTS_S, slow=False)
        return True

    def links_trickle(self, gateway: GatewayProcess) -> bool:
        """Let requests and replies of agents arrive byte by byte for some seconds."""
        gateway.be_faulty(_LASTS_S, slow=True)
        return True

    def agents_vanish(self, gateway: GatewayProcess) -> bool:
        """Let an agent leave its episode without a word."""
        return self._mishap("vanish")

    def requests_break(self, gateway: GatewayProcess) -> bool:
        """Let an agent's connection end in the middle of a request."""
        return self._mishap("break a request")

    def answers_are_left(self, gateway: GatewayProcess) -> bool:
        """Let an agent's connection end before the answer."""
        return self._mishap("leave an answer")

    def _mishap(self, what: str) -> bool:
        self._turn += 1
        self._agents[self._turn % len(self._agents)].mishap = what
        return True

    # --- the process -----------------------------------------------------------------------------

    def gateway_killed(self, gateway: GatewayProcess) -> bool:
        """Kill the process, which goes on with its run."""
        is_due = self._is_due(gateway, 0)
        if is_due:
            gateway.kill()
        return is_due

    def gateway_drained(self, gateway: GatewayProcess) -> bool:
        """Ask the process to end; it goes on with its run."""
        is_due = self._is_due(gateway, 1)
        if is_due:
            gateway.drain()
        return is_due

    def _is_due(self, gateway: GatewayProcess, turn: int) -> bool:
        """Return whether the process has lived long enough, and whose turn it is to end it."""
        is_old = gateway.restarts and gateway.age_s >= gateway.restart_s
        is_due = is_old and self._ends % 2 == turn
        self._ends += is_due
        return is_due

    # --- strangers -------------------------------------------------------------------------------

    def crowds_of_strangers(self, gateway: GatewayProcess) -> bool:
        """Open many connections and say nothing."""
        with self._connected(gateway, _STRANGERS):
            time.sleep(_LASTS_S)
        return True

    def connections_trickle(self, gateway: GatewayProcess) -> bool:
        """Send requests byte by byte, and leave them unfinished."""
        with self._connected(gateway, _SLOW) as links:
            for byte in b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99":
                for link in links:
                    with contextlib.suppress(OSError):
                        link.send(bytes([byte]))
                time.sleep(_LASTS_S / 60)
        return True

    def readers_are_slow(self, gateway: GatewayProcess) -> bool:
        """Send requests on several connections, and read no reply for some seconds."""
        asked = f"GET /v1/rollouts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        with self._connected(gateway, _SLOW) as links:
            for link in links:
                with contextlib.suppress(OSError):
                    link.send(asked.encode() * _PIPELINED)
            time.sleep(_LASTS_S)
        return True

    def tokens_are_wrong(self, gateway: GatewayProcess) -> bool:
        """Send tokens that are missing or wrong."""
        for token in ("", "Bearer ", "Bearer wrong", "Basic c29hazpzb2Fr"):
            _expect(gateway, 401, "GET", "/v1/rollouts", headers={"Authorization": token})
        return True

    def bodies_are_wrong(self, gateway: GatewayProcess) -> bool:
        """Send what is no JSON, or no chat."""
        with self._rollout(gateway, {}) as name:
            for path in ("chat/completions", "messages"):
                for body in _WRONG_BODIES:
                    _expect(gateway, 400, "POST", f"/rollouts/{name}/v1/{path}", data=body)
        return True

    def bodies_are_too_long(self, gateway: GatewayProcess) -> bool:
        """Send more than a body may have."""
        try:
            _expect(gateway, 413, "POST", "/v1/chat/completions", data=b" " * (2**24 + 1))
        except requests.ConnectionError:  # the answer may come, and the end, amid the body
            return gateway.is_ready.is_set()
        return True

    def reports_are_wrong(self, gateway: GatewayProcess) -> bool:
        """Send rewards that are no numbers, too large, or for other turns."""
        with self._rollout(gateway, {}) as name:
            path = f"/v1/rollouts/{name}/reward"
            _expect(gateway, 409, "POST", path, json={"reward": 1})  # nothing was asked yet
            _expect(gateway, 200, "POST", f"/rollouts/{name}/v1/chat/completions", json=USER)
            for body in _WRONG_REPORTS:
                _expect(gateway, 400, "POST", path, data=body)
        return True

    def rollouts_are_wrong(self, gateway: GatewayProcess) -> bool:
        """Ask in rollouts that are none, or another's."""
        chat, other = "/v1/chat/completions", {"X-Group-Id": "another"}
        with self._rollout(gateway, {}) as name:
            _expect(gateway, 400, "POST", chat, json=USER)
            _expect(gateway, 400, "POST", f"/rollouts/none{chat}", json=USER)
            _expect(gateway, 400, "POST", f"/rollouts/{name}{chat}", json=USER, headers=other)
            _expect(gateway, 400, "POST", f"/rollouts/{'a' * 201}{chat}", json=USER)
            _expect(gateway, 404, "POST", "/v1/rollouts/none/reward", json={"reward": 1})
            _expect(gateway, 404, "DELETE", "/v1/rollouts/none")
            _expect(gateway, 404, "GET", "/v2/rollouts")
            _expect(gateway, 405, "PUT", "/v1/rollouts")
        return True

    def episodes_are_others(self, gateway: GatewayProcess) -> bool:
        """Ask in one episode of a session and want the reward of another; ask in no session."""
        chat = "v1/chat/completions"
        opened = requests.post(f"{self._environments}/v1/sessions", json={}, timeout=600).json()
        session = {"X-Session-Id": opened["session_id"]}
        url = f"{self._environments}/v1/sessions/{opened['session_id']}"
        try:
            requests.post(f"{url}/reset", json={"seed": 1}, timeout=600).raise_for_status()
            with self._rollout(gateway, session) as name:
                _expect(gateway, 200, "POST", f"/rollouts/{name}/{chat}", json=USER)
                _expect(gateway, 400, "POST", f"/v1/rollouts/{name}/reward", json={"reward": 1})
                taken = session | {"X-Group-Id": "thief"}
                _expect(gateway, 409, "POST", "/v1/rollouts/thief", headers=taken)
                requests.post(f"{url}/reset", json={"seed": 2}, timeout=600).raise_for_status()
                _expect(gateway, 409, "POST", f"/rollouts/{name}/{chat}", json=USER)
                _expect(gateway, 409, "POST", f"/v1/rollouts/{name}/reward", json={})
        finally:
            requests.delete(url, timeout=600)
        with self._rollout(gateway, {"X-Session-Id": "none"}) as name:
            _expect(gateway, 409, "POST", f"/rollouts/{name}/{chat}", json=USER)
        return True

    @contextlib.contextmanager
    def _rollout(self, gateway: GatewayProcess, headers: dict[str, str]) -> Iterator[str]:
        """Begin a rollout of a stranger, and drop it at the end."""
        self._strangers += 1
        name = f"stranger-{self._strangers}"
        path = f"/v1/rollouts/{name}"
        _expect(gateway, 200, "POST", path, headers=headers | {"X-Group-Id": name})
        yield name
        _expect(gateway, 204, "DELETE", path)

    @contextlib.contextmanager
    def _connected(self, gateway: GatewayProcess, number: int) -> Iterator[list[socket.socket]]:
        with contextlib.ExitStack() as stack:
            links = []
            for _ in range(number):
                with contextlib.suppress(OSError):
                    link = socket.create_connection(("127.0.0.1", gateway.port), 5)
                    links.append(stack.enter_context(link))
                    link.setblocking(False)
            yield links


def _expect(gateway: GatewayProcess, status: int, method: str, path: str, **given: Any) -> None:
    given["headers"] = HEADERS | given.get("headers", {})
    reply = requests.request(method, f"{gateway.address}{path}", timeout=1800, **given)
    if reply.status_code != status:
        said = f"{reply.status_code} {reply.text:.200}"
        raise ValueError(f"{method} {path} {given} was answered {said}, expected {status}"[:500])
