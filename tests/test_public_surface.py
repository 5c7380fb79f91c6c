"""What users rely on: names, programs with their options, ids, routes, error codes, info keys."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import gymnasium as gym
import pytest
from click.testing import CliRunner

import agentgyms
from agentgyms import testing
from env_servers import create_app
from harness import credit, losses

MODULES = {
    "agentgyms": "Feedback Outcome Task TaskSet TextEnv __version__ errors expert keys make_group",
    "agentgyms.adapters.episodes": "ChatEpisode",
    "agentgyms.adapters.messages": "INSTRUCTIONS chat_message image_urls parse_action tools_of "
    "turn_text user_messages user_text",
    "agentgyms.adapters.trl": "demonstrations environment_factory seeds",
    "agentgyms.core": "Expert Feedback Outcome Task TaskSet TextEnv UnicodeText",
    "agentgyms.core.keys": "INVALID_ACTION state_key",
    "agentgyms.core.errors": "AgentGymsError BadOption BadRequest BadSnapshot CallerError "
    "DataCorrupt DataError DataMissing EnvUnavailable GroupMismatch Mismatch ModelUnavailable "
    "PromptTooLong ReplayMismatch ServerFull ServerOverloaded ServerUnavailable SessionLost "
    "Unauthorized UnknownSplit UnknownTask WorkerLost",
    "agentgyms.exact": "Dynamics Model Reward Solved Transition Values enumerate_states is_exact",
    "agentgyms.recording": "RecordEpisodes RecordedTurn Recording read replay",
    "agentgyms.remote": "HttpTransport InProcessTransport Patience RemoteEnv RemoteVectorEnv Reply "
    "Transport",
    "agentgyms.testing": "INFO_TYPES JUNK_ACTIONS assert_equal_episodes check_determinism "
    "check_env check_forks check_group check_info check_leaks check_remote_parity check_snapshot "
    "check_vector play",
    "agentgyms.tools": "ANY_ACTION Argument BadCall Tool ToolCall Tools",
    "env_servers": "Server create_app",
    "harness.credit": "TurnTable check get names",
    "harness.evaluation": "resume run",
    "harness.inference": "Completer Generator HFCompleter Sampling make_generator",
    "harness.losses": "Metric Reduction check get hyperparameters is_linear names",
    "harness.model": "Policy Sample TokenBatch samples",
    "harness.reporting.results": "LoadedEvaluation load load_all",
    "harness.rollouts": "Agent CollectOptions Demonstrator EnvPool",
    "harness.training": "Trainer fine_tune resume start",
    "harness.types.errors": "CheckpointError ConfigError EvaluationStopped FolderInUse "
    "HarnessError ModelUnavailable ResultError TableError TrainingError TrainingStopped",
}
"""Public modules and their names; `agentgyms` alone is enough to write an environment."""

PROGRAMS = {
    "agentgyms": "--version",
    "agentgyms list": "--json",
    "agentgyms info": "env_id --set --json",
    "agentgyms play": "env_id --set --seed --task --record",
    "agentgyms record": "env_id path --set --policy --episodes --seed",
    "agentgyms replay": "path --set",
    "agentgyms export": "recordings --format --output",
    "agentgyms serve": "arguments",
    "agentgyms mcp": "env_id --set --text --http --record --session --token --allow-host",
    "agentgyms doctor": "--json",
    "agentgyms data": "",
    "agentgyms data list": "--json",
    "agentgyms data fetch": "name --allow-other",
    "agentgyms data import": "name path --allow-other",
    "agentgyms data verify": "name",
    "agentgyms data export": "folder --split --rooms",
    "agentgyms setup": "",
    "agentgyms setup appworld": "--python --folder --data --check",
    "harness": "--version --verbose",
    "harness train": "recipe --set --resume --print-config --dry-run --gpus",
    "harness gateway": "recipe --address --set",
    "harness recipes": "",
    "harness methods": "",
    "harness eval": "config_file --env --split --agent --model --url --backend --seeds --tasks "
    "--trials --examples --temperature --name --env-arg --set --resume --print-config",
    "harness report": "paths --format --bold --reported --paired --curve --html --output",
    "harness export": "run folder --checkpoint --precision --push",
    "harness credit": "paths --example --methods --set --preset --reward --reward-scale --group "
    "--html --csv --json",
}
"""Commands and what they take; a later version may take more."""

SERVERS = {
    "env_servers": "--host --port --token --max-sessions --ttl --threads --max-body --grace "
    "--insecure --allow-host --cors-origin --agentgym --set --log-level --log-format",
    "env_servers.retriever": "--corpus --host --port --token --insecure --allow-host "
    "--max-clients --export "
    "--log-level --log-format",
    "env_servers.webshop_site": "--host --port",
}
"""Programs that `python -m` runs."""

IDS = (
    "ALFWorld AppWorld BabyAI Blackjack Corridor Countdown EZPoints FrozenLake Minesweeper "
    "NumberLine Points24 SOTOPIA ScienceWorld SearchQA Sokoban Tau2 TextCraft TowerOfHanoi "
    "VisualSokoban WebShop WebShopBrowser"
)

ROUTES = {
    "/": "get",
    "/healthz": "get",
    "/metrics": "get",
    "/openapi.json": "get",
    "/play": "get post",
    "/play/{name}": "get",
    "/readyz": "get",
    "/v1/batch/close": "post",
    "/v1/batch/create": "post",
    "/v1/batch/reset": "post",
    "/v1/batch/step": "post",
    "/v1/info": "get",
    "/v1/sessions": "post",
    "/v1/sessions/{session_id}": "delete get",
    "/v1/sessions/{session_id}/fork": "post",
    "/v1/sessions/{session_id}/render": "get",
    "/v1/sessions/{session_id}/reset": "post",
    "/v1/sessions/{session_id}/restore": "post",
    "/v1/sessions/{session_id}/snapshot": "post",
    "/v1/sessions/{session_id}/step": "post",
    "/v1/sessions/{session_id}/tasks": "get",
    "/v1/sessions/{session_id}/trajectory": "get",
    "/v1/tasks": "get",
}

CODES = (
    "bad_json bad_option bad_request bad_snapshot caller_error data_corrupt data_error "
    "data_missing dependency_missing draining env_unavailable group_mismatch internal "
    "method_not_allowed mismatch model_unavailable not_found not_ready overloaded "
    "protocol_mismatch replay_mismatch request_conflict reset_needed server_full session_expired "
    "timeout too_large turn_conflict type_error unauthorized unknown_session unknown_split "
    "unknown_task unsupported_media_type value_error worker_lost"
)

INFO = (
    "action_key admissible_actions admissible_complete atoms family feedback feedback_text goal "
    "metrics "
    "observation_key progress score split state_key success task_id turn"
)

ESTIMATORS = (
    "dmpo dr_grpo ecpo empg gae gigpo grpo gvpo hcapo hgpo imitation oprl prime reinforce "
    "reinforce_pp rloo salt scpo "
    "graphgpo g2po gagpo milegpo proxmo aem maxrl beacon planpo cast igpo rtmc rae "
    "oracle tree_grpo treerpo at2po dpo ipo kto distill "
    "pgpo graft mt_grpo turn_credit procredit otb sdar agent_opsd"
)
COLUMNS = (
    "rollout group turn reward success valid failed state_key next_state_key action_key text value "
    "process_reward entropy hindsight kl length state_value teacher_kl "
    "energy atoms next_atoms"
)
METHODS = (
    "reinforce ppo reinforce_pp rloo grpo dr_grpo dapo gspo loop gigpo hgpo hcapo empg prime scpo "
    "ecpo gvpo salt salt_rloo oprl oprl_grpo oprl_reinforce_pp oprl_ground_truth "
    "sft rft ei dmpo "
    "graphgpo g2po gagpo milegpo proxmo aem maxrl beacon planpo cast igpo rtmc rae "
    "vineppo oracle tree_grpo treerpo at2po dpo ipo kto distill opsd "
    "pgpo graft mt_grpo turn_credit procredit otb sdar agent_opsd"
)


@pytest.mark.parametrize("module", MODULES)
def test_public_names_can_be_imported(module):
    code = f"from {module} import {', '.join(MODULES[module].split())}"
    exec(code, {})  # in one line, as users write it


@pytest.mark.parametrize(
    "module",
    ["inspect_ai", "mcp", "openenv", "skyrl", "textarena", "tinker", "torchrl", "trl", "verifiers"],
)
def test_adapters_are_where_they_were(module):
    assert importlib.util.find_spec(f"agentgyms.adapters.{module}")


def env_id(name):
    """Return the registered id."""
    return f"agentgyms/{name}-v0"


def program(name):
    """Return the command of `[project.scripts]`."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    scripts = tomllib.loads(text)["project"]["scripts"]
    return importlib.import_module(scripts[name].partition(":")[0]).main


def commands(command, words):
    """Yield a command of a program and those below it, by their words."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{words} {name}")


def test_programs_take_what_they_took():
    found = {
        words: {
            option
            for parameter in command.params
            for option in (
                parameter.opts if isinstance(parameter, click.Option) else [parameter.name]
            )
        }
        for name in ("agentgyms", "harness")
        for words, command in commands(program(name), name)
    }
    assert found.keys() >= PROGRAMS.keys()
    for words, taken in PROGRAMS.items():
        assert found[words] >= set(taken.split()), words


@pytest.mark.parametrize("module", SERVERS)
def test_servers_take_what_they_took(module):
    words = [sys.executable, "-m", module, "--help"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"--[a-z-]+", told)) >= set(SERVERS[module].split())


def test_ids_are_registered():
    for name in IDS.split():
        assert gym.spec(env_id(name)).entry_point
    assert callable(agentgyms.make_group)
    assert callable(agentgyms.expert)


def test_the_wire_has_its_version_routes_and_codes():
    client = create_app(env_id("Corridor"), token="").test_client()
    info = client.get("/v1/info")
    assert info.headers["Agentgyms-Protocol"] == info.get_json()["protocol"] == "1"
    described = client.get("/openapi.json").get_json()
    for path, methods in ROUTES.items():
        assert described["paths"][path].keys() >= set(methods.split()), path
    error = described["components"]["schemas"]["Error"]["properties"]["error"]["properties"]
    assert set(error) == {"code", "message", "retryable", "hint"}
    assert set(error["code"]["enum"]) >= set(CODES.split())


def test_infos_have_their_keys():
    assert set(testing.INFO_TYPES) == set(INFO.split())


def test_credit_and_losses_have_their_names():
    assert set(credit.names()) >= set(ESTIMATORS.split())
    assert set(credit.TurnTable.__dataclass_fields__) >= set(COLUMNS.split())
    assert set(losses.names()) >= {"clipped", "nll"}


def test_methods_have_their_names():
    result = CliRunner().invoke(program("harness"), ["methods"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    told = result.stdout.splitlines()
    assert {line.split()[0] for line in told} >= set(METHODS.split())
