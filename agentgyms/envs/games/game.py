"""What all games share: tasks, turns, feedback, keys, snapshots, and the exact solution."""

from __future__ import annotations

import inspect
import json
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.envs.games.boards import SPLITS, Board, dealt
from agentgyms.exact import Model, Transition, Values, enumerate_states

State = Any
"""A state of a game: plain numbers, texts and tuples of them."""

_NO_METRICS: Final[Mapping[str, float]] = MappingProxyType({})
_MOST_FACES: Final = 256
"""The most states of a board whose looks are kept."""
_MOST_EXPECTED: Final = 20_000
"""The most states that the expert lists; a game with more has an expert of its own."""


class _Face(NamedTuple):
    """What a state looks like: computed once for each state of a board."""

    text: str
    key: str
    actions: tuple[str, ...]
    progress: float
    moves: dict[str, Sequence[Transition]]  # of the actions that were taken so far


class _Solved(NamedTuple):
    """The exact solution of a board, from a turn on."""

    model: Model
    best: Values
    turn: int


class Game(TextEnv):
    """A game whose rules are functions of its state; the room's `__init__` says how one is written.

    An action that is none takes a turn and changes nothing. `info["progress"]` is `progress` of the
    state. The oracle has `best`, the action that earns the most reward on average, in the fewest
    turns; `optimal_value`, that reward; and `optimal_remaining`, the turns of a shortest solution:
    -1 if there is none, absent in games of chance.
    """

    splits = SPLITS
    words: ClassVar[tuple[str, ...]] = ()
    """The commands."""
    counts: ClassVar[Mapping[str, int]] = MappingProxyType(
        {"train": 1000, "valid_seen": 100, "valid_unseen": 100, "sample": 12}
    )
    """The boards of each split."""
    repeats: ClassVar[bool] = False
    """Whether boards are drawn with replacement, see `boards.dealt`."""
    long_boards: ClassVar[bool] = False
    """Whether states' keys have a digest of the board in its place."""

    # --- the rules, in each game's file ----------------------------------------------------------

    def deal(self, number: int, unseen: bool) -> Board:
        """Return the board of a number; `unseen` asks for the kind of `valid_unseen`."""
        raise NotImplementedError

    def start(self) -> State:
        """Return the first state on `self.board`."""
        raise NotImplementedError

    def actions_in(self, state: State) -> Sequence[str]:
        """Return the legal actions of a state; none where the game is over."""
        raise NotImplementedError

    def transitions(self, state: State, action: str) -> Sequence[Transition]:
        """Return what a legal action may lead to."""
        raise NotImplementedError

    def text(self, state: State) -> str:
        """Return what the agent reads in a state."""
        raise NotImplementedError

    def is_state(self, state: State) -> bool:
        """Return whether a value, of any type, is a state on `self.board`."""
        raise NotImplementedError

    def progress(self, state: State) -> float:
        """Return the completed share of the task, in [0, 1]; nan if unknown."""
        return float("nan")

    def metrics(self, move: Transition) -> Mapping[str, float]:
        """Return figures of the turn that was taken, see `Outcome.metrics`."""
        return _NO_METRICS

    def coded(self, state: State) -> str:
        """Return `keys.coded` of a state; a game may know a faster way."""
        return keys.coded(state)

    def illegal(self, state: State, action: str) -> Transition:
        """Return what a command that is not legal now leads to."""
        return Transition(1.0, state)

    def rules(self) -> Sequence[Any]:
        """Return the arguments that change the rules, JSON-plain: states differ by them."""
        return ()

    def read(self, action: str) -> str:
        """Return the command in an action, "" if it is none."""
        word = action.strip()
        return word if word in self.words else ""

    # --- the world -------------------------------------------------------------------------------

    def load_tasks(self) -> TaskSet:
        """Return the tasks of the split; deals their boards if necessary."""
        boards = self._boards()
        return TaskSet(self.split, [Task(name, board.family) for name, board in boards.items()])

    def _boards(self) -> Mapping[str, Board]:
        kind: Any = type(self)  # gym.Env confuses mypy about what is hashable
        return _dealt(kind, _frozen_arguments(self), self.split)

    def _lay(self, board: Any) -> None:
        self.board = board
        arguments = tuple(map(str, self.rules()))
        self._name = ("games", type(self).__name__, arguments, board)
        self._coded, self._faces = _looks(self._name, self.long_boards)

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start on the task's board."""
        self._lay(self._boards()[task.task_id].content)
        self._state, self._turn = self.start(), 0
        return self._outcome(self._face(self._state), Transition(1.0, self._state))

    def act(self, action: str) -> Outcome:
        """Take an action: the turn's random number picks one of its transitions."""
        self._turn += 1
        word, face = self.read(action), self._face(self._state)
        before, moves = self._state, face.moves.get(word)
        if moves is None:
            if word not in face.actions:
                return self._refuse(action, word)
            moves = face.moves[word] = self.transitions(before, word)
        move = moves[0] if len(moves) == 1 else picked(moves, self.chance())
        self._state = move.state
        changed = move.over or move.state != before
        feedback = Feedback.OK if changed else Feedback.NO_EFFECT
        return self._outcome(self._face(move.state), move, word, feedback)

    def _refuse(self, action: str, word: str) -> Outcome:
        if not word:
            known = ", ".join(self.words)
            reason = f"{action.strip()!r:.60} is no action: expected one of {known:.200}"
            face = self._face(self._state)
            move, feedback = Transition(1.0, self._state), Feedback.MALFORMED
        else:
            move = self.illegal(self._state, word)
            self._state = move.state
            face, feedback = self._face(move.state), Feedback.INADMISSIBLE
            reason = f"{word!r} is not possible now"
        return self._outcome(face, move, keys.INVALID_ACTION, feedback, reason)

    def save(self) -> Any:
        """Return the number of turns and the state."""
        return [self._turn, self._state]

    def load(self, task: Task, state: Any) -> None:
        """Return to what `save` returned."""
        turn, position = state
        position = _frozen(position)
        self._lay(self._boards()[task.task_id].content)
        if type(turn) is not int or not 0 <= turn <= self.max_turns or not self.is_state(position):
            raise ValueError(f"{state!r:.80} is no state of {type(self).__name__} on this board")
        self._turn, self._state = turn, position

    def _face(self, state: State) -> _Face:
        face = self._faces.get(state)
        if face is None:
            if len(self._faces) >= _MOST_FACES:
                self._faces.clear()
            face = self._faces[state] = _Face(
                self.text(state), self.key_of(state), tuple(self.actions_in(state)),
                self.progress(state),
                {},
            )  # fmt: skip
        return face

    def _outcome(
        self,
        face: _Face,
        move: Transition,
        action_key: str = "",
        feedback: Feedback = Feedback.OK,
        reason: str = "",
    ) -> Outcome:
        return Outcome(
            face.text, face.key, move.reward, move.over and not move.cut, move.cut, face.actions,
            True, action_key, feedback, reason, face.progress, move.score, move.success,
            self.metrics(move),
        )  # fmt: skip

    # --- the exact solution ----------------------------------------------------------------------

    @property
    def position(self) -> State:
        """The state of the running episode."""
        return self._state

    @property
    def turns_left(self) -> int:
        """The turns that the running episode may still take."""
        return self.max_turns - self._turn

    def key_of(self, state: State) -> str:
        """Return the key of a state on this board."""
        return keys.coded_key(self._coded, self.coded(state))

    def expert_actions(self) -> dict[str, str]:
        """Return the best action with as many turns left; "" where the game is over."""
        return {"best": self.expert_in(self._state, self._turn)}

    def expert_in(self, state: State, turn: int) -> str:
        """Return the expert's action in a state after a number of turns, "" where it is over."""
        names = self._face(state).actions
        if not names or turn >= self.max_turns:
            return ""
        solved = self._solved(state, turn)
        place = turn - solved.turn, solved.model.number[state]
        return names[int(solved.best.policy[place].argmax())]

    def solution(self) -> dict[str, Any]:
        """Return the expert's action, the reward that it leads to, and the turns that are left."""
        told: dict[str, Any] = {**self.expert_actions(), "optimal_value": self.optimal_value()}
        return told if self.stochastic else {**told, "optimal_remaining": self.optimal_remaining()}

    def optimal_value(self) -> float:
        """Return the most reward that can be expected from here."""
        solved = self._solved(self._state, self._turn)
        return float(solved.best.value[self._turn - solved.turn, solved.model.number[self._state]])

    def optimal_remaining(self) -> int:
        """Return the turns that the best play takes to solve the task from here, -1 if it cannot.

        It is 0 at the end. Games of chance have no such number.
        """
        solved = self._solved(self._state, self._turn)
        model, turn = solved.model, self._turn
        number = model.number[self._state]
        while model.actions[number] and turn < self.max_turns:
            action = int(solved.best.policy[turn - solved.turn, number].argmax())
            turn += 1
            if model.over[number, action, 0]:
                return turn - self._turn if model.rewards["success"][number, action, 0] else -1
            number = int(model.after[number, action, 0])
        return -1 if model.actions[number] else 0

    def _solved(self, state: State, turn: int) -> _Solved:
        """Return the board's solution, or a state's own if legal actions do not lead to it."""
        solved = self._solution_from(self.start(), 0)
        return solved if state in solved.model.number else self._solution_from(state, turn)

    def _solution_from(self, state: State, turn: int) -> _Solved:
        key = (self._name, self.max_turns, state, turn)
        if key not in _SOLVED:
            if len(_SOLVED) >= _MOST_SOLVED:
                _SOLVED.clear()
            model = enumerate_states(_Standing(self, state, turn), _MOST_EXPECTED)
            _SOLVED[key] = _Solved(model, model.optimal(), turn)
        return _SOLVED[key]


class _Standing:
    """A game as it is in a state after a number of turns."""

    def __init__(self, game: Game, state: State, turn: int) -> None:
        self.position, self.turns_left = state, game.max_turns - turn
        self.max_turns = game.max_turns
        self.actions_in, self.transitions = game.actions_in, game.transitions
        self.key_of = game.key_of


_SOLVED: Final[dict[Hashable, _Solved]] = {}
_MOST_SOLVED: Final = 2000


def picked(moves: Sequence[Transition], number: float) -> Transition:
    """Return the transition that a number in [0, 1) picks, as Gymnasium's games pick it."""
    total = 0.0
    for move in moves:
        total += move.probability
        if number < total:
            return move
    return moves[-1]


@lru_cache(maxsize=1024)
def _looks(name: tuple[Any, ...], long_board: bool) -> tuple[str, dict[State, _Face]]:
    """Return what the keys of a board's states begin with, coded, and the looks of its states."""
    parts = (keys.state_key(name),) if long_board else name
    return ",".join(map(keys.coded, parts)), {}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _frozen_arguments(game: Game) -> str:
    own = set(inspect.signature(type(game).__init__).parameters) - {"self", "common"}
    given = {name: value for name, value in game.arguments.items() if name in own}
    return json.dumps(given, sort_keys=True)


@lru_cache(maxsize=64)
def _dealt(kind: type[Game], arguments: str, split: str) -> dict[str, Board]:
    game = kind(**json.loads(arguments))
    return dealt(game.deal, game.counts, split, repeats=game.repeats)
