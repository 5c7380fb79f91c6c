"""Compares what each architecture gives in training and in generation with `model(input_ids)`.

    python benchmarks/models/matrix.py [KIND...]     # shows what was found
    python benchmarks/models/matrix.py --write       # writes docs/models.md

Every tiny model of `tiny_models` is saved, loaded as a run loads it, and compared with the logits
that transformers' own model gives for each sequence alone, without a cache and without padding.
"""

import argparse
import asyncio
import logging
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))
import numpy as np
import tiny_models
import torch
import transformers
from transformers import AutoModelForCausalLM

from harness.inference import HFCompleter, Sampling
from harness.model import Policy
from harness.model.logprobs import score_tokens
from harness.model.packing import Sample
from harness.types.errors import ConfigError

PATHS = ("padded", "packed", "shared", "cached")
"""Rows padded on the right; packed rows; shared prefixes; cached decoding, padded on the left."""

AGREES, REFUSED, DIFFERS, FAILS = "agrees", "refused", "differs", "fails"
PAGE = Path(__file__).parents[2] / "docs/models.md"
MOST = 1e-3
"""Nats in float32; nearly all that agree are within 1e-5."""


@dataclass(frozen=True)
class Found:
    """What one path of an architecture does.

    Attributes:
        what: One of `AGREES`, `REFUSED` (a `ConfigError`), `DIFFERS`, `FAILS` (another error).
        why: The refusal, the error, or the largest distance in nats.
    """

    what: str
    why: str


def survey(kind: str, tokenizer: Any) -> dict[str, Found]:
    """Return what each path of an architecture does.

    Raises:
        NotTiny: No tiny model can be made.
    """
    model = tiny_models.make(kind, tokenizer)
    home = Path(tempfile.mkdtemp())
    try:
        try:
            model.save_pretrained(home)
            tokenizer.save_pretrained(home)
            plain = AutoModelForCausalLM.from_pretrained(home, dtype=torch.float32).eval()
            for row in rows():
                truth(plain, row)
        except Exception as e:  # transformers' own; it raises errors of any kind
            raise tiny_models.NotTiny(tiny_models.reason(e)) from e
        return _survey(home, plain)
    finally:
        shutil.rmtree(home)


def _survey(folder: Path, plain: Any) -> dict[str, Found]:
    """Return what each path of a saved model does; what refuses to load refuses all of them."""
    loaded: list[Policy] = []
    exact = {"device": "cpu", "precision": "float32"}  # some of them are not tiny
    refused = _found(lambda: loaded.append(Policy.load(str(folder), **exact)) or 0.0)
    if not loaded:
        return dict.fromkeys(PATHS, refused)
    measures = {
        path: partial(gap, path, loaded[0], plain) for path in ("padded", "packed", "shared")
    }
    measures = {"cached": partial(gap_of_generation, loaded[0], plain), **measures}
    found = {path: _found(measure) for path, measure in measures.items()}
    return {path: found[path] for path in PATHS}


def _found(measure: Callable[[], float]) -> Found:
    try:
        distance = measure()
    except ConfigError as e:
        return Found(REFUSED, str(e))
    except Exception as e:  # the bare ones are what is looked for
        return Found(FAILS, tiny_models.reason(e))
    return Found(AGREES if distance < MOST else DIFFERS, f"{distance:.1e} nats")


def gap(path: str, policy: Policy, plain: Any) -> float:
    """Return the largest distance of log-probabilities from those of the plain model, in nats."""
    policy.set_padding_free(path == "packed")
    policy.set_share_prefixes(path == "shared")
    scored = zip(score_tokens(policy, rows()), rows(), strict=True)
    return _largest((one.logprob, truth(plain, row)) for one, row in scored)


def gap_of_generation(policy: Policy, plain: Any) -> float:
    """Return that distance for answers to prompts of several lengths in one batch."""
    chats = [[{"role": "user", "content": "go north " * n}] for n in (1, 9, 4)]

    async def play() -> Any:
        completer = HFCompleter(policy)
        asked = [completer.complete(c, Sampling(1.0, 12), seed=i) for i, c in enumerate(chats)]
        return await asyncio.gather(*asked)

    answers = [
        Sample(one.prompt_ids, one.response_ids, one.logprobs, 1.0) for one in asyncio.run(play())
    ]
    return _largest((np.array(row.old_logprobs), truth(plain, row)) for row in answers)


def _largest(pairs: Iterator[tuple[Any, Any]]) -> float:
    distances = [float(np.abs(own - exact).max()) for own, exact in pairs]
    return max(distances) if np.isfinite(distances).all() else np.inf


def rows() -> list[Sample]:
    """Return sequences of unequal length that begin alike."""
    chance = np.random.default_rng(0)
    stem = tuple(chance.integers(3, 300, 7).tolist())
    made = []
    for prompt, answer in ((0, 5), (19, 8), (3, 3)):
        own, said = (tuple(chance.integers(3, 300, n).tolist()) for n in (prompt, answer))
        made.append(Sample(stem + own, said, (0.0,) * answer, 1.0))
    return made


@torch.no_grad()
def truth(plain: Any, row: Sample) -> Any:
    """Return log-probabilities of an answer's tokens, by transformers' forward pass alone."""
    ids, size = torch.tensor([row.prompt_ids + row.response_ids]), len(row.response_ids)
    logprob = torch.log_softmax(plain(input_ids=ids).logits[0].float(), -1)
    return logprob[-size - 1 : -1].gather(1, ids[0, -size:, None])[:, 0].double().numpy()


def survey_all(kinds: Sequence[str]) -> tuple[dict[str, dict[str, Found]], dict[str, str]]:
    """Return what was found of each architecture, and why others could not be made tiny."""
    found, left_out = {}, {}
    tokenizer = tiny_models.make_tokenizer()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in kinds:
            try:
                found[kind] = survey(kind, tokenizer)
            except tiny_models.NotTiny as e:
                left_out[kind] = str(e)
    return found, left_out


def page(found: Mapping[str, Mapping[str, Found]], left_out: Mapping[str, str]) -> str:
    """Return the page of the documentation that tells what was found."""
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    counts = {path: sum(one[path].what == AGREES for one in found.values()) for path in PATHS}
    lines = ["| architecture | padded rows | packed rows | shared prefixes | generation |"]
    lines.append("|---|---|---|---|---|")
    lines += [
        f"| `{kind}` | " + " | ".join(_cell(one[path]) for path in PATHS) + " |"
        for kind, one in found.items()
    ]
    return text.format(
        version=transformers.__version__,
        tried=len(found) + len(left_out),
        made=len(found),
        table="\n".join(lines),
        left_out="\n".join(f"- `{kind}`: {why}" for kind, why in left_out.items()),
        **counts,
    )


def _cell(found: Found) -> str:
    return {AGREES: "yes", REFUSED: "no"}.get(found.what, f"**{found.what}**")


def silent(found: Mapping[str, Mapping[str, Found]]) -> dict[tuple[str, str], str]:
    """Return what neither agrees nor is refused with the architecture's name, by it and path."""
    return {
        (kind, path): f"{one.what}: {one.why}"
        for kind, paths in found.items()
        for path, one in paths.items()
        if one.what != AGREES and not (one.what == REFUSED and kind in one.why)
    }


def main() -> None:
    """Show what the paths of architectures do, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--write", action="store_true", help="write docs/models.md")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    every: tuple[dict[str, dict[str, Found]], dict[str, str]] = ({}, {})
    for kind in arguments.kinds or tiny_models.kinds():
        start = time.process_time()
        found, left_out = survey_all([kind])
        for path, one in found.get(kind, {}).items():
            print(f"{kind:24} {path:7} {one.what:8} {one.why[:150]}", flush=True)
        for why in left_out.values():
            print(f"{kind:24} -       not tiny {why}", flush=True)
        if (spent := time.process_time() - start) > 1:
            print(f"{kind:24} {spent:.1f} s")
        every[0].update(found)
        every[1].update(left_out)
    if arguments.write and not arguments.kinds:
        PAGE.write_text(page(*every), encoding="utf-8")


if __name__ == "__main__":
    main()
