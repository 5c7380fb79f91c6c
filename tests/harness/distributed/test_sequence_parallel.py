"""Rows of tokens that several processes share: they learn what one process learns."""

import forked_ranks
import pytest
import torch
from ranks_program import idle, learn
from test_precision import SMALL
from transformers import Qwen2Config, Qwen2ForCausalLM

from harness import config as configs
from harness.config import consistency
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.model.forward import Network
from harness.model.packed_rows.attention import splitting_obstacle
from harness.model.packed_rows.split_row import RowSplit
from harness.model.packing import Sample, to_batch
from harness.preflight.checks import check_processes
from harness.types.errors import ConfigError


@pytest.mark.slow
def test_processes_that_share_rows_learn_what_one_process_learns(policy, tmp_path):
    policy.save(tmp_path / "model")
    folder = str(tmp_path / "model")
    learn(SINGLE_PROCESS, folder, tmp_path / "one.pt", 1)
    logprobs, figures, weights = torch.load(tmp_path / "one.pt", weights_only=False)
    for size, shares in ((2, (2,)), (4, (2, 4))):
        jobs = [["learn", folder, str(tmp_path / f"{n}.pt"), n] for n in shares]
        codes, said = forked_ranks.run(size, jobs, tmp_path)
        assert not any(codes), said
        for n in shares:
            found = torch.load(tmp_path / f"{n}.pt", weights_only=False)
            assert (found[0] - logprobs).abs().max() < 1e-5
            for own, exact in zip(found[1], figures, strict=True):
                assert own == pytest.approx(exact, rel=1e-5, abs=1e-6)
            for name, weight in weights.items():
                assert (found[2][name] - weight).abs().max() < 1e-5, name


@pytest.mark.slow
def test_processes_move_nothing_without_credit_and_stop_together(policy, tmp_path):
    policy.save(tmp_path / "model")
    folder = str(tmp_path / "model")
    jobs = [["idle", folder, str(tmp_path / f"{n}.pt"), n] for n in (1, 2)]
    codes, said = forked_ranks.run(2, jobs, tmp_path)
    assert not any(codes), said
    idle(SINGLE_PROCESS, folder, tmp_path / "alone.pt", 1)
    alone, _ = torch.load(tmp_path / "alone.pt", weights_only=False)
    for n in (1, 2):
        found, errors = torch.load(tmp_path / f"{n}.pt", weights_only=False)
        first, learned, idled, later, stopped = found
        assert not torch.equal(first, learned)
        assert torch.equal(learned, idled)
        assert not torch.equal(idled, later)
        assert torch.equal(later, stopped)
        assert len(errors) == 2
        assert len(set(errors)) == 1
        assert "the first update does not see the policy that played" in errors[0]
        for own, exact in zip(found, alone, strict=True):
            torch.testing.assert_close(own, exact, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("heads", "keys", "size"), [(8, 8, 4), (8, 2, 4), (6, 3, 2), (4, 1, 4)])
def test_heads_of_keys_go_to_the_heads_of_queries_that_use_them(monkeypatch, heads, keys, size):
    """Without processes: what each would send is dealt by hand."""
    sent = {}

    def exchange(split, parts):
        sent[split.rank] = parts
        return parts

    monkeypatch.setattr(RowSplit, "_exchange", exchange)
    splits = [RowSplit(rank, size, None) for rank in range(size)]
    owner = torch.arange(keys).repeat_interleave(heads // keys)  # each query's head of keys
    for split in splits:
        split.to_heads(torch.arange(keys).float()[None, :, None, None].expand(1, keys, 3, 2))
    for rank in range(size):
        got = sent[0][rank, :, 0, 0].repeat_interleave(heads // size // sent[0].shape[1])
        assert got.tolist() == owner.view(size, -1)[rank].tolist()


def test_predicted_tokens_are_counted_where_their_predecessors_lie():
    rows = [Sample((1, 2), (3, 4), (0.0,) * 2, 1.0), Sample((1,), (2, 3, 4, 5), (0.0,) * 4, 1.0)]
    batch = to_batch(rows, 0)
    # The row is 1 2 3 4 1 2 3 4 5 and a padding token: the second to the eighth but one predict.
    assert RowSplit(0, 2, None).counts(batch.action_mask, batch.lengths) == [3, 3]
    assert RowSplit(0, 4, None).counts(batch.action_mask, batch.lengths) == [2, 2, 2, 0]
    part = RowSplit(1, 2, None).part(torch.arange(9)[None])
    assert part.tolist() == [[5, 6, 7, 8, 0]]


def shape(**changes):
    return Qwen2ForCausalLM(Qwen2Config(**{**SMALL, **changes}))


def test_models_whose_attention_cannot_be_split_are_refused():
    assert splitting_obstacle(shape(), 2) is None
    assert "4 attention heads, which cannot be split over 3" in splitting_obstacle(shape(), 3)
    eager = shape()
    eager.set_attn_implementation("eager")
    assert "its attention is 'eager'" in splitting_obstacle(eager, 2)
    window = shape(layer_types=["full_attention", "full_attention", "sliding_attention"])
    assert "sliding_attention" in splitting_obstacle(window, 2)
    network = Network(shape(), 0, "cpu", None)
    network.share_prefixes = True
    with pytest.raises(ConfigError, match="sequence_parallel is not for this qwen2: its sequences"):
        network._split_rows(2)
    network._split = RowSplit(0, 2, None)
    batch = to_batch([Sample((1,), (2,), (0.0,), 1.0)], 0)
    with pytest.raises(ConfigError, match="for the policy's loss alone"):
        network.features(batch, batch.action_mask)


@pytest.mark.parametrize(
    "setting",
    [
        "optimizer.packing='shared'",
        "optimizer.packing='padded'",
        "policy.attention='flash_attention_2'",
        "policy.model='tiny-vl'",
        "method.name='ppo'",
        "method.name='oprl'",
    ],
)
def test_settings_that_do_not_go_with_it_are_named(setting):
    chosen = ["policy.sequence_parallel=2", "method.loss={}", setting]
    config = configs.load("corridor-tiny", chosen)
    with pytest.raises(ConfigError, match=f"sequence_parallel is 2 and {setting.split('=')[0]}"):
        consistency.check(config)


def test_the_number_of_processes_must_be_a_multiple():
    config = configs.load("corridor-tiny", ["policy.sequence_parallel=2"])
    check_processes(config, 4)
    for size in (1, 3):
        with pytest.raises(ConfigError, match=rf"does not divide the number of processes, {size}"):
            check_processes(config, size)


def test_teams_are_consecutive_processes():
    teams = [ProcessGroup(rank, 4).as_teams(2) for rank in range(4)]
    assert [(team.rank, team.size) for team in teams] == [(0, 2), (0, 2), (1, 2), (1, 2)]
