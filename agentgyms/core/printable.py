"""Text of others, such as a server's, in messages that a terminal shows."""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    r"""Return a text whose control characters, but for `\n` and `\t`, are written as `\x1b`.

    A terminal would obey them: they move the cursor, hide text, or name a link's target.
    """
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
