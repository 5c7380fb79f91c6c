"""EZPoints and Points24: write a formula of all cards that has a value, token by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.randomness import Chance
from agentgyms.core.tasks import Task
from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.games.boards import Board
from agentgyms.envs.games.formulas import beginnings, solutions, value_of
from agentgyms.envs.games.pictures import CARD, Canvas, PicturedGame, width
from agentgyms.exact import Transition

_FACES: Final = {1: "A", 11: "J", 12: "Q", 13: "K"}
_UNKNOWN: Final = -2
_SPACE: Final = " "


class _Formula(PicturedGame):
    """What both games share: the board is the cards, their numbers and the target."""

    caption = "The picture shows the cards over their numbers, the target and the formula so far."
    operators: ClassVar[str]
    longest: ClassVar[int]
    """The tokens that a formula may have; the turn after one more ends the episode."""

    def goal(self, task: Task) -> str:
        target = self.board[2]
        return f"Write a formula that uses each card once and has the value {target}, then =."

    def _lay(self, board: Any) -> None:
        super()._lay(board)
        cards, numbers, target = board
        self._numbers = tuple(map(str, numbers))
        self._head = (
            f"Cards: {' '.join(cards)}\n"
            f"Tokens: {' '.join([*self._numbers, *self.operators, '='])}\n"
            f"Target: {target}\nFormula: "
        )
        self._shortest = beginnings(tuple(sorted(numbers)), target, self.words)

    def start(self) -> tuple[str, ...]:
        return ()

    def actions_in(self, state: tuple[str, ...]) -> Sequence[str]:
        if state and state[-1] == "=":
            return ()
        return (*dict.fromkeys(self._unused(state)), *self.operators, "=")

    def _unused(self, state: tuple[str, ...]) -> list[str]:
        left = list(self._numbers)
        for token in state:
            if token in left:
                left.remove(token)
        return left

    def transitions(self, state: tuple[str, ...], action: str) -> Sequence[Transition]:
        if len(state) > self.longest:
            return (Transition(1.0, state, -1.0, over=True, cut=True),)
        if action != "=":
            return (Transition(1.0, (*state, action)),)
        right = not self._unused(state) and value_of("".join(state)) == self.board[2]
        reward = 10.0 if right else -1.0
        return (Transition(1.0, (*state, "="), reward, True, right, float(right)),)

    def illegal(self, state: tuple[str, ...], action: str) -> Transition:
        """Return what a number of no unused card does: it costs 1 and leaves a space."""
        if len(state) > self.longest:
            return Transition(1.0, state, -1.0, over=True, cut=True)
        return Transition(1.0, (*state, _SPACE), -1.0)

    def text(self, state: tuple[str, ...]) -> str:
        return self._head + " ".join(state)

    def coded(self, state: tuple[str, ...]) -> str:
        """Return the tokens as JSON: none of them has a sign that JSON escapes."""
        return '["' + '","'.join(state) + '"]' if state else "[]"

    def paint(self, canvas: Canvas, state: tuple[str, ...]) -> None:
        cards, numbers, target = self.board
        for i, (card, number) in enumerate(zip(cards, numbers, strict=True)):
            column = 6 + i * (CARD[1] + 4)
            canvas.card(card, 4, column)
            beside = (CARD[1] - width(str(number))) // 2
            canvas.write(str(number), 4 + CARD[0] + 3, column + beside)
        canvas.write(f"TARGET {target}", 60, 6)
        canvas.write_tokens([token.replace(_SPACE, "_") for token in state], 74, 6, 11)

    def is_state(self, state: Any) -> bool:
        if not isinstance(state, tuple) or len(state) > self.longest + 2:
            return False
        known = {*map(str, self.board[1]), *self.operators, _SPACE}
        tokens = state[:-1] if state[-1:] == ("=",) else state
        if any(token not in known for token in tokens):
            return False
        return all(tokens.count(str(n)) <= self.board[1].count(n) for n in self.board[1])

    def progress(self, state: tuple[str, ...]) -> float:
        left = self._remaining(state)
        return len(state) / (len(state) + left) if left >= 0 else 0.0

    def _remaining(self, state: tuple[str, ...]) -> int:
        if state[-1:] == ("=",):
            return 0 if value_of("".join(state[:-1])) == self.board[2] else _UNKNOWN
        known = self._known(state)
        return len(known) + 1 - len(state) if known else _UNKNOWN

    def _known(self, state: tuple[str, ...]) -> tuple[str, ...]:
        """Return the shortest known solution that begins with a formula, () without one."""
        return self._shortest.get(state, ())


def _tool(words: Sequence[str]) -> Tools:
    argument = Argument(
        "The token: a card's number, an operator, or = to end.", choices=tuple(words)
    )
    return Tools(Tool("append", "Append a token to the formula.", "{token}", {"token": argument}))


def _names(cards: Sequence[int]) -> tuple[str, ...]:
    return tuple(_FACES.get(card, str(card)) for card in cards)


class EZPointsEnv(_Formula):
    """EZPoints by the rules of RL4VLM's gym_cards: two cards, the value 12.

    The actions are the numbers 1 to 10, `+`, `*` and `=`; each is appended to the formula. J, Q and
    K count as 10. The reward is 10 for `=` after a formula of both cards with the value 12, -1
    after another one, which both end the episode, and -1 for a number of no unused card, which
    leaves a space. A formula of more than 5 tokens ends the episode with -1.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen` (the value 15), `sample` |
    | `max_turns` | 7 | turns until the episode is truncated |
    | `pictures` | `False` | observe a picture of cards and formula in place of the text |
    | `oracle` | `False` | put a solution's next token into `info["oracle"]` |
    """

    default_max_turns = 7
    operators, longest = "+*", 5
    words = (*map(str, range(1, 11)), "+", "*", "=")
    tools = _tool(words)
    counts: ClassVar[Mapping[str, int]] = {
        "train": 13,
        "valid_seen": 6,
        "valid_unseen": 12,
        "sample": 4,
    }

    def deal(self, number: int, unseen: bool) -> Board:
        """Return two cards, the second one so that their sum or product is the target."""
        chance, target = Chance("EZPoints", number), 15 if unseen else 12
        first = chance.between(5 if unseen else 2, 13)
        value = min(first, 10)
        product = target % value == 0 and target // value <= 10 and chance.below(2)
        cards = [first, target // value if product else target - value]
        order = slice(None, None, -1 if chance.below(2) else 1)
        numbers = tuple(min(card, 10) for card in cards[order])
        return Board("product" if product else "sum", (_names(cards[order]), numbers, target))


class Points24Env(_Formula):
    """Points24 by the rules of RL4VLM's gym_cards: four cards, the value 24.

    As EZPoints, with `-`, `/` and brackets, formulas of at most 20 tokens, and four cards. Only
    cards that have a solution are dealt; the original deals any.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | `train`, `valid_seen`, `valid_unseen` (J, Q, K are 11 to 13), `sample` |
    | `max_turns` | 22 | turns until the episode is truncated |
    | `pictures` | `False` | observe a picture of cards and formula in place of the text |
    | `oracle` | `False` | put a solution's next token into `info["oracle"]` |

    The expert knows the solutions without needless brackets and signs: where none of them begins
    with the formula, `optimal_remaining` is -2.
    """

    default_max_turns = 22
    operators, longest = "+-*/()", 20
    words = (*map(str, range(1, 14)), "+", "-", "*", "/", "(", ")", "=")
    tools = _tool(words)
    counts: ClassVar[Mapping[str, int]] = {
        "train": 300,
        "valid_seen": 50,
        "valid_unseen": 50,
        "sample": 12,
    }

    def deal(self, number: int, unseen: bool) -> Board:
        """Return four cards with a solution, a face among them for `valid_unseen`."""
        chance = Chance("Points24", number)
        while True:
            cards = [chance.between(1, 13) for _ in range(4)]
            numbers = tuple(cards if unseen else (min(card, 10) for card in cards))
            fits = not unseen or max(cards) > 10
            if fits and solutions(tuple(sorted(numbers)), 24):
                return Board("faces" if unseen else "tens", (_names(cards), numbers, 24))

    def expert_in(self, state: tuple[str, ...], turn: int) -> str:
        """Return the next token of the shortest known solution that begins so, else `=`."""
        if not self._face(state).actions:
            return ""
        known = self._known(state)
        return (*known, "=")[len(state)] if known else "="

    def solution(self) -> dict[str, Any]:
        """Return the expert's action, and the tokens that its solution still needs."""
        return {**self.expert_actions(), "optimal_remaining": self.optimal_remaining()}

    def optimal_value(self) -> float:
        """Return 10 if a known solution begins with the formula and fits the turns left, else 0.

        Raises:
            BadOption: The formula begins no known solution: its best end is not known.
        """
        if self.optimal_remaining() == _UNKNOWN:
            raise BadOption(
                f"the best end of the formula {' '.join(self._state)!r} is not known: only those "
                "of formulas that begin a known solution are"
            )
        return 10.0 if 0 < self.optimal_remaining() <= self.turns_left else 0.0

    def optimal_remaining(self) -> int:
        """Return the tokens that the shortest known solution still needs, -2 without one."""
        return self._remaining(self._state)
