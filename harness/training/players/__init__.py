"""Players: where the rollouts of a training step come from.

`Player` plays them. `AheadPlayer` plays those of the next step in a thread while the policy learns;
its `GroupStream` plays groups that go on while the weights change (`rollout.ahead = "partial"`).
`RecordedPlayer` reads files, `OutsideAgents` waits for agents at a gateway. All have the methods of
`Player`, which return `StepRollouts`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentgyms.core import imports
from harness.config import Config
from harness.distributed.process_group import ProcessGroup
from harness.distributed.signals import StopSignal
from harness.inference.completers import Completer
from harness.inference.generation import Generator
from harness.model.policy import Policy
from harness.training.players.ahead import AheadPlayer
from harness.training.players.player import Player
from harness.training.players.recorded import RecordedPlayer

if TYPE_CHECKING:
    from harness.training.players.outside_agents import OutsideAgents


def make_player(
    config: Config,
    policy: Policy,
    generator: Generator,
    completer: Completer,
    stop: StopSignal,
    processes: ProcessGroup,
    folder: Path,
) -> Player | AheadPlayer | RecordedPlayer | OutsideAgents:
    """Return the source of a step's rollouts: files, the run's agent, or outside agents.

    `generator` has the policy's weights. `completer` answers in training: it is the generator's, or
    has the initial weights.
    """
    if not config.rollout.is_live:
        return RecordedPlayer(config, policy)
    if config.rollout.ahead:
        return AheadPlayer(config, policy, generator, stop)
    if config.rollout.gateway is None:
        return Player(config, policy, completer, stop.run, processes)
    with imports.needed("server"):
        from harness.training.players.outside_agents import OutsideAgents
    return OutsideAgents(config, policy, completer, stop.run, processes, folder)
