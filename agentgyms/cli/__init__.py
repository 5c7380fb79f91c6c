"""The command `agentgyms`: list, info, play, record, replay, serve, data, setup, doctor.

Takes arguments of the command line; prints text and ends with an exit status.
`main` has the commands for environments, `data` and `setup` those for data sets and engines.
"""
