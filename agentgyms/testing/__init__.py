"""Public contract tests: any environment that passes them works everywhere in this package.

Each function takes a callable that makes a new environment, plays it, and raises `AssertionError`
with the reason if the contract is broken. Call them from your tests.

    from agentgyms import testing
    testing.check_env(lambda: MyEnv())
"""

from agentgyms.core.outcome import INFO_TYPES
from agentgyms.testing.forks import check_forks
from agentgyms.testing.leaks import check_leaks
from agentgyms.testing.playing import JUNK_ACTIONS, assert_equal_episodes, play
from agentgyms.testing.several import check_group, check_remote_parity, check_vector
from agentgyms.testing.single import check_determinism, check_env, check_info, check_snapshot

__all__ = [
    "INFO_TYPES",
    "JUNK_ACTIONS",
    "assert_equal_episodes",
    "check_determinism",
    "check_env",
    "check_forks",
    "check_group",
    "check_info",
    "check_leaks",
    "check_remote_parity",
    "check_snapshot",
    "check_vector",
    "play",
]
