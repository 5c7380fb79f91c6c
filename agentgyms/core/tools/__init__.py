"""Tools: an environment's actions as functions that a model calls, to and from actions' texts."""

from agentgyms.core.tools.arguments import Argument, BadCall
from agentgyms.core.tools.declarations import ANY_ACTION, Tool, ToolCall, Tools

__all__ = ["ANY_ACTION", "Argument", "BadCall", "Tool", "ToolCall", "Tools"]
