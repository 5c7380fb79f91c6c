"""Estimators of credit, one paper a file.

Each takes a turn table and hyperparameters, and returns one advantage per row. Importing this
package registers all of them; `graphs`, `preferences` and `signals` hold more.
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
