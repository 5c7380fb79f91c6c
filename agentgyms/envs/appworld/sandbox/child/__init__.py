"""The code of child processes: the server that forks them, and their roles.

It uses the standard library alone: the interpreter may be AppWorld's, which has no agentgyms. A
parent runs this folder: `python <folder> ROLE OPTIONS SOCKET`.
"""
