"""Games in states to compare, for the tests of keys and forks."""

from agentgyms.envs.scienceworld.own.game import Game
from agentgyms.envs.scienceworld.own.keys import encoding
from agentgyms.envs.scienceworld.own.life.plants import Plant

TASKS = [
    "boil",
    "grow-plant",
    "power-component",
    "inclined-plane-determine-angle",
    "use-thermometer",
    "mendelian-genetics-known-plant",
    "chemistry-mix",
]


def start(task="boil", variation=0, simplifications="easy"):
    """Return a game whose goals have been checked once, as in every game that is played."""
    game = Game(task, variation, simplifications)
    game.step("look around")
    return game


def after(*commands, task="boil", simplifications="easy"):
    game = start(task, 0, simplifications)
    for command in commands:
        game.step(command)
    return game


def wander(game, draw, turns):
    """Play valid actions drawn at random, several of a list; return them with what was said."""
    said = []
    for turn in range(turns):
        if turn % 5 == 0 or game.is_in_ambiguous_state():
            actions = game.valid_actions()
        command = draw.choice(actions)
        said.append((command, game.step(command)))
    return said


def things(game):
    """Return all objects that a key has."""
    numbers = encoding.Numbers()
    number = numbers.__getitem__
    number(game.universe)
    encoding._things(numbers, 0, [])
    return numbers.met


def living(game):
    return next(obj for obj in things(game) if isinstance(obj, Plant))
