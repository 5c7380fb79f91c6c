"""Images of a Qwen2.5-VL or Qwen3-VL: their tokens in the prompt, features and positions.

transformers' PIL code prepares the images: it gives the same numbers on every machine and does not
need torchvision. B: number of sequences. T: number of tokens. H: the model's width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import torch

from harness.types.errors import ConfigError
from harness.types.messages import GENERATED_IMAGE_TOKEN, Image

MODEL_TYPES: Final = ("qwen2_5_vl", "qwen3_vl")
"""Types of vision-language models, as `config.json` names them."""

_CACHED_IMAGES = 256
"""Number of images whose patches are cached: about 2 MB each at 288 x 288 pixels."""


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """The model's input for sequences with images."""

    embedding: torch.Tensor  # embeddings of text and images. Shape [B, T, H].
    position: torch.Tensor  # positions in time, height and width. Shape [3, B, T], integers.
    # Position minus index of the tokens after the sequence; 0 or less, since an image has fewer
    # positions than tokens. Shape [B], integers.
    shift: torch.Tensor
    # Features of images that the first layers add to their outputs at the images' tokens, for each
    # of these layers; empty if the model has none. Shapes [image tokens, H].
    deep: tuple[torch.Tensor, ...]
    is_image: torch.Tensor  # the images' tokens. Shape [B, T], booleans.

    def inputs(self) -> dict[str, Any]:
        """Return the arguments of the language model."""
        given: dict[str, Any] = {"inputs_embeds": self.embedding, "position_ids": self.position}
        if self.deep:
            given |= {"visual_pos_masks": self.is_image, "deepstack_visual_embeds": self.deep}
        return given


class Vision:
    """The image inputs of one Qwen2.5-VL or Qwen3-VL on its device; images are prepared by PIL."""

    def __init__(self, model: Any, image_processor: Any) -> None:
        self.model, self.image_processor = model, image_processor
        self.image_token_id = int(model.config.image_token_id)
        self._prepare = lru_cache(_CACHED_IMAGES)(self._prepare_uncached)

    def num_tokens(self, image: Image) -> int:
        """Return the number of an image's tokens; `GENERATED_IMAGE_TOKEN` has one."""
        if image == GENERATED_IMAGE_TOKEN:
            return 1
        height, width, _ = image.pixels.shape
        try:
            patches = self.image_processor.get_number_of_image_patches(height, width, {})
        except ValueError as e:
            raise ConfigError(
                f"the environment's image has {height} x {width} pixels, which the model's image "
                f"processor refuses ({e}): use an environment or arguments with images that are "
                "less narrow"
            ) from e
        return int(patches) // int(self.image_processor.merge_size) ** 2

    def expand(self, tokens: Sequence[int], images: Sequence[Image]) -> tuple[int, ...]:
        """Return a prompt in which each image token is repeated to the image's number of tokens."""
        marks = list(tokens).count(self.image_token_id)
        if marks != len(images):
            raise ConfigError(
                f"a prompt shows {len(images)} images but its chat template wrote {marks} image "
                "tokens: use the chat template of the model's own processor"
            )
        left = iter(images)
        expanded: list[int] = []
        for token in tokens:
            times = self.num_tokens(next(left)) if token == self.image_token_id else 1
            expanded += [token] * times
        return tuple(expanded)

    def embed(
        self,
        tokens: torch.Tensor,  # shape [B, T]
        # Each sequence's images in order; empty if no sequence has any.
        images: Sequence[Sequence[Image]],
        # 0 at padding on the left; padding on the right needs none. Shape [B, T].
        mask: torch.Tensor | None = None,
    ) -> Embedded:
        """Return the model's input embeddings, with gradients for text and images.

        The images are those of a sequence's first image tokens. For a token that the model
        generated before an image, `images` has `GENERATED_IMAGE_TOKEN`.
        """
        shown = [list(row) for row in images] or [[] for _ in tokens]
        is_image = self._places(tokens, shown)
        embedding = self.model.get_input_embeddings()(tokens)
        flat = [image for row in shown for image in row if image != GENERATED_IMAGE_TOKEN]
        grid: torch.Tensor | None = None
        deep: tuple[torch.Tensor, ...] = ()
        if flat:
            feature, deep, grid = self._features(flat, tokens.device)
            # Features are in the order of the True places: row by row, image by image.
            embedding = embedding.masked_scatter(is_image[..., None], feature.to(embedding.dtype))
        position, shift = self.model.base_model.get_rope_index(  # counts token by token: on the CPU
            tokens.cpu(),
            mm_token_type_ids=is_image.cpu().int(),
            image_grid_thw=grid,
            attention_mask=None if mask is None else mask.cpu(),
        )
        position, shift = position.to(tokens.device), shift[:, 0].to(tokens.device)
        return Embedded(embedding, position, shift, deep, is_image)

    def _places(self, tokens: torch.Tensor, images: Sequence[Sequence[Image]]) -> torch.Tensor:
        """Return a mask of the images' tokens. Shape [B, T]."""
        real = [
            [one != GENERATED_IMAGE_TOKEN for one in row for _ in range(self.num_tokens(one))]
            for row in images
        ]
        width = max(map(len, real)) + 1  # the last column is for all image tokens after them
        table = torch.tensor([row + [False] * (width - len(row)) for row in real])
        is_mark = tokens == self.image_token_id  # [B, T]
        rank = (is_mark.cumsum(-1) - 1).clamp(0, width - 1)  # the number of the row's image token
        return is_mark & table.to(tokens.device).gather(1, rank)

    def _features(
        self, images: Sequence[Image], device: torch.device
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...], torch.Tensor]:
        """Return features of images, those for the first layers, [tokens, H] each, and grids."""
        prepared = {image: self._prepare(image) for image in images}
        output = self.model.base_model.get_image_features(
            torch.cat([patches for patches, _ in prepared.values()]).to(device),
            torch.stack([grid for _, grid in prepared.values()]).to(device),
            return_dict=True,
        )
        levels = [output.pooler_output]
        for level in getattr(output, "deepstack_features", None) or ():
            whole = isinstance(level, torch.Tensor)  # in older versions of transformers
            levels.append(level.split([len(one) for one in levels[0]]) if whole else level)
        of_image = [dict(zip(prepared, level, strict=True)) for level in levels]
        feature, *deep = (torch.cat([level[image] for image in images]) for level in of_image)
        return feature, tuple(deep), torch.stack([prepared[image][1] for image in images])

    @torch.inference_mode(mode=False)  # remembered from generation, used with gradients
    def _prepare_uncached(self, image: Image) -> tuple[torch.Tensor, torch.Tensor]:
        """Return an image's patches, and its grid: time, height and width in patches."""
        prepared = self.image_processor(
            images=[image.pixels],
            input_data_format="channels_last",  # else a guess, wrong for images 1 or 3 pixels high
            return_tensors="pt",
        )
        return prepared["pixel_values"], prepared["image_grid_thw"][0]


def load_image_processor(path: str, source: Mapping[str, Any]) -> Any:
    """Return the image processor of a folder or a hub name, of the PIL kind."""
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    load: Any = Qwen2VLImageProcessorPil.from_pretrained  # of all `MODEL_TYPES`
    return load(path, **source)
