"""Tools: an environment's actions as functions; a call becomes an action's text, and back."""

from agentgyms.core.tools.arguments import Argument, BadCall
from agentgyms.core.tools.declarations import ANY_ACTION, Tool, ToolCall, Tools

__all__ = ["ANY_ACTION", "Argument", "BadCall", "Tool", "ToolCall", "Tools"]
