"""Evaluations from end to end: what they count, that they repeat, and that all agents run."""

from collections import Counter

import evaluation_helpers
import pytest
from chat_server import ChatServer, status
from click.testing import CliRunner
from evaluation_helpers import (
    babble,
    config,
    episodes,
    forgetful,
    result,
    served,
    walker,
    written,
)

from agentgyms.cli.main import main as agentgyms_cli
from harness.config import EvaluationConfig, build
from harness.reporting import run_and_report
from harness.types.errors import ConfigError

ENVIRONMENTS = (
    "ALFWorld",
    "AppWorld",
    "Corridor",
    "SOTOPIA",
    "SearchQA",
    "Sokoban",
    "Tau2",
    "VisualSokoban",
    "WebShop",
)
AGENTS = ("direct", "react", "reflexion")


def recount(folder, trials=1):
    """Count an evaluation from its raw lines, by nothing but `json`."""
    units, taken, answers, played = {}, [], [], episodes(folder)
    for header, _, *turns in played:
        about = header["provenance"]["evaluation"]
        units.setdefault((about["seed"], about["index"]), []).append(turns[-1]["info"])
        taken += turns
        answers += [turn["agent"]["tokens"] for turn in turns]
        answers += [about["reflection"]["tokens"]] if about["reflection"] else []
    bad = ("malformed", "inadmissible")
    invalid = [not t["agent"]["valid"] or t["info"]["feedback"] in bad for t in taken]
    families = {}
    for of in units.values():
        families.setdefault(of[-1]["family"], []).append(any(one["success"] for one in of))
    won = [sum(any(i["success"] for i in of[:n]) for of in units.values()) for n in range(1, 4)]
    return {
        "count": len(units),
        "success": sum(of[-1]["success"] for of in units.values()) / len(units),
        "score": sum(of[-1]["score"] for of in units.values()) / len(units),
        "turns": len(taken) / len(played),
        "invalid": sum(invalid) / len(taken),
        "tokens": {
            "prompt": sum(prompt for prompt, _ in answers),
            "response": sum(response for _, response in answers),
            "calls": len(answers),
        },
        "families": {name: sum(of) / len(of) for name, of in families.items()},
        "trials": [n / len(units) for n in won[:trials]],
    }


def assert_equal_to_a_recount(folder, trials=1):
    result_json, own = result(folder)["figures"], recount(folder, trials)
    assert result_json["success"]["count"] == result_json["score"]["count"] == own["count"]
    assert result_json["success"]["mean"] == pytest.approx(own["success"], abs=1e-12)
    assert result_json["score"]["mean"] == pytest.approx(own["score"], abs=1e-12)
    assert result_json["turns"] == pytest.approx(own["turns"])
    assert result_json["invalid_share"] == pytest.approx(own["invalid"])
    assert result_json["tokens"] == own["tokens"]
    assert {k: v["success"]["mean"] for k, v in result_json["families"].items()} == pytest.approx(
        own["families"]
    )
    assert [t["success"]["mean"] for t in result_json["trials"]] == pytest.approx(own["trials"])


def replay(folder):
    """Replay every episode by the command that users have."""
    done = CliRunner().invoke(agentgyms_cli, ["replay", str(folder / "recordings.jsonl")])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_expert_solves_everything_and_the_recordings_verify(tmp_path):
    folder = run_and_report.run(config(tmp_path, model__name="expert", run__seeds=[0, 1]))
    result_json = result(folder)
    assert folder == tmp_path / "corridor-valid_seen-react-expert"
    assert result_json["figures"]["success"]["mean"] == 1.0
    assert result_json["episodes"] == {"planned": 16, "finished": 16, "missing": 0}
    assert_equal_to_a_recount(folder)
    assert "16 episodes" in replay(folder)
    for name in ("config.json", "provenance.json", "table.md", "page.html"):
        assert (folder / name).stat().st_size


def test_the_figures_are_a_recount_of_what_a_model_did(tmp_path):
    prices = {"service__price_prompt": 2.0, "service__price_response": 8.0}
    with ChatServer(forgetful) as server:
        made = served(tmp_path, server, run__seeds=[3, 5], agent__examples=1, **prices)
        folder = run_and_report.run(made)
    result_json = result(folder)
    tokens = recount(folder)["tokens"]
    cost = (2 * tokens["prompt"] + 8 * tokens["response"]) / 1e6
    assert result_json["figures"]["cost"] == pytest.approx(cost)
    families = result_json["figures"]["families"]
    assert families["free"]["success"]["mean"] == 1.0
    assert families["locked"]["success"]["mean"] == 0.0
    assert result_json["figures"]["invalid_share"] > 0
    assert result_json["figures"]["tokens"]["prompt"] > 0
    assert set(result_json["figures"]["stop_reasons"]) == {"terminated", "turn_limit"}
    assert_equal_to_a_recount(folder)
    shown = {turn["agent"]["prompt"] for _, _, *turns in episodes(folder) for turn in turns}
    preambles = {header["provenance"]["evaluation"]["preamble"] for header, *_ in episodes(folder)}
    [preamble] = preambles
    sent = {
        evaluation_helpers.last_message(request.body["messages"]) for request in server.requests
    }
    assert sent == {preamble + prompt for prompt in shown}


def test_a_failed_trial_is_reflected_on_and_tried_again(tmp_path):
    def learns(messages):
        text = evaluation_helpers.last_message(messages)
        if "<action>" not in text:
            return "Take the key first."
        return walker(messages) if "Take the key first." in text else forgetful(messages)

    with ChatServer(learns) as server:
        folder = run_and_report.run(served(tmp_path, server, agent__kind="reflexion"))
    result_json = result(folder)["figures"]
    assert [t["success"]["mean"] for t in result_json["trials"]] == [0.5, 1.0, 1.0]
    assert_equal_to_a_recount(folder, trials=3)
    trials = Counter(e[0]["provenance"]["evaluation"]["trial"] for e in episodes(folder))
    assert trials == {1: 8, 2: 4}
    for header, *_ in episodes(folder):
        about = header["provenance"]["evaluation"]
        failed = about["trial"] == 1 and "locked" in header["options"]["task_id"]
        assert bool(about["reflection"]) == failed
        assert ("Take the key first." in about["preamble"]) == (about["trial"] == 2)
    begun = {}
    for header, reset, *_ in episodes(folder):
        begun.setdefault(header["options"]["task_id"], reset)
        assert begun[header["options"]["task_id"]] == reset
    replay(folder)


def test_all_agents_and_models_meet_the_same_episodes(tmp_path):
    starts = []
    with ChatServer(babble) as server:
        for name, made in {
            "expert": config(tmp_path, model__name="expert", run__name="a"),
            "random": config(tmp_path, model__name="random", run__name="b", agent__kind="direct"),
            "server": served(tmp_path, server, run__name="c"),
        }.items():
            starts.append(
                [(e[0]["seed"], e[0]["options"]) for e in episodes(run_and_report.run(made))]
            )
            assert starts[-1] == starts[0], name
    some = run_and_report.run(config(tmp_path, model__name="expert", run__name="d", run__tasks=3))
    assert [(e[0]["seed"], e[0]["options"]) for e in episodes(some)] == [
        start for start in starts[0] if start[1] in [e[0]["options"] for e in episodes(some)]
    ]
    assert len(episodes(some)) == 3


def test_a_server_asked_again_at_temperature_0_gives_the_same_bytes(tmp_path):
    folders = []
    for name in ("first", "second"):
        with ChatServer(forgetful, latency_s=0.002) as server:
            made = served(tmp_path / name, server, agent__kind="reflexion", run__seeds=[0, 1])
            folders.append(run_and_report.run(made))
    assert written(folders[0]) == written(folders[1])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_of_this_process_repeats_itself(tmp_path, policy, temperature):
    policy.save(tmp_path / "model")
    folders = [
        run_and_report.run(
            config(
                tmp_path / name,
                model__name=str(tmp_path / "model"),
                model__backend="hf",
                model__device="cpu",
                agent__style="compact",
                env__max_turns=3,
                sampling__max_tokens=6,
                sampling__temperature=temperature,
                run__concurrency=concurrency,
            )
        )
        for name, concurrency in (("first", 8), ("second", 3))
    ]
    assert written(folders[0]) == written(folders[1])
    result_json = result(folders[0])
    assert result_json["model"]["revision"]
    assert result_json["figures"]["tokens"]["response"] > 0
    assert_equal_to_a_recount(folders[0])


def test_a_result_is_enough_to_repeat_it(tmp_path):
    folder = run_and_report.run(config(tmp_path / "a", model__name="expert", run__tasks=4))
    result_json = result(folder)
    values = {
        **result_json["config"],
        "run": {**result_json["config"]["run"], "output": str(tmp_path / "b")},
    }
    again = run_and_report.run(build(EvaluationConfig, values))
    assert written(again) == written(folder)
    assert result_json["environment"]["data_version"] == "1"
    assert result_json["agent"]["prompt_versions"]
    assert result_json["versions"]["python"]


def test_a_first_prompt_that_is_too_long_loses_the_episode(tmp_path):
    words = "This model's maximum context length is 10 tokens, your request has 99 tokens"
    with ChatServer(walker, lambda number, body: status(400, words)) as server:
        folder = run_and_report.run(
            served(tmp_path, server, agent__kind="reflexion", agent__trials=2)
        )
    result_json = result(folder)
    assert result_json["figures"]["stop_reasons"] == {"context_limit": 16}
    assert result_json["figures"]["success"]["mean"] == result_json["figures"]["score"]["mean"] == 0
    assert result_json["outcomes"][0] == [0, 0, 1, False, 0.0, 0]
    replay(folder)


def test_a_server_that_cannot_see_gives_one_clear_error(tmp_path):
    def blind(number, body):
        sees = any(isinstance(message["content"], list) for message in body["messages"])
        return status(400, "this model does not support image input") if sees else None

    with ChatServer(walker, blind) as server, pytest.raises(ConfigError, match="image input"):
        run_and_report.run(served(tmp_path, server, env__id="VisualSokoban", run__tasks=2))


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_agent_plays_every_environment(tmp_path, env, agent):
    small = {"run__tasks": 2, "env__id": env, "env__split": "valid_seen"}
    if env not in ("ALFWorld", "Corridor"):
        small["env__split"] = "sample"
    expert = run_and_report.run(config(tmp_path, model__name="expert", agent__kind=agent, **small))
    assert result(expert)["figures"]["success"]["mean"] == 1.0
    replay(expert)
    with ChatServer(babble) as server:
        folder = run_and_report.run(served(tmp_path, server, agent__kind=agent, **small))
    result_json = result(folder)
    assert result_json["figures"]["success"]["mean"] == 0.0
    assert result_json["figures"]["invalid_share"] == 1.0
    assert len(episodes(folder)) == (6 if agent == "reflexion" else 2)
    assert_equal_to_a_recount(folder, trials=3 if agent == "reflexion" else 1)
    replay(folder)


@pytest.mark.vllm
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_agent_plays_every_environment_by_vllm(tmp_path, vllm_server, env, agent):
    small = {"run__tasks": 2, "env__id": env, "env__max_turns": 2, "sampling__max_tokens": 16}
    made = config(
        tmp_path,
        model__name=vllm_server.name,
        model__url=vllm_server.url,
        agent__kind=agent,
        agent__trials=2 if agent == "reflexion" else None,
        sampling__temperature=0.0,
        **small,
    )
    if env == "VisualSokoban":
        with pytest.raises(ConfigError, match="multimodal"):
            run_and_report.run(made)
        return
    folder = run_and_report.run(made)
    result_json = result(folder)
    assert result_json["episodes"]["missing"] == 0
    assert result_json["figures"]["tokens"]["response"] > 0
    replay(folder)
