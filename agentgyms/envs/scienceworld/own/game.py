"""A game of ScienceWorld, played in Python."""

from __future__ import annotations

import re
from typing import Final

from agentgyms.envs.scienceworld.own.commands.actions import Action
from agentgyms.envs.scienceworld.own.commands.context import Context
from agentgyms.envs.scienceworld.own.commands.definitions import commands_of
from agentgyms.envs.scienceworld.own.commands.parser import InputParser
from agentgyms.envs.scienceworld.own.commands.possible import possible_actions
from agentgyms.envs.scienceworld.own.commands.referents import BLANKS, all_unique_referents
from agentgyms.envs.scienceworld.own.goals.monitor import ObjMonitor
from agentgyms.envs.scienceworld.own.house.building import mk_kitchen_environment
from agentgyms.envs.scienceworld.own.jvm import JavaError
from agentgyms.envs.scienceworld.own.keys.forks import fork
from agentgyms.envs.scienceworld.own.keys.state import GameState
from agentgyms.envs.scienceworld.own.objects.base import EnvObject
from agentgyms.envs.scienceworld.own.processes.passing import pass_time
from agentgyms.envs.scienceworld.own.simplify import SimplifierProcessor
from agentgyms.envs.scienceworld.own.tasks.maker import TaskMaker1
from agentgyms.envs.scienceworld.own.world import World

_EASY: Final = "teleportAction,openDoors,selfWateringFlowerPots"
_EASY_WITHOUT_WIRES: Final = "teleportAction,noElectricalAction,openDoors,selfWateringFlowerPots"
_BLANKS: Final = re.compile(" +")
_UNKNOWN: Final = (
    "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible "
    "object referents. "
)


class Game(GameState):
    """One variation of a task, from its start on."""

    def __init__(self, task: str, variation: int, simplifications: str = "") -> None:
        """Load the variation; `ValueError` tells what the engine would of a wrong one."""
        self.world = world = World(variation, pass_time)
        world.reset_ids()
        maker = TaskMaker1(world, task, variation)
        world.random.set_seed(variation)
        universe, self.agent = mk_kitchen_environment(world, variation)
        self.universe = universe
        made, error = maker.do_task_setup(universe, self.agent)
        if made is None:
            raise ValueError(f"ERROR: Task ({task}): {error}")
        self._maker, self._task = maker, made
        for obj in made.task_objects:
            self.agent.inventory_container().add_object(obj)
        self.agent.set_task_description(self.task_description())
        self._error = self._simplify(simplifications)
        self._parser = InputParser(commands_of(self.world.simplifier))
        self._context = Context(ObjMonitor(), made.goal_sequence)
        self._history = []
        self.score = 0.0
        self.completed = False
        self.moves = 0

    def _simplify(self, simplifications: str) -> str:
        """Make the world simpler; return the error of an unknown label, or ""."""
        if simplifications == "easy":
            name = self._task.task_name.lower()
            wires = "power-component" in name or "conductivity" in name
            simplifications = _EASY if wires else _EASY_WITHOUT_WIRES
        self.world.simplifier = simplifier = SimplifierProcessor()
        _, error = simplifier.parse_simplification_str(simplifications)
        simplifier.run_simplifications_initialization(self.universe)
        return error

    def fork(self) -> Game:
        """Return a game in the same state; neither game changes the other."""
        return fork(self)

    # --- what the game tells ---

    def task_description(self) -> str:
        """Return the task in words."""
        return str(self._task.description).strip(BLANKS)

    def goal_progress(self) -> str:
        """Return the engine's table of the goals."""
        return self._context.goal_sequence.progress_string()

    def is_in_ambiguous_state(self) -> bool:
        """Tell whether the game asks which thing was meant."""
        return self._parser.ambiguous is not None

    def action_history(self) -> list[str]:
        """Return all commands so far, without those for help."""
        return list(self._history)

    def valid_actions(self) -> list[str]:
        """Return the possible actions, sorted, each once; the generator stays as it is."""
        if self._parser.ambiguous is not None:
            return sorted(str(number) for number in range(len(self._parser.ambiguous)))
        state = self.world.random.state
        found = possible_actions(self.agent, self._here(), self.universe, self.world.simplifier)
        self.world.random.state = state
        return found

    def gold_actions(self) -> tuple[list[str], bool]:
        """Play the engine's own solution; return it, and whether it was found."""
        return self._maker.create_gold_actions(self)

    def _here(self) -> EnvObject:
        container = self.agent.container()
        assert container is not None, "the agent is always in a place"
        return container

    # --- what the agent does ---

    def step(self, text: str) -> str:
        """Run a command and return the observation; `JavaError` where the engine raises one."""
        word = text.strip(BLANKS).lower()
        if word in ("help", "objects", "task"):
            return self._help(word)
        self._history.append(text)
        if self._error:
            self.score, self.completed = -1.0, True
            return self._error or _UNKNOWN
        observation = self._act(text)
        self.score = self._context.goal_sequence.score()
        self.completed = self._context.goal_sequence.is_completed()
        return observation or _UNKNOWN

    def _help(self, word: str) -> str:
        if word == "task":
            return f"Task description:\n{self.task_description()}"
        if word == "help":
            examples = sorted(c.example() for c in commands_of(self.world.simplifier))
            return "Possible actions: \n\t" + "\n\t".join(examples)
        # This draws at random where names clash, as the engine does.
        named = all_unique_referents(self._here(), include_hidden=False)
        return "Possible object references: \n\t" + "\n\t".join(name for name, _ in named)

    def _act(self, text: str) -> str:
        if self._parser.ambiguous is None:
            action, told = self._parser.parse(text, self._here(), self.universe, self.agent)
            if action is None:
                return told
        else:
            # After a wrong number a turn passes without an action.
            action = self._parser.resolve_ambiguity(text)
        out: list[str] = []
        try:
            self._turns(action, out)
        except RecursionError:
            self._error = "java.lang.StackOverflowError"
        except JavaError as e:
            self._error = str(e)
        return _BLANKS.sub(" ", "".join(out).strip(BLANKS))

    def _turns(self, action: Action | None, out: list[str]) -> None:
        """Run an action, and the turns of the world that follow while the agent waits."""
        goals, focus = self._context.goal_sequence, self._context.obj_monitor
        agent, universe = self.agent, self.universe
        takes_time = action is None or action.TAKES_TIME
        if action is not None:
            told = action.run(self._context)
            agent.add_action_to_history(action)
            out.append(told)
        while True:
            goals.tick(focus, agent)
            if takes_time:
                universe.clear_tick_processed_recursive()
                universe.tick()
                self.moves += 1
            goals.tick(focus, agent)
            if not agent.is_waiting():
                return
            agent.decrement_wait()
            takes_time = True
