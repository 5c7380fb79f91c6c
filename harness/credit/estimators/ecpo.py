"""ECPO: step credit calibrated by the evidence for each action."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from harness.credit.evidence import (
    INVALID,
    Between,
    Calibration,
    Evidence,
    Saturation,
    Sigma,
    evidence,
)
from harness.credit.groups import differs, members
from harness.credit.registry import check, estimator
from harness.credit.shared import EPISODE, STEP_RETURNS, Shared, step_returns, with_shared
from harness.credit.table import TurnTable
from harness.types.arrays import Floats, Ints
from harness.types.hyperparameters import keyword_defaults, number, one_of

Level = Literal["action", "occurrence"]


@estimator("ecpo", step_returns="reads")
@with_shared(*EPISODE, "gamma")
def ecpo(
    turns: TurnTable,
    shared: Shared,
    *,
    kappa: float = 2.0,
    tau: float = 2.0,
    saturation: Saturation = "ratio",
    sigma: Sigma = "unweighted",
    sigma_ddof: int = 0,
    between: Between = "raw",
    min_depth: int = 0,
    floor: float = 0.0,
    shrink: bool = True,
    gate: bool = True,
    level: Level = "action",
    step_weight: float = 1.0,
) -> Floats:
    """Episode advantage plus the calibrated, gated advantage of the action. Shape [N].

    A = A_E + omega rho(s) A_act(s, a) (Eq. 19). A_E is `grpo`. An anchor s is a state that the
    group was in N times, with step returns R of mean mu; its action a was taken n_a times, with
    mean return q_a. Then, with the paper's equations:

    - q~_a = (n_a q_a + kappa mu) / (n_a + kappa) (11), so an action taken once keeps 1/(1 + kappa)
      of its distance from mu (42);
    - A_act = (q~_a - mu) / (sigma + eps) (13), sigma the standard deviation of the q~ (12);
    - B = sum_a (n_a/N) (q_a - mu)^2 (14), W = sum_a (n_a/N) Var_a (15, 16);
    - rho = N/(N + tau) B/(B + W + eps) (17, 18), at least `floor` (23), at StrictValid anchors
      (22), which have two visits, two actions, returns that differ, and no visit before turn
      `min_depth`; elsewhere rho = 0 and A = A_E.

    Invalid actions of a state are one action. Table 2's ablations: ECA-only is `gate=False`;
    VarGate-only gates the raw credit of occurrences, `level="occurrence"` (`shrink=False` gates
    that of action means).
    Reference: Li et al., When Denser Credit Is Not Enough (ECPO), sections 4.1 to 4.3 and
    appendices A.2 and D.

    Open in the paper, whose text at hand has lost its symbols and most numbers:

    - `tau` and `saturation` (17): trust grows with N, and tau controls how fast. Mean rho is .538
      at the smaller group size and .720 at the larger (B.4). With tau = 2 the ratio allows at most
      .67 for 4 visits, .80 for 8 and .83 for 10, so those means leave B a share of .8 to .9 of the
      variance. `exp` allows .86, .98 and .99: too little growth, for B's own share falls with N
      where actions differ by chance. docs/credit.md has rho by reading on rollouts of two sizes.
    - `sigma` (12) is read as over the q~, each action once. With two actions this cancels the
      shrinkage whatever kappa is: the lucky action of Figure 1 gets +1.5, more than GiGPO's +.38,
      and only rho (.016 there) restrains it. `weighted` counts each q~ n_a times; `raw` takes the
      step returns themselves, which keeps the factor 1/(1 + kappa) in A_act.
    - `between` (14) is read as over q; `shrunk` takes q~.
    - `min_depth` and `floor` serve stability only and are no part of the core method (A.2): off.

    Departs from it: states and actions are the environment's keys, which need no text matching.

    Args:
        turns: The turn table; reads states and actions.
        shared: The settings of A_E and R. `norm` is A_E's alone. `ddof` is A_E's, and the returns'
            with `level="occurrence"`. `eps` is added to all standard deviations, and to B + W.
        kappa: The strength of the shrinkage, in visits, from 0 on.
        tau: The visits at which the saturation is one half (`ratio`) or 1 - 1/e (`exp`); above 0.
        saturation: `ratio` N/(N + tau), `exp` 1 - exp(-N/tau), `none` 1.
        sigma: The standard deviation that A_act is divided by: see above.
        sigma_ddof: 0 for the population's standard deviation there, 1 for the sample's.
        between: The action means that B is the variance of: see above.
        min_depth: A turn from 0 on; anchors first visited before it get rho = 0.
        floor: The least rho of a StrictValid anchor, in [0, 1].
        shrink: Use q~; False uses q itself.
        gate: Use rho; False takes 1 at StrictValid anchors.
        level: `action` as above. `occurrence` gates GiGPO's advantage of the single turn instead,
            (R - mu) / (std + eps), which knows no actions and so no shrinkage.
        step_weight: omega.
    """
    number("step_weight", step_weight)
    one_of("level", level, ("action", "occurrence"))
    calibration = Calibration(
        kappa,
        tau,
        saturation,
        sigma,
        sigma_ddof,
        between,
        min_depth,
        floor,
        shrink,
        gate,
        eps=shared.eps,
    )
    returns = shared.step_returns(turns)  # [N]
    found = evidence(turns, returns, calibration)
    if level == "action":
        step = found.advantage[found.pair]  # [N]
    else:
        step = replace(shared, norm="std").standardise(returns, found.anchor)
    return shared.episode(turns) + step_weight * found.reliability[found.anchor] * step


@dataclass(frozen=True, slots=True)
class Action:
    """The turns of one anchor that took one action, and their statistics."""

    key: str  # its `action_key`, or `INVALID`
    valid: bool  # false for the invalid actions, which count as one
    rows: Ints  # the turns that took it, in order
    mean: float  # q_a, their mean step return
    shrunk: float  # q~_a; q_a without shrinkage
    advantage: float  # A_act


@dataclass(frozen=True, slots=True)
class Anchor:
    """A state that a group was in at least twice, and the evidence for its actions."""

    group: int  # the table's
    state_key: str
    depth: int  # turn of its first visit, from 0
    visits: int  # N
    mean: float  # mu, the mean step return over the visits
    between: float  # B
    within: float  # W
    saturation: float  # the factor of rho that grows with N
    sigma: float  # the divisor of A_act
    strict_valid: bool  # it may give credit
    reliability: float  # rho
    actions: tuple[Action, ...]  # the canonical ones, the most frequent first

    @property
    def divergent(self) -> bool:
        """Whether raw returns favour an action seen once over one seen more often (Figure 1)."""
        often = [action.mean for action in self.actions if len(action.rows) > 1]
        once = [action.mean for action in self.actions if len(action.rows) == 1]
        if not often or not once:
            return False
        lucky, steady = np.array([max(once)]), np.array([max(often)])
        return bool(((lucky > steady) & differs(lucky, steady)).all())


def anchors(turns: TurnTable, **hyperparameters: Any) -> list[Anchor]:
    """Return the evidence that `ecpo` sees at every state a group was in at least twice.

    Anchors are in the order of their first rows. Hyperparameters of the episode part change
    nothing.
    """
    check("ecpo", hyperparameters)
    given = {**keyword_defaults(ecpo), **hyperparameters}
    returns = step_returns(turns, *(given[key] for key in STEP_RETURNS))
    found = evidence(turns, returns, Calibration.of(given))
    rows, pairs = members(found.pair), members(found.owner)
    first = np.unique(found.anchor, return_index=True)[1]
    return [
        _anchor(turns, found, s, int(first[s]), [(m, rows[m]) for m in pairs[s].tolist()])
        for s in np.argsort(first).tolist()
        if found.visits[s] > 1
    ]


def _anchor(
    turns: TurnTable, found: Evidence, s: int, first: int, pairs: list[tuple[int, Ints]]
) -> Anchor:
    pairs = sorted(pairs, key=lambda pair: (-len(pair[1]), pair[1][0]))
    return Anchor(
        group=int(turns.group[first]),
        state_key=str(turns.state_key[first]),
        depth=int(found.depth[s]),
        visits=int(found.visits[s]),
        mean=float(found.mean[s]),
        between=float(found.between[s]),
        within=float(found.within[s]),
        saturation=float(found.saturation[s]),
        sigma=float(found.sigma[s]),
        strict_valid=bool(found.strict_valid[s]),
        reliability=float(found.reliability[s]),
        actions=tuple(_action(turns, found, m, rows) for m, rows in pairs),
    )


def _action(turns: TurnTable, found: Evidence, m: int, rows: Ints) -> Action:
    valid = bool(turns.valid[rows[0]])
    return Action(
        key=str(turns.action_key[rows[0]]) if valid else INVALID,
        valid=valid,
        rows=rows,
        mean=float(found.action_mean[m]),
        shrunk=float(found.estimate[m]),
        advantage=float(found.advantage[m]),
    )
