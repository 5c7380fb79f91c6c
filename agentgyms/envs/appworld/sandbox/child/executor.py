"""Role `executor`: runs an agent's code, in a process with nothing but its own variables.

parent -> {"begin": {"apis", "now", "seed", "chance", "memory_mb"}}
child  -> {"begun": what confines it}
parent -> {"execute": {"code", "timeout_s", "turn"}}
child  -> {"call": [app, api, arguments], "at": [turn, call]}
parent -> {"value": ..., "at": ...} or {"raise": [kind, message], "at": ...}
child  -> {"done": {...}, "turn": turn}
"""

from __future__ import annotations

import builtins
import os
import random
import signal
import threading
from collections.abc import Callable
from typing import Any, Final

from . import confinement, determinism, failures, forbidden, preamble
from .cells import Cells
from .line import Connection
from .proxies import Caller, collection

_ENVIRONMENT: Final = {"LANG", "TZ"}
_set_clock: Callable[[str], None]


def warm(options: dict[str, Any]) -> None:
    """Load the modules that code may use, and freeze the clock."""
    global _set_clock
    preamble.warm(options["kind"])
    forbidden.load()
    _set_clock = determinism.freeze_clock(options["kind"])
    determinism.replace_randomness()
    preamble.remove_packages()
    confinement.prepare()
    for name in os.environ.keys() - _ENVIRONMENT:  # packages add paths of the user
        del os.environ[name]
    builtins.SystemExit = Exception  # type: ignore[misc, assignment]  # as the engine does
    threading.excepthook = preamble.no_op


def serve(connection: Connection, options: dict[str, Any]) -> None:
    """Run the code of one episode."""
    message = connection.receive()
    if message is None:
        return
    begin = message["begin"]
    connection.for_agents = True
    caller = Caller(connection)
    _set_clock(begin["now"])
    cells = Cells(options["kind"], collection(begin["apis"], caller))
    preamble.hide_own_modules(__package__)
    in_force = confinement.confine(connection.fileno(), memory_mb=begin["memory_mb"])
    random.seed(begin["seed"])
    determinism.seed_randomness(begin["chance"])
    forbidden.disable()
    connection.send({"begun": in_force})
    while (message := connection.receive()) is not None:
        if "execute" in message:
            _execute(connection, caller, cells, **message["execute"])


def _execute(
    connection: Connection, caller: Caller, cells: Cells, code: str, timeout_s: float, turn: int
) -> None:
    def on_alarm(*_: object) -> None:
        if cells.running:  # not while a traceback is written
            connection.interrupt(failures.timeout(timeout_s))

    caller.begin_turn(turn)
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, timeout_s)
    try:
        done = cells.run(code)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    caller.end_turn()
    connection.send({"done": done, "turn": turn})
