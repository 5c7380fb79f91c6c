"""Plays the steps of a training run with agents of others, who come through a gateway."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from harness.config import Config
from harness.config.rollout_settings import read_address
from harness.distributed.process_group import ProcessGroup
from harness.inference.completers import Completer, Sampling
from harness.model.policy import Policy
from harness.training.gateway.env_sessions import EnvSessions
from harness.training.gateway.gateway import Gateway, GatewayOptions
from harness.training.gateway.name_ledger import NameLedger
from harness.training.gateway.server import TOKEN_VARIABLE, listen
from harness.training.gateway.web import create_app
from harness.training.players.player import StepRollouts, rollout_figures
from harness.types.errors import ConfigError
from harness.types.rollout import OnFinish, Rollout

LEDGER: Final = "gateway.jsonl"
"""The file of a run's folder with the names of its rollouts."""

_GRACE_S: Final = 5.0


class OutsideAgents:
    """Waits for whole groups of a gateway; it has the methods of `Player`.

    `data_version` is "", because the agents choose their environments.
    Checkpoints keep `parts`. Raises `ConfigError` if there are several processes or the address
    cannot be used, and `CheckpointError` if the run's list of names is damaged.
    """

    data_version = ""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        completer: Completer,
        run: Callable[[Coroutine[Any, Any, Any]], Any],
        processes: ProcessGroup,
        folder: Path,
    ) -> None:
        if processes.size > 1:
            raise ConfigError("rollout.gateway is for one process: leave out torchrun")
        self._config, self._run = config, run
        agent, urls = config.agent, config.env.kwargs.get("url") or ()
        token = os.environ.get("AGENTGYMS_TOKEN", "")
        options = GatewayOptions(
            config.run.name,
            config.rollout.group_size,
            Sampling(
                agent.temperature, agent.answer_tokens, max_thought_tokens=agent.max_thought_tokens
            ),
            config.run.seed,
            agent.tool_format,
            agent.thoughts == "strip",
            policy.max_length,
        )
        sessions = EnvSessions([urls] if isinstance(urls, str) else urls, token)
        self._ledger = NameLedger(folder / LEDGER)
        self.gateway = Gateway(completer, policy.chat_tokenizer, options, sessions, self._ledger)
        self.parts = {"gateway": self.gateway.book}
        own = os.environ.get(TOKEN_VARIABLE, "")
        address = read_address(str(config.rollout.gateway))
        threads = config.rollout.max_batch + 8  # so that rewards come in while answers wait
        self.server = listen(create_app(self.gateway, own), address, threads, own)

    def open(self) -> None:
        """Begin to answer; requests wait for the first step."""
        self.server.start()

    def play(self, step: int, on_finish: OnFinish = lambda _: None) -> StepRollouts:
        """Return the oldest whole groups once there are enough for a step."""
        self.gateway.weights, count = step, self._config.rollout.tasks_per_step
        book = self.gateway.book
        self._run(self.gateway.serve(lambda: book.num_whole >= count))
        rollouts: list[Rollout] = []
        stale = 0
        for index, group in enumerate(book.take(count)):
            for member, (rollout, weights) in enumerate(group):
                rollout.group, rollout.member = index, member
                rollouts.append(rollout)
                stale += weights < step
                on_finish(rollout)
        figures = {"rollout/stale_share": stale / len(rollouts)}
        return StepRollouts(rollouts, rollout_figures(rollouts, 0) | figures)

    def close(self) -> None:
        """Refuse the waiting requests, and stop listening."""
        self.gateway.close()
        self.server.drain(_GRACE_S)
        self._ledger.close()
