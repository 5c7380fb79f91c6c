"""The arguments that environments are made and reset with: defaults, names, and checks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import gymnasium as gym

from agentgyms.core.errors import BadOption, did_you_mean

CONNECTION_ARGUMENTS: Final = ("env_id", "url", "token", "transport", "patience")
"""Arguments that say where an environment is, not which one it is."""

_ARGS: Final = re.compile(r"^Args:\n((?:    .*\n?|\n)+)", re.MULTILINE)
_ARG: Final = re.compile(r"^    (\w+): (.*\n?(?:     .*\n?)*)", re.MULTILINE)
_TABLE: Final = re.compile(r"^\| argument \|.*\n\|[-|]+\n((?:\|.*\n?)+)", re.MULTILINE)


def defaults(env_class: type[Any]) -> dict[str, Any]:
    """Return the keyword arguments of an environment class with their defaults."""
    parameters: dict[str, inspect.Parameter] = {}
    for ancestor in reversed(inspect.getmro(env_class)):
        is_env = issubclass(ancestor, gym.Env) or hasattr(ancestor, "load_tasks")
        if is_env and "__init__" in vars(ancestor):
            parameters |= inspect.signature(vars(ancestor)["__init__"]).parameters
    return {
        name: p.default
        for name, p in parameters.items()
        if p.default is not inspect.Parameter.empty
    }


def with_defaults(env_class: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an environment's arguments, given and default ones, but none that says where it is."""
    everything = {**defaults(env_class), **given}
    return {name: value for name, value in everything.items() if name not in CONNECTION_ARGUMENTS}


def meanings(env_class: type[Any]) -> dict[str, str]:
    """Return the meaning of each argument of an environment class in words, by its name.

    Read from the docstrings of the class and its ancestors: a section `Args:`, or a table whose
    first column is `argument` and whose last one is the meaning.
    """
    found: dict[str, str] = {}
    for ancestor in reversed(inspect.getmro(env_class)):
        text = inspect.cleandoc(vars(ancestor).get("__doc__") or "")
        for section in _ARGS.findall(text):
            found |= {name: " ".join(words.split()) for name, words in _ARG.findall(section)}
        for table in _TABLE.findall(text):
            for row in table.splitlines():
                first, *_, last = row.strip().strip("|").split(" | ")
                found |= dict.fromkeys(re.findall(r"`(\w+)`", first), last.strip())
    if "split" in found:
        found["split"] = f"one of {', '.join(env_class.splits)}"
    return found


def private_names(maker: Callable[..., Any], kwargs: Mapping[str, Any]) -> list[str]:
    """Return the arguments that only the user may give, not a file that may come from anyone.

    They say where an environment connects, which files it reads and which programs it runs. Values
    equal to the default are harmless.
    """
    usual = defaults(maker) if inspect.isclass(maker) else {}
    is_private = getattr(maker, "is_private", lambda name, value: False)  # noqa: ARG005
    return sorted(
        name
        for name, value in kwargs.items()
        if name.startswith("_")
        or (name in CONNECTION_ARGUMENTS and value is not None)
        or (is_private(name, value) and not (name in usual and usual[name] == value))
    )


def check_limits(limits: Mapping[str, float], given: Mapping[str, Any]) -> None:
    """Raise `BadOption` if an argument given by somebody else is greater than its limit."""
    for name, most in limits.items():
        value = given.get(name)
        if isinstance(value, int | float) and value > most:
            raise BadOption(f"{name} {value} is too large to take from others: at most {most}")


def refusal(env_id: str, make: Callable[..., Any], given: Iterable[str]) -> str:
    """Return what is wrong with arguments' names, with the nearest name; "" if all can be taken."""
    # A class passes what it does not name itself on to the next `__init__` of its ancestors.
    makers = inspect.getmro(make) if inspect.isclass(make) else (make,)
    known: set[str] = set()
    for maker in makers:
        if inspect.isclass(maker) and "__init__" not in vars(maker):
            continue
        function = vars(maker)["__init__"] if inspect.isclass(maker) else maker
        parameters = inspect.signature(function).parameters.values()
        known |= {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            for name in given:
                if name not in known:
                    hint = did_you_mean(name, sorted(known - {"self"}))
                    return f"{env_id} takes no argument {name!r}: leave it out{hint}"
            return ""
    return ""


def check_max_turns(max_turns: Any) -> int:
    """Return a limit of turns; raise `BadOption` if it is not a positive integer."""
    if not isinstance(max_turns, int) or isinstance(max_turns, bool) or max_turns < 1:
        raise BadOption(f"max_turns must be a positive integer or None, got {max_turns!r}")
    return max_turns


def check_oracle(oracle: Any) -> bool:
    """Return whether `info` has solutions; raise `BadOption` for anything but True and False."""
    if not isinstance(oracle, bool):
        raise BadOption(f"oracle must be True or False, got {oracle!r}")
    return oracle


def check_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return reset options; raise `BadOption` for a key other than `task_id` and `chance`."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise BadOption(f"options must be a dict or None, got {type(options).__name__}")
    unknown = sorted(set(options) - {"task_id", "chance"}, key=str)
    if unknown:
        raise BadOption(f"unknown reset option {unknown[0]!r}: expected only 'task_id'")
    given = {key: value for key, value in options.items() if value is not None}
    return given | ({"chance": _check_chance(given["chance"])} if "chance" in given else {})


def _check_chance(redraws: Any) -> list[list[int]]:
    """Return the redraws of an episode, as JSON returns them: turn and number of each, in order."""
    pairs: list[Any] = list(redraws) if isinstance(redraws, list | tuple) else [redraws]
    for pair in pairs:
        two = isinstance(pair, list | tuple) and len(pair) == 2
        if not two or not all(type(part) is int and 0 <= part < 2**63 for part in pair):
            raise BadOption(
                f"the reset option 'chance' is a list of pairs [turn, number], got {pair!r:.80}"
            )
    return [list(pair) for pair in pairs]
