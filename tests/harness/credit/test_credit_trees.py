"""Methods on trees against references written node by node, and their bases on plain groups."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from small_tables import columns_of, scaled, small_rows
from strategies import turn_tables

from harness import credit
from harness.credit import TurnTable
from harness.credit.tokens import token_table
from harness.credit.trees import branches, roots, tree_of
from harness.types.errors import TableError

COUNT = 100


def with_siblings(rng, rows):
    """Return rows with siblings of earlier rollouts of each group, siblings of siblings too."""
    rollouts = []
    for row in rows:
        if row["turn"] == 0:
            rollouts.append([])
        rollouts[-1].append(row | {"parent": -1, "branch_turn": 0})
    grown = []
    for group in sorted({own[0]["group"] for own in rollouts}):
        first = len(grown)
        grown += [own for own in rollouts if own[0]["group"] == group]
        for _ in range(rng.randint(0, 3)):
            index = rng.randrange(first, len(grown))
            above = grown[index]
            shared = rng.randrange(len(above))
            others = [row for row in small_rows(rng) if row["rollout"] == 0]
            own = [dict(row) for row in above[:shared]] + others
            for turn, row in enumerate(own):
                row |= {"turn": turn, "group": group, "success": others[0]["success"]}
                row |= {"parent": index, "branch_turn": shared}
            grown.append(own)
    return [row | {"rollout": r} for r, own in enumerate(grown) for row in own]


def trees():
    rng = random.Random(1)
    for _ in range(COUNT):
        yield with_siblings(rng, small_rows(rng))


class Known:
    """A forest of rows as dictionaries: of each row its node, by the path of rollouts' turns."""

    def __init__(self, rows, penalty=0.1, on_return=True):
        self.rows, self.first = rows, {}
        for i, row in enumerate(rows):
            self.first.setdefault(row["rollout"], i)
        self.node = [self._node(row["rollout"], row["turn"]) for row in rows]
        self.returns = {}
        for row in rows:
            cost = 0.0 if row["valid"] or not on_return else penalty
            gained = self.returns.get(row["rollout"], 0.0) + row["reward"] - cost
            self.returns[row["rollout"]] = gained

    def _node(self, rollout, turn):
        row = self.rows[self.first[rollout]]
        if turn < row["branch_turn"]:
            return self._node(row["parent"], turn)
        return rollout, turn

    def through(self, node):
        """Return the rollouts that have a node."""
        found = zip(self.rows, self.node, strict=True)
        return [row["rollout"] for row, own in found if own == node]

    def before(self, i):
        row = self.rows[i]
        return self.node[i - 1] if row["turn"] else ("group", row["group"])

    def children(self, place):
        return sorted({self.node[i] for i in range(len(self.rows)) if self.before(i) == place})

    def value(self, node, leaf):
        below = self.children(node)
        if not below:
            (rollout,) = self.through(node)
            return leaf[rollout]
        return sum(self.value(child, leaf) for child in below) / len(below)

    def compared(self, label):
        """Return each rollout's scaled return among those with its label."""
        groups = {}
        for rollout in self.returns:
            groups.setdefault(label(rollout), []).append(rollout)
        return {
            rollout: x
            for members in groups.values()
            for rollout, x in zip(members, scaled([self.returns[r] for r in members]), strict=True)
        }

    def group(self, rollout):
        return self.rows[self.first[rollout]]["group"]

    def root(self, rollout):
        parent = self.rows[self.first[rollout]]["parent"]
        return rollout if parent < 0 else self.root(parent)


def tree_grpo_reference(rows):
    known = Known(rows, on_return=False)
    inter, intra = known.compared(known.group), known.compared(known.root)
    out = []
    for node in known.node:
        own = known.through(node)
        out.append(sum(inter[r] + intra[r] for r in own) / len(own))
    return out


def treerpo_reference(rows):
    known, out = Known(rows), []
    for i in range(len(rows)):
        while len(known.children(known.before(i))) == 1 and rows[i]["turn"]:
            i -= 1  # back to where the step begins
        siblings = known.children(known.before(i))
        values = [known.value(node, known.returns) for node in siblings]
        out.append(scaled(values)[siblings.index(known.node[i])])
    return out


def at2po_reference(rows):
    known = Known(rows)
    leaf = {}
    for group in {row["group"] for row in rows}:
        members = [r for r in known.returns if known.group(r) == group]
        values = scaled([known.returns[r] for r in members], ddof=0)
        leaf |= dict(zip(members, values, strict=True))
    return [known.value(node, leaf) for node in known.node]


REFERENCES = {
    "tree_grpo": tree_grpo_reference,
    "treerpo": treerpo_reference,
    "at2po": at2po_reference,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_it_equals_a_reference_written_node_by_node(name):
    branched = 0
    own = {} if name == "tree_grpo" else {"penalty_on": "return"}
    for rows in trees():
        table = TurnTable.from_columns(**columns_of(rows))
        branched += bool(branches(table))
        np.testing.assert_allclose(
            credit.get(name)(table, **own), REFERENCES[name](rows), atol=1e-6, rtol=1e-6
        )
    assert branched > COUNT / 2


@pytest.mark.parametrize("name", ["treerpo", "at2po"])
def test_a_penalty_on_the_row_is_taken_off_the_turns_own_advantage(name):
    table = TurnTable.from_columns(**columns_of(next(iter(trees()))))
    assert not table.valid.all()
    paid = credit.get(name)(table, invalid_penalty=0.2, penalty_on="row")
    free = credit.get(name)(table, invalid_penalty=0.0)
    np.testing.assert_allclose(free - paid, 0.2 * ~table.valid)


BASES = {
    "tree_grpo": {"invalid_penalty": 0.2, "penalty_on": "row"},
    "treerpo": {"invalid_penalty": 0.2, "penalty_on": "return"},
    "at2po": {"invalid_penalty": 0.2, "penalty_on": "return"},
}


@pytest.mark.parametrize("name", BASES)
@settings(max_examples=50)
@given(turn_tables())
def test_on_a_plain_group_it_is_grpo(name, table):
    own = BASES[name]
    ddof = 0 if name == "at2po" else 1
    base = credit.get("grpo")(table, **{"penalty_on": "return", **own}, ddof=ddof)
    np.testing.assert_allclose(credit.get(name)(table, **own), base, atol=1e-9)


@pytest.mark.parametrize("name", REFERENCES)
def test_copies_of_a_turn_have_one_advantage(name):
    for rows in list(trees())[:50]:
        table = TurnTable.from_columns(**columns_of(rows))
        advantage, node = credit.get(name)(table), tree_of(table).node
        first = np.unique(node, return_index=True)[1]
        np.testing.assert_array_equal(advantage, advantage[first][node])


def branched(**changed):
    """Two episodes of three turns, and a sibling of the first that shares one turn."""
    given = {
        "rollout": [0] * 3 + [1] * 3 + [2] * 2,
        "reward": [0, 0, 1, 0, 0, 0, 0, 0],
        "parent": [-1] * 6 + [0] * 2,
        "branch_turn": [0] * 6 + [1] * 2,
    }
    return TurnTable.from_columns(**given | changed)


def test_by_hand():
    table = branched()
    assert roots(table).tolist() == [0] * 3 + [1] * 3 + [0] * 2
    treerpo = credit.get("treerpo")(table, eps=0.0)
    half = 0.5**0.5
    np.testing.assert_allclose(treerpo, [half] * 2 + [half] + [-half] * 3 + [half, -half])
    at2po = credit.get("at2po")(table, norm="mean")
    np.testing.assert_allclose(at2po, np.array([1, 4, 4, -2, -2, -2, 1, -2]) / 6)


def test_a_table_of_tokens_knows_its_tree():
    lengths = np.array([2, 1, 3, 1, 1, 1, 2, 2])
    tokens = token_table(branched(), lengths)
    assert tokens.branch_turn[-1] == 2
    spread = np.repeat(credit.get("treerpo")(branched()), lengths)
    np.testing.assert_allclose(credit.get("treerpo")(tokens), spread)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"parent": [-1] * 6 + [2] * 2}, "rollout 2 branched from rollout 2: expected an earlier"),
        ({"group": [0] * 3 + [0] * 3 + [1] * 2}, "expected an earlier one of its group"),
        ({"branch_turn": [0] * 6 + [2] * 2}, "branch_turn 2: expected fewer than its turns"),
        ({"branch_turn": [0] * 7 + [1]}, "branch_turn differs between rows"),
        ({"branch_turn": None}, "give both"),
    ],
)
def test_a_tree_that_cannot_be_is_refused(changed, message):
    with pytest.raises(TableError, match=message):
        branched(**changed)
