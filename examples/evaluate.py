"""Evaluates two models on household tasks and prints their success with its 95 % interval.

    pip install -e '.[eval]'
    python examples/evaluate.py                       # the environment's expert, and random actions
    python examples/evaluate.py expert runs/mine      # or a training run: needs '.[harness]'

Every episode is recorded: the folders hold what `harness report` and `harness eval --resume` read.
The tasks are generated ones, not the benchmark's; `source = "official"` takes those.
"""

import sys
import tempfile

from harness import evaluation
from harness.config import EvaluationConfig, build
from harness.reporting import results

models = sys.argv[1:] or ["expert", "random"]
output = tempfile.mkdtemp(prefix="evaluations-")

for number, model in enumerate(models):
    settings = build(
        EvaluationConfig,
        {
            "env": {
                "id": "agentgyms/ALFWorld-v0",
                "split": "valid_seen",
                "max_turns": 16,
                "kwargs": {"source": "generated"},
            },
            "model": {"name": model},
            "agent": {"kind": "trained"} if "/" in model else {},
            "run": {"tasks": 40, "output": output, "name": f"{number}-{model.replace('/', '-')}"},
        },
    )
    folder = evaluation.run(settings)
    success = results.load(folder).figures["success"]
    low, high = success["interval"]
    print(f"{model}: {success['mean']:.1%} of 40 tasks, 95 % interval {low:.1%} to {high:.1%}")
    print(f"  {folder}")
