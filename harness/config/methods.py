"""The table of methods: an estimator, a loss, annotators and their settings under one name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.types.hyperparameters import Registry

ACTORS: Final = ("policy", "initial", "expert")
"""Policies that may play the rollouts of a method; see `Method`."""


@dataclass(frozen=True, slots=True)
class Method:
    """A row of the table."""

    name: str  # in the papers, in lower case
    estimator: str  # in `harness.credit`
    reference: str  # the paper
    credit: Mapping[str, Any] = field(default_factory=dict)  # what differs from the defaults
    loss: str = "clipped"  # in `harness.losses`
    loss_settings: Mapping[str, Any] = field(default_factory=dict)
    # names in `harness.annotators` that fill the columns it needs, with their settings
    annotators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: str = "turn"  # a row of the turn table for credit: `"turn"` or `"token"`
    # who plays: the policy, the policy before training (`"initial"`), or the environment's expert
    # (`"expert"`, see the section `warmstart`)
    actor: str = "policy"
    # settings of a run, `section.key`, that the method sets where the recipe has None, such as
    # `optimizer.epochs`
    run: Mapping[str, Any] = field(default_factory=dict)


_KL: Final = {"kl_coefficient": 0.01}
_SEQUENCES: Final = {"aggregation": "sequence_mean_token_mean"}
_BY_SEQUENCE: Final = {**_KL, **_SEQUENCES}
"""GRPO's and RLOO's mean over sequences (GVPO, Table 1), with the papers' penalty."""
_BEST: Final = "\nThe best next action here: {best}"
_HIGHER: Final = {"clip_low": 0.2, "clip_high": 0.28}
_BY_ACTION: Final = {"ratio": "turn", **_SEQUENCES}
"""OPRL, Eq. 6: one ratio for each action, no penalty. In the context "window" each action is a
sequence, so actions weigh the same; in "transcript" rollouts do, and longer actions weigh more."""
_PREFERENCES: Final = {"process_reward": {"objective": "dpo", "update": "before"}}
_LIKELIHOODS: Final = {"aggregation": "sequence_mean_token_sum"}
"""The sum over a turn's tokens is its log-probability, which estimators of preferences weight."""
_SALT: Final = "Li et al., SALT, Algorithm 1 and Table 4"

_OPRL: Final = "Liu et al., Online Process Reward Learning for Agentic RL (OPRL), section 3.1"


def _oprl(
    name: str,
    base: str,
    reference: str = _OPRL,
    annotators: Mapping[str, Mapping[str, Any]] = _PREFERENCES,
) -> Method:
    credit = {"base": base}
    return Method(name, "oprl", reference, credit, loss_settings=_BY_ACTION, annotators=annotators)


def _preferring(name: str, reference: str, **annotators: Mapping[str, Any]) -> Method:
    needs = {"reference_kl": {}, **annotators}
    return Method(name, name, reference, loss="nll", loss_settings=_LIKELIHOODS, annotators=needs)


def _told(name: str, reference: str, rows: str) -> Method:
    # The policy in training, where their code tells it skills and this a hint.
    teacher = {"model": "policy", "hint": _BEST}
    return Method(
        name, name, reference, loss_settings=_KL, annotators={"teacher": teacher}, rows=rows
    )


_CLASSIC: Final = (
    Method("reinforce", "reinforce", "Williams 1992", credit={"baseline": "batch"}),
    Method(
        "ppo",
        "gae",
        "arXiv:1707.06347",
        credit={"whiten": True},
        loss_settings=_KL,
        annotators={"critic": {}},
    ),
    Method(
        "reinforce_pp",
        "reinforce_pp",
        "arXiv:2501.03262",
        credit={"kl_coefficient": 0.01},
        annotators={"reference_kl": {}},
    ),
    Method("rloo", "rloo", "arXiv:2402.14740", loss_settings=_BY_SEQUENCE),
    Method("grpo", "grpo", "arXiv:2402.03300", loss_settings=_BY_SEQUENCE),
    Method(
        "dr_grpo",
        "dr_grpo",
        "arXiv:2503.20783",
        loss_settings={"aggregation": "sequence_mean_token_sum"},
    ),
    Method(
        "dapo",
        "grpo",
        "arXiv:2503.14476",
        loss_settings={**_HIGHER, "aggregation": "token_mean"},
        run={"rollout.dynamic_sampling": True, "method.overlong_share": 0.2},
    ),
    Method(
        "gspo",
        "grpo",
        "arXiv:2507.18071",
        loss_settings={"ratio": "sequence", "clip_low": 3e-4, "clip_high": 4e-4, **_SEQUENCES},
    ),
    Method("maxrl", "maxrl", "arXiv:2602.02710", loss_settings=_SEQUENCES),
    # GVPO's description of LOOP says "several epochs" without a number; two is the smallest.
    Method(
        "loop", "rloo", "arXiv:2502.01600", loss_settings=_SEQUENCES, run={"optimizer.epochs": 2}
    ),
)

_STEPWISE: Final = (
    Method("gigpo", "gigpo", "arXiv:2505.10978", loss_settings=_KL),
    Method("hgpo", "hgpo", "arXiv:2602.22817", loss_settings=_KL),
    Method("hcapo", "hcapo", "arXiv:2603.08754", loss_settings=_KL, annotators={"hindsight": {}}),
    Method("empg", "empg", "arXiv:2509.09265", loss_settings=_KL, annotators={"entropy": {}}),
    Method(
        "prime",
        "prime",
        "arXiv:2502.01456",
        annotators={"process_reward": {"objective": "ce", "update": "after"}},
        rows="token",
    ),
    Method(
        "scpo",
        "scpo",
        "Semantic Consistency Policy Optimization (SCPO), section 3 and Table 3",
        credit={"scorer": "cross-encoder"},
        loss_settings=_KL,
    ),
    Method(
        "ecpo",
        "ecpo",
        "Li et al., When Denser Credit Is Not Enough (ECPO), section 4",
        loss_settings=_KL,
    ),
    Method(
        "gvpo",
        "gvpo",
        "Group Verification-based Policy Optimization (GVPO), section 3 and appendix A.1",
        loss_settings={**_HIGHER, **_SEQUENCES},
        run={"rollout.enough_members": 6, "rollout.enough_share": 0.9, "rollout.enough_turns": 30},
    ),
    Method("salt", "salt", _SALT, loss_settings=_BY_SEQUENCE),
    Method("salt_rloo", "salt", _SALT, credit={"base": "rloo"}, loss_settings=_BY_SEQUENCE),
    Method("graphgpo", "graphgpo", "arXiv:2605.26684", loss_settings=_KL),
    Method("g2po", "g2po", "arXiv:2606.22995", loss_settings=_KL),
    # Its ratio of an action is the mean over the tokens: in the context "window" a sequence is one.
    Method("gagpo", "gagpo", "arXiv:2605.13217", loss_settings={**_KL, "ratio": "sequence"}),
    Method("milegpo", "milegpo", "arXiv:2608.19803", loss_settings=_KL),
    Method("proxmo", "proxmo", "arXiv:2602.19225", loss_settings=_KL),
    Method("aem", "aem", "arXiv:2605.00425", loss_settings=_KL, annotators={"entropy": {}}),
    Method("beacon", "beacon", "arXiv:2605.06078", loss_settings=_KL, annotators={"subgoals": {}}),
    Method(
        "planpo",
        "planpo",
        "arXiv:2608.17289",
        loss_settings=_KL,
        annotators={"response_length": {}},
    ),
    Method("cast", "cast", "arXiv:2607.25308", loss_settings=_KL, annotators={"solver_gain": {}}),
    Method(
        "igpo", "igpo", "arXiv:2510.14967", loss_settings=_KL, annotators={"information_gain": {}}
    ),
    Method("pgpo", "pgpo", "arXiv:2609.02236", loss_settings=_KL),
    # Its ratio is the geometric mean over an action's tokens (Eq. 4): in the context "window" a
    # sequence is one.
    Method("graft", "graft", "arXiv:2609.28963", loss_settings={**_KL, "ratio": "sequence"}),
    Method(
        "mt_grpo", "mt_grpo", "arXiv:2505.11821", loss_settings=_KL, annotators={"subgoals": {}}
    ),
    Method(
        "turn_credit",
        "turn_credit",
        "prime-rl, pull request 3282",
        annotators={"response_length": {}},
    ),
    Method("procredit", "procredit", "arXiv:2609.27532", loss_settings=_KL),
    Method("otb", "otb", "arXiv:2602.07078", annotators={"energy": {}}, rows="token"),
    Method("rtmc", "rtmc", "arXiv:2604.11037", loss_settings=_KL),
    # On trees: without rollout.branch.at their advantages are GRPO's.
    Method("tree_grpo", "tree_grpo", "arXiv:2509.21240", loss_settings=_BY_SEQUENCE),
    Method("treerpo", "treerpo", "arXiv:2506.05183", loss_settings=_BY_SEQUENCE),
    Method("at2po", "at2po", "arXiv:2601.04767", loss_settings={**_KL, **_BY_ACTION}),
    # Without penalty and without the length of responses, as SPIRAL says of its loss.
    Method(
        "rae",
        "rae",
        "arXiv:2506.24119",
        loss_settings={"aggregation": "sequence_mean_token_sum"},
        annotators={"seat_baseline": {}},
    ),
    # Measured advantages: one estimator, with the papers' continuations, loss and normalisation.
    Method(
        "vineppo",
        "oracle",
        "arXiv:2410.01679",
        credit={"scale": "whiten"},
        loss_settings={"kl_coefficient": 1e-4},
        annotators={"continuations": {"count": 9}},
        run={"optimizer.epochs": 2},
    ),
    Method(
        "oracle",
        "oracle",
        "the truth of `harness credit audit`",
        credit={"scale": "rms"},
        loss_settings=_KL,
        annotators={"continuations": {"count": 8}},
    ),
    Method("distill", "distill", "arXiv:2306.13649", annotators={"teacher": {}}, rows="token"),
    # Its released code recommends the initial policy as teacher.
    Method(
        "opsd",
        "distill",
        "arXiv:2601.18734",
        annotators={"teacher": {"model": "initial", "hint": _BEST}},
        rows="token",
    ),
    _told("sdar", "arXiv:2605.15155", rows="token"),
    _told("agent_opsd", "arXiv:2608.05987", rows="turn"),
    # The paper's base is RLOO, and GRPO on SOTOPIA (section 4, implementation details).
    _oprl("oprl", "rloo"),
    _oprl("oprl_grpo", "grpo"),
    _oprl("oprl_reinforce_pp", "reinforce_pp"),
    _oprl(
        "oprl_ground_truth",
        "rloo",
        reference="OPRL, Table 3: the environment's rewards in place of learned ones",
        annotators={"environment_reward": {}},
    ),
)

_SUPERVISED: Final = (
    Method(
        "sft",
        "imitation",
        "behaviour cloning of the environment's expert",
        credit={"keep": "all"},
        loss="nll",
        actor="expert",
    ),
    Method("rft", "imitation", "arXiv:2308.01825", loss="nll", actor="initial"),
    Method("ei", "imitation", "arXiv:1705.08439", loss="nll"),
    _preferring("dmpo", "arXiv:2406.14868"),
    _preferring("dpo", "arXiv:2305.18290"),
    _preferring("ipo", "arXiv:2310.12036"),
    _preferring("kto", "arXiv:2402.01306", mismatched_ratio={}),
)

METHODS: Final[dict[str, Method]] = {row.name: row for row in (*_CLASSIC, *_STEPWISE, *_SUPERVISED)}
"""The methods of this package."""


def _of_object(name: str, found: Any) -> Method | None:
    """Return the method of a plug-in's row, or of its estimator alone."""
    if isinstance(found, Method):
        return found
    return Method(name, name, name.partition(":")[0]) if callable(found) else None


_METHODS: Final = Registry(
    "method", entries=METHODS, make_entry=_of_object, command="harness methods"
)


def register(method: Method) -> Method:
    """Add a method, under its name, and return it; raises `ConfigError` if the name is taken."""
    _METHODS.add(method.name, method)
    return method


def rows() -> dict[str, Method]:
    """Return all methods by name, those of installed plug-ins last."""
    return _METHODS.entries()


def get(name: str) -> Method:
    """Return the method of this name; raises `ConfigError` if there is none."""
    return _METHODS.get(name)
