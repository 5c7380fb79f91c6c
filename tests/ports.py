"""Ports for what a test starts."""

import random
import socket


def free_port(count: int = 1) -> int:
    """Return the first of some free ports in a row.

    They are below those that the system gives to outgoing connections: a server that is down for
    a moment finds its port free when it comes back.
    """
    while True:
        first = random.SystemRandom().randrange(20_000, 32_000)
        if all(is_free(port) for port in range(first, first + count)):
            return first


def is_free(port: int) -> bool:
    """Return whether nothing listens at a port."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
