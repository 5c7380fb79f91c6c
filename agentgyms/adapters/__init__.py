"""Adapters to other projects: `openenv` for OpenEnv, `verifiers` for verifiers.

Each module needs its project, an extra of this distribution.
"""
