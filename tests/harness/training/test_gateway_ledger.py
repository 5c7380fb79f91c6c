"""What a gateway's book keeps beyond its process: in checkpoints, and in its list of names."""

import io
import re

import pytest
import torch

from harness.training.gateway import name_ledger
from harness.training.gateway.chat_requests import Refused
from harness.training.gateway.name_ledger import NameLedger
from harness.training.gateway.rollout_book import RolloutBook
from harness.training.gateway.token_memory import TokenMemory
from harness.training.gateway.turns_of_calls import Call, from_report
from harness.types.errors import CheckpointError
from harness.types.rollout import Completion


def make_book(ledger=None):
    return RolloutBook(2, lambda: TokenMemory(lambda calls: ""), ledger=ledger)


def end(book, name, group, reward):
    one = book.open(name, group=group)
    answer = Completion("go", prompt_ids=(1, 2), response_ids=(3, 4), logprobs=(-0.5, -0.25))
    one.calls.append(Call("seen", answer=answer, weights=5))
    book.finish(one, from_report(group, {"reward": reward}, one.calls, one.number))


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_a_checkpoint_keeps_what_has_ended_and_is_not_learned_from():
    book = make_book()
    for name, group in (("a", "whole"), ("b", "whole"), ("c", "half"), ("d", "taken")):
        end(book, name, group, ord(name))
    book.open("open", group="half")
    book.open("alone", group="alone")
    end(book, "e", "taken", 1)
    assert [one.rollout.task_id for one in book.take(1)[0]] == ["whole"] * 2
    own = make_book()
    own.load_state_dict(through_a_file(book.state_dict()))
    assert own.counts() == {"open_rollouts": 0, "begun_groups": 1, "whole_groups": 1}
    for name in "abcde":
        assert own.has_finished(name)
    assert own.open("new", group="half").number == 7
    end(own, "new", "half", 2)
    assert own.take(1) == [book.take(1)[0]]
    assert [one.rollout.turns[0].reward for one in own.take(1)[0]] == [ord("c"), 2]
    with pytest.raises(ValueError, match="turn 0 has no 'action'"):
        own.load_state_dict(
            book.state_dict() | {"whole": [[{"rollout": {"task_id": "", "turns": [{}]}}]]}
        )


def test_names_of_earlier_processes_are_refused(tmp_path):
    path = tmp_path / "names"
    ledger = NameLedger(path)
    make_book(ledger).open("küche\u2028 1", group="g")
    ledger.close()
    with path.open("ab") as file:  # as a kill leaves it
        file.write(b'"half a na')
    ledger = NameLedger(path)
    book = make_book(ledger)
    assert ledger.earlier == {"küche\u2028 1"}
    for ask in (lambda: book.open("küche\u2028 1", group="g"), lambda: book.drop("küche\u2028 1")):
        with pytest.raises(Refused, match="was cut off when the run was interrupted") as refused:
            ask()
        assert refused.value.status == 410
    book.open("other", group="g")
    book.drop("other")
    book.open("other", group="g")  # which began in this process
    ledger.close()


def test_a_name_that_cannot_be_written_begins_nothing(tmp_path):
    ledger = NameLedger(tmp_path / "names")
    book = make_book(ledger)
    (tmp_path / "names").unlink()
    with pytest.raises(Refused, match="rollout a cannot be noted on the disk") as refused:
        book.open("a", group="g")
    assert refused.value.status == 503
    assert book.counts()["begun_groups"] == 0
    ledger.close()


@pytest.mark.parametrize("line", ["{}", "a", "[" * 100_000])
def test_a_damaged_list_of_names_is_told_with_its_line(tmp_path, line):
    path = tmp_path / "names"
    path.write_text(f'"a"\n{line}\n')
    with pytest.raises(CheckpointError, match=f"{re.escape(str(path))}, line 2: no name of a roll"):
        NameLedger(path)


def test_the_list_of_names_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(name_ledger, "MOST_NAMES", 3)
    for number in range(9):
        ledger = NameLedger(tmp_path / "names")
        ledger.add(str(number))
        ledger.close()
        assert len((tmp_path / "names").read_text().splitlines()) <= 4
    ledger = NameLedger(tmp_path / "names")
    assert ledger.earlier == {"6", "7", "8"}
    ledger.close()
