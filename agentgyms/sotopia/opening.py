"""Who takes part: opens the partner and the judge that an environment is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentgyms.chat.values import Sampling
from agentgyms.errors import BadOption
from agentgyms.sotopia.parties import Judge, Partner

if TYPE_CHECKING:
    from agentgyms.chat.asking import Asker

OFFLINE: Final = {"partner": ("scripted", "self"), "judge": ("programmatic",)}
"""Values of the arguments that need no model."""

SELF: Final = "self"
DEFAULTS: Final = {"partner": "scripted", "judge": "programmatic"}
"""Who takes part in generated games if nobody is asked for."""

_SAMPLING: Final = {
    "partner": Sampling(temperature=0.7, max_tokens=512),
    "judge": Sampling(temperature=0.0, max_tokens=2048),
}
_MODEL: Final = '"name@http://host:8000/v1", or a mapping with name and url'


class Parties:
    """The others in the episodes of one environment.

    Attributes:
        partner: Acts for the other seat; None where the caller does it.
        judge: Rates.
        blocking: Whether one of them is waited for.
    """

    def __init__(self, source: str, partner: Any, judge: Any) -> None:
        """Open them; nothing is connected to yet.

        Raises:
            BadOption: An argument names nobody, or one who cannot take part with this source.
            DependencyNotInstalled: A model is asked for, and the extra that brings it is missing.
        """
        self._askers: list[Asker] = []
        self.partner = self._partner(_chosen("partner", partner, source))
        self.judge = self._judge(_chosen("judge", judge, source))
        self.blocking = bool(self._askers)

    @property
    def names(self) -> dict[str, str]:
        """Who they are, by role."""
        return {
            "partner": SELF if self.partner is None else self.partner.identity,
            "judge": self.judge.identity,
        }

    def interrupt(self) -> None:
        """End the requests that are waited for."""
        for asker in self._askers:
            asker.interrupt()

    def close(self) -> None:
        """Give back the connections to models."""
        for asker in self._askers:
            asker.close()

    def _partner(self, value: Any) -> Partner | None:
        if value == SELF:
            return None
        if value == "scripted":
            from agentgyms.sotopia.generated.partner import ScriptedPartner

            return ScriptedPartner()
        from agentgyms.sotopia.model_partner import ModelPartner

        return ModelPartner(self._asker("partner", value))

    def _judge(self, value: Any) -> Judge:
        if value == "programmatic":
            from agentgyms.sotopia.generated.judge import ProgrammaticJudge

            return ProgrammaticJudge()
        from agentgyms.sotopia.model_judge import ModelJudge

        return ModelJudge(self._asker("judge", value))

    def _asker(self, role: str, value: Any) -> Asker:
        from agentgyms.chat.asking import Asker, read_model

        asker = Asker(read_model(value, role, _SAMPLING[role]))
        self._askers.append(asker)
        return asker


def _chosen(role: str, value: Any, source: str) -> Any:
    """Return the argument, with the default of the source where there is None."""
    if value is None and source == "generated":
        return DEFAULTS[role]
    names = " or ".join(f'"{name}"' for name in OFFLINE[role])
    if value is None:
        also = f', or "{SELF}", where the caller acts for both seats' if role == "partner" else ""
        raise BadOption(f"source={source!r} needs a {role}: give {role}={_MODEL}{also}")
    if value == DEFAULTS[role] and source != "generated":
        raise BadOption(
            f"{role}={value!r} is for source='generated': a program cannot tell who reached what "
            f"in open situations; give {role}={_MODEL}"
        )
    if isinstance(value, str) and "@" not in value and value not in OFFLINE[role]:
        raise BadOption(f"{role} must be {names}, or a model: {_MODEL}; got {value[:24]!r}")
    return value
