"""Estimators of credit, one paper a file.

Each takes a turn table of N rows, R rollouts and G groups, and hyperparameters as keywords. It
returns one advantage per row, shape [N]. It raises `ConfigError` for a hyperparameter out of its
range and `TableError` for a table that lacks a column which it needs. The keywords that many of
them take are the fields of `harness.credit.shared.Shared`. Importing this package registers all of
them; `graphs`, `preferences` and `signals` hold more.
"""

from harness.credit.estimators import (  # noqa: F401 (registers the estimators)
    dr_grpo,
    ecpo,
    gae,
    gigpo,
    graphs,
    grpo,
    gvpo,
    hgpo,
    imitation,
    maxrl,
    oprl,
    preferences,
    prime,
    proxmo,
    reinforce,
    reinforce_pp,
    rloo,
    scpo,
    signals,
)
