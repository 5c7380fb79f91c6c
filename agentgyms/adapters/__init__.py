"""Adapters to other projects: OpenEnv, verifiers, TorchRL, TRL, MCP; and exports of recordings.

Each module but `messages` and `export` needs its project, an extra of this distribution.
`messages` is what they share, for adapters of your own.
"""
