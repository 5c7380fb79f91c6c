"""Creates the partner and the judge that an environment's arguments name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.envs.sotopia.partner_judge import Judge, Partner
from agentgyms.models.types import Sampling

if TYPE_CHECKING:
    from agentgyms.models.sync_client import SyncChatClient

OFFLINE: Final = {"partner": ("scripted", "self"), "judge": ("programmatic",)}
"""Values of the arguments that need no model."""

SELF: Final = "self"
DEFAULTS: Final = {"partner": "scripted", "judge": "programmatic"}
"""Default partner and judge of generated games."""

_SAMPLING: Final = {
    "partner": Sampling(temperature=0.7, max_tokens=512),
    "judge": Sampling(temperature=0.0, max_tokens=2048),
}
_MODEL: Final = '"name@http://host:8000/v1", or a mapping with name and url'


class Participants:
    """A partner (None in self-chat) and a judge; models among them are blocking."""

    def __init__(self, source: str, partner: Any, judge: Any) -> None:
        self._clients: list[SyncChatClient] = []
        self.partner = self._partner(_check_choice("partner", partner, source))
        self.judge = self._judge(_check_choice("judge", judge, source))
        self.blocking = bool(self._clients)

    @property
    def names(self) -> dict[str, str]:
        """Names of partner and judge, by role."""
        return {
            "partner": SELF if self.partner is None else self.partner.identity,
            "judge": self.judge.identity,
        }

    def interrupt(self) -> None:
        """Cancel the requests in progress."""
        for client in self._clients:
            client.interrupt()

    def close(self) -> None:
        """Close the connections to models."""
        for client in self._clients:
            client.close()

    def _partner(self, value: Any) -> Partner | None:
        if value == SELF:
            return None
        if value == "scripted":
            from agentgyms.envs.sotopia.generated.partner import ScriptedPartner

            return ScriptedPartner()
        from agentgyms.envs.sotopia.llm.participants import ModelPartner

        return ModelPartner(self._client("partner", value))

    def _judge(self, value: Any) -> Judge:
        if value == "programmatic":
            from agentgyms.envs.sotopia.generated.judge import ProgrammaticJudge

            return ProgrammaticJudge()
        from agentgyms.envs.sotopia.llm.participants import ModelJudge

        return ModelJudge(self._client("judge", value))

    def _client(self, role: str, value: Any) -> SyncChatClient:
        from agentgyms.models.sync_client import SyncChatClient, read_model

        client = SyncChatClient(read_model(value, role, _SAMPLING[role]))
        self._clients.append(client)
        return client


def _check_choice(role: str, value: Any, source: str) -> Any:
    if value is None and source == "generated":
        return DEFAULTS[role]
    names = " or ".join(f'"{name}"' for name in OFFLINE[role])
    if value is None:
        also = f', or "{SELF}", where the caller acts for both seats' if role == "partner" else ""
        raise BadOption(f"source={source!r} needs a {role}: give {role}={_MODEL}{also}")
    if value == DEFAULTS[role] and source != "generated":
        raise BadOption(
            f"{role}={value!r} is for source='generated': no program can score open "
            f"situations; give {role}={_MODEL}"
        )
    if isinstance(value, str) and "@" not in value and value not in OFFLINE[role]:
        raise BadOption(f"{role} must be {names}, or a model: {_MODEL}; got {value[:24]!r}")
    return value
