"""Checks of settings that depend on each other, by the configuration alone."""

from __future__ import annotations

from typing import Final

from harness.config import methods
from harness.config.evaluation import SEARCHES, EvaluationConfig, SearchConfig
from harness.config.rollout_settings import RolloutConfig, complete_bounds, read_address
from harness.config.schema import TINY_MODELS, AgentConfig, Config
from harness.types.errors import ConfigError

_WEIGHT_TRANSFERS: Final[dict[str, tuple[str | None, ...]]] = {
    "hf": (None,),
    "vllm": (None, "reload"),
    "server": (None, "disk", "nccl", "ipc"),
}
"""Ways to transfer weights, by backend. Within a process tensors are copied: "reload"."""

_LEARNING: Final = {"critic", "process_reward"}
"""Annotators with a model that learns."""


def check(config: Config) -> None:
    """Raise `ConfigError`, which names them, if training settings contradict each other."""
    _check_policy(config)
    _check_sharing(config)
    _check_sequence_parallel(config)
    _check_tasks(config.rollout)
    if config.agent.max_tokens is not None:
        _check_lengths(config.agent, config.agent.max_tokens)
    _check_scratchpad(config.agent.scratchpad, config.agent.context)
    _check_generation(config)
    complete_bounds(config.rollout.correction or "clip", config.rollout.correction_bounds)
    _check_gateway(config)
    _check_ahead(config)


def check_evaluation(config: EvaluationConfig) -> None:
    """Raise `ConfigError`, which names them, if evaluation settings contradict each other."""
    if (config.service.price_prompt is None) != (config.service.price_response is None):
        raise ConfigError("give both service.price_prompt and service.price_response, or neither")
    thought, answer = config.agent.max_thought_tokens, config.sampling.max_tokens
    _check_scratchpad(config.agent.scratchpad, config.agent.context)
    if answer is not None:
        _check_thoughts(thought, answer, "sampling.max_tokens")
    _check_search(config)


def _check_search(config: EvaluationConfig) -> None:
    kind, standard = config.agent.kind, SearchConfig()
    for searching, names in SEARCHES.items():
        for name in names:
            value = getattr(config.search, name)
            if value != getattr(standard, name) and kind != searching:
                raise ConfigError(
                    f"search.{name} is {value!r} and agent.kind {kind!r}: only {searching} has it; "
                    f"leave it out, or choose --agent {searching}"
                )
    if kind == "mcts" and config.agent.context == "summary":
        raise ConfigError(
            "agent.kind is 'mcts' and agent.context 'summary': take 'window' or 'transcript'"
        )
    sampled = config.model.backend not in (None, "expert", "random")
    if kind in SEARCHES and sampled and config.sampling.temperature == 0:
        raise ConfigError(
            f"agent.kind is {kind!r}, which samples several answers, and sampling.temperature 0, "
            "where all are equal: give --temperature, such as 1"
        )


def _check_policy(config: Config) -> None:
    size = config.policy.tiny
    if size.hidden % (2 * size.heads):
        raise ConfigError(
            f"policy.tiny.hidden must be a multiple of twice policy.tiny.heads ({size.heads}), "
            f"got {size.hidden}"
        )
    width = size.hidden // size.heads
    if config.policy.model == "tiny-vl" and (width < 8 or width % 4):
        raise ConfigError(
            f"policy.tiny.hidden must be 8, 12, 16... times policy.tiny.heads ({size.heads}) in a "
            f"tiny vision-language model, got {size.hidden}"
        )
    if config.policy.model in TINY_MODELS and not config.warmstart.episodes:
        raise ConfigError("a tiny model needs warmstart.episodes: its tokenizer is made from them")
    if config.policy.precision == "bfloat16" and not config.policy.lora.rank:
        raise ConfigError(
            "policy.precision 'bfloat16' is for adapters (policy.lora.rank): weights of 8 binary "
            "digits lose updates smaller than 1/256 of them; take 'mixed' to train all weights"
        )
    if config.policy.offload == "optimizer" and config.optimizer.name != "adamw":
        raise ConfigError(
            f"policy.offload is 'optimizer', which moves AdamW's moments, and optimizer.name is "
            f"{config.optimizer.name!r}: use 'adamw', or leave policy.offload out"
        )


def _check_sharing(config: Config) -> None:
    if config.optimizer.packing != "shared":
        return
    if config.policy.lora.dropout:
        raise ConfigError(
            f"optimizer.packing is 'shared' and policy.lora.dropout {config.policy.lora.dropout}"
            ", which differs from sequence to sequence: set it to 0, or do not share"
        )
    if config.policy.model == "tiny-vl":
        raise ConfigError(
            "optimizer.packing 'shared' is for models that read only, and policy.model is "
            "'tiny-vl': equal tokens may stand for different images; leave it out"
        )


def _check_sequence_parallel(config: Config) -> None:
    own = config.method.annotators
    if config.policy.sequence_parallel == 1:
        return
    others = {
        "optimizer.packing": config.optimizer.packing in ("padded", "shared"),
        "policy.attention": config.policy.attention not in (None, "sdpa"),
        "policy.model": config.policy.model == "tiny-vl",
        "method.name": _LEARNING & {*methods.get(config.method.name).annotators, *own},
    }
    for name, is_other in others.items():
        if is_other:
            section, key = name.split(".")
            value = getattr(getattr(config, section), key)
            raise ConfigError(
                f"policy.sequence_parallel is {config.policy.sequence_parallel} and {name} "
                f"{value!r}: processes share packed rows of models that read only, with torch's "
                "attention, and neither shared prefixes nor a critic or reward model; leave one out"
            )


def _check_tasks(rollout: RolloutConfig) -> None:
    enough, size = rollout.enough_members, rollout.group_size
    if enough is not None and enough > size:
        raise ConfigError(
            f"rollout.enough_members is {enough}, but rollout.group_size only {size}: no group "
            "could end early"
        )
    hard, easy = rollout.curriculum.bounds
    if hard >= easy:
        raise ConfigError(
            f"rollout.curriculum.bounds are {hard} and {easy}: a task between them would be hard "
            "and easy; give the smaller one first"
        )


def _check_lengths(agent: AgentConfig, answer: int) -> None:
    _check_thoughts(agent.max_thought_tokens, answer, "agent.max_tokens")
    most = agent.max_context
    if most is not None and most <= answer:
        raise ConfigError(
            f"agent.max_context is {most}, which leaves no tokens for a prompt and a response of "
            f"agent.max_tokens = {answer}: raise it, or lower agent.max_tokens"
        )
    begin = agent.summary_tokens
    if agent.context == "summary" and most is not None and begin + answer >= most:
        raise ConfigError(
            f"agent.summary_tokens is {begin}, and a summary of up to agent.max_tokens = {answer} "
            f"does not fit behind it into agent.max_context = {most}: lower agent.summary_tokens"
        )


def _check_thoughts(thought: int | None, answer: int, key: str) -> None:
    if thought is not None and thought >= answer:
        raise ConfigError(
            f"agent.max_thought_tokens is {thought}, which leaves no tokens for the answer of at "
            f"most {key} = {answer}: lower it, or raise {key}"
        )


def _check_scratchpad(most: int | None, context: str | None) -> None:
    if most and context not in ("window", None):
        raise ConfigError(
            f"agent.scratchpad = {most} is for agent.context = 'window', and the context is "
            f"{context!r}, which shows all earlier answers: leave one of them out"
        )


def _check_generation(config: Config) -> None:
    rollout, model = config.rollout, config.policy.model
    known = _WEIGHT_TRANSFERS[rollout.backend]
    if rollout.transfer not in known:
        raise ConfigError(
            f"rollout.transfer of {rollout.backend!r} must be one of "
            f"{', '.join(map(repr, known))}, got {rollout.transfer!r}"
        )
    if bool(rollout.urls) != (rollout.backend == "server"):
        raise ConfigError(
            f"rollout.urls is {list(rollout.urls)} and rollout.backend {rollout.backend!r}: "
            "'server' needs the addresses of its servers, and no other backend has any"
        )
    if rollout.engine and rollout.backend != "vllm":
        raise ConfigError("rollout.engine is for rollout.backend = 'vllm': leave it out")
    if rollout.backend == "server" and model in TINY_MODELS:
        raise ConfigError(
            f"policy.model {model!r} is made by the run, so no server can have it: use a folder or "
            "hub name, and start the servers with it"
        )


def _check_gateway(config: Config) -> None:
    rollout = config.rollout
    if rollout.gateway is None:
        return
    read_address(rollout.gateway)
    if config.agent.context != "transcript":
        raise ConfigError(
            "rollout.gateway trains chats as agents of others send them: set agent.context to "
            f"'transcript', got {config.agent.context!r}"
        )
    chosen = {
        "rollout.dynamic_sampling": rollout.dynamic_sampling,
        "rollout.enough_members": rollout.enough_members,
        "rollout.enough_share": rollout.enough_share,
        "rollout.branch.at": rollout.branch.at,
        "rollout.curriculum.by": rollout.curriculum.by,
        "rollout.recorded": rollout.recorded,
    }
    named = [name for name, value in chosen.items() if value]
    if named or methods.get(config.method.name).actor != "policy":
        what = named[0] if named else f"method.name = {config.method.name!r}"
        raise ConfigError(
            f"{what} decides which episodes are played, and behind rollout.gateway agents of "
            "others do: leave one of them out"
        )


def _check_ahead(config: Config) -> None:
    """Refuse to play ahead where the weights that play are those that learn, or nobody plays."""
    rollout = config.rollout
    if not rollout.ahead:
        return
    if rollout.backend == "vllm":
        raise ConfigError(
            f"rollout.ahead is {rollout.ahead!r} and rollout.backend 'vllm', whose "
            "engine is on the GPU and in the process of the policy that learns: use "
            "'server', with other GPUs, or set it to 0"
        )
    method, own = methods.get(config.method.name), config.method
    impossible: dict[str, object] = {
        "rollout.gateway": rollout.gateway,
        "rollout.recorded": rollout.recorded,
        f"method.name = {own.name!r}": method.actor != "policy",
    }
    whole: dict[str, object] = {
        "rollout.dynamic_sampling": rollout.dynamic_sampling,
        "rollout.enough_members": rollout.enough_members,
        "rollout.enough_share": rollout.enough_share,
        "rollout.curriculum.by": rollout.curriculum.by,
        "method.annotators.state_value": "state_value" in own.annotators,
    }
    for name, value in impossible.items():
        if value:
            raise ConfigError(
                f"{name} has no rollouts that the harness plays with the policy: leave it out, or "
                "set rollout.ahead to 0"
            )
    for name, value in whole.items():
        if value and rollout.ahead == "partial":
            raise ConfigError(
                f"{name} decides over a step's groups as a whole, and with rollout.ahead = "
                "'partial' they belong to several steps: leave one of them out"
            )
