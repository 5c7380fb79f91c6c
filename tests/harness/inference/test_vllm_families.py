"""vLLM for real, on the CPU, with tiny models of other families: answers, and new weights."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import vllm_serving

from tests.harness.tiny_families import make_policy

pytestmark = pytest.mark.vllm

WIDE = {"hidden_size": 128, "head_dim": 32}
"""The smallest heads that vLLM's attention on the CPU takes."""

FAMILIES = ("qwen3", "gemma3_text")


def answers(folder):
    """Return what a process with vLLM says before and after an update."""
    run = subprocess.run(
        [vllm_serving.python(), "-m", "vllm_families"],
        input=json.dumps({"folder": str(folder), "engine": vllm_serving.ENGINE}),
        env=vllm_serving.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The answers by family; the processes start at once."""
    folders = [tmp_path_factory.mktemp(family) for family in FAMILIES]
    for family, folder in zip(FAMILIES, folders, strict=True):
        make_policy(family, **WIDE).save(folder)
    with ThreadPoolExecutor() as pool:
        return dict(zip(FAMILIES, pool.map(answers, folders), strict=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_answers_are_the_policys_own_before_and_after_new_weights(family, told):
    before, after = told[family]
    assert before[0] != after[0], "the update changes what is said"
    for own, theirs in (before, after):
        for (tokens, logprobs), (others, more) in zip(own, theirs, strict=True):
            assert tokens == others
            assert more == pytest.approx(logprobs, abs=1e-4)
