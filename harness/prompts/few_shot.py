"""The preamble of an agent's first prompt: worked examples and reflections on earlier trials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from harness import prompts
from harness.prompts.truncation import NO_CUTS, Cuts


@dataclass(frozen=True, slots=True)
class Preamble:
    """Worked examples, then reflections, each rendered with its template."""

    env_id: str = ""  # environment whose templates `examples` and `memory` are used
    examples: tuple[str, ...] = ()  # worked examples as text; the last ones are left out first
    # Reflections, oldest first; the oldest ones are left out first.
    reflections: tuple[str, ...] = ()

    def text(self, cuts: Cuts = NO_CUTS) -> str:
        """Return the text with these cuts and a blank line at its end; "" if it is empty."""
        examples = self.examples[: len(self.examples) - cuts.examples]
        return _text(self.env_id, examples, self.reflections[cuts.reflections :])


@lru_cache(maxsize=1024)
def _text(env_id: str, examples: tuple[str, ...], reflections: tuple[str, ...]) -> str:
    text = ""
    if examples:
        text += prompts.load_part("examples", env_id).render(examples=examples) + "\n\n"
    if reflections:
        text += prompts.load_part("memory", env_id).render(reflections=reflections) + "\n\n"
    return text


NO_PREAMBLE: Final = Preamble()
