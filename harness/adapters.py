"""Low-rank adapters of a model: made, merged, kept, copied.

They are put into the model's own layers (peft's injection), so it stays the model it was.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch

from harness.errors import ConfigError
from harness.lora import LoraConfig
from harness.sharding import whole

ADAPTER: Final = "default"
"""Peft's name of the only adapter that a model has."""

DESCRIPTION: Final = "adapter_config.json"
BASE_FOLDER: Final = "base"
"""In the folder of a run: the model its adapters are on, where no other place has it."""

_BASE: Final = "base_layer"
_ADAPTER: Final = re.compile(r"\.lora_[A-Za-z_]+\.")
_EVERY_LINEAR: Final = "all-linear"


def add(model: Any, config: LoraConfig, base: str, seed: int) -> None:
    """Put adapters into a model and freeze the rest; they change nothing before they have learned.

    Args:
        model: A transformers model.
        config: Their size.
        base: Where the model was loaded from: a folder or a hub name. It is kept with the adapters.
        seed: Of the adapters' first weights.

    Raises:
        ConfigError: peft is not installed, or the model has none of the layers asked for.
    """
    check()
    from peft import LoraConfig as PeftConfig

    targets, alpha = config.targets, config.alpha
    described = PeftConfig(
        r=config.rank,
        lora_alpha=alpha,  # type: ignore[arg-type]  # any number divides by the rank
        lora_dropout=config.dropout,
        target_modules=_EVERY_LINEAR if targets == (_EVERY_LINEAR,) else list(targets),
        task_type="CAUSAL_LM",
    )
    model.name_or_path = base
    with torch.random.fork_rng(devices=[]):  # a GPU's adapters are made on the CPU as well
        torch.manual_seed(seed % 2**63)
        try:
            model.add_adapter(described)
        except ValueError as e:
            raise ConfigError(f"policy.lora.targets {targets!r} cannot be used: {e}") from e
    _check_layers(model)
    _settle(model)


def _check_layers(model: Any) -> None:
    """Refuse adapters that cannot be merged into one weight of one linear layer."""
    embedding = model.get_input_embeddings().weight
    for name, layer in model.named_modules():
        if not _has_adapter(layer):
            continue
        if ADAPTER not in layer.lora_A or layer.get_base_layer().weight is embedding:
            raise ConfigError(
                f"policy.lora.targets: an adapter on {name!r} would change the embedding, or an "
                "output layer that shares its weights: leave it out"
            )


def check() -> None:
    """Raise `ConfigError` if adapters cannot be made here."""
    if find_spec("peft") is None:
        raise ConfigError("LoRA adapters need peft: run pip install 'agentgyms[harness]'")


def load(model: Any, folder: Path) -> None:
    """Put the adapters that a folder holds into the model they were made for.

    Raises:
        ConfigError: peft is not installed, or they do not fit.
    """
    check()
    from peft import LoraConfig as PeftConfig

    try:
        described = PeftConfig.from_pretrained(str(folder))
        base, described.inference_mode = described.base_model_name_or_path, False
        model.add_adapter(described)
    except (OSError, ValueError, TypeError) as e:
        raise ConfigError(f"the adapters in {folder} cannot be used: {e}") from e
    model.name_or_path = base
    model.peft_config[ADAPTER].base_model_name_or_path = base
    _settle(model)
    read(model, folder)


def read(model: Any, folder: Path) -> None:
    """Give a model's adapters the weights that a folder holds.

    Raises:
        ConfigError: They are others' adapters.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    kept = {
        name.removeprefix("base_model.model."): weight
        for name, weight in load_file(folder / "adapter_model.safetensors").items()
    }
    try:
        result: Any = set_peft_model_state_dict(model, kept, ADAPTER)
    except RuntimeError as e:
        raise ConfigError(f"the adapters in {folder} have other sizes: {e}") from e
    missing = [name for name in result.missing_keys if _ADAPTER.search(name)]
    if missing or result.unexpected_keys:
        named = ", ".join([*missing, *result.unexpected_keys][:3])
        raise ConfigError(f"the adapters in {folder} belong to another model: {named}")


def base_of(folder: str | Path) -> str | None:
    """Return the folder or hub name of the model that the adapters in a folder are on.

    A run that was moved has its base in the folder `base` still.

    Returns:
        None if the folder holds no adapters.
    """
    try:
        described = json.loads((Path(folder) / DESCRIPTION).read_text(encoding="utf-8"))
    except OSError:
        return None
    base = str(described["base_model_name_or_path"])
    if Path(base).is_absolute() and not Path(base).is_dir():
        for above in list(Path(folder).resolve().parents)[:2]:
            if (above / BASE_FOLDER / "config.json").is_file():
                return str(above / BASE_FOLDER)
    return base


def are_in(model: Any) -> bool:
    """Return whether a model has adapters."""
    return bool(getattr(model, "_hf_peft_config_loaded", False))


def _settle(model: Any) -> None:
    """Keep adapters in float32, where small updates are not lost, and freeze what is below them."""
    for name, parameter in model.named_parameters():
        if _ADAPTER.search(f"{name}."):
            parameter.data = parameter.data.float()
    train_only_adapters(model)


def rank_of(model: Any) -> int:
    """Return the rank of a model's adapters."""
    return int(model.peft_config[ADAPTER].r)


def train_only_adapters(model: Any) -> None:
    """Freeze a model but for its adapters."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(_ADAPTER.search(f"{name}.") is not None)


def duplicate(model: Any) -> Any:
    """Return a copy of a model; adapters are copied, the frozen weights below them are shared."""
    shared: dict[int, Any] = {}
    if are_in(model):
        named = model.named_parameters()
        shared = {id(weight): weight for name, weight in named if not _ADAPTER.search(f"{name}.")}
    return copy.deepcopy(model, shared)


def save(model: Any, folder: Path, state: Mapping[str, Any] | None = None) -> None:
    """Write a model's adapters and what they are on; peft and transformers read them too.

    Args:
        model: Has adapters.
        folder: Made if need be.
        state: Its weights, if it has not all of them itself.
    """
    model.save_pretrained(folder, state_dict=None if state is None else dict(state))
    file = folder / DESCRIPTION
    described = json.loads(file.read_text(encoding="utf-8"))
    described["target_modules"] = sorted(described["target_modules"])  # peft's order is by chance
    file.write_text(json.dumps(described, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def save_merged(model: Any, folder: Path) -> None:
    """Write all weights of a model as one without adapters has them."""
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
    """Yield a model's weights by their names without adapters: W + alpha / rank * B A for W.

    Sums are taken in float32 and given in the weight's own type, one weight at a time.
    """
    layers = {name: module for name, module in model.named_modules() if _has_adapter(module)}
    for key, weight in model.state_dict().items():
        name, _, kind = key.rpartition(f".{_BASE}.")
        if name:
            full = whole(weight)
            if kind == "weight":
                full = (full.float() + _update(layers[name])).to(full.dtype)
            yield f"{name}.{kind}", full
        elif not _ADAPTER.search(key):
            yield key, whole(weight)


def _has_adapter(module: torch.nn.Module) -> bool:
    return hasattr(module, _BASE) and hasattr(module, "lora_A")


@torch.no_grad()
def _update(layer: Any) -> torch.Tensor:
    """Return what an adapter adds to its layer's weight."""
    up, down = (whole(part[ADAPTER].weight).float() for part in (layer.lora_B, layer.lora_A))
    update: torch.Tensor = float(layer.scaling[ADAPTER]) * (up @ down)
    return update
