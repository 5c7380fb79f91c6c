"""A port for what a test starts."""

import socket


def free_port() -> int:
    """Return a port of this machine on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
