r"""Declares household tasks to verifiers, which finds a taskset by its module's name.

pip install -e '.[verifiers]'
cd examples/clients
vf-eval household --env.taskset.env-id agentgyms/ALFWorld-v0 --no-push \
  --model qwen --client.base-url http://127.0.0.1:8000/v1 --client.api-key-var MY_KEY
"""

from agentgyms.adapters.verifiers import ChatHarness, TextEnvironment, TextTaskset

__all__ = ["ChatHarness", "TextEnvironment", "TextTaskset"]
