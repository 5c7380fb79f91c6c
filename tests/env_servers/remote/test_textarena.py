"""TextArena's games as environments, with the real package: parity, the contract, two seats."""

import pytest
from adapter_peers import ROOT, peer

GAMES = (
    *("GuessTheNumber-v0", "TowerOfHanoi-v0", "Blackjack-v0", "Minesweeper-v0-small"),
    *("FrozenLake-v0", "Mastermind-v0", "Countdown-v0", "2048-v0-ultra-easy"),
    *("TicTacToe-v0", "KuhnPoker-v0", "Nim-v0", "ConnectFour-v0", "SimpleNegotiation-v0"),
    *("LiarsDice-v0", "Chopsticks-v0", "TwoDollar-v0"),
)

pytestmark = pytest.mark.adapters


MOVES = ["0", "3", "1", "4", "2"]  # the player who begins has a row
ASKED = {
    "guess": {"check": "contract", "game": "GuessTheNumber-v0"},
    "tictactoe": {"check": "contract", "game": "TicTacToe-v0"},
    "seat 0": {"check": "self", "task": "test-0003/0", "moves": MOVES},
    "seat 1": {"check": "self", "task": "test-0003/1", "moves": MOVES},
    **{name: {"check": name} for name in ("model", "rollout", "refused", "draws")},
}


@pytest.fixture(scope="module")
def said():
    """Return what each check says; all run in one process, for TextArena's import takes seconds."""
    results = peer("textarena_checks.py", list(ASKED.values()), also=str(ROOT / "tests"))
    return dict(zip(ASKED, results, strict=True))


def test_games_are_textarenas_own():
    said = peer("textarena_peer.py", {"games": GAMES, "episodes": 8, "seed": 0})
    assert said["differences"] == []
    assert said["refused"] == {}
    assert len(said["games"]["1"]) == len(said["games"]["2"]) == 8
    assert said["moves"] > 400
    assert min(said["feedback"].values()) > 150
    assert set(said["misplaced"]) <= {"Countdown-v0"}


@pytest.mark.parametrize("game", ["guess", "tictactoe"])
def test_the_contract_holds_here_and_behind_a_server(said, game):
    assert said[game] == "kept"


def test_a_game_is_won_by_the_agent_at_either_seat(said):
    """In self-play the caller has both seats; reward, score and success are the agent's."""
    assert said["seat 0"]["turns"] == [False, True, False, True, False]
    assert said["seat 1"]["turns"] == [True, False, True, False, True]
    assert said["seat 0"]["result"] == [1.0, 1.0, True]
    assert said["seat 1"]["result"] == [-1.0, 0.0, False]


def test_a_frozen_model_has_the_other_seat(said):
    told = said["model"]
    assert told["first"] == ["system", "user"]  # the model begins at seat 0
    assert told["roles"] == ["system", "user", "assistant", "user"]
    assert told["secrets"] is False  # each seat reads its own prompt alone
    assert told["unchanged"]  # by a turn in which the model did not answer
    assert told["restored"]  # without another request
    assert told["private"]


def test_rollouts_of_both_seats(said):
    """The harness plays both; the rollout has the agent's turns, and the end's reward."""
    assert said["rollout"]["seats"] == {"0": [0, 1, 2], "1": [3, 4]}
    assert said["rollout"]["rewards"] == {"0": [0, 0, 1.0], "1": [0, -1.0]}


def test_what_cannot_be_played_is_refused_by_name(said):
    told = said["refused"]
    assert "TextArena has no game 'Nothing-v0'" in told["Nothing-v0"]
    assert "cannot be started with 1 or 2 players" in told["SecretMafia-v0"]
    assert "cannot be made here" in told["TwentyQuestions-v0"]
    assert "may never return" in told["MarketEntryGame-v0"]
    assert "has one player: leave opponent out" in told["opponent"]


def test_draws_are_the_turns_own(said):
    """Equal seeds repeat, a redraw differs, and the process's generators stay as they were."""
    assert said["draws"] == {"repeated": True, "redrawn": True, "left_alone": True}
