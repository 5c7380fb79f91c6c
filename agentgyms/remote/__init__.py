"""Environments on a server or in a Ray actor, with the same interface as local ones.

Takes an id and addresses; returns environments (`env`, `vector`). A lost connection is retried, a
lost session is played again on another server (`recovery`). `protocol` is what is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
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

__getattr__ = lazy_names(
    __name__,
    {
        "agentgyms.remote.http_transport": "HttpTransport",
        "agentgyms.remote.transport": "InProcessTransport Reply Transport",
        "agentgyms.remote.patience": "Patience",
        "agentgyms.remote.env": "RemoteEnv",
        "agentgyms.remote.vector": "RemoteVectorEnv",
    },
)
