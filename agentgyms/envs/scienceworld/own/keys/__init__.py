"""Keys and forks of a game: its whole state as bytes, and copies that go on alone."""

from agentgyms.envs.scienceworld.own.keys.encoding import digest, state_bytes

__all__ = ["digest", "state_bytes"]
