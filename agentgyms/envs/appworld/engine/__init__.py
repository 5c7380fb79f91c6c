"""The real AppWorld engine, in separate processes.

Takes a data root and calls of APIs; returns their results, and the verdict of a process that alone
has the ground truth. `sources` builds or finds the data.
"""
