"""Environments in other projects' forms: `openenv` for OpenEnv, `verifiers` for verifiers.

Each module needs the project it is for, which is an extra of this distribution.
"""
