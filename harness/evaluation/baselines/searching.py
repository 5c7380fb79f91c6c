"""Agents that search at a task, each with the cost of its search: best-of-n and MCTS."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentgyms.data.users_files import read_lines
from agentgyms.recording import recording_format
from harness.config import SearchConfig
from harness.evaluation.episodes import EPISODE_KEY, usage_of
from harness.rollouts.episode import Episode, run_episode
from harness.rollouts.groups import RunEpisode
from harness.rollouts.search import preferences
from harness.rollouts.search.best_of import SELECT
from harness.rollouts.search.budget import Budget
from harness.rollouts.search.mcts import Plan, TreeSearch
from harness.rollouts.search.policies import Proposals, StateValue
from harness.rollouts.views import Actor
from harness.types.rollout import Rollout, Usage

PlayOne = Callable[[int, RunEpisode], Awaitable[Rollout]]
"""Plays an episode of the task; its decisions depend on the number."""

Parts = Callable[[Budget], tuple[Proposals, StateValue]]
"""Returns a policy and the values of a tree search, paid from its budget."""


class BestOf:
    """Plays several episodes of a task and keeps one; the first is an agent's without search."""

    def __init__(self, search: SearchConfig) -> None:
        assert search.select is not None
        self._count, self._select = search.episodes, SELECT[search.select]

    async def play(
        self, play_one: PlayOne, draws: int, unit_seed: int
    ) -> tuple[Rollout, dict[str, Any]]:
        """Return the chosen episode, and the cost of the search beside it.

        `draws` is the seed of the search's draws, `unit_seed` one of the evaluation's seeds. The
        cost has `steps`, `tokens` and `calls`, and the search's figures. The episode may have an
        error.
        """
        played: list[Rollout] = []
        for number in range(self._count):
            played.append(await play_one(number, run_episode))
            if played[-1].error:
                return played[-1], {}
        kept = self._select(played)
        turns = [
            turn
            for rollout in played
            if rollout is not played[kept] and rollout.recording is not None
            for turn in rollout.recording.turns[1:]
        ]
        return played[kept], {
            "episodes": self._count,
            "kept": kept,
            "steps": len(turns),
            **_as_json(usage_of(turns)),
        }


class Mcts:
    """Searches a tree before each turn of one episode."""

    def __init__(self, search: SearchConfig, parts: Parts) -> None:
        self._search, self._parts = search, parts

    async def play(
        self, play_one: PlayOne, draws: int, unit_seed: int
    ) -> tuple[Rollout, dict[str, Any]]:
        """Return the episode; see `BestOf.play`."""
        own, made = self._search, list[tuple[TreeSearch, Budget]]()
        assert own.backup is not None
        plan = Plan(own.simulations, own.exploration, own.discount, own.backup)

        async def run(
            episode: Episode, actor: Actor, *, seed: int, allow_initial_overflow: bool = False
        ) -> Rollout:
            budget = Budget(own.max_steps, own.max_tokens)
            made.append((TreeSearch(*self._parts(budget), budget, plan, draws), budget))
            return await made[-1][0].run(
                episode, actor, seed=seed, allow_initial_overflow=allow_initial_overflow
            )

        rollout = await play_one(0, run)
        if rollout.error:
            return rollout, {}
        search, budget = made[-1]
        about = {
            "simulations": search.simulations,
            "states": len(search.nodes),
            "steps": budget.steps,
            **_as_json(budget.usage - search.taken),
        }
        if own.preferences:
            pairs = search.preferences(unit_seed, own.min_visits)
            about["preferences"] = [asdict(pair) for pair in pairs]
        return rollout, about


Searcher = BestOf | Mcts
"""Plays a task with a search."""


def _as_json(usage: Usage) -> dict[str, Any]:
    return {"tokens": [usage.prompt, usage.response], "calls": usage.calls}


def write_preferences(recordings: Path) -> None:
    """Write the preferences of an evaluation beside the recordings that hold them."""
    preferences.write(
        recordings.with_name(preferences.FILE),
        (
            preferences.decode(pair)
            for recording in recording_format.parse(read_lines(recordings), str(recordings))
            for pair in recording.header["provenance"][EPISODE_KEY]
            .get("search", {})
            .get("preferences", [])
        ),
    )
