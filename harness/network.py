"""A model on one device and its forward pass: log-probabilities of batches of sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from harness import adapters, sharding
from harness.attention import allow_packed, features_in_a_row, is_fast
from harness.errors import ConfigError
from harness.output_layer import token_scores
from harness.packing import Sample, TokenBatch, by_length, to_batch, without_weight
from harness.ranks import ALONE, Ranks
from harness.vision import Vision


class Network:
    """A transformers model on one device, or dealt to those of several processes.

    Args:
        model: A causal language model, or a Qwen2.5-VL.
        pad_id: Token that fills up batches.
        device: `"cpu"`, `"cuda"`, or None for a GPU if there is one.
        precision: `"float32"`; `"mixed"`: weights in float32, arithmetic in bfloat16 (autocast); or
            `"bfloat16"` for both. None takes mixed on a GPU and float32 on the CPU.

    Attributes:
        precision: One of the three.
        padding_free: Sequences of a batch pass through the model in one row, without padding.
        ranks: The processes that its weights, and micro-batches, are dealt to.
        vision: What prepares images, or None.
    """

    def __init__(self, model: Any, pad_id: int, device: str | None, precision: str | None) -> None:
        """Move the model to the device.

        Raises:
            ConfigError: The device is not there.
        """
        self.device = _device(device)
        self.precision = precision or ("mixed" if self.device.type == "cuda" else "float32")
        self.pad_id, self.padding_free = pad_id, False
        self.vision: Vision | None = None
        self.ranks: Ranks = ALONE
        self._run: sharding.Run = sharding.directly
        if self.precision == "bfloat16" and not adapters.are_in(model):  # adapters stay in float32
            model = model.to(torch.bfloat16)
        self.model = model.to(self.device)

    def micro_batches(self, rows: Sequence[Sample], max_tokens: int) -> Iterator[TokenBatch]:
        """Yield the samples in batches of at most `max_tokens` tokens of a forward pass."""
        return (batch for _, batch in self.placed_batches(rows, max_tokens))

    def placed_batches(
        self, rows: Sequence[Sample], max_tokens: int
    ) -> Iterator[tuple[list[int], TokenBatch]]:
        """Yield micro-batches with the places of their samples.

        Several processes get equally many: where there is none left, one of a row without tokens to
        be trained, at no place.
        """
        parts = by_length(rows, max_tokens, padding_free=self.padding_free)
        for part in self.ranks.deal(parts, []):
            chosen = [rows[i] for i in part] or [without_weight(rows[0])]
            yield part, to_batch(chosen, self.pad_id, self.device)

    def shard(self, ranks: Ranks) -> None:
        """Leave this process its part of the weights; all processes call it, once.

        From then on all of them call `logprobs`, `features`, `save` and `named_weights` equally
        often. The policy cannot be copied any more, nor generate. Nothing happens in one process.
        """
        if ranks.size > 1 and self.ranks is ALONE:
            self.ranks, self.device = ranks, ranks.device
            self._run = sharding.shard(self.model, self.device)

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context in which the model runs: arithmetic in bfloat16, if it is mixed."""
        if self.precision != "mixed":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def logprobs(
        self, batch: TokenBatch, temperature: float = 1.0, *, entropy_gradient: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return log-probability and entropy of the action tokens given all tokens before them.

        Only action positions pass through the output layer, so its cost does not grow with prompts.

        Args:
            batch: B sequences of T tokens.
            temperature: Of the distribution the tokens were sampled from; 0 counts as 1.
            entropy_gradient: The entropy is to be trained on; else it carries no gradient.

        Returns:
            Log-probabilities of the tokens, and entropies of the distributions they were drawn
            from, in nats, both 0 outside the action mask. Shapes [B, T], [B, T].
        """
        found: tuple[torch.Tensor, torch.Tensor] = self._run(
            self._logprobs, batch, temperature, entropy_gradient
        )
        return found

    def _logprobs(
        self, batch: TokenBatch, temperature: float, entropy_gradient: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        predicts = batch.action_mask[:, 1:]  # position t - 1 predicts token t
        chosen = batch.tokens[:, 1:][predicts]  # [A]
        with self.autocast():
            hidden = self._features(batch, batch.action_mask)  # [A, H]
            picked, spread = token_scores(
                self.model.get_output_embeddings(),
                hidden,
                chosen,
                temperature or 1.0,
                entropy_gradient=entropy_gradient,
            )
        logprob = torch.zeros(batch.tokens.shape, device=self.device)
        logprob[:, 1:][predicts] = picked
        entropy = torch.zeros_like(logprob)
        entropy[:, 1:][predicts] = spread
        return logprob, entropy

    def features(self, batch: TokenBatch, where: torch.Tensor) -> torch.Tensor:
        """Return what the last layer says before tokens, where the output layer would come. [A, H].

        Args:
            batch: B sequences of T tokens.
            where: True at the A tokens asked for; none is a sequence's first. Shape [B, T].
        """
        found: torch.Tensor = self._run(self._features, batch, where)
        return found

    def _features(self, batch: TokenBatch, where: torch.Tensor) -> torch.Tensor:
        with self.autocast():
            if self.padding_free:
                return features_in_a_row(self.model, self._inputs(batch), batch.lengths, where)
            # Padding is on the right, where no token of a causal model looks: it needs no mask.
            out = self.model.base_model(**self._inputs(batch), use_cache=False)
        hidden: torch.Tensor = out.last_hidden_state
        return hidden[:, :-1][where[:, 1:]]

    def _inputs(self, batch: TokenBatch) -> dict[str, torch.Tensor]:
        if self.vision is None:
            return {"input_ids": batch.tokens}
        seen = self.vision.embed(batch.tokens, batch.images)
        return {"inputs_embeds": seen.embedding, "position_ids": seen.position}

    def set_padding_free(self, wanted: bool | None) -> None:
        """Let sequences pass through the model without padding, or with it.

        Args:
            wanted: None takes what is faster: no padding, where one kernel attends to sequences of
                many lengths (flash attention, on a GPU in half precision).

        Raises:
            ConfigError: The model's attention cannot do without padding.
        """
        if wanted is None:
            dtype = torch.float32 if self.precision == "float32" else torch.bfloat16
            wanted = is_fast(self.model, dtype)
        if wanted:
            allow_packed(self.model)
        self.padding_free = wanted


def _device(name: str | None) -> torch.device:
    """Return the device of this name, or a GPU if there is one.

    Raises:
        ConfigError: There is no GPU.
    """
    device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError("the device is 'cuda' but torch finds no GPU: use 'cpu' or leave it out")
    return device
