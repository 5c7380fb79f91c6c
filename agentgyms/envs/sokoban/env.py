"""The Sokoban environment in text, and the base of its visual variant."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from agentgyms.core import keys
from agentgyms.core.arguments import defaults
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.images import Image
from agentgyms.core.outcome import Observation
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.sokoban import image, solver, text
from agentgyms.envs.sokoban.engine import WORDS, Effect, Room, State
from agentgyms.envs.sokoban.options import check_path, check_rewards, open_source
from agentgyms.envs.sokoban.sources import SPLITS, SeedSet, list_tasks, load_room

_NUMBERS: Final = {word: number for number, word in enumerate(WORDS, 1)}
_NO_MOVE: Final = "still"
_NOTHING: Final = Effect(moved=False, pushed=False)
_LEVEL_MAX_TURNS: Final = 120
_RENDER_PIXELS: Final = 48


class SokobanEnv(TextEnv):
    """Sokoban in text: push every box onto a target, one step at a time.

    Rules, rewards and the characters of the grid are gym-sokoban's and RAGEN's. The actions are
    `up`, `down`, `left` and `right`: a step, which pushes a box in front of the player if possible.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid`, `test`, or `sample`, the first 12 of train |
    | `size` | 6 | rows and columns, the outer walls included: a number or a pair |
    | `boxes` | 1 | number of boxes |
    | `walls` | `(0.2, 0.6)` | share of walls among the inner cells: one, or least and greatest |
    | `difficulty` | `None` | least and greatest length of a shortest solution; None: 3 to 15 |
    | `rooms` | `None` | rooms of train, a tenth of it in valid and test; None: 10,000 or fewer |
    | `compat_seed` | `False` | the rooms that a peer makes from a seed, bit for bit |
    | `peer` | `None` | which: `"verl_agent"` (None is this), `"ragen"` or `"gym_sokoban"` |
    | `search_depth` | `None` | the peer's setting; None is 30 for verl_agent, 300 for ragen |
    | `levels` | `None` | a folder or file of Boxoban levels to play instead |
    | `rewards` | `None` | other `step` -0.1, `on_target` 1, `off_target` -1, `solved` 10 |
    | `lenient` | `False` | find the first of up, down, left, right, still within the action |
    | `text_format` | `"legend"` | `"legend"` explains its `"grid"`; `"verl_agent"`, `"gem"` |
    | `max_turns` | 15 | turns until the episode is truncated; 120 for levels |
    | `oracle` | `False` | put the solver's next move and the distance into `info["oracle"]` |

    Reward: every turn -0.1, +1 if a box came onto a target, -1 if one left it, +10 when all are
    covered, which terminates the episode. Malformed text takes a turn and costs 0.1.

    Generated rooms can be solved within `max_turns`; none is a copy of another one, turned,
    mirrored or shifted, and no floor plan (walls and targets) is in two splits. Families are the
    lengths of the shortest solutions in fives: `01-05`, `06-10`, `11-15`. There are 10,000 rooms to
    train in with up to 200 ways to place the boxes, 1,000 with up to 50,000, else 100; fewer if
    there are not so many.

    With `compat_seed` the task ids are `seed-<n>`, and `reset(seed=n)` plays seed n. As in
    verl-agent, n is below 65535 in train and from 65536 to 2**32 - 1 in valid and test, which list
    a thousand of them; another n draws from the list. If the peer makes no room from a
    seed, the next seed with a room is used. The guarantees above do not hold then: the peers' seeds
    repeat rooms across splits, and some rooms cannot be solved in time.

    `info["admissible_actions"]` are the actions that would change the state; a step into a wall has
    feedback `no_effect`. `info["progress"]` is the completed part of the shortest solution, 0 if
    the room can no longer be solved; in rooms with more than 60,000 states it is the fraction of
    boxes on targets. `info["metrics"]`: `moved`, `pushed`, `boxes_on_target`, and `deadlocked`: 1
    if the room can no longer be solved, absent at its start and in rooms with more states. The
    oracle has `best`, `optimal_remaining` (-1 without a solution, -2 if the search was aborted, in
    large rooms) and `deadlocked`.
    """

    default_max_turns = 15
    tools = Tools(
        Tool(
            "move",
            "Walk one cell; walking into a box pushes it if the cell behind it is free.",
            "{direction}",
            {"direction": Argument("Where to walk.", choices=WORDS)},
        ),
    )
    splits = SPLITS
    private_arguments = frozenset({"levels"})
    client_limits = MappingProxyType({**TextEnv.client_limits, "rooms": 1_000})

    def __init__(
        self,
        *,
        size: int | Sequence[int] = 6,
        boxes: int = 1,
        walls: float | Sequence[float] = (0.2, 0.6),
        difficulty: Sequence[int] | None = None,
        rooms: int | None = None,
        compat_seed: bool = False,
        peer: str | None = None,
        search_depth: int | None = None,
        levels: str | os.PathLike[str] | None = None,
        rewards: Mapping[str, float] | None = None,
        lenient: bool = False,
        text_format: str = "legend",
        max_turns: int | None = None,
        **common: Any,
    ) -> None:
        """Check the arguments; see the class for their meaning.

        Raises:
            BadOption: An argument is invalid, or belongs to another source of rooms.
            DataMissing: There are no level files at `levels`.
        """
        if max_turns is None and levels is not None:
            max_turns = _LEVEL_MAX_TURNS
        super().__init__(max_turns=max_turns, **common)
        if levels is not None:
            levels = self._arguments["levels"] = check_path(levels)
        room_arguments = {
            "size": size, "boxes": boxes, "walls": walls, "difficulty": difficulty,
            "rooms": rooms, "compat_seed": compat_seed, "search_depth": search_depth,
            "peer": peer, "levels": levels,
        }  # fmt: skip
        default_values = defaults(SokobanEnv)
        given = {
            name: value for name, value in room_arguments.items() if value != default_values[name]
        }
        self._source = open_source(given, room_arguments, self.max_turns)
        self.data_version = self._source.version(self.split)
        self._rewards = check_rewards(rewards)
        if not isinstance(lenient, bool):
            raise BadOption(f"lenient must be True or False, got {lenient!r}")
        self._lenient = lenient
        if not isinstance(text_format, str) or text_format not in text.FORMATS:
            known = ", ".join(text.FORMATS)
            raise BadOption(f"text_format {text_format!r} is unknown: expected one of {known}")
        self._text = text.FORMATS[text_format]

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:
        """Return `"official"` for a peer's rooms, `""` for level files, else `"generated"`."""
        if arguments.get("levels") is not None:
            return ""
        return "official" if arguments.get("compat_seed") else "generated"

    def load_tasks(self) -> TaskSet:
        """Return the rooms of the split; generates them if necessary."""
        return list_tasks(self._source, self.split)

    def draw_task(self, seed: int, rng: np.random.Generator) -> str:
        """Return a random room, or that of the seed with `compat_seed`."""
        if isinstance(self.tasks, SeedSet) and seed in self.tasks.seeds:
            return self.tasks.task_id(seed)
        return super().draw_task(seed, rng)

    def goal(self, task: Task) -> str:
        """Return the task in words."""
        one = self._state.room.num_boxes == 1
        return "Push the box onto the target." if one else "Push every box onto a target."

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start in the task's room; episodes are deterministic."""
        self._start_room(self._room(task.task_id))
        return self._outcome(_NOTHING)

    def _room(self, task_id: str) -> Room:
        return load_room(self._source, self.split, task_id)

    def _start_room(self, room: Room) -> None:
        self._state = State(room)
        self._on_target = self._state.boxes_on_target

    def act(self, action: str) -> Outcome:
        """Take a step."""
        word = self._word(action)
        if word is None:
            words = ", ".join(WORDS)
            reason = f"{action.strip()!r:.60} is no action: expected one of {words}"
            return self._outcome(_NOTHING, keys.INVALID_ACTION, Feedback.MALFORMED, reason)
        effect = self._state.step(_NUMBERS.get(word, 0))
        if not effect.moved:
            reason = f"{word!r} changed nothing"
            return self._outcome(effect, keys.INVALID_ACTION, Feedback.NO_EFFECT, reason)
        return self._outcome(effect, word)

    def _word(self, action: str) -> str | None:
        """Return the action word in a text, None if there is none; `lenient` searches inside."""
        if not self._lenient:
            word = action.strip()
            return word if word in _NUMBERS else None
        lowered = action.lower()
        return next((word for word in (*WORDS, _NO_MOVE) if word in lowered), None)

    def save(self) -> Any:
        """Return the position: boxes in hexadecimal, and the player's bit."""
        return [f"{self._state.boxes:x}", self._state.player]

    def load(self, task: Task, state: Any) -> None:
        """Restore a position that `save` returned."""
        room = self._room(task.task_id)
        boxes, player = int(state[0], 16), state[1]
        free = room.floor & ~boxes
        fits = boxes >= 0 and boxes.bit_count() == room.num_boxes and not boxes & ~room.floor
        if not fits or type(player) is not int or player < 0 or not free >> player & 1:
            raise ValueError("boxes and player are not all on the floor of the room")
        self._start_room(room)
        self._state.boxes, self._state.player = boxes, player
        self._on_target = self._state.boxes_on_target

    def expert_actions(self) -> dict[str, str]:
        """Return the first move of a shortest solution, or any move if none is known."""
        state = self._state
        move = solver.best_action(state) or next(iter(state.effective()), WORDS[0])
        return {"best": move}

    def solution(self) -> dict[str, Any]:
        """Return the expert's move, the number of moves left, and whether it is a deadlock."""
        left = solver.distance(self._state)
        answer = {"optimal_remaining": left, "deadlocked": left == solver.DEAD}
        return {**self.expert_actions(), **answer}

    def draw(self) -> Image:
        """Return an image of the room with cells of 48 pixels."""
        return image.draw(self._state, _RENDER_PIXELS)

    def _observe(self) -> Observation:
        return self._text(self._state)

    def _outcome(
        self,
        effect: Effect,
        action_key: str = "",
        feedback: Feedback = Feedback.OK,
        reason: str = "",
    ) -> Outcome:
        state, before = self._state, self._on_target
        room, solved, left = state.room, state.solved, self._moves_left()
        self._on_target = state.boxes_on_target
        return Outcome(
            observation=self._observe(),
            state_key=keys.state_key(
                "sokoban",
                room.height,
                room.width,
                f"{room.floor:x}",
                f"{room.targets:x}",
                *self.save(),
            ),
            reward=self._rewards.earned(before, self._on_target, solved),
            terminated=solved,
            admissible=state.effective(),
            admissible_complete=True,
            action_key=action_key,
            feedback=feedback,
            feedback_text=reason,
            progress=self._progress(left),
            score=float(solved),
            success=solved,
            metrics={
                "moved": float(effect.moved),
                "pushed": float(effect.pushed),
                "boxes_on_target": float(self._on_target),
                "deadlocked": math.nan if left is None else float(left == solver.DEAD),
            },
            atoms=self._atoms(),
        )

    def _atoms(self) -> dict[str, bool | float]:
        """Return whether a box is on each target; targets are numbered row by row."""
        targets, covered = self._state.room.targets, dict[str, bool | float]()
        while targets:
            target = targets & -targets
            covered[f"target {len(covered) + 1}"] = bool(self._state.boxes & target)
            targets ^= target
        return covered

    def _moves_left(self) -> int | None:
        """Return the solver's distance; None at the start and without a table of all states."""
        state, room = self._state, self._state.room
        at_start = state.boxes == room.boxes and state.player == room.player
        return None if at_start or not solver.has_table(room) else solver.distance(state)

    def _progress(self, left: int | None) -> float:
        """Return the completed part of the solution that has `left` moves more."""
        room = self._state.room
        if not solver.has_table(room):
            return max(0, self._on_target) / room.num_boxes
        if left is None or left == solver.DEAD:
            return 0.0
        whole = solver.distance(State(room))
        return max(0, whole - left) / whole
