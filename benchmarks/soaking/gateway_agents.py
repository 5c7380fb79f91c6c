"""Agents that ask a gateway for each action, play corridors in this process, and report rewards."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections import Counter
from typing import Any, Final

import gymnasium as gym
import requests

import agentgyms  # noqa: F401 (registers the environments)
from soaking.gateway_process import GROUP_SIZE, HEADERS, GatewayProcess

_SYSTEM: Final = "You walk along a corridor. Say one action."
_LONGEST: Final = 8
_PATIENCE_S: Final = 1800.0
_READ_S: Final = 1800.0
_BROKEN: Final = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)


class Lost(Exception):
    """An answer that an agent does not get, or not in time; `status` is 0 without a reply."""

    def __init__(self, said: str, status: int = 0) -> None:
        super().__init__(said)
        self.status = status


class Vanished(Exception):
    """An agent has gone in the middle of its episode."""


class Ledger:
    """What all agents have done; one lock guards it.

    Attributes:
        reported: Turns that were reported by rollout, from before the report was sent.
        rewarded: The life and the group of each rollout whose report was accepted.
        cut: Episodes that a fault has ended.
        vanished: Episodes that were left without a word.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reported: dict[str, list[dict[str, Any]]] = {}
        self.rewarded: dict[str, tuple[int, str]] = {}
        self.turns = self.cut = self.vanished = 0
        self.errors: Counter[str] = Counter()
        self._free: list[str] = []
        self._groups = self._rollouts = 0
        self._life = 0

    def place(self, life: int) -> tuple[str, str]:
        """Return a group that has room, and the name of a new rollout in it."""
        with self.lock:
            if life != self._life or not self._free:
                self._groups, self._life = self._groups + 1, life
                self._free = [f"g{self._groups}"] * GROUP_SIZE
            self._rollouts += 1
            group = self._free.pop(0)
            return group, f"{group}-{self._rollouts}"

    def give_back(self, group: str, life: int) -> None:
        """Let another rollout take the place of one that was dropped."""
        with self.lock:
            if life == self._life:
                self._free.insert(0, group)


class Agent(threading.Thread):
    """Plays until it is told to stop; whatever it did not expect is an error.

    Attributes:
        mishap: The accident at its next turn: `vanish`, `break a request`, `leave an answer`, or
            "" for none.
    """

    def __init__(
        self, gateway: GatewayProcess, ledger: Ledger, number: int, stop: threading.Event
    ) -> None:
        super().__init__(name=f"agent {number}", daemon=True)
        self._gateway, self._ledger, self._told_to_stop = gateway, ledger, stop
        self._rng = random.Random(f"agent {number}")
        self._env: Any = gym.make("agentgyms/Corridor-v0", split="train").unwrapped
        self._http = requests.Session()
        self._http.headers.update(HEADERS)
        self.mishap = ""

    def run(self) -> None:
        """Play episode after episode."""
        while not self._told_to_stop.is_set():
            life = self._gateway.life  # read first: an end from now on explains what is lost
            if self._gateway.is_ready.wait(1.0) and life == self._gateway.life:
                group, name = self._ledger.place(life)
                try:
                    self._episode(group, name, life)
                except Vanished:
                    with self._ledger.lock:
                        self._ledger.vanished += 1
                except Exception as error:
                    self._note(error, group, name, life)
        self._http.close()
        self._env.close()

    def _note(self, error: Exception, group: str, name: str, life: int) -> None:
        """Count an episode that ended early; it is an error unless a fault explains it."""
        gateway, ledger = self._gateway, self._ledger
        explained = isinstance(error, Lost) and (life != gateway.life or name in gateway.met)
        taken = isinstance(error, Lost) and error.status == 409  # a late copy may have the place
        if taken:
            explained |= any(met.startswith(f"{group}-") for met in list(gateway.met))
        with ledger.lock:
            if explained:
                ledger.cut += 1
            else:
                ledger.errors[f"{name}: {type(error).__name__}: {str(error)[:300]}"] += 1
        if life == gateway.life:
            with contextlib.suppress(Lost):
                self._patiently("DELETE", f"/v1/rollouts/{name}")
                if not taken:
                    ledger.give_back(group, life)
        self._told_to_stop.wait(0.5)

    def _episode(self, group: str, name: str, life: int) -> None:
        number = int(group[1:])
        observation, info = self._env.reset(seed=number)
        names = {"X-Group-Id": group, "X-Task-Id": name}
        self._patiently("POST", f"/v1/rollouts/{name}", headers=names)
        if life != self._gateway.life:  # its group is one of the earlier life
            raise Lost(f"{name} has begun in a later life")
        messages = [{"role": "system", "content": _SYSTEM}]
        turns: list[dict[str, Any]] = []
        ended = False
        while not ended and len(turns) < _LONGEST:
            messages.append({"role": "user", "content": observation})
            self._meet_mishap(name, messages)
            said = self._asked(name, messages)
            messages.append({"role": "assistant", "content": said})
            allowed = info["admissible_actions"]
            action = next(
                (one for one in allowed if one in said), allowed[len(said) % len(allowed)]
            )
            turn = {"observation": observation, "state_key": info["state_key"], "action": action}
            observation, reward, terminated, truncated, info = self._env.step(action)
            turns.append({**turn, "reward": reward})
            ended = terminated or truncated
            with self._ledger.lock:
                self._ledger.turns += 1
        self._report(name, {"turns": turns, "success": bool(info["success"])})
        with self._ledger.lock:
            self._ledger.rewarded[name] = (life, group)

    def _report(self, name: str, report: dict[str, Any]) -> None:
        turns = report["turns"]
        # A reward of its own, by which it is told from all others.
        turns[-1]["reward"] += int(name.rpartition("-")[2]) / 2**20
        with self._ledger.lock:
            self._ledger.reported[name] = turns
        told = self._patiently("POST", f"/v1/rollouts/{name}/reward", json=report)
        total = sum(turn["reward"] for turn in turns)
        if "turns" in told and (told["turns"], told["reward"]) != (len(turns), total):
            raise ValueError(f"rewarded with {told}, reported {len(turns)} turns and {total}")

    def _asked(self, name: str, messages: list[dict[str, str]]) -> str:
        """Return the policy's answer by one of the two protocols; an answer is asked for once."""
        if self._rng.random() < 0.5:
            body: dict[str, Any] = {"model": "any", "messages": messages}
            reply = self._once("POST", f"/rollouts/{name}/v1/chat/completions", json=body)
            return str(reply["choices"][0]["message"]["content"])
        body = {"model": "any", "system": _SYSTEM, "messages": messages[1:], "max_tokens": 8}
        reply = self._once("POST", f"/rollouts/{name}/v1/messages", json=body)
        return "".join(part["text"] for part in reply["content"] if part["type"] == "text")

    def _patiently(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        """Return the reply to a request that may be repeated, after some attempts.

        An agent that is told to stop goes on: else a report that was accepted might not be known.
        """
        gateway, give_up = self._gateway, time.monotonic() + _PATIENCE_S
        life = gateway.life
        while True:
            try:
                return self._once(method, path, **given)
            except Lost as error:
                if method == "DELETE" and error.status == 404:
                    return {}
                gone = self._told_to_stop.is_set() and not gateway.is_ready.is_set()
                over = gone or time.monotonic() > give_up or life != gateway.life
                if error.status not in (0, 503) or over:
                    raise
                time.sleep(0.2)

    def _once(self, method: str, path: str, **given: Any) -> dict[str, Any]:
        url = f"{self._gateway.proxy.url}{path}"
        try:
            reply = self._http.request(method, url, timeout=(30, _READ_S), **given)
        except _BROKEN as error:
            raise Lost(f"{method} {path}: {error}") from None
        if reply.headers.get("Content-Type") == "text/html":  # of the proxy
            raise Lost(f"{method} {path}: {reply.status_code} by a proxy")
        if not reply.content and reply.status_code != 204:
            # `http.client` takes a head that is cut off for a whole one, here without a length.
            raise Lost(f"{method} {path}: {reply.status_code}, cut off amid its head")
        if reply.status_code >= 400:
            raise Lost(f"{method} {path}: {reply.status_code} {reply.text}", reply.status_code)
        return dict(reply.json()) if reply.content else {}

    def _meet_mishap(self, name: str, messages: list[dict[str, str]]) -> None:
        mishap, self.mishap = self.mishap, ""
        if mishap == "vanish":
            raise Vanished
        if not mishap:
            return
        body = json.dumps({"messages": messages}).encode()
        lines = (
            f"POST /rollouts/{name}/v1/chat/completions HTTP/1.1",
            *("Host: localhost", f"Authorization: {HEADERS['Authorization']}"),
            *("Content-Type: application/json", f"Content-Length: {len(body)}", "", ""),
        )
        sent = "\r\n".join(lines).encode() + body
        if mishap == "break a request":
            sent = sent[:-5]
        else:  # the answer may have joined the rollout before it is left
            self._gateway.met.add(name)
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self._gateway.port), 30) as link,
        ):
            link.sendall(sent)
            time.sleep(self._rng.random() * 0.05)
