"""The commands: as tools, and what became of one."""

from __future__ import annotations

import re
from typing import Final

from agentgyms.core.outcome import Feedback
from agentgyms.core.tools import Argument, Tool, Tools

AMBIGUOUS: Final = "Ambiguous request"
"""How the engine's answer to a command with several meanings begins."""

LONGEST: Final = 400
"""Characters of the longest command that reaches the engine; its own are far shorter."""

_THING: Final = "The name of an object or place that was seen, such as metal pot."
_PART: Final = "An object, or a terminal, anode or cathode of one, such as battery anode."


def _on(name: str, words: str, action: str) -> Tool:
    return Tool(name, words, action, {"thing": _THING})


def _two(name: str, words: str, action: str, meaning: str = _THING) -> Tool:
    return Tool(name, words, action, {"thing": meaning, "other": meaning})


TOOLS: Final = Tools(
    Tool("look_around", "Describe the room.", "look around"),
    _on("look_at", "Describe a thing.", "look at {thing}"),
    _on("look_in", "Describe what is in a thing.", "look in {thing}"),
    _on("examine", "Describe a thing, which takes time.", "examine {thing}"),
    _on("read", "Read a note or a book.", "read {thing}"),
    Tool("inventory", "List what you carry.", "inventory"),
    Tool("task", "Repeat the task.", "task"),
    _on("go_to", "Go to a room next to this one, through an open door.", "go to {thing}"),
    _on("teleport_to", "Go to any room, where this is allowed.", "teleport to {thing}"),
    _on("open", "Open a door or a container.", "open {thing}"),
    _on("close", "Close a door or a container.", "close {thing}"),
    _on("pick_up", "Take a thing into the inventory.", "pick up {thing}"),
    _on("put_down", "Put a thing of the inventory down.", "put down {thing}"),
    _two("move", "Move a thing into or onto another one.", "move {thing} to {other}"),
    _two("pour", "Pour a liquid, or what a thing contains.", "pour {thing} into {other}"),
    _two("pour_in", "Pour, in the words of the engine's own paths.", "pour {thing} in {other}"),
    _two("dunk", "Dunk a container into a liquid.", "dunk {thing} into {other}"),
    _on("mix", "Mix what a container holds.", "mix {thing}"),
    _on("activate", "Switch a device on.", "activate {thing}"),
    _on("deactivate", "Switch a device off.", "deactivate {thing}"),
    _two("connect", "Connect electrical parts.", "connect {thing} to {other}", _PART),
    _on("disconnect", "Disconnect an electrical part.", "disconnect {thing}"),
    _two("use_on", "Use a tool, such as a thermometer, on a thing.", "use {thing} on {other}"),
    _on("use", "Use a thing.", "use {thing}"),
    _on("eat", "Eat a thing.", "eat {thing}"),
    _on("flush", "Flush a toilet.", "flush {thing}"),
    _on(
        "focus_on", "Show that the task is about this thing; a wrong one fails.", "focus on {thing}"
    ),
    Tool("wait", "Wait ten steps.", "wait"),
    Tool("wait1", "Wait one step.", "wait1"),
    Tool("reset_task", "Forget what was focused on, and the goals reached.", "reset task"),
    Tool(
        "choose",
        "Answer an ambiguous request with one of its numbers.",
        "{number}",
        {"number": Argument("The number.", "integer")},
    ),
)

_VERBS: Final = {tool.action.partition(" ")[0] for tool in TOOLS}
_NO_TEXT: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_UNKNOWN: Final = ("No known action matches that input.", "Unknown action.")


def canonical(action: str) -> str:
    """Return a command as the engine compares it: in small letters, with single blanks."""
    return " ".join(action.lower().split())


def in_tools_words(command: str) -> str:
    """Return a command of the engine's own paths as the tools word it; it means the same."""
    verb, _, rest = command.partition(" ")
    return f"put down {rest}" if verb == "drop" else command


def fault(action: str) -> str:
    """Return why a text is no command that the engine should get, or ""."""
    if len(action) > LONGEST:
        return f"the command is longer than {LONGEST} characters"
    if _NO_TEXT.search(action.strip()):
        return "the command holds a control character, or half of one"
    return ""


def judge(action: str, observation: str, failed: str) -> tuple[Feedback, str]:
    """Return what became of a command, by the engine's answer, and the reason in one line."""
    if failed:
        return Feedback.FAILED, failed
    if not observation.startswith(_UNKNOWN):
        return Feedback.OK, ""
    words = canonical(action)
    if words.partition(" ")[0] in _VERBS or words.isdecimal():
        return Feedback.INADMISSIBLE, f"{words!r:.100} is not possible now"
    return Feedback.MALFORMED, f"no command begins with {words.partition(' ')[0]!r:.40}"
