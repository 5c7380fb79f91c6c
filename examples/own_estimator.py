r"""Adds an estimator of credit and compares it with GRPO and GiGPO on one group of rollouts.

    pip install -e '.[harness]'
    python examples/own_estimator.py
    PYTHONPATH=examples harness train corridor-tiny-demo \
        --set method.name=own_estimator:fewer_turns --set method.credit={}

An estimator takes a turn table and returns one advantage for each row; numpy is all it needs.
"""

import numpy as np

from harness import credit
from harness.credit import TurnTable
from harness.credit.registry import estimator


@estimator("fewer_turns")
def fewer_turns(turns, *, cost: float = 0.1):
    """Return less the cost of its turns, centred within the group: A = R - c T - mean.

    Args:
        turns: N turns of R rollouts.
        cost: c, the price of a turn.

    Returns:
        Advantage of each turn. Shape [N].
    """
    score = np.bincount(turns.rollout, weights=turns.reward - cost)  # [R]
    group = turns.group[turns.starts]  # [R]
    mean = np.bincount(group, weights=score) / np.bincount(group)
    return (score - mean[group])[turns.rollout]


def main():
    """Print the advantages of four rollouts in a corridor: two open the door, one of them late."""
    plans = ["right right open", "right left right right open", "right right left", "left left"]
    actions = [plan.split() for plan in plans]
    places = [np.cumsum([0, *({"right": 1, "left": -1}.get(a, 0) for a in p)]) for p in actions]
    turns = TurnTable.from_columns(
        rollout=[i for i, plan in enumerate(actions) for _ in plan],
        reward=[float(action == "open") for plan in actions for action in plan],
        state_key=[f"at {place}" for own in places for place in own[:-1]],
        action_key=[action for plan in actions for action in plan],
    )
    names = ["grpo", "gigpo", "fewer_turns"]
    columns = [credit.get(name)(turns) for name in names]
    print(f"{'rollout':8}{'state':8}{'action':8}" + "".join(f"{name:>13}" for name in names))
    for row, values in enumerate(zip(*columns, strict=True)):
        what = f"{turns.rollout[row]:<8}{turns.state_key[row]:8}{turns.action_key[row]:8}"
        print(what + "".join(f"{value:13.2f}" for value in values))


if __name__ == "__main__":
    main()
