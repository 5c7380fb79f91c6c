"""The policy: a language model with its tokenizer, and the log-probabilities it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from harness import adapters, sharding
from harness.completers import Message, images_of
from harness.errors import ConfigError
from harness.loading import load_parts
from harness.lora import LoraConfig
from harness.network import Network
from harness.reader import Reader
from harness.vision import MODEL_TYPES, Vision

disable_progress_bar()  # type: ignore[no-untyped-call]


class Policy(Network):
    """A transformers model and tokenizer on one device.

    Args:
        model: A causal language model, or a Qwen2.5-VL.
        tokenizer: Its tokenizer, with a chat template.
        device: See `Network`.
        image_processor: Of a Qwen2.5-VL; None makes a policy that reads only.
        precision: See `Network`.

    Attributes:
        reader: Its tokenizer as prompts and answers need it.
        chats: What writes chats as tokens.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        device: str | None = None,
        image_processor: Any = None,
        precision: str | None = None,
    ) -> None:
        """Move the model to the device.

        Raises:
            ConfigError: The device is not there, or the tokenizer lacks what is needed.
        """
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        super().__init__(model, int(tokenizer.pad_token_id), device, precision)
        self.tokenizer = tokenizer
        self.vision = Vision(self.model, image_processor) if image_processor else None
        self.reader = Reader(tokenizer, self.model.generation_config, self.vision)
        self.chats = self.reader.chats

    @classmethod
    def load(
        cls,
        path: str,
        device: str | None = None,
        revision: str | None = None,
        *,
        precision: str | None = None,
        attention: str | None = None,
    ) -> Policy:
        """Return the policy of a local folder or a hub name.

        Where the folder holds adapters, they are put on the model that they were made for.

        Args:
            path: The folder or name.
            device: See `Network`.
            revision: Branch, tag or commit of a hub name; None takes its main branch.
            precision: See `Network`.
            attention: Transformers' name of an attention; None leaves its choice.

        Raises:
            ConfigError: It cannot be loaded; the message tells what transformers said.
        """
        base = adapters.base_of(path)
        parts = load_parts(base or path, revision, precision == "bfloat16", attention)
        policy = cls(parts.model, parts.tokenizer, device, parts.image_processor, precision)
        if base is not None:
            adapters.load(policy.model, Path(path))
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

    def adapt(self, config: LoraConfig, base: str, seed: int) -> None:
        """Freeze the model and put low-rank adapters into it, which are trained in its place.

        Args:
            config: Their size.
            base: The folder or hub name that has the model as it is now.
            seed: Of their first weights.

        Raises:
            ConfigError: They cannot be made.
        """
        adapters.add(self.model, config, base, seed)

    @property
    def is_adapted(self) -> bool:
        """Whether adapters are trained on frozen weights."""
        return adapters.are_in(self.model)

    def save(self, folder: Path, *, merged: bool = False) -> None:
        """Write weights, configuration and tokenizer; `load` and any other tool can read them.

        Several processes all call it, and the first writes.

        Args:
            folder: Made if need be.
            merged: Write all weights, adapters merged in; else adapters alone, if there are any,
                beside the name of the model that they are on.
        """
        state = sharding.full_state(self.model) if self.ranks.size > 1 else None
        if not self.ranks.is_first:
            return
        if not self.is_adapted:
            self.model.save_pretrained(folder, state_dict=state)
        elif merged:
            adapters.save_merged(self.model, folder)
        else:
            adapters.save(self.model, folder, state)
        self.tokenizer.save_pretrained(folder)
        if self.vision:
            self.vision.image_processor.save_pretrained(folder)

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

    def named_weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield all weights by transformers' names, adapters merged in, for another engine.

        The output layer is among them also where it is tied to the embedding: vLLM keeps a stale
        one otherwise. The policy is not changed.
        """
        return adapters.merged(self.model)

    def frozen_copy(self) -> Policy:
        """Return a copy of this policy that is never trained, as a reference.

        Weights that adapters are on are shared with it, since they never change.
        """
        image_processor = self.vision.image_processor if self.vision else None
        twin = Policy(
            adapters.duplicate(self.model),
            self.tokenizer,
            str(self.device),
            image_processor,
            self.precision,
        )
        twin.padding_free = self.padding_free
        twin.model.requires_grad_(False)
        twin.model.eval()
        return twin

    def trainable_copy(self) -> Policy:
        """Return a copy of this policy that is trained on its own: a reward model, a critic.

        That of an adapted policy has adapters of its own, on the weights that both share.
        """
        twin = self.frozen_copy()
        if twin.is_adapted:
            adapters.train_only_adapters(twin.model)
        else:
            twin.model.requires_grad_(True)
        twin.model.train(self.model.training)
        return twin
