"""Environments on a server: the same objects as the local ones, over HTTP."""

from __future__ import annotations

from agentgyms.remote.endpoint import Patience
from agentgyms.remote.env import RemoteEnv
from agentgyms.remote.transport import HttpTransport, InProcessTransport, Reply, Transport
from agentgyms.remote.vector import RemoteVectorEnv

__all__ = [
    "HttpTransport",
    "InProcessTransport",
    "Patience",
    "RemoteEnv",
    "RemoteVectorEnv",
    "Reply",
    "Transport",
]
