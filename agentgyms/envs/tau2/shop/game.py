"""The generated shop as the environment plays it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from agentgyms.core import keys
from agentgyms.core.outcome import MAX_ACTION, Feedback, Outcome
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.tau2.shop import customer, policy, service, state_json, tasks
from agentgyms.envs.tau2.shop.database import PAYMENTS, Refused

TOOLS: Final = Tools(
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
    Tool("cancel_order", "Cancel an order.", "cancel {order}", {"order": "The order's number."}),
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
"""The tools of the shop."""


class ShopGame:
    """One episode at a time in the shop."""

    version: Final = f"shop-{tasks.VERSION}"
    customer: Final = "scripted-v1"

    def tasks(self, split: str, families: tuple[str, ...]) -> TaskSet:
        """Return the tasks of a split that are of some families."""
        found = tasks.task_list(split)
        return TaskSet(split, [task for task in found if task.family in families])

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start with the policy and the customer's first words."""
        self.shop = tasks.shop_task(task.task_id)
        self._state, words = service.begin(self.shop)
        return self._outcome(f"{policy.TEXT}\n\nCustomer: {words}")

    def act(self, action: str) -> Outcome:
        """Say something to the customer, or make a call."""
        call = service.read(action) if len(action) <= MAX_ACTION else None
        if call is None:
            reason = f"expected one of {', '.join(service.FORMS)}"
            return self._nothing(keys.INVALID_ACTION, Feedback.MALFORMED, reason)
        before = self._state
        try:
            self._state, seen = service.step(self.shop, before, call)
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
        self.shop = shop

    def expert_action(self) -> str:
        """Return the expert's next action; "" after the end."""
        return service.expert_action(self.shop, self._state)

    def _nothing(self, action_key: str, feedback: Feedback, reason: str) -> Outcome:
        return self._outcome(f"Nothing happens: {reason}.", action_key, feedback, reason)

    def _outcome(
        self, seen: str, action_key: str = "", feedback: Feedback = Feedback.OK, reason: str = ""
    ) -> Outcome:
        shop, state = self.shop, self._state
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
