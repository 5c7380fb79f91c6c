"""State keys, and states that are saved and damaged."""

import random

import pytest
from alfworld_walks import walk
from alfworld_worlds import do, play

from agentgyms.envs.alfworld.builder import build_game
from agentgyms.envs.alfworld.engine import State
from agentgyms.envs.alfworld.generated import generator
from agentgyms.envs.alfworld.validity import check_state

HOUSE = """
    desk_bar_1 at a: mug_bar_1 book_bar_1 knife_bar_1
    drawer_bar_1 at a, closed: fork_bar_1
    sofa_bar_1 at b: tomato_bar_1
    shelf_bar_1 at c: desklamp_bar_1
    microwave_bar_1 at d, closed:
"""


def large(family: str) -> State:
    task_id = f"large-valid_seen-{family}-0003"
    return State(build_game(generator.generate(task_id), task_id))


@pytest.mark.parametrize("family", ["pick", "look", "clean", "heat", "cool", "pick2"])
def test_what_is_kept_for_speed_always_agrees_with_the_bits(family):
    state = large(family)
    for seed in range(5):
        for command in walk(state, random.Random(seed), 60):
            do(state, command.strip())
            check_state(state.game, state.bits)
            fresh = State(state.game, state.bits)
            for name in ("location", "held", "contents", "moves", "admissible", "reached", "key"):
                assert getattr(fresh, name) == getattr(state, name), (name, command)
            if state.won:
                break


def test_equal_states_have_equal_keys_whatever_the_way():
    one, two = play(HOUSE), play(HOUSE)
    do(one, "go to sofa 1", "take tomato 1 from sofa 1", "go to desk 1", "open drawer 1")
    do(two, "go to shelf 1", "go to desk 1", "open drawer 1", "look", "nonsense", "go to sofa 1")
    do(two, "take tomato 1 from sofa 1", "examine tomato 1", "go to desk 1")
    assert one.key == two.key


@pytest.mark.parametrize(
    "commands",
    [
        ("go to sofa 1",),
        ("go to desk 1", "open drawer 1", "go to sofa 1"),
        ("go to sofa 1", "take tomato 1 from sofa 1"),
        ("go to shelf 1", "use desklamp 1", "go to sofa 1"),
        ("go to desk 1", "take knife 1 from desk 1", "go to sofa 1", "slice tomato 1 with knife 1"),
        ("go to desk 1", "take knife 1 from desk 1", "go to sofa 1"),
        ("go to desk 1", "take mug 1 from desk 1", "go to sofa 1", "move mug 1 to sofa 1"),
        (
            *("go to sofa 1", "take tomato 1 from sofa 1", "go to microwave 1"),
            *("heat tomato 1 with microwave 1", "go to sofa 1", "move tomato 1 to sofa 1"),
        ),
    ],
)
def test_every_fact_counts_in_the_key(commands):
    start, here = play(HOUSE), play(HOUSE)
    do(here, *commands)
    assert here.key != start.key
    there = play(HOUSE)
    do(there, "go to sofa 1")
    assert (here.key == there.key) == (commands == ("go to sofa 1",))


def test_memory_that_can_show_counts_in_the_key():
    """A mug that was moved to the neighbour and one that was carried there look different."""
    one, two = play(HOUSE), play(HOUSE)
    do(one, "go to desk 1", "open drawer 1", "take mug 1 from desk 1", "move mug 1 to drawer 1")
    do(two, "go to desk 1", "open drawer 1", "take mug 1 from desk 1", "move mug 1 to drawer 1")
    assert one.key == two.key
    do(two, "take mug 1 from drawer 1", "move mug 1 to desk 1")
    start = play(HOUSE)
    do(start, "go to desk 1", "open drawer 1")
    assert do(two, "look") != do(start, "look")
    assert two.key != start.key


def test_memory_that_can_never_show_does_not_count():
    """The sofa has no neighbour: that the tomato was once taken from it changes nothing."""
    moved, start = play(HOUSE), play(HOUSE)
    do(moved, "go to sofa 1", "take tomato 1 from sofa 1", "move tomato 1 to sofa 1")
    do(start, "go to sofa 1")
    assert moved.key == start.key


def all_states(start: State) -> dict[int, dict[str, tuple]]:
    """Return every reachable state with what each command shows there and where it leads."""
    found, waiting = {}, [start.bits]
    while waiting:
        bits = waiting.pop()
        if bits in found:
            continue
        found[bits] = {}
        for command in State(start.game, bits).admissible:
            there = State(start.game, bits)
            found[bits][command] = (do(there, command), there.won, there.bits)
            waiting.append(there.bits)
    return found


@pytest.mark.parametrize(
    "house",
    [
        "desk_bar_1 at a: mug_bar_1\n drawer_bar_1 at a, closed: book_bar_1\n safe_bar_1 at b:",
        "desk_bar_1 at a: mug_bar_1\n safe_bar_1 at b: mug_bar_1\n shelf_bar_1 at b:",
        "desk_bar_1 at a: knife_bar_1 tomato_bar_1\n safe_bar_1 at a:\n bed_bar_1 at b:",
    ],
)
def test_states_with_other_keys_behave_differently_in_some_future(house):
    """Nothing is in the state that no player could ever notice.

    States are told apart by what commands show, then by where commands lead, until no more are.
    """
    start = play(house)
    states = all_states(start)
    classes = dict.fromkeys(states, 0)
    while True:
        signatures = {
            bits: (
                classes[bits],
                *((c, text, won, classes[there]) for c, (text, won, there) in moves.items()),
            )
            for bits, moves in states.items()
        }
        numbers = {signature: i for i, signature in enumerate(set(signatures.values()))}
        refined = {bits: numbers[signature] for bits, signature in signatures.items()}
        if len(numbers) == len(set(classes.values())):
            break
        classes = refined
    assert len(set(classes.values())) == len(states) > 20


def test_the_task_belongs_to_the_key():
    problem = generator.generate("small-train-pick-0000")
    one, two = (State(build_game(problem, name)) for name in ("one", "two"))
    assert one.bits == two.bits
    assert one.key != two.key


def test_keys_are_the_same_in_every_process_and_release():
    state = large("heat")
    assert state.key == "fd048c067abd223d16e063f7405ccd1e"
    do(state, state.admissible[0])
    assert state.key == "54420965b2fd1c8c7aba0faed6697f0c"


def damaged(state: State):
    """Yield states that cannot be, each made from a good one by one change."""
    layout, game = state.game.layout, state.game
    wide = len(game.receptacles)
    bits = state.bits
    yield "two locations", bits | 0b11
    yield "no location", bits & ~((1 << layout.opened) - 1)
    yield "unknown facts", bits | 1 << layout.end
    yield "negative", -bits
    closed = next(r for r in range(wide) if not game.openable >> r & 1)
    yield "open desk", bits | 1 << (layout.opened + closed)
    yield "two held", bits | 0b11 << layout.held
    fixed = next(o for o in range(len(game.objects)) if not game.pickable >> o & 1)
    yield "lamp held", bits | 1 << (layout.held + fixed)
    yield "book sliced", bits | 1 << (layout.sliced + game.objects.index("book 1"))
    yield "lamp gone", bits & ~(((1 << wide) - 1) << (layout.inside + fixed * wide))
    yield (
        "book gone",
        bits & ~(((1 << wide) - 1) << (layout.inside + game.objects.index("book 1") * wide)),
    )
    yield (
        "taken from the sofa",
        bits
        | 1
        << (layout.taken + game.objects.index("book 1") * wide + game.receptacles.index("sofa 1")),
    )
    yield (
        "beside nothing",
        bits | 1 << (layout.beside + game.objects.index("book 1") * len(game.at)),
    )


DAMAGES = [name for name, _ in damaged(play(HOUSE))]


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_state_is_refused(name):
    state = play(HOUSE)
    check_state(state.game, state.bits)
    with pytest.raises(ValueError):
        check_state(state.game, dict(damaged(state))[name])
