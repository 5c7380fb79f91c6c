"""All settings: a schema for training and one for evaluation, recipes, and their loader.

Each setting is a field of a section in `schema` and `rollout_settings` (training) or `evaluation`,
with its type, range, default and description. `consistency` checks settings that depend on each
other. Takes files and overrides as nested dictionaries; returns a frozen `Config` or
`EvaluationConfig`, or raises a `ConfigError` that names the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.config.consistency import check, check_evaluation
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
    from harness.config.section import (
        Section,
        build,
        digest,
        digest_values,
        replace,
        to_dict,
        without_seed,
    )
    from harness.config.variations import lengthened, vary

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
    "lengthened",
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
        "harness.config.consistency": "check check_evaluation",
        "harness.config.evaluation": (
            "AGENTS BACKENDS EvalAgentConfig EvalEnvConfig EvalRunConfig EvaluationConfig "
            "ModelConfig SEARCHES SamplingConfig SearchConfig ServiceConfig"
        ),
        "harness.config.files": (
            "RECIPES from_dict list_models list_recipes load merged overridden read"
        ),
        "harness.config.rollout_settings": "RolloutConfig",
        "harness.config.schema": (
            "AgentConfig CONTEXTS CheckpointConfig Config EnvConfig EvalConfig LogConfig "
            "LoraConfig MethodConfig OptimizerConfig PolicyConfig RunConfig TINY_MODELS "
            "TinyConfig WarmstartConfig"
        ),
        "harness.config.section": (
            "Section build digest digest_values replace to_dict without_seed"
        ),
        "harness.config.variations": "lengthened vary",
    },
)
