"""An exchange with a model: it is asked, and once again where its answer cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from agentgyms.chance import Chance
from agentgyms.chat.asking import Asker
from agentgyms.chat.values import Message
from agentgyms.errors import PromptTooLong
from agentgyms.sotopia import prompts
from agentgyms.sotopia.parties import Spent
from agentgyms.sotopia.reading import Refusal

_SEEDS: Final = 2**31

T = TypeVar("T")


class Exchange:
    """Asks one question, at most twice.

    Args:
        asker: Asks the model.
        prompt: The question.
        schema: JSON schema of the answer, told again where an answer cannot be used.
        name: What the seeds of the requests hang on, beside the number of the attempt.

    Attributes:
        spent: What the answers took so far.
    """

    def __init__(self, asker: Asker, prompt: str, schema: str, name: Sequence[object]) -> None:
        """Ask nothing yet."""
        self.spent = Spent()
        self._asker, self._name = asker, name
        self._prompt, self._schema = prompt, schema
        self._asked: list[tuple[Sequence[Message], int]] = []

    def ask(self, read: Callable[[str], T | Refusal]) -> T | Refusal:
        """Return what `read` makes of the answer, of the second one where it refuses the first.

        Raises:
            ModelUnavailable: The model gave no answer; asking again is safe.
            BadOption: The server does not take the request.
            PromptTooLong: The question does not fit into the model's context.
        """
        answer = self._answer([_user(self._prompt)], 0)
        result = read(answer)
        if not isinstance(result, Refusal):
            return result
        try:
            return read(self._answer(self._objection(answer, result.reason), 1))
        except PromptTooLong:
            return result

    def forget(self) -> None:
        """Keep no answer: where the question is put again, the model is asked again."""
        for messages, seed in self._asked:
            self._asker.forget(messages, seed)

    def _answer(self, messages: Sequence[Message], attempt: int) -> str:
        seed = Chance("sotopia", *self._name, attempt).below(_SEEDS)
        answer = self._asker.ask(messages, seed)
        self._asked.append((messages, seed))
        cost = self._asker.model.cost(answer)
        self.spent += Spent(answer.prompt, answer.response, 1, cost)
        return answer.text

    def _objection(self, answer: str, wrong: str) -> list[Message]:
        """Return what tells the model what is wrong; servers mind a turn without text."""
        again = prompts.again(wrong, self._schema)
        if not answer.strip():
            return [_user(f"{self._prompt}\n\n{again}")]
        said: Message = {"role": "assistant", "content": answer}
        return [_user(self._prompt), said, _user(again)]


def _user(text: str) -> Message:
    return {"role": "user", "content": text}
