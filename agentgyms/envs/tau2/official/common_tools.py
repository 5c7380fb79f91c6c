"""The tools that the domains share: to say something, to compute, and to hand a customer over."""

from __future__ import annotations

from typing import Final

from agentgyms.core.tools import Tool

SAY: Final = Tool(
    "say", "Say something to the customer.", "say: {words}", {"words": "What you say."}
)
CALCULATE: Final = Tool(
    "calculate",
    "Compute the value of an expression of numbers, + - * / and parentheses.",
    arguments={"expression": "The expression, such as (2 + 2) * 3."},
)
TRANSFER: Final = Tool(
    "transfer_to_human_agents",
    "Hand the customer over to a human agent, who alone can help further.",
    arguments={"summary": "What the customer needs."},
)
