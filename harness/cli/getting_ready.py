"""Shows that a command works before it has anything to say."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from agentgyms.cli.printing import echo
from agentgyms.data.progress_bar import working


@contextmanager
def getting_ready() -> Iterator[Callable[[str], None]]:
    """Show the time of imports and checks; the yielded `echo` ends that."""
    with ExitStack() as stack:
        is_shown = os.environ.get("RANK", "0") == "0"
        stack.enter_context(working("getting ready", is_shown=is_shown))

        def announce(text: str) -> None:
            stack.close()
            echo(text)

        yield announce
