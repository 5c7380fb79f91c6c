"""The official ALFWorld: its game files, its data set, and its engine in a child process.

Takes a folder of games; returns the games of this package (`gamefile`), or the replies of alfworld
and textworld (`engine`, which runs `worker` in a Python that has them).
"""
