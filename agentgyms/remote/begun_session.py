"""`BegunSession`: the episode of a session that another program has begun, and keeps."""

from __future__ import annotations

from agentgyms.core.errors import BadOption
from agentgyms.remote.connection import Connection
from agentgyms.remote.lease import Lease, Step
from agentgyms.remote.protocol import framing, messages

_PATH = "/v1/sessions/"


class BegunSession:
    """Takes the turns of a running episode; whoever opened the session resets and closes it.

    `address` is the session's, such as `http://127.0.0.1:8001/v1/sessions/ID`; the token is in
    `AGENTGYMS_TOKEN`. Raises `BadOption` if it is no session's address, the server serves another
    environment, or no episode runs. Raises `SessionLost` if the server has no such session, and
    otherwise the errors of `RemoteEnv`.
    """

    def __init__(self, env_id: str, address: str) -> None:
        url, separator, session_id = address.partition(_PATH)
        if not separator or not session_id or "/" in session_id:
            raise BadOption(
                f"{address!r:.100} is no address of a session: expected one such as "
                f"http://127.0.0.1:8001{_PATH}ID"
            )
        self._connection = Connection(env_id, url, None, None, None)
        try:
            (endpoint,) = self._connection.endpoints
            endpoint.greet()
            reply = endpoint.call("GET", f"{_PATH}{session_id}")
            state = endpoint.read(messages.SessionState, reply)
            description = endpoint.read(messages.Description, state.environment)
            if state.turn is None or state.terminated or state.truncated:
                what = "no episode yet" if state.turn is None else "an episode that is over"
                raise BadOption(f"session {session_id:.40} has {what}: reset it first")
        except BaseException:
            self._connection.close()
            raise
        self._turn, self.tools = state.turn, framing.read_tools(env_id, description)
        self._lease = Lease(endpoint, session_id, state.episode, description)

    def step(self, action: str) -> Step:
        """Take a turn. Raises as a remote environment does; a lost session is not rebuilt."""
        taken = self._lease.step(action, self._turn + 1)
        self._turn += 1
        return taken

    def close(self) -> None:
        """Close the connection; the session stays."""
        self._connection.close()
