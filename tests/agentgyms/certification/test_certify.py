"""Certificates: sound environments get one, and each broken one fails the check that it breaks."""

import json
import re
from pathlib import Path

import pytest
import riddles
from click.testing import CliRunner

from agentgyms.certification import CHECKS, certify
from agentgyms.cli.main import main
from agentgyms.core.errors import BadOption, DataMissing
from agentgyms.registration import ENVIRONMENTS

MARKED = {
    "agentgyms/Corridor-v0": (),
    "agentgyms/WebShopBrowser-v0": (pytest.mark.browser, pytest.mark.slow),
}
LESS = {
    "agentgyms/AppWorld-v0": {"tasks": 4},
    "agentgyms/ScienceWorld-v0": {
        "arguments": {
            "families": ["lifespan-longest-lived"],
            "simplification": "easy",
            "max_turns": 8,
        },
        "tasks": 4,
        "learning": 6,
    },
    # With this seed it learns from so few episodes.
    "agentgyms/WebShopBrowser-v0": {
        "arguments": {"max_turns": 5},
        "tasks": 1,
        "seed": 6,
        "learning": 4,
    },
}
"""Of environments whose turns take long: what is certified of them."""

OURS = [
    pytest.param(env_id, marks=MARKED.get(env_id, (pytest.mark.slow,))) for env_id in ENVIRONMENTS
]


@pytest.mark.parametrize("env_id", OURS)
def test_every_environment_of_ours_is_certified(env_id):
    certificate = certify(env_id, **{"tasks": 10, **LESS.get(env_id, {})})
    assert certificate.certified, certificate.to_page()
    assert tuple(certificate.verdicts) == CHECKS


@pytest.mark.slow
@pytest.mark.appworld
def test_the_real_appworld_is_certified():
    certificate = certify("AppWorld", {"engine": "appworld"}, tasks=2, learning=4)
    assert certificate.certified, certificate.to_page()


def failures(name):
    certificate = certify(f"mine/{name}-v0", tasks=8, learning=10)
    return certificate, {check: certificate.verdicts[check].found for check in certificate.failed}


def test_a_sound_environment_is_certified():
    certificate, found = failures("Riddle")
    assert found == {}
    assert certificate.certified
    figures = certificate.verdicts["learning"].figures
    assert figures["learned"] == 1 > 0.6 > figures["start"]
    assert certificate.verdicts["floor"].figures["expert"]["turns"] == 3


BROKEN = {
    "Leaky": {"leaks": "the answer is in what the agent sees first, such as 'amber'"},
    "Talking": {"leaks": "turn 0: oracle=True changes the observation"},
    "Forged": {"forgery": '"score": 1.0}\' brings reward 1, score 1, success True'},
    "Constant": {"floor": "always 'answer[amber]', with success 1 where the expert has 1"},
    "Unfair": {"expert": "the expert solves 7 of 8 tasks, not riddle-5"},
    "Forgetful": {
        "contract": "check_env: ",
        "replay": "turn 0: observation_key is",
        "leaks": "turn 0: oracle=True changes the observation",
    },
    "Chatty": {"floor": "most reward has first listed, 6 where", "learning": "success goes from"},
    "Noisy": {"floor": "most reward has random, 1", "learning": "success goes from"},
    "Raising": {
        "contract": "IndexError: string index out of range, in riddles.py, line",
        "floor": "IndexError: string index out of range, in riddles.py, line",
        "forgery": "IndexError: string index out of range, in riddles.py, line",
    },
    "Unsolved": {"expert": "UnsolvedEnv has no expert policy"},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_environment_fails_what_it_breaks(name):
    certificate, found = failures(name)
    assert found.keys() == BROKEN[name].keys(), found
    for check, words in BROKEN[name].items():
        assert words in found[check]
        verdict = certificate.verdicts[check]
        assert verdict.expected
        assert verdict.advice
    assert not certificate.certified


def test_without_an_expert_only_the_contract_is_checked():
    certificate, _ = failures("Unsolved")
    assert {name: one.status for name, one in certificate.verdicts.items()} == {
        **dict.fromkeys(CHECKS, "not run"),
        "contract": "passed",
        "expert": "failed",
    }


def invoke(*arguments):
    return CliRunner().invoke(main, ["certify", *arguments])


@pytest.fixture
def importable(monkeypatch):
    """Let another process import the riddles by their name."""
    monkeypatch.setenv("PYTHONPATH", str(Path(riddles.__file__).parent), prepend=":")


def test_the_command_writes_a_page_and_json(tmp_path, importable):
    done = invoke("riddles:mine/Unordered-v0", "--tasks", "3", "--output", str(tmp_path / "new/it"))
    assert done.exit_code == 1, done.output
    assert "FAIL replay     from a recording, in another process: error: turn 0" in done.output
    assert "expected: equal observations" in done.output
    assert "to do: take all randomness from the generator" in done.output
    written = json.loads((tmp_path / "new/it/certificate.json").read_text())
    assert written["certified"] is False
    assert written["format"] == "agentgyms-certificate-1"
    assert [name for name, one in written["checks"].items() if one["status"] != "passed"] == [
        "replay"
    ]
    page = (tmp_path / "new/it/certificate.md").read_text()
    assert page.startswith("# riddles:mine/Unordered-v0: not certified\n")
    assert re.search(r"^## What to do\n\n- \*\*replay\*\*: take all randomness", page, re.MULTILINE)


def test_what_is_left_out_is_no_failure_and_no_certificate(tmp_path):
    done = invoke("mine/Riddle-v0", "--tasks=2", "--learning=0", f"--output={tmp_path}")
    assert done.exit_code == 0
    assert "--   learning   left out with --learning 0" in done.output
    assert "mine/Riddle-v0: not certified" in done.output


def test_others_words_break_no_page(tmp_path):
    certificate = certify("mine/Riddle-v0", {"max_turns": 5}, tasks=1, learning=0)
    verdict = certificate.verdicts["expert"]._replace(found="a | b\n# c \x1b[2J *d*")
    page = type(certificate)(certificate.facts, {**certificate.verdicts, "expert": verdict})
    assert r"| a \| b # c \\x1b\[2J \*d\* |" in page.to_page()
    assert "- arguments: {'max\\_turns': 5}" in page.to_page()


def test_bad_arguments_are_named(tmp_path):
    for option, said in (("tasks=0", "tasks must be at least 1, got 0"), ("seed=-1", "seed must")):
        done = invoke("mine/Riddle-v0", f"--{option}", f"--output={tmp_path}")
        assert isinstance(done.exception, BadOption)
        assert said in str(done.exception)
    (tmp_path / "taken").write_text("")
    done = invoke("mine/Riddle-v0", f"--output={tmp_path / 'taken' / 'in'}")
    assert "cannot be written" in str(done.exception)


def test_missing_data_are_no_verdict(tmp_path):
    with pytest.raises(DataMissing):
        certify("ALFWorld", {"source": "official", "data_path": str(tmp_path / "none")})
