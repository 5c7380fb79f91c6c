"""All settings: a schema for training and one for evaluation, recipes, and their loader.

Each setting is a field of a section in `schema` and `rollout_settings` (training) or `evaluation`,
which defines its type, range, default and description. Takes files and overrides as nested
dictionaries; returns a frozen `Config` or `EvaluationConfig`, or raises a `ConfigError` that names
the key. `consistency` checks settings that depend on each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.config.consistency import check, check_evaluation
    from harness.config.digests import digest, digest_values, without_seed
    from harness.config.evaluation import (
        AGENTS,
        BACKENDS,
        SEARCHES,
        EvalAgentConfig,
        EvalEnvConfig,
        EvalRunConfig,
        EvaluationConfig,
        ModelConfig,
        SamplingConfig,
        SearchConfig,
        ServiceConfig,
    )
    from harness.config.files import (
        RECIPES,
        from_dict,
        list_models,
        list_recipes,
        load,
        merged,
        overridden,
        read,
    )
    from harness.config.rollout_settings import RolloutConfig
    from harness.config.schema import (
        CONTEXTS,
        TINY_MODELS,
        AgentConfig,
        CheckpointConfig,
        Config,
        EnvConfig,
        EvalConfig,
        LogConfig,
        LoraConfig,
        MethodConfig,
        OptimizerConfig,
        PolicyConfig,
        RunConfig,
        TinyConfig,
        WarmstartConfig,
    )
    from harness.config.section import Section, build, replace, to_dict
    from harness.config.variations import vary

__all__ = [
    "AGENTS",
    "BACKENDS",
    "CONTEXTS",
    "RECIPES",
    "SEARCHES",
    "TINY_MODELS",
    "AgentConfig",
    "CheckpointConfig",
    "Config",
    "EnvConfig",
    "EvalAgentConfig",
    "EvalConfig",
    "EvalEnvConfig",
    "EvalRunConfig",
    "EvaluationConfig",
    "LogConfig",
    "LoraConfig",
    "MethodConfig",
    "ModelConfig",
    "OptimizerConfig",
    "PolicyConfig",
    "RolloutConfig",
    "RunConfig",
    "SamplingConfig",
    "SearchConfig",
    "Section",
    "ServiceConfig",
    "TinyConfig",
    "WarmstartConfig",
    "build",
    "check",
    "check_evaluation",
    "digest",
    "digest_values",
    "from_dict",
    "list_models",
    "list_recipes",
    "load",
    "merged",
    "overridden",
    "read",
    "replace",
    "to_dict",
    "vary",
    "without_seed",
]

__getattr__ = lazy_names(
    __name__,
    {
        "AGENTS": "harness.config.evaluation",
        "AgentConfig": "harness.config.schema",
        "BACKENDS": "harness.config.evaluation",
        "CONTEXTS": "harness.config.schema",
        "CheckpointConfig": "harness.config.schema",
        "Config": "harness.config.schema",
        "EnvConfig": "harness.config.schema",
        "EvalAgentConfig": "harness.config.evaluation",
        "EvalConfig": "harness.config.schema",
        "EvalEnvConfig": "harness.config.evaluation",
        "EvalRunConfig": "harness.config.evaluation",
        "EvaluationConfig": "harness.config.evaluation",
        "LogConfig": "harness.config.schema",
        "LoraConfig": "harness.config.schema",
        "MethodConfig": "harness.config.schema",
        "ModelConfig": "harness.config.evaluation",
        "OptimizerConfig": "harness.config.schema",
        "PolicyConfig": "harness.config.schema",
        "RECIPES": "harness.config.files",
        "RolloutConfig": "harness.config.rollout_settings",
        "RunConfig": "harness.config.schema",
        "SEARCHES": "harness.config.evaluation",
        "SamplingConfig": "harness.config.evaluation",
        "SearchConfig": "harness.config.evaluation",
        "Section": "harness.config.section",
        "ServiceConfig": "harness.config.evaluation",
        "TINY_MODELS": "harness.config.schema",
        "TinyConfig": "harness.config.schema",
        "WarmstartConfig": "harness.config.schema",
        "build": "harness.config.section",
        "check": "harness.config.consistency",
        "check_evaluation": "harness.config.consistency",
        "digest": "harness.config.digests",
        "digest_values": "harness.config.digests",
        "from_dict": "harness.config.files",
        "list_models": "harness.config.files",
        "list_recipes": "harness.config.files",
        "load": "harness.config.files",
        "merged": "harness.config.files",
        "overridden": "harness.config.files",
        "read": "harness.config.files",
        "replace": "harness.config.section",
        "to_dict": "harness.config.section",
        "vary": "harness.config.variations",
        "without_seed": "harness.config.digests",
    },
)
