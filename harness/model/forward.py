"""A model on one device and its forward pass: log-probabilities of batches of sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from harness.distributed import fsdp
from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup
from harness.distributed.rows import fill, place_buffers
from harness.model import adapters, self_test
from harness.model.packed_rows.attention import (
    allow_packed,
    is_fast,
    language_model,
    packed_features,
    sharing_obstacle,
    splitting_obstacle,
)
from harness.model.packed_rows.split_row import RowSplit
from harness.model.packing import Sample, TokenBatch, micro_batch_indices, padding_sample, to_batch
from harness.model.self_test import miniature
from harness.model.vision import Vision
from harness.model.vocabulary.output_layer import token_scores
from harness.model.vocabulary.own_head import OwnHead, is_plain
from harness.model.weights.stored_weights import META, StoredWeights
from harness.model.weights.usual_precision import usual_precision
from harness.types.errors import ConfigError


class Network:
    """A transformers model on one device, or sharded over those of several processes.

    `device` is `"cpu"`, `"cuda"` or None for a GPU if there is one. `"meta"` is for a model that is
    sharded or placed before use, whose weights may be without memory (`stored`) until then.
    `precision` is `"float32"`, `"bfloat16"` or `"mixed"`: weights in float32, arithmetic in
    bfloat16 (autocast); None takes `usual_precision`.
    """

    def __init__(self, model: Any, pad_id: int, device: str | None, precision: str | None) -> None:
        self.device = _device(device)
        size = sum(weight.numel() for weight in model.parameters())
        self.precision = precision or usual_precision(self.device.type, size)
        self.pad_id, self.padding_free, self.share_prefixes = pad_id, False, False
        self.wanted_packing: bool | None = False
        self.wanted_sharing: bool | None = False
        self.vision: Vision | None = None
        self._hidden: torch.Tensor | None = None
        self.processes: ProcessGroup = SINGLE_PROCESS
        self.layout, self._sharded = fsdp.Layout(), fsdp.ShardedModel()
        self._split: RowSplit | None = None
        self._has_plain_head: bool | None = None
        # Adapters stay in float32.
        if self.precision == "bfloat16" and not adapters.has_adapters(model):
            model = model.to(torch.bfloat16)
        self.stored: StoredWeights | None = None
        self.model = model if self.device.type == META else model.to(self.device)

    def hide_tokens(self, ids: Sequence[int]) -> None:
        """Give tokens no probability, in sampling and training alike."""
        self._hidden = torch.tensor(ids, dtype=torch.long) if ids else None

    @cached_property
    def layers(self) -> Any:
        """The layers of the model without its output layer and vision model."""
        return language_model(self.model)

    @property
    def hidden_tokens(self) -> torch.Tensor | None:
        """The ids hidden by `hide_tokens`, on the device; None without any."""
        if self._hidden is not None and self._hidden.device != self.device:
            self._hidden = self._hidden.to(self.device)
        return self._hidden

    def micro_batches(self, rows: Sequence[Sample], max_tokens: int) -> Iterator[TokenBatch]:
        """Yield the samples in micro-batches of at most `max_tokens` tokens."""
        return (batch for _, batch in self.indexed_batches(rows, max_tokens))

    def indexed_batches(
        self, rows: Sequence[Sample], max_tokens: int
    ) -> Iterator[tuple[list[int], TokenBatch]]:
        """Yield micro-batches with the indices of their samples.

        All processes get equally many: the last one may be a padding sample without an index.
        """
        shared = {"share_prefixes": self.share_prefixes}
        parts = micro_batch_indices(rows, max_tokens, padding_free=self.padding_free, **shared)
        teams = self.processes.as_teams(self.num_sharing)
        share = list(teams.padded_share(parts, []))
        for number, part in enumerate(share, 1):
            self._sharded.expect(is_last=number == len(share))
            # A forward pass gathers weights, so a process without samples must make one, too.
            chosen = [rows[i] for i in part] or [padding_sample(rows[0])]
            yield part, to_batch(chosen, self.pad_id, self.device, **shared)

    @property
    def num_sharing(self) -> int:
        """Number of processes that share each micro-batch, of which each knows all results."""
        return 1 if self._split is None else self._split.size

    def shard(self, processes: ProcessGroup) -> None:
        """Shard the weights over the processes; all of them call this once.

        Afterwards all processes must call `logprobs`, `features`, `save` and `named_weights`
        equally often, and the policy can neither be copied nor generate. A single process does
        nothing. Raises `ConfigError` if processes are to share rows of tokens, and the model's
        attention cannot.
        """
        if processes.size > 1 and self.processes is SINGLE_PROCESS:
            self.processes, self.device = processes, processes.device
            layout = replace(self.layout, mixed=self.precision == "mixed")
            self._sharded = fsdp.shard_model(self.model, self.device, layout)
            self._read_weights(self._sharded.run, layout.weights_device(self.device))
            self.set_padding_free(self.wanted_packing)  # only this device tells what is faster
            self.set_share_prefixes(self.wanted_sharing)  # None shares in no sharded model
            if self.layout.sequence > 1:
                self._split_rows(self.layout.sequence)

    def _split_rows(self, size: int) -> None:
        reason = splitting_obstacle(self.model, size)
        if self.vision is not None:
            reason = "the tokens of an image cannot be split"
        if self.share_prefixes:
            reason = "its sequences share prefixes"
        if reason is not None:
            raise ConfigError(
                f"policy.sequence_parallel is not for this {self.model.config.model_type}: "
                f"{reason}; set it to 1"
            )
        self.set_padding_free(True)
        self._split = RowSplit.of(self.processes, size)

    def place(self, device: torch.device) -> None:
        """Move all weights to a device, or read them there if they are not read yet."""
        self.device = device
        self._read_weights(self.model, device)
        self.model.to(device)
        self.test()

    def _read_weights(self, whole: Any, where: torch.device) -> None:
        if self.stored is not None:
            read = self.stored.read
            self.processes.run_on_all(lambda: fill(self.model, whole, where, read))
            place_buffers(self.model, self.device)
            self.stored = None

    def test(self) -> None:
        """Compare the log-probabilities of padded batches with transformers'.

        In half precision only a wide tolerance fits, and weights that are not read yet cannot be
        compared. In both cases a miniature of the model is compared in float32. Raises
        `ConfigError` if they differ.
        """
        is_read = self.device.type != META
        wants_small = not is_read or not self_test.is_exact(self)
        small = small_networks(self.model.config) if wants_small else []
        for one in small:
            self_test.check(one)
        if is_read:
            self_test.check(self, judged=bool(small))

    def autocast(self) -> AbstractContextManager[Any]:
        """Return autocast in mixed precision; sharded layers are gathered in bfloat16 already."""
        if self.precision != "mixed" or self.processes.size > 1:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def logprobs(
        self, batch: TokenBatch, temperature: float = 1.0, *, entropy_gradient: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log-probability and entropy of the action tokens given all tokens before them.

        Both are in nats, and 0 outside the action mask, [B, T] each. Only action positions pass
        through the output layer, so its cost does not grow with prompts. A temperature of 0 counts
        as 1. `entropy_gradient` makes the entropy differentiable.
        """
        found: tuple[torch.Tensor, torch.Tensor] = self._sharded.run(
            self._logprobs, batch, temperature, entropy_gradient
        )
        return found

    def _logprobs(
        self, batch: TokenBatch, temperature: float, entropy_gradient: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        predicts = batch.action_mask[:, 1:]  # position t - 1 predicts token t
        chosen = batch.tokens[:, 1:][predicts]  # [A]
        if self._split is not None:
            counts = self._split.counts(batch.action_mask, batch.lengths)
            chosen = self._split.own(chosen, counts)
        hidden = self._features(batch, batch.action_mask)  # [A, H]
        picked, spread = self._sharded.run_head(
            self._scores, hidden, chosen, temperature or 1.0, entropy_gradient
        )
        if self._split is not None:
            picked, spread = self._split.gather(torch.stack([picked, spread]), counts)
        logprob = torch.zeros(batch.tokens.shape, device=self.device)  # [B, T]
        logprob[:, 1:][predicts] = picked  # [A]
        entropy = torch.zeros_like(logprob)
        entropy[:, 1:][predicts] = spread
        return logprob, entropy

    def _scores(
        self, hidden: torch.Tensor, chosen: torch.Tensor, temperature: float, with_entropy: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        head = self.output_head(hidden.shape[-1])
        return token_scores(
            head,
            hidden,
            chosen,
            temperature,
            entropy_gradient=with_entropy,
            hidden_tokens=self.hidden_tokens,
        )

    def output_head(self, width: int) -> Any:
        """Return the function from the base model's last hidden states, [A, H], to logits.

        It includes the model's scales and caps. Raises `ConfigError` if the model has no logits of
        hidden states.
        """
        if self._has_plain_head is None:
            self._has_plain_head = is_plain(self.model, width)
        return self.model.get_output_embeddings() if self._has_plain_head else OwnHead(self.model)

    def features(self, batch: TokenBatch, where: torch.Tensor) -> torch.Tensor:
        """Return the last layer's features that predict tokens: the output layer's input. [A, H].

        `where` is True at the A predicted tokens, never at a sequence's first, [B, T]. Raises
        `ConfigError` if several processes share each row.
        """
        if self._split is not None:
            raise ConfigError(
                "policy.sequence_parallel is for the policy's loss alone: set it to 1"
            )
        found: torch.Tensor = self._sharded.run(self._features, batch, where)
        return found

    def _features(self, batch: TokenBatch, where: torch.Tensor) -> torch.Tensor:
        with self.autocast():
            tree = batch.tree if self.share_prefixes else None
            if self.padding_free or tree is not None:
                given = self._inputs(batch), batch.lengths, where, tree, self._split
                return packed_features(self.model, *given)
            # Padding is on the right, where a causal model's tokens do not attend: no mask needed.
            out = self.layers(**self._inputs(batch), use_cache=False)
        hidden: torch.Tensor = out.last_hidden_state
        return hidden[:, :-1][where[:, 1:]]

    def _inputs(self, batch: TokenBatch) -> dict[str, Any]:
        if self.vision is None:
            return {"input_ids": batch.tokens}
        return self.vision.embed(batch.tokens, batch.images).inputs()

    def set_padding_free(self, wanted: bool | None) -> None:
        """Choose whether the sequences of a batch are packed without padding.

        None takes the faster way: packing, if one kernel computes the attention of sequences of
        different lengths (flash attention, on a GPU in half precision). Raises `ConfigError` if the
        model's attention needs padding.
        """
        self.wanted_packing, asked = wanted, wanted
        if wanted is None:
            dtype = torch.float32 if self.precision == "float32" else torch.bfloat16
            wanted = is_fast(self.model, self.device, dtype)
        if wanted:
            try:
                self._allow(self_test.PACKED)
            except ConfigError:
                if asked:
                    raise
                wanted = False
        self.padding_free = wanted

    def _allow(self, path: str) -> None:
        """Let the model's attention take packed rows, and compare the results."""
        usual = self.model.config._attn_implementation
        allow_packed(self.model, shares=path == self_test.SHARED)
        if self.device.type == META:  # it is compared once its weights are there
            return
        try:
            self_test.check_path(self, path)
        except ConfigError:
            self.model.set_attn_implementation(usual)
            raise

    def set_share_prefixes(self, wanted: bool | None) -> None:
        """Choose whether equal prefixes of a batch's sequences pass through the model once.

        None shares them where one process computes in bfloat16 on a CPU, unless the model cannot
        or its sequences are to be padded. Raises `ConfigError` if they are to be shared and the
        model cannot.
        """
        self.wanted_sharing, asked = wanted, wanted
        if wanted is None:
            on_cpu = self.device.type == "cpu" and self.precision == "mixed"
            on_cpu = on_cpu and self.processes.size == 1
            able = self.vision is None and sharing_obstacle(self.model) is None
            wanted = on_cpu and able and self.wanted_packing is None
        if wanted and self.vision is not None:
            raise ConfigError(
                f"optimizer.packing 'shared' is not for this {self.model.config.model_type}: equal "
                "tokens may stand for different images; leave it out"
            )
        if wanted:
            try:
                self._allow(self_test.SHARED)
            except ConfigError:
                if asked:
                    raise
                wanted = False
        self.share_prefixes = wanted


def small_networks(config: Any) -> list[Network]:
    """Return the miniature of a transformers configuration in float32; none if it has none."""
    small = miniature.model_of(config)
    return [] if small is None else [Network(small, 0, "cpu", "float32")]


def _device(name: str | None) -> torch.device:
    device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("the device is 'cuda' but torch finds no GPU: use 'cpu' or leave it out")
    return device
