"""Low-rank adapters (LoRA): peft injects them into the layers, so the model keeps its class."""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch

from agentgyms.core import imports
from agentgyms.core.errors import path_end
from agentgyms.data.users_files import parse_json, read_text
from harness.config import LoraConfig
from harness.distributed.fsdp import full_tensor
from harness.model import hub
from harness.model.learning_mode import is_adapted_layer
from harness.model.weights import adapter_file, converted
from harness.types.errors import ConfigError
from harness.types.json_files import read_object

ADAPTER: Final = "default"
"""peft's name of a model's only adapter."""

BASE_FOLDER: Final = "base"
"""Subfolder of a run for the adapters' base model, if it is stored nowhere else."""

_BASE: Final = "base_layer"
_ADAPTER: Final = re.compile(r"\.lora_[A-Za-z_]+\.")
_EVERY_LINEAR: Final = "all-linear"
_OF_EXPERTS: Final = ("gate_proj", "up_proj", "down_proj", "gate_up_proj")
_STACKED: Final = 3
"""Dimensions of the weights of all experts of a layer."""


def add(model: Any, config: LoraConfig, base: str, seed: int) -> None:
    """Add adapters to a model and freeze its other weights; the initial update is zero.

    `base`, the folder or hub name of the model, is saved with the adapters. Raises `ConfigError` if
    peft is not installed, or the model has none of the target layers.
    """
    check_installed()
    from peft import LoraConfig as PeftConfig

    targets, alpha = config.targets, config.alpha
    described = PeftConfig(
        r=config.rank,
        lora_alpha=alpha,  # type: ignore[arg-type]  # any number divides by the rank
        lora_dropout=config.dropout,
        target_modules=_target_modules(model, targets),
        task_type="CAUSAL_LM",
    )
    model.name_or_path = base
    with torch.random.fork_rng(devices=[]):  # a GPU's adapters are made on the CPU as well
        torch.manual_seed(seed % 2**63)
        try:
            _add(model, described)
        except ValueError as e:
            raise ConfigError(f"policy.lora.targets {targets!r} cannot be used: {e}") from e
    _check_layers(model)
    _prepare_for_training(model)


def _add(model: Any, described: Any) -> None:
    """Add adapters without peft's warning of a pattern that it writes itself for experts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The following (rank|alpha)_pattern keys", RuntimeWarning)
        model.add_adapter(described)


def _target_modules(model: Any, targets: tuple[str, ...]) -> str | list[str]:
    """Return peft's setting for the layers to adapt; raise `ConfigError` if one is of experts."""
    every = targets == (_EVERY_LINEAR,)
    if not has_experts(model):
        return _EVERY_LINEAR if every else list(targets)
    if every:
        linear = (n for n, m in model.named_modules() if isinstance(m, torch.nn.Linear))
        return sorted({".".join(name.split(".")[-2:]) for name in linear if "." in name})
    named = [name for name in targets if name in _OF_EXPERTS]
    if named:
        raise ConfigError(
            f"policy.lora.targets: {named[0]!r} is of the experts of this "
            f"{model.config.model_type}, which take no adapters: leave it out (all-linear adapts "
            "the other layers), or train all weights with policy.lora.rank = 0"
        )
    return list(targets)


def has_experts(model: Any) -> bool:
    """Return whether a model is a mixture of experts, with one tensor for all of a layer."""
    named = model.named_parameters()
    return any(".experts." in f".{name}." and p.dim() == _STACKED for name, p in named)


def _check_layers(model: Any) -> None:
    """Refuse adapters that cannot be merged into the weight of one linear layer."""
    embedding = model.get_input_embeddings().weight
    for name, layer in model.named_modules():
        if not is_adapted_layer(layer):
            continue
        if ADAPTER not in layer.lora_A or layer.get_base_layer().weight is embedding:
            raise ConfigError(
                f"policy.lora.targets: an adapter on {name!r} would change the embedding, or an "
                "output layer that shares its weights: leave it out"
            )


def check_installed() -> None:
    """Raise `ConfigError` if peft is not installed."""
    if find_spec("peft") is None:
        raise ConfigError(f"LoRA adapters: {imports.missing('peft', 'harness')}")


def load(model: Any, folder: Path) -> None:
    """Add the adapters of a folder to their base model."""
    check_installed()
    from peft import LoraConfig as PeftConfig

    try:
        described = PeftConfig.from_pretrained(str(folder))
        base, described.inference_mode = described.base_model_name_or_path, False
        _add(model, described)
    except (OSError, ValueError, TypeError) as e:
        raise ConfigError(f"the adapters in {folder} cannot be used: {e}") from e
    for name, _ in model.named_parameters():
        if f".{ADAPTER}" in name and not adapter_file.is_own(name.replace(f".{ADAPTER}", "")):
            raise ConfigError(
                f"the adapters in {folder} have {name:.110}, which is no A or B: train adapters "
                "without DoRA, biases and modules_to_save, or give the merged model"
            )
    model.name_or_path = base
    model.peft_config[ADAPTER].base_model_name_or_path = base
    _prepare_for_training(model)
    load_weights(model, folder)


def load_weights(model: Any, folder: Path) -> None:
    """Load the weights of a folder into a model's adapters."""
    from peft import set_peft_model_state_dict

    kept = adapter_file.read(folder)
    try:
        result: Any = set_peft_model_state_dict(model, kept, ADAPTER)
    except RuntimeError as e:
        reason = " ".join(str(e).split())
        raise ConfigError(f"the adapters in {folder} have other sizes: {reason:.210}") from e
    missing = [name for name in result.missing_keys if _ADAPTER.search(name)]
    if missing or result.unexpected_keys:
        named = ", ".join([*missing, *result.unexpected_keys][:3])
        raise ConfigError(f"the adapters in {folder} belong to another model: {named}")


def base_of(folder: str | Path) -> str | None:
    """Return the folder or hub name of the base model of a folder's adapters; None without any.

    The base of a run that was moved is found in its subfolder `base`. That of a package is found by
    its name if the cache has it no more. Raises `ConfigError` if the description is damaged, or the
    adapters lie beside a whole model.
    """
    hub.check_files(Path(folder))
    file = Path(folder) / hub.ADAPTERS
    if not file.exists():
        return None
    base = read_object(file, ConfigError).get("base_model_name_or_path")
    if not isinstance(base, str):
        raise ConfigError(f"{file} is damaged: it names no base model")
    beside = hub.weights_folder(str(folder))
    if beside is not None:
        raise ConfigError(
            f"{path_end(folder, 80)!r} holds a whole model and adapters: move one of them into a "
            "folder of its own"
        )
    if Path(base).is_absolute() and not Path(base).is_dir():
        for above in list(Path(folder).resolve().parents)[:3]:
            if (above / BASE_FOLDER / "config.json").is_file():
                return str(above / BASE_FOLDER)
        base = converted.base_again(base) or base
    if (Path(base) / hub.ADAPTERS).is_file():
        raise ConfigError(f"{file} is on adapters, {base!r:.110}: merge those into their model")
    return base


def has_adapters(model: Any) -> bool:
    """Return whether a model has adapters."""
    return bool(getattr(model, "_hf_peft_config_loaded", False))


def _prepare_for_training(model: Any) -> None:
    """Convert adapters to float32, where small updates are not lost, and freeze other weights."""
    for name, parameter in model.named_parameters():
        if _ADAPTER.search(f"{name}."):
            parameter.data = parameter.data.float()
    train_only_adapters(model)


def rank_of(model: Any) -> int:
    """Return the rank of a model's adapters."""
    return int(model.peft_config[ADAPTER].r)


def train_only_adapters(model: Any) -> None:
    """Freeze all weights of a model except its adapters."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(_ADAPTER.search(f"{name}.") is not None)


def copy_model(model: Any) -> Any:
    """Return a copy of a model; adapters are copied, frozen base weights are shared."""
    shared: dict[int, Any] = {}
    if has_adapters(model):
        named = model.named_parameters()
        shared = {id(weight): weight for name, weight in named if not _ADAPTER.search(f"{name}.")}
    return copy.deepcopy(model, shared)


def full_state(model: Any) -> dict[str, torch.Tensor]:
    """Return the full weights of the adapters of a sharded model, in all processes."""
    state = model.state_dict().items()
    return {name: full_tensor(weight).cpu() for name, weight in state if _ADAPTER.search(name)}


def save(model: Any, folder: Path, state: Mapping[str, Any] | None = None) -> None:
    """Save a model's adapters, or the full weights in `state`, and the name of their base."""
    if state is None:  # of all weights, peft would also save the base of an adapted output layer
        own = model.state_dict().items()
        state = {name: weight for name, weight in own if _ADAPTER.search(name)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Setting `save_embedding_layers`", UserWarning)
        model.save_pretrained(folder, state_dict=dict(state))
    file = folder / hub.ADAPTERS
    described = parse_json(read_text(file))
    described["target_modules"] = sorted(described["target_modules"])  # peft's order is random
    file.write_text(json.dumps(described, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def save_merged(model: Any, folder: Path) -> None:
    """Save all weights of a model with its adapters merged in."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    tied = model.config.get_text_config().tie_word_embeddings
    weights = {
        name: weight.cpu().contiguous()
        for name, weight in merged(model)
        if not (tied and name == "lm_head.weight")
    }
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)


def merged(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield name and weight of a model with adapters merged in; names are those in files.

    W + alpha / rank * B A is computed in float32 and cast to the type of W, one weight at a time.
    """
    layers = {name: module for name, module in model.named_modules() if is_adapted_layer(module)}
    for key, weight in model.state_dict().items():
        name, _, kind = key.rpartition(f".{_BASE}.")
        if name:
            full = full_tensor(weight)
            if kind == "weight":
                full = (full.float() + _update(layers[name])).to(full.dtype)
            yield f"{name}.{kind}", full
        elif not _ADAPTER.search(key):
            yield from _as_stored(model, key, full_tensor(weight))


def _as_stored(model: Any, key: str, weight: torch.Tensor) -> Iterable[tuple[str, torch.Tensor]]:
    """Return a weight by its names in files, which have one for each expert."""
    if ".experts." not in key or weight.dim() != _STACKED:
        return [(key, weight)]
    from transformers.core_model_loading import revert_weight_conversion

    parts: dict[str, torch.Tensor] = revert_weight_conversion(model, {key: weight})
    return parts.items()


@torch.no_grad()
def _update(layer: Any) -> torch.Tensor:
    up, down = (full_tensor(part[ADAPTER].weight).float() for part in (layer.lora_B, layer.lora_A))
    update: torch.Tensor = float(layer.scaling[ADAPTER]) * (up @ down)
    return update
