"""The policy: a language model with its tokenizer, and the log-probabilities it gives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from agentgyms.core.errors import path_end
from agentgyms.data.progress_bar import working
from harness.config import LoraConfig
from harness.model import adapters, hub
from harness.model.forward import Network
from harness.model.learning_mode import checkpoint_activations
from harness.model.loading import load_parts, longest_sequence
from harness.model.tokenizer import ChatTokenizer
from harness.model.vision import MODEL_TYPES, Vision
from harness.model.vocabulary.output_layer import round_weights
from harness.model.weights import converted
from harness.model.weights.packed_linear import pack_linears
from harness.model.weights.stored_weights import META, save_parts
from harness.types.errors import ConfigError
from harness.types.messages import Message, images_of

disable_progress_bar()  # type: ignore[no-untyped-call]


class Policy(Network):
    """A transformers model and tokenizer on one device.

    Args:
        model: A causal language model, or a vision-language model.
        tokenizer: The model's tokenizer, with a chat template.
        device: The device's name; see `Network`.
        image_processor: The image processor of a vision-language model; None for a text model.
        precision: The precision's name; see `Network`.

    Attributes:
        chat_tokenizer: The encoder of prompts and decoder of answers.
        chat_encoder: The encoder of chats.
        checkpoints_activations: Activations are computed again in the backward pass.
        decodes: The decoding was compared with the model alone, and is right.
        decodes_kept: So was the decoding of prompts whose beginnings are kept.

    Raises:
        ConfigError: The device does not exist, or the tokenizer has no chat template.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        device: str | None = None,
        image_processor: Any = None,
        precision: str | None = None,
    ) -> None:
        super().__init__(model, _pad_id(tokenizer), device, precision)
        self.tokenizer = tokenizer
        self.checkpoints_activations = self.decodes = self.decodes_kept = False
        self.vision = Vision(self.model, image_processor) if image_processor else None
        self.chat_tokenizer = ChatTokenizer(tokenizer, self.model.generation_config, self.vision)
        self.chat_encoder = self.chat_tokenizer.chat_encoder
        head = self.model.get_output_embeddings()
        if head is not None:
            self.hide_tokens(self.chat_tokenizer.unknown_ids(int(head.weight.shape[0])))

    @classmethod
    def load(
        cls,
        path: str,
        device: str | None = None,
        revision: str | None = None,
        *,
        precision: str | None = None,
        attention: str | None = None,
        setting: str = "policy.model",
        tested: bool = True,
    ) -> Policy:
        """Return the policy of a local folder or hub name; adapters are loaded with their base.

        Args:
            path: The folder or name.
            device: The device's name; see `Network`.
            revision: The branch, tag or commit of a hub name; None takes its main branch.
            precision: The precision's name; see `Network`.
            attention: transformers' name of an attention; None takes its default.
            setting: The setting that names it, for errors.
            tested: Compare the log-probabilities of padded batches with transformers' own; False
                for a model that is only saved again.

        Raises:
            ConfigError: It cannot be loaded; the message has transformers' error. Or its
                log-probabilities differ.
        """
        base = adapters.base_of(path)
        half, deferred = precision == "bfloat16", device == META and base is None
        hub.check_name(base or path, setting)
        found = converted.folder_of(base or path, setting)
        with working(f"loading {path_end(path, 60)}", is_shown=os.environ.get("RANK", "0") == "0"):
            parts = load_parts(found, revision, half, attention, deferred=deferred, setting=setting)
            policy = cls(parts.model, parts.tokenizer, device, parts.image_processor, precision)
            policy.stored = parts.stored
            if base is not None:
                adapters.load(policy.model, Path(path))
            if policy.device.type == "cpu":
                policy._align()
            policy.chat_tokenizer.check_ends()
            if tested:
                policy.test()
        return policy

    def _align(self) -> None:
        """Copy every weight into aligned memory.

        Weights loaded from a file keep the file's alignment, and some kernels round differently for
        unaligned memory: a resumed run would differ from an uninterrupted one in the last bit.
        """
        for parameter in self.model.parameters():
            parameter.data = parameter.data.clone()

    def adapt(self, config: LoraConfig, base: str, seed: int) -> None:
        """Freeze the model and add low-rank adapters, which are trained instead.

        `base` is the folder or hub name of the model in its present state, `seed` that of the
        initial weights. Raises `ConfigError` if the adapters cannot be created.
        """
        adapters.add(self.model, config, base, seed)

    def checkpoint_activations(self) -> None:
        """Compute activations again in the backward pass, which saves memory and costs time."""
        checkpoint_activations(self.model)
        self.checkpoints_activations = True

    @property
    def is_adapted(self) -> bool:
        """Whether adapters are trained on frozen weights."""
        return adapters.has_adapters(self.model)

    def save(self, folder: Path, *, merged: bool = False) -> None:
        """Save weights, configuration and tokenizer in transformers' format.

        All processes call this: each writes its part of the weights, the first one all other files.
        The folder is created. `merged`, for a single process, saves all weights with adapters
        merged in. Otherwise adapters, if there are any, are saved alone, with their base's name.

        Raises:
            TrainingError: One of several processes cannot write.
        """
        state: Any = None if self.stored is None else self.stored.state(self.model)
        if self.processes.size > 1 and self.is_adapted:
            state = adapters.full_state(self.model)
        elif self.processes.size > 1:
            save_parts(self.model, folder, self.processes)
        self.processes.run_on_first(lambda: self._save(folder, state, merged=merged))

    def _save(self, folder: Path, state: Any, *, merged: bool) -> None:
        """Save all files but the parts of the weights, which are in the folder already."""
        if self.is_adapted and merged:
            adapters.save_merged(self.model, folder)
        elif self.is_adapted:
            adapters.save(self.model, folder, state)
        elif self.processes.size == 1:
            self.model.save_pretrained(folder, state_dict=state)
        self.tokenizer.save_pretrained(folder)
        if self.vision:
            self.vision.image_processor.save_pretrained(folder)

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a response."""
        return self.chat_tokenizer.stop_ids

    @property
    def max_length(self) -> int:
        """Longest sequence in tokens."""
        return longest_sequence(self.model.config.get_text_config())

    def encode_chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the tokens of a chat, up to the start of the assistant's next answer.

        Earlier answers keep their generated tokens; see `ChatEncoder`. Raises `ConfigError` if the
        chat has images and this is a text model, or its template changes earlier answers.
        """
        images = images_of(messages)
        if images and self.vision is None:
            raise ConfigError(
                f"the prompt shows an image, which a {self.model.config.model_type} cannot see: "
                f"use a model of type {' or '.join(MODEL_TYPES)}, or a style without an image"
            )
        return self.chat_tokenizer.encode_chat(messages)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text, special ones recognised, none added."""
        return self.chat_tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        return self.chat_tokenizer.decode(ids)

    def named_weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield all weights by transformers' names, adapters merged in, for another engine.

        The output layer is included even if it is tied to the embedding, because vLLM would keep a
        stale one. The policy is not changed.
        """
        return adapters.merged(self.model)

    def frozen_copy(self) -> Policy:
        """Return a frozen copy, as a reference policy; the base weights of adapters are shared."""
        image_processor = self.vision.image_processor if self.vision else None
        twin = Policy(
            adapters.copy_model(self.model),
            self.tokenizer,
            str(self.device),
            image_processor,
            self.precision,
        )
        twin.chat_encoder.template_arguments = self.chat_encoder.template_arguments
        twin.padding_free, twin.wanted_packing = self.padding_free, self.wanted_packing
        twin.share_prefixes, twin.wanted_sharing = self.share_prefixes, self.wanted_sharing
        twin.layout, twin.stored = self.layout, self.stored
        twin.model.requires_grad_(False)
        twin.model.eval()
        return twin

    def generation_copy(self) -> Policy:
        """Return a frozen copy to generate with; in mixed precision it has weights in bfloat16.

        Its output layer stays in float32, like that of a forward pass in training.
        """
        twin = self.frozen_copy()
        twin.round_for_generation()
        return twin

    def round_for_generation(self) -> None:
        """Convert weights in mixed precision as `generation_copy` does; they cannot learn then."""
        if self.precision == "mixed":
            round_weights(self.model)
            if self.device.type == "cpu":
                pack_linears(self.model)
            self.precision = "bfloat16"

    def trainable_copy(self) -> Policy:
        """Return a copy of this policy that is trained separately: a reward model or a critic.

        A copy of an adapted policy has its own adapters on the shared base weights.
        """
        twin = self.frozen_copy()
        if twin.is_adapted:
            adapters.train_only_adapters(twin.model)
        else:
            twin.model.requires_grad_(True)
        return twin


def _pad_id(tokenizer: Any) -> int:
    """Return a token to fill batches with; the tokenizer, which is saved unchanged, gets none."""
    ids = tokenizer.pad_token_id, tokenizer.eos_token_id, 0
    return int(next(i for i in ids if i is not None))
