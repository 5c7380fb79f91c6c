"""Blackjack: come nearer to 21 than the dealer, and not above it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.pictures import CARD, Canvas, PicturedGame
from agentgyms.exact import Transition

_WORDS: Final = ("hit", "stand")
_DECK: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10)
_BUST: Final = 22
_NATURAL: Final = 23
"""The dealer's 21 of two cards, told apart from another 21."""
_STANDS: Final = 17

Hand = tuple[int, bool, bool]
"""Sum with aces as 1, whether there is an ace, whether two cards are an ace and a ten."""


class BlackjackEnv(PicturedGame):
    """Blackjack by Gymnasium's rules, with an infinite deck.

    The actions are `hit` and `stand` (Gymnasium's stick). The reward is 1 for a win, 0 for a draw,
    -1 for a loss; the score is 1, 1/2 and 0. Even the best play loses on average: its reward is the
    optimum, and the expert reaches it.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen`, `sample`: draws of one law |
    | `sab` | `True` | Sutton and Barto's rule: a natural wins unless the dealer has one too |
    | `natural` | `False` | a natural that wins earns 1.5; only without `sab` |
    | `max_turns` | 20 | turns until the episode is truncated; no hand takes more |
    | `pictures` | `False` | observe a picture of the table in place of the text |
    | `oracle` | `False` | put the best action and its value into `info["oracle"]` |

    A task is a deal: the player's two cards and the dealer's face-up card, drawn as the game deals
    them, so deals repeat. The dealer's other card is drawn when the player stands: nobody sees it
    before, and its law is the same.
    """

    default_max_turns = 20
    stochastic = True
    words = _WORDS
    repeats = True
    caption = "The picture shows the dealer's cards, or what they came to, and your total."
    tools = Tools(
        Tool(
            "play",
            "Take a card, or stand and let the dealer play.",
            "{choice}",
            {"choice": Argument("What to do.", choices=_WORDS)},
        ),
    )

    def __init__(self, *, sab: bool = True, natural: bool = False, **common: Any) -> None:
        super().__init__(**common)
        for name, flag in (("sab", sab), ("natural", natural)):
            if not isinstance(flag, bool):
                raise BadOption(f"{name} must be True or False, got {flag!r}")
        if sab and natural:
            raise BadOption("natural=True has no effect with sab=True: give sab=False too")
        self._sab, self._natural = sab, natural

    def rules(self) -> Sequence[Any]:
        """Return what a natural earns."""
        return [self._sab, self._natural]

    def deal(self, number: int, unseen: bool) -> Board:
        """Return the player's two cards and the dealer's face-up one."""
        chance = Chance("Blackjack", number)
        one, two, shown = (chance.pick(_DECK) for _ in range(3))
        family = (
            "natural" if sorted((one, two)) == [1, 10] else "soft" if 1 in (one, two) else "hard"
        )
        return Board(family, (one, two, shown))

    def goal(self, task: Task) -> str:
        """Return the task in words."""
        return "Come nearer to 21 than the dealer without going above it."

    def start(self) -> tuple[int, bool, bool, int]:
        """Return the player's hand, and 0 for a dealer who has not played."""
        one, two, _ = self.board
        return (one + two, 1 in (one, two), sorted((one, two)) == [1, 10], 0)

    def actions_in(self, state: Any) -> Sequence[str]:
        """Return both actions; none once the dealer has played or the player is bust."""
        return () if state[3] or state[0] > 21 else _WORDS

    def transitions(self, state: Any, action: str) -> Sequence[Transition]:
        """Return the next card, or the dealer's results and what each earns."""
        return _after(state, action, self.board[2], self._sab, self._natural)

    def text(self, state: Any) -> str:
        """Return what Gymnasium's observation says, and at the end the dealer's result."""
        total, usable = _total(state)
        player = f"Your total: {total}" + (", with a usable ace" if usable else "")
        ends = {
            0: f"Dealer shows: {self.board[2]}",
            _BUST: "Dealer: above 21",
            _NATURAL: "Dealer: 21",
        }
        dealer = ends.get(state[3], f"Dealer: {state[3]}")
        return f"{player}\n{dealer}" + ("\nYou are above 21." if total > 21 else "")

    def paint(self, canvas: Canvas, state: Any) -> None:
        """Draw the dealer's face-up card beside one face down, or the result; and the total."""
        canvas.write("DEALER", 4, 8)
        if state[3]:
            canvas.write({_BUST: ">21", _NATURAL: "21"}.get(state[3], str(state[3])), 20, 8, 3)
        else:
            canvas.card({1: "A"}.get(self.board[2], str(self.board[2])), 14, 8)
            canvas.card_back(14, 8 + CARD[1] + 4)
        total, usable = _total(state)
        canvas.write("YOU", 57, 8)
        canvas.write(str(total), 68, 8, 3)
        if usable:
            canvas.write("USABLE ACE", 75, 52)

    def progress(self, state: Any) -> float:
        """Return 1 for a hand that has won, else 0."""
        ends = state[3] and not state[0] > 21
        moves = self.transitions((*state[:3], 0), "stand") if ends else ()
        return float(any(move.success for move in moves if move.state == state))

    def is_state(self, state: Any) -> bool:
        """Return whether a value is a hand, and the dealer's result or 0."""
        kinds = [int, bool, bool, int]
        fits = isinstance(state, tuple) and [type(part) for part in state] == kinds
        return fits and 2 <= state[0] <= 31 and state[3] in (0, *range(_STANDS, _NATURAL + 1))


def _total(hand: Sequence[int]) -> tuple[int, bool]:
    usable = bool(hand[1]) and hand[0] + 10 <= 21
    return hand[0] + 10 * usable, usable


@lru_cache(maxsize=4096)
def _after(
    state: tuple[int, bool, bool, int], action: str, dealer: int, sab: bool, natural: bool
) -> Sequence[Transition]:
    raw, ace, is_natural, _ = state
    if action == "hit":
        found: list[Transition] = []
        for card in range(1, 11):
            after, chance = (raw + card, ace or card == 1, False, 0), _DECK.count(card) / len(_DECK)
            bust = raw + card > 21
            found.append(Transition(chance, after, -float(bust), bust))
        return tuple(found)
    mine, _ = _total(state)
    results: list[Transition] = []
    for result, chance in dealer_results(dealer).items():
        theirs = {_BUST: 0, _NATURAL: 21}.get(result, result)
        reward = float(mine > theirs) - float(mine < theirs)
        if sab and is_natural and result != _NATURAL:
            reward = 1.0
        score, won = (reward + 1) / 2, reward > 0
        if natural and is_natural and won:
            reward = 1.5
        results.append(Transition(chance, (raw, ace, is_natural, result), reward, True, won, score))
    return tuple(results)


@lru_cache
def dealer_results(shown: int) -> dict[int, float]:
    """Return the probability of each result of a dealer: 17 to 21, 22 above it, 23 a natural."""
    found = dict.fromkeys(range(_STANDS, _NATURAL + 1), 0.0)
    hands = [((shown, shown == 1), 1, 1.0)]
    while hands:
        (raw, ace), cards, chance = hands.pop()
        total, _ = _total((raw, ace))
        if cards > 1 and total >= _STANDS:
            natural = cards == 2 and total == 21
            found[_NATURAL if natural else min(total, _BUST)] += chance
            continue
        for card in range(1, 11):
            hand = (raw + card, ace or card == 1)
            hands.append((hand, cards + 1, chance * _DECK.count(card) / len(_DECK)))
    return {result: chance for result, chance in found.items() if chance}
