"""The exception tree.

    AgentGymsError
    ├── CallerError (ValueError)      the call was wrong: what was given, what was expected
    │   ├── UnknownTask (LookupError)
    │   ├── UnknownSplit
    │   ├── BadOption                 a keyword argument, a reset option or a configuration key
    │   │   └── PromptTooLong         a model cannot read so much
    │   ├── BadRequest                a malformed message on the wire
    │   └── BadSnapshot
    ├── DataError (OSError)           a data set is missing or damaged
    │   ├── DataMissing (FileNotFoundError)
    │   └── DataCorrupt
    ├── Mismatch                      two things that must be equal are not
    │   ├── GroupMismatch
    │   └── ReplayMismatch
    └── EnvUnavailable (RuntimeError) infrastructure failed: no verdict on the agent
        ├── ServerUnavailable (ConnectionError)
        ├── ServerFull
        │   └── ServerOverloaded      also a ServerUnavailable
        ├── SessionLost
        ├── Unauthorized (PermissionError)
        ├── ModelUnavailable          a model behind a server gave no answer
        └── WorkerLost                an engine's child process died

Agent mistakes (a bad action, malformed text) are never exceptions: they are observations with a
`Feedback`. Errors of Gymnasium (`ResetNeeded`, `DependencyNotInstalled`) keep their own types.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final


class AgentGymsError(Exception):
    """Base of every error this package raises."""


class CallerError(AgentGymsError, ValueError):
    """The caller passed something that cannot be used."""


class UnknownTask(CallerError, LookupError):
    """A task id is not in the split."""


class UnknownSplit(CallerError):
    """A split does not exist in this environment or data source."""


class BadOption(CallerError):
    """A keyword argument, reset option or configuration key is unknown or has a wrong value."""


_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that steer a terminal or turn a line around, and halves of characters."""


def visible(text: str) -> str:
    """Return somebody else's text with control characters escaped, but newlines and tabs."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def plain(text: str, most: int) -> str:
    """Return somebody else's text in one line, with control characters escaped, cut to a length."""
    shown = visible(" ".join(text[: 4 * most].split()))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def path_end(path: object, longest: int = 150) -> str:
    """Return a path for a message in one line; of a long one its end, which tells it apart."""
    text = visible(" ".join(str(path).split("\n")))
    return text if len(text) <= longest else f"…{text[1 - longest :]}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the hint "; did you mean ...?" for a message; "" if no known name is similar."""
    names = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(str(name).casefold(), names, n=1)
    return f"; did you mean {names[near[0]]}?" if near else ""


def not_written(path: object, error: OSError) -> BadOption:
    """Return the error, in one line, for a file or folder that cannot be written."""
    reason = error.strerror or str(error)
    return BadOption(
        f"{path_end(path, 120)} cannot be written: {reason:.80}; give another one, in a "
        "folder that exists and can be written"
    )


class PromptTooLong(BadOption):
    """A prompt and its longest response do not fit into the model's context."""


class BadRequest(CallerError):
    """A message on the wire does not have the documented form."""


class BadSnapshot(CallerError):
    """Bytes given to `restore` are not a snapshot of this environment."""


class DataError(AgentGymsError, OSError):
    """A data set cannot be used."""


class DataMissing(DataError, FileNotFoundError):
    """A data set is not on this machine; the message names the command that brings it."""


class DataCorrupt(DataError):
    """A data file is damaged or does not have its checksum."""


class Mismatch(AgentGymsError):
    """Two things that the contract promises to be equal differ."""


class GroupMismatch(Mismatch):
    """Members of a group do not share their initial state."""


class ReplayMismatch(Mismatch):
    """A replayed episode left the recorded states."""


class EnvUnavailable(AgentGymsError, RuntimeError):
    """The environment's infrastructure failed. Retry the episode; never score it."""


class ServerUnavailable(EnvUnavailable, ConnectionError):
    """No answer from the server within the time limit, or an answer that is not the protocol's."""


class ServerFull(EnvUnavailable):
    """The server holds as many sessions as it may; ask again after `retry_after_s` seconds."""

    retry_after_s: float = 1.0


class ServerOverloaded(ServerFull, ServerUnavailable):
    """The server can open no file or connection more; the same request may succeed later."""


class SessionLost(EnvUnavailable):
    """The session expired, was closed, or its server restarted."""


class Unauthorized(EnvUnavailable, PermissionError):
    """The server's token is missing or wrong."""


class ModelUnavailable(EnvUnavailable):
    """A model gave no answer that could be used, retries included."""


class WorkerLost(EnvUnavailable):
    """The child process that runs an engine died or did not answer in time."""
