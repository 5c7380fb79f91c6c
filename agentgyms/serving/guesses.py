"""Wrong tokens: each address that sends them waits longer and longer for the answer."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

FREE: Final = 3
"""Wrong tokens of an address that are answered at once: somebody mistypes."""

LONGEST_S: Final = 8.0
FORGOTTEN_AFTER_S: Final = 600.0
MOST_ADDRESSES: Final = 4096

_SUBNET_BITS: Final = 64  # what one client of IPv6 has to itself


class Guesses:
    """Counts recent wrong tokens by address; threads share it. The clock is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # the latest at the end

    def delay_s(self, address: str) -> float:
        """Count a wrong token and return after how many seconds to answer: 0, then 1, 2, 4, 8."""
        client = _client(address)
        with self._lock:
            now = self._clock()
            count, last = self._wrong.pop(client, (0, now))
            count = count + 1 if now - last <= FORGOTTEN_AFTER_S else 1
            self._wrong[client] = (count, now)
            if len(self._wrong) > MOST_ADDRESSES:
                self._wrong.popitem(last=False)
        return min(2.0 ** min(count - FREE - 1, 10), LONGEST_S) if count > FREE else 0.0


def _client(address: str) -> str:
    """Return the address of a client, or the network that one has to itself."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4 or found.ipv4_mapped:
        return str(found)
    return str(ipaddress.ip_network((found, _SUBNET_BITS), strict=False))
