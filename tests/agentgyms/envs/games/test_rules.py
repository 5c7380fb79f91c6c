"""The games without a package to compare with: worked cases of their published rules."""

import itertools
import random
from collections import deque

import gymnasium as gym
import pytest

from agentgyms.core.errors import BadOption
from agentgyms.envs.games import hanoi
from agentgyms.envs.games.countdown import CountdownEnv, can_make
from agentgyms.envs.games.formulas import solutions, value_of
from agentgyms.envs.games.hanoi import TowerOfHanoiEnv
from agentgyms.envs.games.minesweeper import MinesweeperEnv, _field, _opened, _safest
from agentgyms.envs.games.number_line import NumberLineEnv
from agentgyms.envs.games.points import EZPointsEnv, Points24Env


def on(env, board):
    """Return an environment that has begun on a board of ours."""
    env.reset(seed=0)
    env._lay(board)
    env._state, env._turn = env.start(), 0
    return env


def steps(env, actions):
    """Return reward, terminated and truncated of each action."""
    return [env.step(action)[1:4] for action in actions]


# --- gym_cards, RL4VLM/RL4VLM at 202229a4 --------------------------------------------------------


def test_number_line():
    """1 on the target, -1 for a step that comes no nearer, 0 else; the ends hold."""
    env = on(NumberLineEnv(), (5, 1, 3))
    walk = steps(env, ["-", "-", "+", "+", "+"])
    assert walk == [
        (-1, False, False),
        (-1, False, False),
        *[(0, False, False)] * 2,
        (1, True, False),
    ]
    env = on(NumberLineEnv(), (5, 5, 0))
    assert steps(env, ["+"] * 10) == [*[(-1, False, False)] * 9, (-1, False, True)]


def test_ezpoints():
    cards = (("Q", "2"), (10, 2), 12)
    right = steps(on(EZPointsEnv(), cards), ["10", "+", "2", "="])
    assert right == [*[(0, False, False)] * 3, (10, True, False)]
    assert steps(on(EZPointsEnv(), cards), ["10", "*", "2", "="])[-1] == (-1, True, False)
    assert steps(on(EZPointsEnv(), cards), ["10", "="])[-1] == (-1, True, False)
    # the number of no card costs 1 and leaves a space, which is no fault of the formula
    env = on(EZPointsEnv(), cards)
    assert steps(env, ["3", "10", "+", "2"])[0] == (-1, False, False)
    assert env.step("=")[1] == 10
    assert steps(on(EZPointsEnv(), cards), ["10", "10"])[-1] == (-1, False, False)
    # six tokens: whatever comes then ends the episode, cut off
    long = steps(on(EZPointsEnv(max_turns=50), cards), ["+"] * 7)
    assert long == [*[(0, False, False)] * 6, (-1, False, True)]
    assert steps(on(EZPointsEnv(), cards), ["10", "+", "+", "+", "+", "2", "="])[-1][0] == -1


def test_points24():
    env = on(Points24Env(), (("3", "8", "3", "8"), (3, 8, 3, 8), 24))
    tokens = ["8", "/", "(", "3", "-", "8", "/", "3", ")", "="]
    walk = steps(env, tokens)
    assert walk[-1] == (10, True, False), "exactly, where the original's floating point misses it"
    env = on(Points24Env(), (("2", "4", "A", "A"), (2, 4, 1, 1), 24))
    assert steps(env, ["2", "4", "*", "1", "*", "1", "="])[-1][0] == 10, "digits join, as there"
    env = on(Points24Env(), (("6", "4", "A", "A"), (6, 4, 1, 1), 24))
    assert steps(env, ["6", "*", "4", "="])[-1][0] == -1, "two cards are left"


def test_values_are_those_of_python():
    rng = random.Random(0)
    tokens = [*map(str, range(1, 11)), *"+-*/()"]
    values = 0
    for _ in range(20_000):
        formula = "".join(rng.choices(tokens, k=rng.randint(1, 8)))
        if "**" in formula or ("((" in formula and rng.random() < 0.5):
            continue
        try:
            expected = eval(formula, {"__builtins__": {}})
        except Exception:
            expected = None
        mine = value_of(formula)
        if isinstance(expected, int | float):
            assert float(mine) == pytest.approx(expected, abs=1e-9), formula
            values += 1
        else:
            assert mine is None, formula
    assert values > 500


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_odd_formulas():
    assert value_of("2**3") == 8
    assert value_of("9**9**9") is None
    assert value_of("7//2") == 3
    assert value_of("1/0") is value_of("") is value_of("()") is value_of("2(3)") is None
    assert value_of("07") is value_of("1 2") is value_of("(" * 500) is None


@pytest.mark.parametrize("numbers", [(3, 3, 8, 8), (1, 5, 5, 5), (1, 2, 3, 4), (10, 10, 2, 4)])
def test_solutions_have_their_value_and_are_whole(numbers):
    found = solutions(tuple(sorted(numbers)), 24)
    assert found
    for tokens in found:
        assert value_of("".join(tokens)) == 24
        assert sorted(int(t) for t in tokens if t.isdecimal()) == sorted(numbers)
    assert len(found[0]) == min(map(len, found)) <= 11


def test_what_has_no_solution():
    """Four ones, and others that are known to have none."""
    for numbers in ((1, 1, 1, 1), (1, 1, 1, 9), (9, 9, 9, 10), (7, 7, 7, 7)):
        assert solutions(numbers, 24) == ()


# --- Countdown -----------------------------------------------------------------------------------


def test_countdown():
    env = on(CountdownEnv(), ((2, 5, 19), 90))
    text, *_ = env.step("5 + 19")
    assert text == "Target: 90, nums: [2, 24]"
    assert not can_make((2, 24), 90)
    assert steps(env, ["24 * 2"]) == [(0, True, False)]
    env = on(CountdownEnv(), ((4, 7, 20), 48))
    assert env.expert_actions()["best"] in env.actions_in(env.position)
    assert steps(env, [" 20/4", "7 * 5"])[-1] == (0, True, False)
    env = on(CountdownEnv(), ((4, 7, 20), 87))
    assert steps(env, ["20 * 4", "80 + 7"]) == [(0, False, False), (1, True, False)]
    env = on(CountdownEnv(), ((4, 7, 20), 87))
    *_, info = env.step("4 - 7")
    assert (info["feedback"], info["action_key"]) == ("inadmissible", "<invalid>")
    *_, info = env.step("20 / 7")
    assert info["feedback"] == "inadmissible"


def test_countdown_by_enumeration():
    """All orders, trees and signs of three numbers, with results that are allowed on the way."""

    def made(a, b):
        low, high = sorted((a, b))
        yield from (a + b, high - low, a * b)
        if low and high % low == 0:
            yield high // low

    for numbers in ((3, 7, 11), (25, 50, 75), (1, 1, 9), (6, 12, 48)):
        reached = {
            last
            for a, b, c in itertools.permutations(numbers)
            for first in made(a, b)
            for last in made(first, c)
        }
        found = {target for target in range(200) if can_make(tuple(sorted(numbers)), target)}
        assert found == {one for one in reached if one < 200}


# --- Tower of Hanoi ------------------------------------------------------------------------------


def test_distances_are_those_of_a_search():
    env = TowerOfHanoiEnv(discs=5)
    env.reset(seed=0)
    goal = (2,) * 5
    found, waiting = {goal: 0}, deque([goal])
    while waiting:
        here = waiting.popleft()
        env_moves = (
            (one, two, disc)
            for one, two in itertools.permutations(range(3), 2)
            for disc in [here.index(one) if one in here else None]
            if disc is not None and (two not in here or here.index(two) > disc)
        )
        for _, two, disc in list(env_moves):
            there = (*here[:disc], two, *here[disc + 1 :])
            if there not in found:
                found[there] = found[here] + 1
                waiting.append(there)
    assert len(found) == 3**5
    assert all(hanoi.distance(state) == left for state, left in found.items())
    assert hanoi.distance((0,) * 5) == 31


def test_hanoi_moves():
    env = on(TowerOfHanoiEnv(), (0, 0, 0, 0))
    assert env.text(env.position) == "A: 4 3 2 1\nB: -\nC: -"
    *_, info = env.step("A C")
    assert info["feedback"] == "ok"
    *_, info = env.step("A C")
    assert (info["feedback"], info["feedback_text"]) == (
        "inadmissible",
        "'A C' is not possible now",
    )
    assert env.step("A D")[4]["feedback"] == "malformed"


# --- Minesweeper, mlbio-epfl/LaMer at a53df446 ---------------------------------------------------


def test_minesweeper_by_hand():
    board = (
        3,
        (0,),
        8,
    )  # a mine in the corner
    env = on(MinesweeperEnv(size=6), (4, (0, 5, 15), 3))
    assert env.text(env.position) == "? ? 1 .\n? ? 1 .\n? ? 2 1\n? ? ? ?"
    assert env.expert_actions()["best"] in env.actions_in(env.position)
    *_, info = env.step("(1, 3)")
    assert (info["feedback"], info["progress"]) == ("inadmissible", 0.0)
    assert env.step("(9, 9)")[1] == -1.0
    assert env.step("1,2")[1] == 0.5, "one cell; brackets may be left out"
    text, reward, over, _, info = env.step("(2, 2)")
    assert (reward, over, info["success"]) == (-0.1, True, False)
    assert text.split("\n")[1][2] == "*"
    assert _opened(_field(3, board[1]), 0, 8).bit_count() == 8


def test_minesweeper_rewards_of_a_win():
    env = on(MinesweeperEnv(), (3, (0,), 1))
    assert env.text(env.position) == "? 1 ?\n? ? ?\n? ? ?"
    assert env.optimal_remaining() == 1
    _, reward, over, _, info = env.step("(3, 3)")
    assert (reward, over, info["success"], info["score"]) == (10.0, True, True, 1.0)
    env = on(MinesweeperEnv(), (4, (0, 3), 1))
    assert env.step("(4, 4)")[1] == 2.0


def test_the_safest_cell_by_counting():
    """Every place of the mines, listed by hand, gives the same chances."""
    field = _field(4, (0, 5))
    shown = _opened(field, 0, 15)
    cell, chance = _safest(field, shown)
    fits = []
    for mines in itertools.combinations(range(16), 2):
        other = _field(4, mines)
        if not any(shown >> m & 1 for m in mines) and all(
            other.around[c] == field.around[c] for c in range(16) if shown >> c & 1
        ):
            fits.append(mines)
    chances = {c: sum(c in m for m in fits) / len(fits) for c in range(16) if not shown >> c & 1}
    assert chance == pytest.approx(min(chances.values())) == pytest.approx(chances[cell])
    assert 0 < len(fits) < 20


def test_boards_by_chance_may_need_a_guess():
    env = gym.make("agentgyms/Minesweeper-v0", boards="any", size=5, mines=4).unwrapped
    wins = []
    for seed in range(40):
        env.reset(seed=seed)
        over = False
        while not over:
            *_, over, cut, info = env.step(env.expert_actions()["best"])
            over = over or cut
        wins.append(info["success"])
    assert 0.5 < sum(wins) / 40 < 1.0


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (NumberLineEnv, {"size": 4}),
        (TowerOfHanoiEnv, {"discs": 8}),
        (CountdownEnv, {"numbers": 6}),
        (MinesweeperEnv, {"size": 2}),
        (MinesweeperEnv, {"mines": 9}),
        (MinesweeperEnv, {"boards": "x"}),
    ],
)
def test_wrong_arguments_are_named(make, wrong):
    with pytest.raises(BadOption, match=next(iter(wrong))):
        make(**wrong)


def test_what_is_not_known_is_refused():
    env = on(Points24Env(), (("3", "8", "3", "8"), (3, 8, 3, 8), 24))
    env.step("+")
    assert env.optimal_remaining() == -2
    with pytest.raises(BadOption, match="is not known"):
        env.optimal_value()
    mines = MinesweeperEnv()
    mines.reset(seed=0)
    with pytest.raises(BadOption, match="mines are hidden"):
        mines.optimal_value()
