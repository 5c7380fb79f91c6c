"""Adapters to OpenEnv, verifiers, TorchRL, TRL, SkyRL, Tinker, inspect_ai and MCP; exports.

All but `messages` and `episodes`, shared also by your adapters, and `export` need their project, an
extra. `textarena` makes environments of TextArena's games.
"""
