"""Public contract tests: any environment that passes them works everywhere in this package.

Each function takes a callable that makes a fresh environment, plays it, and raises `AssertionError`
with the reason where the contract is broken. They are what this package's own environments are
tested with; call them from your own tests.

    from agentgyms import testing
    testing.check_env(lambda: MyEnv())
"""

from agentgyms.outcome import INFO_TYPES
from agentgyms.testing.playing import JUNK_ACTIONS, assert_equal_episodes, play
from agentgyms.testing.several import check_group, check_remote_parity, check_vector
from agentgyms.testing.single import check_determinism, check_env, check_info, check_snapshot

__all__ = [
    "INFO_TYPES",
    "JUNK_ACTIONS",
    "assert_equal_episodes",
    "check_determinism",
    "check_env",
    "check_group",
    "check_info",
    "check_remote_parity",
    "check_snapshot",
    "check_vector",
    "play",
]
