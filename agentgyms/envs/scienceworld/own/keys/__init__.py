"""Keys and forks of a game: its whole state as bytes, and copies that go on alone."""

from agentgyms.envs.scienceworld.own.keys.encoding import digest, state_bytes
from agentgyms.envs.scienceworld.own.keys.forks import fork

__all__ = ["digest", "fork", "state_bytes"]
