"""Actions as functions that a model calls; the name under which users import `core.tools`."""

from agentgyms.core.tools import ANY_ACTION, Argument, BadCall, Tool, ToolCall, Tools

__all__ = ["ANY_ACTION", "Argument", "BadCall", "Tool", "ToolCall", "Tools"]
