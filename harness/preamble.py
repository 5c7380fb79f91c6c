"""What stands before an agent's first prompt: worked examples and reflections on earlier trials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from harness import prompts
from harness.budget import WHOLE, Cuts


@dataclass(frozen=True, slots=True)
class Preamble:
    """Worked examples, then reflections, each in the words of its template.

    Attributes:
        env_id: Whose templates `examples` and `memory` are taken.
        examples: As text; the last ones are left out first.
        reflections: Oldest first, as they are left out.
    """

    env_id: str = ""
    examples: tuple[str, ...] = ()
    reflections: tuple[str, ...] = ()

    def text(self, cuts: Cuts = WHOLE) -> str:
        """Return the text without what `cuts` leaves out, a blank line at its end; "" if empty."""
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


NOTHING: Final = Preamble()
