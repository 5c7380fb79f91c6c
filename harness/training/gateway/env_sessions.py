"""Sessions on servers of environments that an agent plays: their positions and recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from agentgyms.core import serialization
from agentgyms.core.errors import BadRequest, DataError, ServerUnavailable
from agentgyms.data.users_files import lines_in
from agentgyms.recording import recording_format
from agentgyms.recording.recording_format import Recording
from agentgyms.remote.http_transport import HttpTransport
from agentgyms.remote.protocol import framing
from agentgyms.remote.protocol.messages import SessionState
from agentgyms.remote.transport import Transport
from harness.training.gateway.chat_requests import Refused

_WAIT_S: Final = (5.0, 60.0)
_ELSEWHERE: Final = (404, 410)


class Position(NamedTuple):
    """Where a session stands: the number of its episode, and of the turns taken in it."""

    episode: int
    turn: int


class EnvSessions:
    """Reads sessions of the environments' servers that agents play on; each is on one server."""

    def __init__(
        self, urls: Sequence[str], token: str = "", transport: Transport | None = None
    ) -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._transport = transport or HttpTransport()
        self._headers = {framing.PROTOCOL_HEADER: framing.PROTOCOL}
        if token:
            self._headers["Authorization"] = f"Bearer {framing.check_token(token)}"

    def position(self, session: str) -> Position:
        """Return where a session stands, or raise `Refused`."""
        try:
            value = serialization.loads(self._get(session), "reply")
            state = framing.read_reply(SessionState, value, "reply")
        except BadRequest as e:
            raise Refused(f"session {session:.40}: no server of environments: {e}", 502) from None
        if state.turn is None:
            raise Refused(f"session {session:.40} has no episode yet: reset it first", 409)
        return Position(state.episode, state.turn)

    def recording(self, session: str) -> Recording:
        """Return the episode of a session, or raise `Refused`."""
        lines = lines_in(self._get(session, "/trajectory").decode(errors="replace"))
        try:
            (recording,) = recording_format.parse(lines, f"session {session:.40}")
        except (DataError, ValueError) as e:
            raise Refused(f"the episode of {session:.40} cannot be read: {e}", 502) from None
        return recording

    def _get(self, session: str, path: str = "") -> bytes:
        why = "this gateway knows no server of environments: report rewards"
        for url in self._urls:
            target = f"{url}/v1/sessions/{quote(session, safe='')}{path}"
            try:
                reply = self._transport.send(
                    "GET", target, headers=self._headers, body=None, timeout_s=_WAIT_S
                )
            except ServerUnavailable as e:
                why = f"{url}: {e}"
                continue
            if reply.status == 200:
                return reply.body
            why = f"{url} answers {reply.status}: {reply.body[:200].decode(errors='replace')}"
            if reply.status not in _ELSEWHERE:
                break
        raise Refused(f"session {session:.40} cannot be read: {why}", 409, "no_session")
