"""Adapters to OpenEnv, verifiers, TorchRL, TRL, SkyRL, Tinker, inspect_ai and MCP; exports.

The other way round, `textarena` makes environments of TextArena's games.

Each module but `messages`, `episodes` and `export` needs its project, an extra of this
distribution. `messages` and `episodes` are shared, also by adapters that you write.
"""
