"""The policy: a language model with its tokenizer, and the log-probabilities it gives."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers.utils.logging import disable_progress_bar

from harness.completers import Message, images_of
from harness.errors import ConfigError
from harness.packing import TokenBatch
from harness.reader import Reader
from harness.vision import MODEL_TYPES, Vision, load_image_processor

disable_progress_bar()  # type: ignore[no-untyped-call]


class Policy:
    """A transformers model and tokenizer on one device.

    Weights are kept in float32; on a GPU the arithmetic runs in bfloat16 (autocast).

    Args:
        model: A causal language model, or a Qwen2.5-VL.
        tokenizer: Its tokenizer, with a chat template.
        device: `"cpu"`, `"cuda"`, or None for a GPU if there is one.
        image_processor: Of a Qwen2.5-VL; None makes a policy that reads only.

    Attributes:
        vision: What prepares images, or None.
        reader: Its tokenizer as prompts and answers need it.
        chats: What writes chats as tokens.
    """

    def __init__(
        self, model: Any, tokenizer: Any, device: str | None = None, image_processor: Any = None
    ) -> None:
        """Move the model to the device.

        Raises:
            ConfigError: The device is not there, or the tokenizer lacks what is needed.
        """
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise ConfigError(
                "the device is 'cuda' but torch finds no GPU: use 'cpu' or leave it out"
            )
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        self.model = model.to(self.device)
        self.tokenizer = tokenizer
        self.vision = Vision(self.model, image_processor) if image_processor else None
        self.reader = Reader(tokenizer, self.model.generation_config, self.vision)
        self.chats = self.reader.chats

    @classmethod
    def load(cls, path: str, device: str | None = None, revision: str | None = None) -> Policy:
        """Return the policy of a local folder or a hub name.

        Args:
            path: The folder or name.
            device: See the class.
            revision: Branch, tag or commit of a hub name; None takes its main branch.

        Raises:
            ConfigError: It cannot be loaded; the message tells what transformers said.
        """
        from transformers import (
            AutoConfig,
            AutoModelForCausalLM,
            AutoModelForImageTextToText,
            AutoTokenizer,
        )

        try:
            sees = AutoConfig.from_pretrained(path, revision=revision).model_type in MODEL_TYPES
            tokenizer = AutoTokenizer.from_pretrained(path, revision=revision)
            image_processor = load_image_processor(path, revision) if sees else None
            kind = AutoModelForImageTextToText if sees else AutoModelForCausalLM
            model = kind.from_pretrained(path, revision=revision, dtype=torch.float32)
        except (OSError, ValueError, SafetensorError) as e:
            raise ConfigError(f"policy.model {path!r} cannot be loaded: {e}") from e
        policy = cls(model, tokenizer, device, image_processor)
        if policy.device.type == "cpu":
            policy._align()
        return policy

    def _align(self) -> None:
        """Give every weight memory of its own.

        Weights read from a file lie where the file has them, and some kernels round differently at
        an odd address: a resumed run would not repeat an uninterrupted one to the last bit.
        """
        for parameter in self.model.parameters():
            parameter.data = parameter.data.clone()

    def save(self, folder: Path) -> None:
        """Write weights, configuration and tokenizer; `load` and any other tool can read them."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        if self.vision:
            self.vision.image_processor.save_pretrained(folder)

    @property
    def pad_id(self) -> int:
        """Token that fills up batches."""
        return int(self.tokenizer.pad_token_id)

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a response."""
        return self.reader.stop_ids

    @property
    def max_length(self) -> int:
        """Longest sequence in tokens."""
        return int(self.model.config.get_text_config().max_position_embeddings)

    def encode_chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the tokens of a chat, up to where the assistant's next answer begins.

        Earlier answers keep the tokens that they bring with them; see `Chats`.

        Raises:
            ConfigError: The chat shows images and this model reads only, or its chat template does
                not keep earlier answers.
        """
        images = images_of(messages)
        if images and self.vision is None:
            raise ConfigError(
                f"the prompt shows an image, which a {self.model.config.model_type} cannot see: "
                f"use a model of type {' or '.join(MODEL_TYPES)}, or a style without an image"
            )
        return self.reader.encode_chat(messages)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text, special ones recognised, none added."""
        return self.reader.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        return self.reader.decode(ids)

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context in which the model runs: bfloat16 on a GPU."""
        if self.device.type == "cpu":
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
        with self.autocast():
            hidden = self.features(batch)
            predicts = batch.action_mask[:, 1:]  # position t - 1 predicts token t
            logits = self.model.get_output_embeddings()(hidden[:, :-1][predicts])  # [A, V]
        distribution = torch.log_softmax(logits.float() / (temperature or 1.0), dim=-1)
        chosen = batch.tokens[:, 1:][predicts]  # [A]
        logprob = torch.zeros(batch.tokens.shape, device=self.device)
        picked = distribution.gather(-1, chosen[:, None])[:, 0]
        logprob[:, 1:][predicts] = picked
        entropy = torch.zeros_like(logprob)
        with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
            entropy[:, 1:][predicts] = -(distribution.exp() * distribution).sum(-1)
        return logprob, entropy

    def features(self, batch: TokenBatch) -> torch.Tensor:
        """Return what the last layer says of every token, before the output layer. [B, T, H]."""
        with self.autocast():
            # Padding is on the right, where no token of a causal model looks: it needs no mask.
            out = self.model.base_model(**self._inputs(batch), use_cache=False)
        hidden: torch.Tensor = out.last_hidden_state
        return hidden

    def _inputs(self, batch: TokenBatch) -> dict[str, torch.Tensor]:
        if self.vision is None:
            return {"input_ids": batch.tokens}
        seen = self.vision.embed(batch.tokens, batch.images)
        return {"inputs_embeds": seen.embedding, "position_ids": seen.position}

    def frozen_copy(self) -> Policy:
        """Return a copy of this policy that is never trained, as a reference."""
        image_processor = self.vision.image_processor if self.vision else None
        twin = Policy(copy.deepcopy(self.model), self.tokenizer, str(self.device), image_processor)
        twin.model.requires_grad_(False)
        return twin

    def trainable_copy(self) -> Policy:
        """Return a copy of this policy that is trained on its own: a reward model, a critic."""
        twin = self.frozen_copy()
        twin.model.requires_grad_(True)
        return twin
