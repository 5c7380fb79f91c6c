"""BabyAI's levels as text: walk through rooms of things, and do what the mission says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import Task
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.games.babyai import routes, view
from agentgyms.envs.games.babyai.levels import LEVELS, scene
from agentgyms.envs.games.babyai.world import ACTIONS, CARRIED, GONE, Scene, State, after, first
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.game import Game
from agentgyms.exact import Transition

_MIXED: Final = ("GoToRedBall", "GoToObj", "GoToLocal", "PickupLoc", "PutNextLocal", "OpenRedDoor")
_AGAIN: Final = 10_000_000
"""A number behind all boards': a room that holds no way is drawn again from further ones."""
_TURN_REWARD: Final = 0.9


class BabyAIEnv(Game):
    """BabyAI's levels by MiniGrid's rules, in the words of BabyAI-Text.

    The actions are `turn left`, `turn right`, `go forward`, `pick up`, `drop` and `toggle`, which
    opens and closes doors; a toggled box is gone. All six are always admissible. The reward is 1
    when the mission is completed, which ends the episode. MiniGrid's own reward, which sinks with
    the turns, is `info["metrics"]["minigrid_reward"]`.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen` (longer rooms), `sample` |
    | `level` | `"mixed"` | a level's name, see below, or six of them in turn |
    | `max_turns` | 64 | turns until the episode is truncated; MiniGrid's limit is the level's own |
    | `oracle` | `False` | put the best action into `info["oracle"]` |

    Levels are `GoToRedBallNoDists`, `GoToRedBallGrey`, `GoToRedBall`, `GoToObj`, `GoToLocal`,
    `PickupLoc`, `PutNextLocal`, `OpenRedDoor` and `OpenDoor`. A family is a level; a board's
    number is MiniGrid's seed. The agent sees 7 by 7 cells ahead of it, up to walls and closed
    doors; `state_key` is that of the whole room. `info["progress"]` is the done share of the
    actions. The expert leaves things that the mission does not name where they are, and takes the
    fewest actions that do so.
    """

    default_max_turns = 64
    long_boards = True
    words = ACTIONS
    tools = Tools(
        Tool(
            "turn",
            "Turn by a quarter.",
            "turn {direction}",
            {"direction": Argument("Where to turn.", choices=("left", "right"))},
        ),
        Tool("go_forward", "Walk one step ahead.", "go forward"),
        Tool("pick_up", "Pick up what is right ahead.", "pick up"),
        Tool("drop", "Put what you carry on the free cell ahead.", "drop"),
        Tool("toggle", "Open or close the door right ahead.", "toggle"),
    )

    def __init__(self, *, level: str = "mixed", **common: Any) -> None:
        super().__init__(**common)
        if level != "mixed" and level not in LEVELS:
            known = ", ".join(LEVELS)
            raise BadOption(f"level {level!r:.60} is unknown: expected mixed or one of {known}")
        self._levels = _MIXED if level == "mixed" else (level,)

    def deal(self, number: int, unseen: bool) -> Board:
        """Return the room of a seed."""
        level, seed = self._levels[number % len(self._levels)], number
        board = scene(level, seed, int(unseen))
        while routes.left(board, first(board)) >= routes.FAR:
            seed += _AGAIN
            board = scene(level, seed, int(unseen))
        return Board(level, tuple(board))

    def goal(self, task: Task) -> str:
        """Return the mission."""
        return self._scene.mission

    def _lay(self, board: Any) -> None:
        super()._lay(board)
        self._scene = Scene(*board)
        self._whole = routes.left(self._scene, first(self._scene))

    def start(self) -> State:
        """Return the state in which the room begins."""
        return first(self._scene)

    def actions_in(self, state: State) -> Sequence[str]:
        """Return the six actions; none at the end."""
        return () if State(*state).done else ACTIONS

    def transitions(self, state: State, action: str) -> Sequence[Transition]:
        """Return what an action leads to."""
        now = after(self._scene, State(*state), ACTIONS.index(action))
        done = bool(now.done)
        return (Transition(1.0, now, float(done), done, done, float(done)),)

    def text(self, state: State) -> str:
        """Return what the agent sees and carries."""
        return view.described(self._scene, State(*state))

    def is_state(self, state: Any) -> bool:
        """Return whether a value can be where everything is."""
        numbers = (
            isinstance(state, tuple)
            and len(state) == len(State._fields)
            and [isinstance(one, tuple) for one in state] == [False] * 3 + [True] * 2 + [False]
            and all(type(n) is int for one in state for n in (one if one in state[3:5] else (one,)))
        )
        if not numbers or len(state[3]) != len(self._scene.things):
            return False
        return self._fits(State(*state))

    def _fits(self, state: State) -> bool:
        rows, cells = self._scene.rows, [p for p in state.places if p >= 0]
        size = len(rows) * len(rows[0])
        inside = 0 <= state.column < len(rows[0]) and 0 <= state.row < len(rows)
        return (
            inside
            and rows[state.row][state.column] != "#"
            and state.facing in range(4)
            and min(state.places, default=0) >= GONE
            and state.places.count(CARRIED) <= 1
            and len(set(cells)) == len(cells)
            and all(p < size and rows[p // len(rows[0])][p % len(rows[0])] != "#" for p in cells)
            and len(state.opened) == len(self._scene.doors)
            and set(state.opened) <= {0, 1}
            and state.done in (0, 1)
        )

    def progress(self, state: State) -> float:
        """Return the done share of the actions."""
        return max(0, self._whole - routes.about(self._scene, State(*state))) / self._whole

    def metrics(self, move: Transition) -> Mapping[str, float]:
        """Return MiniGrid's reward of the turn."""
        if self._turn == 0:
            return {}
        steps = self._scene.steps
        reward = 1 - _TURN_REWARD * (self._turn / steps) if move.success else 0.0
        return {"minigrid_reward": reward}

    # --- the expert ------------------------------------------------------------------------------

    def expert_in(self, state: State, turn: int) -> str:
        """Return the next action of a shortest way, "" at the end."""
        return routes.best(self._scene, State(*state))

    def optimal_value(self) -> float:
        """Return the reward that the expert reaches with the turns that are left."""
        return float(0 < self.optimal_remaining() <= self.turns_left)

    def optimal_remaining(self) -> int:
        """Return the expert's actions from here, 0 at the end, -1 if none lead there."""
        left = routes.left(self._scene, State(*self._state))
        return left if left < routes.FAR else -1
