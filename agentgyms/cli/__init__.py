"""The command `agentgyms`: list, info, play, record, replay, export, serve, mcp, data ...

`main` has the commands for environments, `export` that for recordings, `data` and `setup` those for
data sets and engines.
"""
