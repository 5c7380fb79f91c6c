"""Processes for code that is not trusted.

`executors` runs the code of one episode, `forkserver` forks its process in milliseconds,
`code_check` refuses code before it runs, `install` finds the Python that has AppWorld; `child` is
what runs inside the processes.
"""
