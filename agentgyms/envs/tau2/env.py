"""The Tau2 environment: an agent serves a customer with tools, by a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.outcome import MAX_ACTION
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.tau2.shop import customer, policy, service, state_json, tasks
from agentgyms.envs.tau2.shop.database import PAYMENTS, Refused

_USER: Final = "scripted-v1"
_OFFICIAL: Final = ("airline", "retail", "telecom")


class Tau2Env(TextEnv):
    """Serve a customer: look things up, change what the policy allows, say what is asked.

    The form of tau2-bench (Barres et al. 2025, arXiv:2506.07982): an agent talks to a customer and
    calls tools that read and change a database; it wins if the database's end state is right and
    all facts that were asked for were told. The domain `shop` is our own, and its figures are not
    the benchmark's.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `domain` | `"shop"` | the generated domain; the benchmark's own are refused by name |
    | `families` | `None` | a list of families to restrict the tasks to, in any order |
    | `max_turns` | 20 | turns until the episode is truncated |
    | `oracle` | `False` | put the expert's next action into `info["oracle"]` |

    An action is `say: <words>`, which the customer answers, or a call: `order <number>` and
    `product <name>` look something up, `cancel <order>`, `return <item> of <order> to <payment>`
    and `exchange <item> of <order> for <colour>` change the database. Calls do not check the
    policy. Any other text is `malformed`, a call that the system cannot do is `failed`, a lookup
    that was made before has `no_effect`; each takes a turn.

    The customer is a program, `scripted-v1`, with fixed sentences. It makes its requests one by
    one, says yes or no when asked before a change, asks for the reason of a refusal and for
    amounts, believes what it is told, and ends the conversation after its last request. An answer
    tells a fact if it has this reason or number and no other one.

    The episode ends, terminated, with the customer's goodbye. Then the reward, which is also the
    score, is 1 if the whole database is as it should be and every fact was told, else 0; `success`
    is the same.

    `info["progress"]` is the share of the changes made and facts told that the task needs, and 0
    once an order was changed that must not be so. `info["metrics"]`: `writes` and `breaches`, the
    changes made and the orders changed wrongly; `facts_told`; `lookups`; `requests_settled`.

    `info["state_key"]` is that of the task, the database, what was looked up, and the customer's
    state. Words that make no difference to any of these are not part of it.

    | split | tasks |
    |---|---|
    | `train` | 300 |
    | `valid`, `test` | 60 each |
    | `sample` | 12, the first of train |

    Families are `cancel`, `return`, `exchange` and `several` (two requests). Half of the requests
    are forbidden by the policy, and a quarter are allowed ones that the customer takes back.

    Expert: `best` uses only what was said and looked up; it solves all tasks.
    """

    default_max_turns = 20
    splits = tuple(tasks.COUNTS)
    tools = Tools(
        Tool("say", "Say something to the customer.", "say: {words}", {"words": "What you say."}),
        Tool(
            "get_order",
            "Look an order up.",
            "order {number}",
            {"number": "The order's number, such as O17."},
        ),
        Tool(
            "get_product",
            "Look up how many pieces of each colour of a product are in stock.",
            "product {name}",
            {"name": "The product's name, such as mug."},
        ),
        Tool(
            "cancel_order", "Cancel an order.", "cancel {order}", {"order": "The order's number."}
        ),
        Tool(
            "return_item",
            "Take an item back and refund its price.",
            "return {item} of {order} to {payment}",
            {
                "item": "The product's name in the order.",
                "order": "The order's number.",
                "payment": Argument("Where the refund goes.", choices=PAYMENTS),
            },
        ),
        Tool(
            "exchange_item",
            "Exchange an item for one of another colour.",
            "exchange {item} of {order} for {colour}",
            {
                "item": "The product's name in the order.",
                "order": "The order's number.",
                "colour": "The new colour.",
            },
        ),
    )

    def __init__(
        self, *, domain: str = "shop", families: Sequence[str] | None = None, **common: Any
    ) -> None:
        """Check the arguments; see the class for their meaning.

        Raises:
            BadOption: An argument is invalid, or the domain is one of the benchmark's.
        """
        super().__init__(**common)
        _check_domain(domain)
        self._families = tasks.FAMILIES if families is None else _check_families(families)
        if families is not None:
            self._arguments["families"] = list(self._families)
        self.data_version = f"shop-{tasks.VERSION}"
        self.parties = {"user": _USER}

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:  # noqa: ARG003
        """Return `"generated"`."""
        return "generated"

    def load_tasks(self) -> TaskSet:
        """Return the tasks of the split that are of the families asked for."""
        found = tasks.task_list(self.split)
        return TaskSet(self.split, [task for task in found if task.family in self._families])

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start with the policy and the customer's first words; episodes are deterministic."""
        self._shop = tasks.shop_task(task.task_id)
        self._state, words = service.begin(self._shop)
        return self._outcome(f"{policy.TEXT}\n\nCustomer: {words}")

    def goal(self, task: Task) -> str:
        """Return the goal, which is the same for all tasks."""
        return "serve the customer as the policy says"

    def act(self, action: str) -> Outcome:
        """Say something to the customer, or make a call."""
        call = service.read(action) if len(action) <= MAX_ACTION else None
        if call is None:
            reason = f"expected one of {', '.join(service.FORMS)}"
            return self._nothing(keys.INVALID_ACTION, Feedback.MALFORMED, reason)
        before = self._state
        try:
            self._state, seen = service.step(self._shop, before, call)
        except Refused as e:
            return self._nothing(call.text, Feedback.FAILED, str(e))
        feedback = Feedback.NO_EFFECT if self._state == before else Feedback.OK
        reason = "nothing changed" if feedback is Feedback.NO_EFFECT else ""
        return self._outcome(seen, call.text, feedback, reason)

    def save(self) -> Any:
        """Return the changes made, what was looked up, and the customer's state."""
        return state_json.write(self._state)

    def load(self, task: Task, state: Any) -> None:
        """Restore what `save` returned."""
        shop = tasks.shop_task(task.task_id)
        self._state = state_json.read(state, shop)
        self._shop = shop

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of `best`; "" after the end."""
        return {"best": service.expert_action(self._shop, self._state)}

    def solution(self) -> dict[str, Any]:
        """Return the expert's action."""
        return dict(self.expert_actions())

    def _nothing(self, action_key: str, feedback: Feedback, reason: str) -> Outcome:
        return self._outcome(f"Nothing happens: {reason}.", action_key, feedback, reason)

    def _outcome(
        self, seen: str, action_key: str = "", feedback: Feedback = Feedback.OK, reason: str = ""
    ) -> Outcome:
        shop, state = self._shop, self._state
        solved = service.is_solved(shop, state)
        wrong = service.breaches(shop, state)
        atoms = service.atoms(shop, state)
        *needed, _ = atoms.values()
        return Outcome(
            observation=seen,
            state_key=keys.state_key(
                "tau2-shop", shop.task.task_id, state.database, state.opened, state.mood
            ),
            reward=float(solved),
            terminated=state.mood.stage == customer.OVER,
            admissible=service.suggestions(shop, state),
            admissible_complete=False,
            action_key=action_key,
            feedback=feedback,
            feedback_text=reason,
            progress=0.0 if wrong else sum(needed) / len(needed),
            score=float(solved),
            success=solved,
            metrics={
                "writes": float(len(state.writes)),
                "breaches": float(wrong),
                "facts_told": float(sum(state.mood.told)),
                "lookups": float(len(state.opened)),
                "requests_settled": float(state.mood.request),
            },
            atoms=atoms,
        )


def _check_domain(domain: Any) -> None:
    if domain in _OFFICIAL:
        raise BadOption(
            f"domain {domain!r} is one of tau2-bench's, which cannot be played yet: expected "
            "'shop', the generated domain"
        )
    if domain != "shop":
        raise BadOption(f"domain must be 'shop', got {domain!r:.60}")


def _check_families(families: Any) -> tuple[str, ...]:
    listed = isinstance(families, Sequence) and not isinstance(families, str)
    if not listed or not families or any(family not in tasks.FAMILIES for family in families):
        known = ", ".join(tasks.FAMILIES)
        raise BadOption(f"families must be a list of some of {known}, got {families!r:.80}")
    return tuple(sorted(set(families)))
