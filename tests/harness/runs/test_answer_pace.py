"""The pace of answers, and the hint that most of them have no end."""

import asyncio
import re

import pytest

from harness.evaluation.open_model import Counted
from harness.inference.completers import Sampling
from harness.runs.answer_pace import AnswerPace
from harness.types.rollout import Completion, Usage


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def answer(tokens, *, finished=True):
    return Completion("x", usage=Usage(10, tokens, 1), finished=finished)


def test_the_pace_counts_answers_and_tokens_a_second():
    clock = Clock()
    pace = AnswerPace(64, clock=clock)
    assert pace.text() == ""
    pace.begin()
    clock.now = 4.0
    pace.add(answer(30))
    pace.add(answer(50, finished=False))
    assert pace.text() == "2 answers, 20 tokens/s"


def test_tokens_of_answers_that_are_being_generated_count():
    clock, completer = Clock(), type("Generating", (), {"generated": 100})()
    pace = AnswerPace(64, completer, clock)
    pace.begin()
    completer.generated, clock.now = 150, 10.0
    assert pace.text() == "0 answers, 5 tokens/s"


def test_a_counted_completer_gives_the_answers_of_its_own():
    class Own:
        chat_tokenizer = "tokens"

        async def complete(self, messages, sampling, seed):
            return answer(seed)

    pace = AnswerPace(64, clock=Clock())
    counted = Counted(Own(), pace)
    assert counted.chat_tokenizer == "tokens"
    assert asyncio.run(counted.complete([], Sampling(1.0, 64), 7)) == answer(7)
    assert pace.text().startswith("1 answers")


def paced(ended, cut, limit=512):
    pace = AnswerPace(limit)
    for tokens in ended:
        pace.add(answer(tokens))
    for _ in range(cut):
        pace.add(answer(limit, finished=False))
    return pace.hint("agent.max_tokens")


@pytest.mark.parametrize(
    ("ended", "cut", "wanted"),
    [
        ([20] * 12, 12, "96% of .* nine in ten .* at most 20 tokens.*agent.max_tokens=64$"),
        ([], 16, "100% of .* none has an end.*agent.max_tokens=2048. .*agent.max_tokens=128$"),
        ([500] * 8, 16, "agent.max_tokens=256$"),  # no more than half of the limit
    ],
)
def test_a_hint_proposes_a_limit(ended, cut, wanted):
    assert re.search(wanted, paced(ended, cut))


def test_there_is_no_hint_where_most_answers_end_or_few_are_known():
    assert paced([100] * 100, 10) is None
    assert paced([20] * 5, 10) is None


def test_the_most_time_is_that_of_the_longest_answers():
    clock, completer = Clock(), type("Generating", (), {"generated": 0})()
    pace = AnswerPace(64, completer, clock)
    pace.begin()
    assert pace.most_seconds(4) is None
    completer.generated, clock.now = 50, 10.0  # 30 of an answer that ends, 20 of others
    pace.add(answer(30))
    assert pace.most_seconds(4) == pytest.approx((3 * 64 - 20) / 5)
    assert pace.most_seconds(1) == 0
