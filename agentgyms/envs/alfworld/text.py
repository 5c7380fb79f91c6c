"""The texts that the player reads: the wording of every state and of every command's outcome."""

from __future__ import annotations

from typing import Final

from agentgyms.envs.alfworld.game import listing
from agentgyms.envs.alfworld.state import GameState

NOTHING_HAPPENS: Final = "Nothing happens."

HELP: Final = """\
Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""

_MIDDLE: Final = "You are in the middle of a room. Looking quickly around you, you see {}."
_ADJECTIVES: Final = (
    ({"clean", "hot", "sliced"}, "hot and clean sliced"),
    ({"clean", "cool", "sliced"}, "cool and clean sliced"),
    ({"clean", "sliced"}, "clean sliced"),
    ({"hot", "sliced"}, "hot sliced"),
    ({"cool", "sliced"}, "cool sliced"),
    ({"clean", "hot"}, "hot and clean"),
    ({"clean", "cool"}, "cool and clean"),
    ({"hot"}, "hot"),
    ({"clean"}, "clean"),
    ({"cool"}, "cold"),
    ({"sliced"}, "sliced"),
)
"""The treatments of an object, and the words for it; the first that applies is used."""


def introduction(state: GameState) -> str:
    """Return the text that opens the game."""
    game = state.game
    surroundings = (
        look(state) if game.at[state.location] else _MIDDLE.format(listing(game.receptacles))
    )
    return (
        f"-= Welcome to TextWorld, ALFRED! =-\n\n{surroundings}\n\nYour task is to: {game.sentence}"
    )


def look(state: GameState) -> str:
    """Return what lies around the player.

    Beside the receptacles lie the objects that were taken out of one and put into its neighbour.
    """
    game = state.game
    here = game.at[state.location]
    if not here:
        return _MIDDLE.format("nothing")
    names = [game.receptacles[r] for r in here]
    facing = f"{', '.join(names[:-1])}, and {names[-1]}" if len(names) > 1 else names[0]
    beside = [
        game.objects[o] for o in state.objects_beside() for r in here if state.was_taken(o, r)
    ]
    return f"You are facing the {facing}. Next to it, you see {listing(beside)}."


def receptacle(state: GameState, r: int) -> str:
    """Return what a receptacle holds, as far as it is open."""
    game = state.game
    name = game.receptacles[r]
    if not game.openable >> r & 1:
        return f"On the {name}, you see {_contents(state, r)}."
    if not state.is_open(r):
        return f"The {name} is closed."
    return f"The {name} is open. In it, you see {_contents(state, r)}."


def _contents(state: GameState, r: int) -> str:
    objects = state.game.objects
    return listing([objects[o] for o in state.contents[r]])


def inventory(state: GameState) -> str:
    """Return what the player carries."""
    if state.held < 0:
        return "You are not carrying anything."
    return f"You are carrying: a {state.game.objects[state.held]}."


def thing(state: GameState, o: int) -> str:
    """Return what a held object looks like. A vessel shows its inside and nothing else."""
    name = state.game.objects[o]
    if o in state.game.vessels:
        return state.game.vessels[o]
    conditions = state.conditions(o)
    for needed, words in _ADJECTIVES:
        if needed <= conditions:
            return f"This is a {words} {name}."
    return f"There's nothing special about {name}."
