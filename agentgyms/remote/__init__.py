"""Environments on a server: the same objects as the local ones, over HTTP."""

from __future__ import annotations

from agentgyms.remote.env import RemoteEnv
from agentgyms.remote.http_transport import HttpTransport
from agentgyms.remote.patience import Patience
from agentgyms.remote.transport import InProcessTransport, Reply, Transport
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
