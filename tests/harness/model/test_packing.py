"""Rollouts as training sequences and batches, by hand, and what merging keeps apart."""

from dataclasses import replace

import numpy as np
import pytest
from sequences import sample

from harness.model.packing import Sample, merge, micro_batches, samples, to_batch
from harness.types.errors import ConfigError, TableError
from harness.types.messages import shared_image
from harness.types.rollout import Completion, Rollout, Turn


def turn(prompt_ids=(1,), response_ids=(2,), images=()):
    old = tuple(-0.5 - token for token in response_ids)
    said = Completion("x", prompt_ids, response_ids, old, images=images)
    return Turn("o", "s", said, "x", "x", "ok", 0.0, "o", "s", 0.0)


def rollout(*turns):
    return Rollout("t", "f", 0, 0, 0, turns=list(turns))


CHAT = rollout(
    turn((1, 2), (3, 4)),
    turn((1, 2, 3, 4, 90, 91), (5,)),
    turn((1, 2, 3, 4, 90, 91, 5, 92), (6, 7)),
)
"""Each prompt goes on from the one before."""


def test_samples_follow_the_table_and_need_tokens():
    rollouts = [rollout(turn(), turn((3,), (4, 5))) for _ in range(2)]
    packed = samples(rollouts, np.array([1.0, 2.0, 3.0, 4.0]))
    assert [s.advantage for s in packed] == [1, 2, 3, 4]
    assert packed[1].response_ids == (4, 5)
    with pytest.raises(TableError, match="3 advantages for 4 turns"):
        samples(rollouts, np.zeros(3))
    for broken in (turn((), ()), turn((1,), ()), turn((), (2,))):
        with pytest.raises(TableError, match="no tokens"):
            samples([rollout(broken)], np.zeros(1))
    with pytest.raises(ConfigError, match="context must be one of 'window', 'transcript'"):
        samples(rollouts, np.zeros(4), "chat")


def test_advantages_of_tokens_reach_their_tokens():
    rollouts = [rollout(turn(), turn((3,), (4, 5)))]
    packed = samples(rollouts, [np.array([1.0]), np.array([2.0, -3.0])])
    batch = to_batch(packed, pad_id=0)
    assert batch.advantage.tolist() == [[0, 1, 0], [0, 2, -3]]
    with pytest.raises(TableError, match=r"advantages of turn 1 have shape \(1,\), not \(2,\)"):
        samples(rollouts, [np.array([1.0]), np.array([2.0])])


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_advantages_must_be_finite(wrong):
    with pytest.raises(TableError, match=f"advantage of turn 2 is {wrong}"):
        samples([CHAT], np.array([0.0, 0.0, wrong]))
    with pytest.raises(TableError, match=f"advantage of turn 2, token 1 is {wrong}"):
        samples([CHAT], [np.zeros(2), np.zeros(1), np.array([0.0, wrong])])


def test_a_transcript_is_one_sequence_by_hand():
    (packed,) = samples([CHAT], np.array([1.0, -2.0, 3.0]), "transcript")
    batch = to_batch([packed, sample(1, 2)], pad_id=99)
    assert batch.tokens[0].tolist() == [1, 2, 3, 4, 90, 91, 5, 92, 6, 7]
    assert batch.turn[0].tolist() == [-1, -1, 0, 0, -1, -1, 1, -1, 2, 2]
    assert batch.action_mask[0].tolist() == [t >= 0 for t in batch.turn[0].tolist()]
    assert batch.advantage[0].tolist() == [0, 0, 1, 1, 0, 0, -2, 0, 3, 3]
    assert batch.old_logprob[0].tolist() == [0, 0, -3.5, -4.5, 0, 0, -5.5, 0, -6.5, -7.5]
    assert batch.turn[1].tolist() == [-1, 0, 0] + [-1] * 7
    assert packed.num_actions == 5


def test_advantages_of_tokens_in_a_transcript():
    tokens = [np.array([1.0, 2.0]), np.array([3.0]), np.array([4.0, 5.0])]
    (packed,) = samples([CHAT], tokens, "transcript")
    batch = to_batch([packed], pad_id=0)
    assert batch.advantage[batch.action_mask].tolist() == [1, 2, 3, 4, 5]


def test_windows_and_transcripts_hold_the_same_tokens_of_the_policy():
    credit = np.array([1.0, -2.0, 3.0])
    windows, (whole,) = (samples([CHAT], credit, c) for c in ("window", "transcript"))
    one, many = to_batch([whole], 0), to_batch(windows, 0)
    for name in ("tokens", "old_logprob", "advantage"):
        assert getattr(one, name)[one.action_mask].tolist() == [
            value
            for row, mask in zip(getattr(many, name), many.action_mask, strict=True)
            for value in row[mask].tolist()
        ]


def test_a_chat_that_was_cut_starts_a_new_sequence():
    cut = rollout(*CHAT.turns[:2], turn((1, 90, 91, 5, 92), (6, 7)), *CHAT.turns[:1])
    packed = samples([cut, CHAT], np.arange(7.0), "transcript")
    assert [row.length for row in packed] == [7, 7, 4, 10]
    assert [row.num_actions for row in packed] == [3, 2, 2, 5]
    assert packed[0].advantage == (0, 0, 1)
    assert packed[3].advantage == (4, 4, 5, 6, 6)


def test_a_transcript_shows_its_images_in_order():
    first, second = (shared_image(np.full((4, 4, 3), value, np.uint8)) for value in (1, 2))
    shown = rollout(turn((1, 2), (3,), (first,)), turn((1, 2, 3, 2), (4,), (first, second)))
    (packed,) = samples([shown], np.ones(2), "transcript")
    assert packed.images == (first, second)
    other = rollout(turn((1, 2), (3,), (first,)), turn((1, 2, 3, 2), (4,), (second, second)))
    assert len(samples([other], np.ones(2), "transcript")) == 2, "equal tokens, another image"


def test_samples_that_were_drawn_with_other_probabilities_stay_apart():
    row = sample(2, 2, 1.0)
    other = replace(row, old_logprobs=tuple(value - 0.01 for value in row.old_logprobs))
    assert len(merge([row, other])) == 2
    assert len(merge([row, row, replace(row, advantage=-1.0)])) == 2
    turns = Sample((1,), (2, 3), (-1.0, -1.0), 1.0, turn=(0, 1))
    assert len(merge([turns, replace(turns, turn=(0, 0))])) == 2


def test_credit_of_tokens_is_merged_where_signs_agree():
    row = sample(2, 2, (1.0, -2.0))
    assert merge([row, replace(row, advantage=(0.5, -1.0))]) == [
        replace(row, advantage=(1.5, -3.0))
    ]
    assert len(merge([row, replace(row, advantage=(1.0, 2.0))])) == 2
    assert merge([replace(row, advantage=(0.0, 0.0))]) == []


def test_micro_batches_hold_every_sample_once_and_keep_the_limit():
    rows = [sample(prompt=p, response=r) for p in range(1, 9) for r in (1, 4)]
    batches = list(micro_batches(rows, 30, pad_id=0))
    assert sum(len(b.tokens) for b in batches) == len(rows)
    assert all(b.tokens.numel() <= 30 for b in batches)
    assert len(list(micro_batches(rows, 1, pad_id=0))) == len(rows)


def test_a_batch_by_hand():
    batch = to_batch([sample(2, 1, 5.0), sample(1, 1, -1.0)], pad_id=99)
    assert batch.tokens.tolist() == [[0, 1, 7], [0, 7, 99]]
    assert batch.action_mask.tolist() == [[False, False, True], [False, True, False]]
    assert batch.advantage.tolist() == [[0, 0, 5], [0, -1, 0]]
    assert batch.turn.tolist() == [[-1, -1, 0], [-1, 0, -1]]
