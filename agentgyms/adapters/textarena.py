"""Games of TextArena as environments: one player, or two.

gym.make("agentgyms.adapters.textarena:textarena/TextArena-v0", game="TicTacToe-v0")
"""

from __future__ import annotations

import math
from typing import Any, Final

import gymnasium as gym
import numpy as np

from agentgyms.adapters.messages import INSTRUCTIONS, parse_action
from agentgyms.adapters.textarena_table import Broken, Table
from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import BadOption, EnvUnavailable
from agentgyms.core.randomness import drawn
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.models.sync_client import SyncChatClient, read_model
from agentgyms.models.types import Message, Sampling

ID: Final = "textarena/TextArena-v0"
SELF: Final = "self"
_COUNTS: Final = {"train": 1000, "test": 100, "sample": 12}
_FIRST: Final = {"train": 0, "sample": 0, "test": 1_000_000}
_SAMPLING: Final = Sampling(temperature=0.7, max_tokens=512)
_Moves = list[tuple[str, float]]


class TextArenaEnv(TextEnv):
    """A game of TextArena 0.7.4 with one player or two.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `test`, `sample`: games by their seeds |
    | `game` | `"GuessTheNumber-v0"` | TextArena's id |
    | `opponent` | `"self"` | who has the other seat: the caller, or a model on a server |
    | `max_turns` | 100 | turns until the episode is truncated; games have limits of their own |

    An action is a move as the game's text asks for it; `[` and `]` around it may be left out where
    TextArena adds them. Actions cannot be listed. An invalid move is `inadmissible`, and a game
    forgives one in a row. A move in which the game itself fails is `failed` and changes nothing.

    The first observation is the game's prompt; later ones have what was said since the seat's last
    turn, as TextArena's agents read it. The reward comes at the end and is TextArena's: for one
    player mostly 1 if it is solved, else the solved share, and -1 for invalid moves; for two 1, 0
    or -1. `score` is that reward, cut to [0, 1]; with two players half of it plus a half. `success`
    is a reward of 1 or more; with two players one above 0.

    With two players a task is a game and a seat, `train-0007/1`. With `opponent="self"` the caller
    acts for both seats: `info["metrics"]["partner_turn"]` is 1 if the next turn is not the agent's.
    Reward, score and success are the agent's. A model (`"name@http://host:8000/v1"`) plays in a
    conversation of its own, and does not learn.

    Every turn's draws are a function of seed and turn, so forks can draw anew. A game whose text
    depends on Python's hash seed differs between processes (`PYTHONHASHSEED`).
    """

    default_max_turns = 100
    splits = tuple(_COUNTS)
    stochastic = True
    data_version = "0.7.4"

    def __init__(
        self, *, game: str = "GuessTheNumber-v0", opponent: Any = SELF, **common: Any
    ) -> None:
        """Raise `BadOption` for a game that cannot be played here, or a wrong opponent."""
        super().__init__(**common)
        self._game, self._players = game, Table(game, 0).players
        self._client: SyncChatClient | None = None
        if self._players == 2:
            if opponent != SELF:
                self._client = SyncChatClient(read_model(opponent, "opponent", _SAMPLING))
            self.parties = {"opponent": self._client.model.name if self._client else SELF}
        elif opponent != SELF:
            raise BadOption(f"{game} has one player: leave opponent out")
        self.blocking = self._client is not None

    @classmethod
    def is_private(cls, name: str, value: Any) -> bool:
        """Return whether only a server may set a value: addresses of models."""
        return (name == "opponent" and value != SELF) or super().is_private(name, value)

    def load_tasks(self) -> TaskSet:
        """Return the tasks of the split: seeds, and with two players each at both seats."""
        names = [f"{self.split}-{number:04d}" for number in range(_COUNTS[self.split])]
        if self._players == 1:
            return TaskSet(self.split, [Task(name, self._game) for name in names])
        seats = [Task(f"{name}/{seat}", f"seat {seat}") for name in names for seat in (0, 1)]
        return TaskSet(self.split, seats)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start the game; an opponent who begins moves.

        Raises `EnvUnavailable` if a model does not answer.
        """
        self._seed = int(rng.integers(2**31))
        self._set(task, [])
        self._answer(drawn(self._seed, (), 0))
        return self._outcome()

    def goal(self, task: Task) -> str:
        """Return the task in words."""
        return self._goal_of(self._own)

    def act(self, action: str) -> Outcome:
        """Make a move; then a model makes those that follow.

        Raises `EnvUnavailable` if it does not answer. The state is then unchanged.
        """
        before = [*self._moves]
        try:
            reason = self._move(action, self.chance())
        except Broken as e:
            self._set(self._begun_task, before)
            return self._outcome(keys.INVALID_ACTION, Feedback.FAILED, str(e))
        try:
            self._answer(self.chance())
        except EnvUnavailable:
            self._set(self._begun_task, before)
            raise
        if reason:
            return self._outcome(keys.INVALID_ACTION, Feedback.INADMISSIBLE, reason)
        return self._outcome(action.strip())

    def save(self) -> Any:
        """Return the moves so far."""
        return [self._seed, [[*move] for move in self._moves]]

    def load(self, task: Task, state: Any) -> None:
        """Make the moves that `save` returned again; no model is asked."""
        seed, moves = state
        if type(seed) is not int or not all(
            isinstance(text, str) and isinstance(number, float) for text, number in moves
        ):
            raise ValueError(f"{state!r:.80} are no moves of {self._game}")
        self._seed = seed
        try:
            self._set(task, [(text, number) for text, number in moves])
        except Broken as e:
            raise ValueError(f"these moves cannot be made: {e}") from e

    def interrupt(self) -> None:
        """Cancel the requests to the model that are in progress."""
        if self._client:
            self._client.interrupt()

    def close(self) -> None:
        """Close the connection to the model."""
        if self._client:
            self._client.close()

    # --- moves -----------------------------------------------------------------------------------

    def _set(self, task: Task, moves: _Moves) -> None:
        self._begun_task = task
        name, _, seat = task.task_id.partition("/")
        number = _FIRST[self.split] + int(name.rpartition("-")[2])
        self._table, self._own = Table(self._game, number, self._players), int(seat or 0)
        self._moves: _Moves = []
        self._invalid = 0
        self._said: list[Message] = [{"role": "system", "content": INSTRUCTIONS}]
        self._read()
        for text, draw in moves:
            self._move(text, draw)

    def _move(self, text: str, number: float) -> str:
        """Make a move; return why it is invalid, "" if it is valid. Raises `Broken`."""
        mover = self._table.seat
        if mover != self._own:
            self._said.append({"role": "assistant", "content": text})
        reason = self._table.move(text, number)
        self._moves.append((text, number))
        self._invalid += bool(reason) and mover == self._own
        self._read()
        return reason

    def _read(self) -> None:
        """Let the seat that moves next read; at the end, the agent's."""
        seat = self._own if self._table.over else self._table.seat
        text = self._table.read(seat)
        if seat == self._own or self._client is None:
            self._text = text
        else:
            self._said.append({"role": "user", "content": text})

    def _answer(self, chance: float) -> None:
        """Let the model move until it is the agent's turn, or the game is over."""
        drawn_from = int(chance * 2**53)
        while self._client and not self._table.over and self._table.seat != self._own:
            count = len(self._moves)
            answer = self._client.complete(self._said, self._seed + count)
            try:
                self._move(parse_action(answer.text), drawn(drawn_from, (), count))
            except Broken as e:
                raise EnvUnavailable(f"{self._game} failed in the opponent's move: {e}") from e

    def _outcome(
        self, action_key: str = "", feedback: Feedback = Feedback.OK, reason: str = ""
    ) -> Outcome:
        over, reward = self._table.over, self._table.reward(self._own)
        two = self._players == 2
        share = (reward + 1) / 2 if two else reward
        unrated = math.isnan(reward)
        seat = self._own if over else self._table.seat
        return Outcome(
            observation=self._text,
            state_key=keys.state_key(self._begun_task.task_id, self._table.key()),
            reward=reward,
            terminated=over,
            admissible=(),
            action_key=action_key,
            feedback=feedback,
            feedback_text="unrated: the game gave no reward"
            if unrated
            else " ".join(reason.split()),
            score=math.nan if unrated else min(1.0, max(0.0, share)) * over,
            success=over and (reward > 0 if two else reward >= 1),
            metrics={
                "invalid_moves": float(self._invalid),
                "partner_turn": float(seat != self._own),
            },
            goal=self._goal_of(seat),
        )

    def _goal_of(self, seat: int) -> str:
        name = self._game.partition("-v")[0]
        return f"win {name} as player {seat}" if self._players == 2 else f"solve {name}"


gym.register(ID, TextArenaEnv, disable_env_checker=True)
