"""The tables of docs/figures.md, from what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_KINDS: Final = ("rescore_padded", "rescore_packed", "update_padded", "update_packed")
_GIGA: Final = 1e9

Found = Mapping[str, Mapping[str, Any]]


def markdown(found: Found) -> str:
    """Return all tables of the parts that are there; a part that failed has none."""
    machine = found["machine"]
    head = (
        f"{machine['device']}, torch {machine['torch']}: "
        f"{machine['operations_per_s'] / 1e12:.3g} TFLOP/s in a product of matrices"
    )
    made = {name: one for name, one in found.items() if not {"error", "skipped"} & one.keys()}
    tables = (_speed(made), _memory(made), _run(made), _agreement(made), _beside(made))
    left_out = [
        f"{name}: {one.get('skipped', 'failed')}" for name, one in found.items() if name not in made
    ]
    return "\n\n".join([head, *("\n".join(lines) for lines in tables if lines), *left_out]) + "\n"


def _of_models(found: Found, part: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, one in found.items():
        kind, _, model = name.partition(": ")
        if kind == part:
            yield model, one


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    ruler = "|" + "|".join(["---", *("--:" for _ in heads[1:])]) + "|"
    return [f"| {' | '.join(heads)} |", ruler, *(f"| {' | '.join(row)} |" for row in rows)]


def _speed(found: Found) -> list[str]:
    heads = ("tokens per second (MFU)", "rollouts, `hf`", *(k.replace("_", ", ") for k in _KINDS))
    rows = []
    for model, one in _of_models(found, "speed"):
        speed, mfu = one["tokens_per_s"], one["mfu"]
        cells = [f"{speed[k]:,.0f} ({mfu[k]:.1%})" if k in speed else "" for k in _KINDS]
        rows.append([model, f"{speed['rollouts']:,.0f}", *cells])
    return _table(heads, rows)


def _memory(found: Found) -> list[str]:
    rows = []
    for model, one in _of_models(found, "speed"):
        cells = []
        for phase in ("playing", "learning"):
            sizes = one["memory_bytes"][phase]
            cells += [_gigabytes(sizes["planned"]), _gigabytes(sizes["measured"])]
        rows.append([model, *cells])
    heads = ("memory in GB", "playing, planned", "measured", "learning, planned", "measured")
    return _table(heads, rows)


def _gigabytes(size: float | None) -> str:
    return "" if size is None else f"{size / _GIGA:.3g}"


def _run(found: Found) -> list[str]:
    if "run" not in found:
        return []
    run = found["run"]
    same = "all" if not run["differing"] else f"all but {len(run['differing'])}"
    rows = [
        ("seconds of a step", f"{run['step_s']:.3g}"),
        *((f"tokens per second, {n}", f"{v:,.0f}") for n, v in run["tokens_per_s"].items()
          if not math.isnan(v)),
        ("tokens learned from", f"{run['tokens_learned']:,.0f}"),
        ("checkpoint in GB; seconds to save, to resume",
         f"{_gigabytes(run['checkpoint_bytes'])}; {run['save_s']:.2g}, {run['resume_s']:.2g}"),
        (f"figures of {run['repeated_steps']} repeated steps that are the same", same),
    ]  # fmt: skip
    return _table(("five steps of GiGPO on ALFWorld", "Qwen2.5-0.5B"), rows)


def _agreement(found: Found) -> list[str]:
    rows = [
        (
            model,
            f"{one['logprob_difference']:.1e}",
            f"{one['logprob_difference_max']:.1e}",
            f"{one['gradient_error']:.1e}",
        )
        for model, one in _of_models(found, "agreement")
    ]
    heads = ("mixed precision beside float32", "log-probability, mean", "largest", "gradient")
    return _table(heads, rows)


def _beside(found: Found) -> list[str]:
    rows = []
    if "trl" in found:
        ours, theirs = (found["trl"]["tokens_per_s"][side] for side in ("update", "trl"))
        apart = max(abs(a - b) for a, b in found["trl"]["losses"])
        name = f"update beside TRL's, losses at most {apart:.0e} apart"
        rows.append((name, f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.2f}"))
    if "vllm" in found:
        ours = found["vllm"]["tokens_per_s"]["rollouts"]
        hf = found["speed: Qwen2.5-0.5B"]["tokens_per_s"]["rollouts"]
        rows.append(
            ("rollouts by vLLM beside `hf`", f"{ours:,.0f}", f"{hf:,.0f}", f"{ours / hf:.2f}")
        )
    return _table(("tokens per second, Qwen2.5-0.5B", "", "beside", "ratio"), rows)
