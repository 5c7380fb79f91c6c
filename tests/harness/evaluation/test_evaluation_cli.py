"""`harness eval` on the command line, in a program of its own and in this one."""

import json
import subprocess

import pytest
from chat_server import ChatServer, status
from click.testing import CliRunner
from evaluation_helpers import episodes, last_message, result, started, walker

from harness.cli.evaluate import evaluate
from harness.cli.main import main
from harness.config import EvalAgentConfig, EvalEnvConfig, EvaluationConfig, ModelConfig
from harness.evaluation import defaults
from harness.types.errors import ConfigError

PROGRAM = "import sys; from harness.cli.main import run; sys.argv[0] = 'harness'; run()"
EXPERT_MODEL = ModelConfig(name="expert")
EXPERT = ["--env", "Corridor", "--model", "expert"]


def call(*arguments):
    """Call the command in this process; its own errors are raised."""
    done = CliRunner().invoke(evaluate, [str(a) for a in arguments], catch_exceptions=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_is_a_command_of_harness():
    assert main.commands["eval"] is evaluate


def test_the_table_is_printed_and_everything_is_in_one_folder(here):
    done = call(*EXPERT, "--agent", "direct", "--tasks", 4, "--seeds", "0,1", "--name", "mine")
    folder = here / "evaluations" / "mine"
    assert done.exit_code == 0
    assert (folder / "table.md").read_text() in done.output
    assert str(folder.relative_to(here) / "page.html") in done.output
    assert result(folder)["agent"]["style"] == "direct"
    assert result(folder)["seeds"] == [0, 1]


def test_a_file_and_options_over_it(here):
    (here / "mine.toml").write_text(
        '[env]\nid = "Corridor"\nsplit = "valid_unseen"\n[model]\nname = "expert"\n'
        "[run]\ntasks = 2\nseeds = [4]\n[agent]\nwindow = 1\n"
    )
    done = call("mine.toml", "--tasks", 3, "--set", "agent.window=0", "--print-config")
    printed = json.loads(done.output)
    assert printed["env"]["split"] == "valid_unseen"
    assert printed["env"]["id"] == "agentgyms/Corridor-v0"
    assert (printed["run"]["tasks"], printed["run"]["seeds"]) == (3, [4])
    assert printed["agent"]["window"] == 0
    assert printed["run"]["name"] == "corridor-valid_unseen-react-expert"
    assert not (here / "evaluations").exists()


def test_arguments_of_the_environment(here):
    done = call("--env", "sokoban", "--model", "expert", "--env-arg", "boxes=2", "--print-config")
    assert json.loads(done.output)["env"]["kwargs"] == {"boxes": 2}
    with pytest.raises(ConfigError, match=r"env\.kwargs has 'split': set env\.split"):
        call(*EXPERT, "--env-arg", "split=test")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--env", "ALFWrld", "--model", "expert"], "did you mean ALFWorld"),
        (
            [*EXPERT, "--agent", "reakt"],
            "agent.kind must be one of .*'react', .*got 'reakt'.* mean 'react'",
        ),
        ([*EXPERT, "--agent", "trained"], "no training run's"),
        ([*EXPERT, "--trials", "2"], "only reflexion tries a task again"),
        (
            [*EXPERT, "--temperature", "-1"],
            "sampling.temperature must be at least 0 and finite, got -1",
        ),
        ([*EXPERT, "--temperature", "nan"], "sampling.temperature"),
        ([*EXPERT, "--set", "sampling.top_p=0"], r"sampling.top_p must be in \(0, 1\], got 0"),
        ([*EXPERT, "--set", "sampling.top_p=1.5"], r"sampling.top_p must be in \(0, 1\]"),
        ([*EXPERT, "--seeds", "0,0"], "run.seeds must be different numbers"),
        ([*EXPERT, "--seeds", "a"], "--seeds must be numbers such as 0,1,2, got 'a'"),
        ([*EXPERT, "--tasks", "0"], "run.tasks must be at least 1, got 0"),
        ([*EXPERT, "--name", "a/b"], "run.name 'a/b' is no plain name"),
        ([*EXPERT, "--set", "service.price_prompt=1"], "service.price_prompt and service"),
        ([*EXPERT, "--set", "agent.windw=1"], "did you mean agent.window"),
        ([*EXPERT, "--set", "run=3"], "run must be a section"),
        ([*EXPERT, "--set", "env=3"], "env must be a section"),
        (["--env", "Corridor", "--set", "model=3"], "model must be a section"),
        ([*EXPERT, "--env-arg", "nonsense=1"], "takes no argument 'nonsense'"),
        ([*EXPERT, "--env-arg", "when=2020-01-01"], "env.kwargs .* cannot be written down as JSON"),
        (["--env", "nomodule:x/Y-v0", "--model", "expert"], "Y-v0 cannot be made: ModuleNotFound"),
        (["--env", "CartPole-v1", "--model", "expert"], "not an agentgyms environment"),
        ([*EXPERT, "--name", "a" * 300], "at most 200 letters"),
        (["--env", "Corridor", "--model", "gpt", "--backend", "openai"], "model.url is missing"),
        ([*EXPERT, "--split", "nowhere"], "no split 'nowhere'"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(here, arguments, words):
    with pytest.raises(ValueError, match=words) as refused:
        call(*arguments)
    assert "\n" not in str(refused.value)
    assert not list(here.glob("evaluations/*/recordings.jsonl"))


def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated(here):
    with pytest.raises(ConfigError, match="no name of an environment variable") as refused:
        call(*EXPERT, "--set", "model.key_variable=sk-secret-123")
    assert "secret" not in str(refused.value)
    assert not any(here.iterdir())


def test_environment_and_model_have_to_be_named(here):
    assert "--env" in call("--model", "expert").output
    assert "--model" in call("--env", "Corridor").output
    assert call("--model", "expert").exit_code == 2


def test_missing_episodes_are_told_and_played_later(here):
    def spoiled(_, request):
        return status(500) if "take key" in last_message(request["messages"]) else None

    with ChatServer(walker, spoiled) as server:
        model = ["--env", "Corridor", "--model", server.model, "--url", server.url]
        quick = ["--set", "service.cache=false", "--set", "service.retries=0", "--name", "m"]
        done = call(*model, *quick)
    assert done.exit_code == 1
    assert "4 of 8 episodes are missing" in done.output
    assert "harness eval --resume evaluations/m" in done.output
    with ChatServer(walker) as server:
        with pytest.raises(ConfigError, match=r"agent\.kind was 'react', now 'direct'"):
            call("--resume", "evaluations/m", "--url", server.url, "--agent", "direct")
        done = call("--resume", "evaluations/m", "--url", server.url)
    assert done.exit_code == 0
    assert result("evaluations/m")["episodes"]["missing"] == 0
    assert len(episodes("evaluations/m")) == 8


def test_an_error_is_one_line_and_leaves_status_2(tmp_path):
    with started(
        PROGRAM,
        *["eval", *EXPERT, "--split", "nowhere"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_a_server_is_evaluated_without_torch(tmp_path):
    code = (
        "import sys; from harness.cli.evaluate import evaluate\n"
        "try: evaluate(sys.argv[1:])\n"
        "except SystemExit as e: assert not e.code\n"
        "heavy = {'torch', 'transformers', 'matplotlib', 'vllm'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    with ChatServer(walker) as server:
        model = ["--env", "Corridor", "--model", server.model, "--url", server.url]
        quick = ["--set", "service.cache=false", "--tasks", 2]
        with started(code, *model, *quick, cwd=tmp_path, stderr=subprocess.PIPE) as child:
            _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err


def test_settings_of_the_papers():
    def resolved(env):
        return defaults.resolve(EvaluationConfig(env=EvalEnvConfig(id=env), model=EXPERT_MODEL))

    settings = {
        env: (r.sampling.temperature, r.agent.window, r.sampling.max_tokens, r.env.split)
        for env in ("ALFWorld", "WebShop", "Sokoban", "VisualSokoban", "SearchQA")
        for r in [resolved(env)]
    }
    assert settings == {
        "ALFWorld": (0.4, 2, 512, "valid_seen"),
        "WebShop": (0.4, 2, 512, "test"),
        "Sokoban": (0.4, 2, 512, "test"),
        "VisualSokoban": (0.4, 0, 512, "test"),
        "SearchQA": (0.4, 4, 512, "test"),
    }
    assert defaults.ROWS["appworld"].temperature == 0.0
    assert defaults.ROWS["appworld"].max_turns == 50
    assert defaults.ROWS["sotopia"].temperature == 0.7
    assert all(row.source for row in defaults.ROWS.values())


def test_a_training_run_brings_its_own_way_of_asking():
    of_agent = {"style": "compact", "context": "transcript", "window": 0, "max_tokens": 9}
    run = {"agent": of_agent, "env": {"id": "agentgyms/ALFWorld-v0"}}
    config = EvaluationConfig(model=ModelConfig(name="runs/mine/checkpoints/step-000060"))
    trained = defaults.resolve(config, run)
    assert trained.agent.kind == "trained"
    assert (trained.agent.style, trained.agent.context, trained.agent.window) == (
        "compact",
        "transcript",
        0,
    )
    assert trained.sampling.max_tokens == 9
    assert trained.run.name == "alfworld-valid_seen-trained-mine-step-000060"
    prompted = EvaluationConfig(model=config.model, agent=EvalAgentConfig(kind="react"))
    assert defaults.resolve(prompted, run).agent.style == "think"
    assert defaults.resolve(prompted, run).sampling.max_tokens != 9


@pytest.mark.parametrize(
    ("env", "style", "on_gpu", "on_cpu"),
    [
        ("Corridor", "direct", 512, 64),
        ("ALFWorld", "think", 512, 256),
        ("SOTOPIA", "direct", 2048, 256),
    ],
)
def test_answers_are_shorter_where_a_cpu_writes_them(env, style, on_gpu, on_cpu):
    def longest(**model):
        config = EvaluationConfig(
            env=EvalEnvConfig(id=env),
            agent=EvalAgentConfig(style=style),
            model=ModelConfig(name="smollm2-135m", **model),
        )
        return defaults.resolve(config).sampling.max_tokens

    assert longest(backend="hf", device="cpu") == on_cpu
    assert longest(backend="hf", device="cuda") == on_gpu
    assert longest(url="http://127.0.0.1:9/v1") == on_gpu


def test_an_environment_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import gymnasium as gym\n"
        "from agentgyms.envs.corridor import CorridorEnv\n"
        "class Mine(CorridorEnv):\n"
        "    pass\n"
        "gym.register('mine/Walk-v1', entry_point=Mine, disable_env_checker=True)\n"
    )
    code = "import sys; sys.path.insert(0, '.')\n" + PROGRAM
    words = ["eval", "--env", "mine:mine/Walk-v1", "--model", "expert", "--agent", "direct"]
    with started(code, *words, cwd=tmp_path, stderr=subprocess.PIPE) as child:
        _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    result_json = result(tmp_path / "evaluations" / "walk-valid_unseen-direct-expert")
    assert result_json["figures"]["success"]["mean"] == 1.0
