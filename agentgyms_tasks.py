r"""Any environment as a taskset of verifiers, which finds it by this module's name.

vf-eval agentgyms-tasks --env.taskset.env-id agentgyms/ALFWorld-v0 --no-push \
  --model qwen --client.base-url http://127.0.0.1:8000/v1 --client.api-key-var MY_KEY
"""

from agentgyms.adapters.verifiers import ChatHarness, TextEnvironment, TextTaskset

__all__ = ["ChatHarness", "TextEnvironment", "TextTaskset"]
