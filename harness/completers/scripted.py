"""A completer that says what a function says: for tests, and for policies written by hand."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence

from harness.completers import Message, Sampling
from harness.rollout import Completion

Script = Callable[[Sequence[Message]], str | Awaitable[str]]


class ScriptedCompleter:
    """Answers with `script(messages)`, which may be a coroutine function.

    Args:
        script: The function; it gets the messages and returns the text.
    """

    def __init__(self, script: Script) -> None:
        """Keep the function."""
        self._script = script

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the script's text; it has no tokens."""
        text = self._script(messages)
        return Completion(await text if inspect.isawaitable(text) else text)
