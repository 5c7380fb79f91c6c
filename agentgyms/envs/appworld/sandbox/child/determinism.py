"""Makes a run of code repeat: a frozen clock, and random numbers that the task seeds.

If a process is lost, another one runs the earlier code again, which must lead to the same records.
So the clock stands at the date and time of the task, under every name that leads to it. `uuid`,
`secrets`, `os.urandom` and `random` without a seed use a generator of this module.

The methods of the built-in types are replaced, not the types: `datetime.datetime.min.now()` and
`type(x).now()` lead to them too. The kind `appworld` also starts freezegun, as AppWorld does, whose
types code sees there.
"""

from __future__ import annotations

import ctypes
import datetime
import gc
import importlib
import os
import random
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any, Final, TypeAlias

_Datetime: TypeAlias = datetime.datetime
_EPOCH: Final = _Datetime(1970, 1, 1)
_gmtime: Final = time.gmtime
_strftime: Final = time.strftime
_now = _EPOCH
# The bit that is set marks an address that belongs to no network card.
_NODE: Final = 0x010000000000
_seed: Final = random.Random.seed
_generator: Final = random.Random(0)


def _seconds(_: object = None) -> float:
    return (_now - _EPOCH).total_seconds()


def _nanoseconds(_: object = None) -> int:
    return (_now - _EPOCH) // datetime.timedelta(microseconds=1) * 1000


def _struct(seconds: float | None = None) -> time.struct_time:
    return _gmtime(_seconds() if seconds is None else seconds)


def _text(layout: str, moment: Any = None) -> str:
    return _strftime(layout, _struct() if moment is None else moment)


def _asctime(moment: Any = None) -> str:
    return _text("%a %b %e %H:%M:%S %Y", moment)


def _ctime(seconds: float | None = None) -> str:
    return _asctime(_struct(seconds))


def _times() -> os.times_result:
    return os.times_result((0.0,) * 5)


def now(cls: Any, tz: datetime.tzinfo | None = None) -> Any:
    """Return the frozen date and time; the method `now` of `datetime.datetime`."""
    here = cls.combine(_now.date(), _now.time(), tz)
    return here if tz is None else tz.fromutc(here)


def utcnow(cls: Any) -> Any:
    """Return the frozen date and time; the method `utcnow` of `datetime.datetime`."""
    return now(cls)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **dict.fromkeys(["time", "monotonic", "perf_counter", "clock_gettime"], _seconds),
    **dict.fromkeys(
        ["time_ns", "monotonic_ns", "perf_counter_ns", "clock_gettime_ns"], _nanoseconds
    ),
    **dict.fromkeys(["process_time", "thread_time"], lambda: 0.0),
    **dict.fromkeys(["process_time_ns", "thread_time_ns"], lambda: 0),
    "localtime": _struct,
    "gmtime": _struct,
    "strftime": _text,
    "asctime": _asctime,
    "ctime": _ctime,
}


def freeze_clock(kind: str) -> Callable[[str], None]:
    """Freeze the clock (`appworld` needs freezegun); return a function that sets it in ISO 8601."""
    replaced = {getattr(time, name): frozen for name, frozen in _FUNCTIONS.items()}
    _replace_everywhere({**replaced, os.times: _times})
    # `date.today` and `datetime.today` ask `time.time`.
    _replace_class_method(_Datetime, now)
    _replace_class_method(_Datetime, utcnow)
    return _start_freezegun() if kind == "appworld" else _set


def _replace_everywhere(functions: dict[Callable[..., Any], Callable[..., Any]]) -> None:
    """Replace functions in all modules that have been imported, but for those of this package."""
    by_id = {id(function): frozen for function, frozen in functions.items()}
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] != __package__:
            for name, value in list(getattr(module, "__dict__", {}).items()):
                if id(value) in by_id:
                    setattr(module, name, by_id[id(value)])


def _replace_class_method(kind: type, function: Callable[..., Any]) -> None:
    """Replace a class method of a built-in type, whose dictionary is not writable otherwise."""
    (methods,) = gc.get_referents(vars(kind))
    methods[function.__name__] = classmethod(function)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))


def _start_freezegun() -> Callable[[str], None]:
    freezer = importlib.import_module("freezegun").freeze_time(_EPOCH).start()

    def move(moment: str) -> None:
        freezer.move_to(_Datetime.fromisoformat(moment))
        _set(moment)

    return move


def _set(moment: str) -> None:
    global _now
    _now = _Datetime.fromisoformat(moment)


def replace_randomness() -> None:
    """Replace the system's source of randomness with the generator."""
    for module, name in ((os, "urandom"), (os, "getrandom"), (random, "_urandom")):
        if hasattr(module, name):
            setattr(module, name, _bytes)
    random.Random.seed = _seeded  # type: ignore[method-assign]
    random.seed = random._inst.seed
    # uuid1 then uses these, the frozen clock and a counter.
    setattr(uuid, "_generate_time_safe", None)  # noqa: B010 (the stubs do not know it)
    setattr(uuid, "_node", _NODE)  # noqa: B010 (see above)


def seed_randomness(seed: str) -> None:
    """Seed the generator, and make the process ids constant."""
    _seed(_generator, seed)
    os.getpid = os.getppid = lambda: 1


def _bytes(size: int, _flags: int = 0) -> bytes:
    return _generator.randbytes(size)


def _seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
    _seed(self, int.from_bytes(_bytes(64), "big") if a is None else a, version)
