"""Estimators that merge the rollouts of a group into one graph of states, or read its tree.

`transitions` has the graph that they share.
"""

from harness.credit.estimators.graphs import (  # noqa: F401 (registers the estimators)
    at2po,
    g2po,
    gagpo,
    graft,
    graphgpo,
    milegpo,
    pgpo,
    rtmc,
    salt,
    tree_grpo,
    treerpo,
)
