"""Estimators that merge the rollouts of a group into one graph of states.

Takes a turn table; returns one advantage per row. `transitions` has the graph that they share.
"""

from harness.credit.estimators.graphs import (  # noqa: F401 (registers the estimators)
    g2po,
    gagpo,
    graphgpo,
    milegpo,
    rtmc,
    salt,
)
