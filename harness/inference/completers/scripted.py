"""A completer that answers with a function: for tests and for policies written by hand."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence

from harness.inference.completers import Sampling
from harness.types.messages import Message
from harness.types.rollout import Completion

Script = Callable[[Sequence[Message]], str | Awaitable[str]]


class ScriptedCompleter:
    """Answers with `script(messages)`, a function or coroutine function that returns the text."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the script's text, without tokens."""
        text = self._script(messages)
        return Completion(await text if inspect.isawaitable(text) else text)
