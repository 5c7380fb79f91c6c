"""`harness export`: what transformers loads of it, whole and with adapters."""

import pytest
import torch
from click.testing import CliRunner
from transformers import AutoModelForCausalLM

from harness.cli.main import main
from harness.config import LoraConfig
from harness.model.policy import Policy
from harness.types.errors import ConfigError


def export(*arguments):
    return CliRunner().invoke(main, ["export", *map(str, arguments)], catch_exceptions=False)


@pytest.mark.parametrize("adapted", [False, True])
def test_an_export_is_the_policy_in_bfloat16(policy, tmp_path, adapted):
    policy.save(tmp_path / "base")
    own = Policy.load(tmp_path / "base", "cpu")
    if adapted:
        own.adapt(LoraConfig(rank=2), str(tmp_path / "base"), 0)
        with torch.no_grad():
            for name, weight in own.model.named_parameters():
                if "lora_B" in name:
                    weight.fill_(0.1)
    own.save(tmp_path / "trained")
    done = export(tmp_path / "trained", tmp_path / "out")
    assert done.exit_code == 0, done.output
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype="auto").state_dict()
    wanted = dict(own.named_weights())
    assert found.keys() == wanted.keys()
    assert {weight.dtype for weight in found.values()} == {torch.bfloat16}
    for name, weight in wanted.items():
        torch.testing.assert_close(found[name].float(), weight.detach(), rtol=2**-7, atol=1e-3)
    changed = [n for n, w in policy.model.state_dict().items() if not torch.equal(w, wanted[n])]
    assert bool(changed) is adapted


def test_an_export_overwrites_nothing(policy, tmp_path):
    policy.save(tmp_path / "base")
    with pytest.raises(ConfigError, match="exists already: give a new one"):
        export(tmp_path / "base", tmp_path)
