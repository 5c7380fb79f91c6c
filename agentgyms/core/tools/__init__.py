"""Tools: an environment's actions as functions that a model calls.

Each tool has the text of an action with places for its arguments. So a call becomes the text that
`act` takes, and an action the call that an expert would make.
"""

from agentgyms.core.tools.arguments import Argument, BadCall
from agentgyms.core.tools.declarations import ANY_ACTION, Tool, ToolCall, Tools

__all__ = ["ANY_ACTION", "Argument", "BadCall", "Tool", "ToolCall", "Tools"]
