"""Torch's kernel for packed rows, called as the signature of each version of torch wants it."""

import pytest
import torch

from harness.config import load as load_config
from harness.model.packed_rows.attention import has_kernel, obstacle_of
from harness.model.packed_rows.varlen_kernel import VarlenKernel
from harness.preflight.checks import check
from harness.types.errors import ConfigError

TOLD = {}


def answer(kernel, key, value, **told):
    """Remember what a kernel was told and return attention's output by plain arithmetic."""
    TOLD.clear()
    TOLD.update(told, kernel=kernel, heads=key.shape[1])
    return value.repeat_interleave(4 // value.shape[1], 1)


def of_2_10(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, is_causal=False, return_aux=None):
    return answer("2.10", key, value, causal=is_causal)


def of_2_11(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *,
    return_aux=None, scale=None, window_size=(-1, -1),
):  # fmt: skip
    return answer("2.11", key, value, causal=window_size == (-1, 0), scale=scale)


def of_2_12(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *,
    return_aux=None, scale=None, window_size=(-1, -1), enable_gqa=False,
    seqused_k=None, block_table=None, num_splits=None,
):  # fmt: skip
    assert enable_gqa or key.shape[1] == query.shape[1]
    return answer("2.12", key, value, causal=window_size == (-1, 0), scale=scale)


def of_a_later_version(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, layout, *, scale=None):
    raise AssertionError("called without what it needs")


@pytest.mark.parametrize(
    ("function", "heads", "scales"), [(of_2_10, 4, False), (of_2_11, 4, True), (of_2_12, 2, True)]
)
def test_each_version_gets_its_own_arguments(function, heads, scales):
    kernel = VarlenKernel.of(function)
    assert kernel is not None
    query, key = torch.zeros(5, 4, 16), torch.ones(5, 2, 16)
    out = kernel.attend(query, key, key, (torch.tensor([0, 2, 5]),) * 2, (3, 3), 0.25)
    assert out.shape == query.shape
    assert TOLD["causal"]
    assert TOLD["heads"] == heads  # older ones have no shared heads of keys
    assert kernel.takes(None, 16)
    assert kernel.takes(0.25, 16)  # 1 / sqrt(16)
    assert kernel.takes(0.5, 16) is scales
    if scales:
        assert TOLD["scale"] == 0.25


def test_older_and_unknown_torch_has_no_kernel():
    assert VarlenKernel.of(None) is None  # 2.6 to 2.9
    assert VarlenKernel.of(of_a_later_version) is None
    assert not has_kernel("sdpa", None)
    assert has_kernel("flash_attention_2", None)
    assert has_kernel("sdpa", VarlenKernel.of(of_2_11))


def test_the_installed_torch_is_one_of_these_versions():
    varlen = pytest.importorskip("torch.nn.attention.varlen", reason="torch has it from 2.10 on")
    kernel = VarlenKernel.of(varlen.varlen_attn)
    assert kernel is not None
    assert kernel.takes(0.5, 16)


def test_what_cannot_be_packed_is_refused_before_anything_is_loaded(tmp_path):
    assert obstacle_of("sdpa", ()) is None
    assert "layers of sliding_attention" in obstacle_of("sdpa", ["sliding_attention"])
    fields = ["warmstart.episodes=1", "optimizer.packing='packed'", "policy.attention='eager'"]
    with pytest.raises(ConfigError, match="'packed' cannot be used: its attention is 'eager'"):
        check(load_config("corridor-tiny", fields))
    check(load_config("corridor-tiny", fields[:2]))
