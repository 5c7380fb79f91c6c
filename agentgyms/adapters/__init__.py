"""Adapters to other projects: OpenEnv, verifiers, TorchRL, tools of MCP; and exports of recordings.

Each module but `messages` and `export` needs its project, an extra of this distribution.
"""
