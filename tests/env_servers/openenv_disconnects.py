"""Leaves OpenEnv's server in every way in which a client can.

Run as a script in a Python with OpenEnv. Standard input is the environment's id as JSON; standard
output has every message that the server logs.
"""

import json
import logging
import socket
import struct
import sys
import time

from openenv.core import GenericEnvClient
from openenv_peer import serve
from websockets.sync.client import connect

from agentgyms.adapters.openenv import openenv_app

NOW = struct.pack("ii", 1, 0)  # closes with a reset of the connection
RESET = json.dumps({"type": "reset", "data": {"seed": 0}})
STEP = json.dumps({"type": "step", "data": {"action": "right"}})


def leave(url, sent, read, abort):
    """Connect, send, read that many replies, and go."""
    with connect(f"{url.replace('http', 'ws')}/ws") as client:
        for message in sent:
            client.send(message)
        for _ in range(read):
            client.recv()
        if abort:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOW)
            client.socket.close()


class Kept(logging.Handler):
    """Keeps messages, tracebacks included."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(self.format(record))


def leave_in_every_way(url):
    for sent, read in (
        ((), 0),
        ((RESET,), 0),
        ((RESET,), 1),
        ((RESET, *[STEP] * 50), 1),
        ((RESET, *[STEP] * 50), 51),
        (("no JSON",), 0),
    ):
        for abort in (False, True):
            leave(url, sent, read, abort)
    with GenericEnvClient(base_url=url).sync() as env:  # it still answers
        assert env.reset(seed=0).observation["text"]


if __name__ == "__main__":
    server = serve(openenv_app(json.load(sys.stdin)))
    kept = Kept()
    for name in ("", "uvicorn.error"):
        logging.getLogger(name).addHandler(kept)
    leave_in_every_way(server)
    time.sleep(1)  # a message too late would be a test that sees less, not one that fails
    sys.stdout.write(json.dumps(kept.messages))
