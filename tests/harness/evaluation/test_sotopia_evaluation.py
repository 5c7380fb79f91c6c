"""SOTOPIA evaluated: partner and judge in every result, labels, tables, and what nobody rates."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from chat_server import ChatServer
from click.testing import CliRunner
from evaluation_helpers import config, episodes, last_message, result, served, think_answer
from made_results import episode, keep_run
from made_results import result as made_result

from agentgyms.cli.main import main as agentgyms_cli
from agentgyms.envs.sotopia.partner_judge import RANGES
from env_servers import Server, create_app
from harness import config as configs
from harness import prompts
from harness.cli.main import main as harness_cli
from harness.config import EvalEnvConfig, EvaluationConfig, ModelConfig
from harness.evaluation import defaults, folders, results
from harness.evaluation.baselines.examples import gather
from harness.evaluation.pairing import pair
from harness.reporting import run_and_report
from harness.reporting.results.loading import LoadedEvaluation, load
from harness.reporting.tables import details, formats, rows
from harness.types.errors import ConfigError, EvaluationStopped, PairingError

SOTOPIA = "agentgyms/SOTOPIA-v0"
LOCAL = {"partner": "self"}
SMALL = {"env__id": SOTOPIA, "env__split": "sample", "run__tasks": 6}


def test_offline_goals_are_labelled_wherever_they_are_shown(tmp_path):
    command = ["eval", "--env", "SOTOPIA", "--split", "sample", "--model", "expert", "--tasks", "6"]
    done = CliRunner().invoke(harness_cli, [*command, "--set", f"run.output='{tmp_path}'"])
    assert done.exit_code == 0, done.output
    folder = tmp_path / "sotopia-sample-react-expert"
    result_json = result(folder)
    assert (result_json["partner"], result_json["judge"]) == ("scripted-v1", "programmatic-v1")
    assert result_json["figures"]["parties"] is None, "no model took part"
    goal = result_json["figures"]["breakdowns"]["Goal"]["All"]["Mean"]
    assert goal["mean"] == pytest.approx(10 * result_json["figures"]["score"]["mean"])
    table = (folder / "table.md").read_text()
    title = "SOTOPIA sample, generated tasks, not the benchmark, scripted-v1 as partner, judged by"
    assert f"{title} programmatic-v1" in table
    assert "| Goal (programmatic, All) |" in table
    assert "| Goal (programmatic) | Mean | Episodes |" in table
    assert "NOT A SOTOPIA SCORE: programmatic-v1 is a program" in table
    assert "| Goal (All) |" not in table
    shown = (folder / "page.html").read_text()
    assert "NOT A SOTOPIA SCORE" in shown
    headings = formats.to_csv(rows.build([load(folder)]))
    assert "scripted-v1,programmatic-v1" in headings
    assert "Goal (All)" not in headings
    header = episodes(folder)[0][0]
    assert header["parties"] == {"partner": "scripted-v1", "judge": "programmatic-v1"}


def test_self_chat_counts_the_learners_turns_and_replays(tmp_path):
    made = config(tmp_path, model__name="expert", env__kwargs=LOCAL, **SMALL)
    folder = run_and_report.run(made)
    result_json = result(folder)
    assert (result_json["partner"], result_json["judge"]) == ("self", "programmatic-v1")
    taken = [
        turn["agent"].get("seat", "own") for _, _, *turns in episodes(folder) for turn in turns
    ]
    assert result_json["figures"]["turns"] == taken.count("own") / 6
    assert taken.count("partner") > 5
    assert result_json["figures"]["tokens"]["calls"] == len(taken)
    done = CliRunner().invoke(agentgyms_cli, ["replay", str(folder / "recordings.jsonl")])
    assert done.exit_code == 0, done.output
    assert "self-chat" in (folder / "table.md").read_text()


def test_examples_of_self_chat_are_of_one_seat(tmp_path):
    made = defaults.resolve(
        config(tmp_path, model__name="expert", agent__examples=3, env__kwargs=LOCAL, **SMALL)
    )
    for example in gather(made, prompts.load("think", SOTOPIA)):
        assert example.count("Conversation Starts") == 1, "the other one's context is not seen"
        assert example.count("Done: ") > 1


def test_a_server_tells_who_has_a_part(tmp_path):
    with Server(create_app(SOTOPIA)) as server:
        there = {**LOCAL, "url": server.url}
        folder = run_and_report.run(
            config(tmp_path, model__name="expert", env__kwargs=there, **SMALL)
        )
    result_json = result(folder)
    assert (result_json["partner"], result_json["judge"]) == ("self", "programmatic-v1")
    here = run_and_report.run(
        config(tmp_path / "here", model__name="expert", env__kwargs=LOCAL, **SMALL)
    )
    assert result_json["outcomes"] == result(here)["outcomes"]


def rating(goal):
    """Return a judge's answer: every dimension at its best, but for the goal."""
    scores = {name: high for name, (_, high) in RANGES.items()} | {"goal": goal}
    of_one = {name: ["it seems so", score] for name, score in scores.items()}
    return json.dumps({"evaluations": {"agent_1": of_one, "agent_2": of_one}})


class Models:
    """The agent, a partner and a judge, each a model behind a server of its own."""

    def __init__(self):
        self.judged = rating(8)

        def agent(messages):
            more = "Turn #" in last_message(messages)
            return think_answer("leave" if more else 'speak: Hello!\nIs it "good"?')

        def talk(messages):
            return json.dumps({"action_type": "speak", "argument": "Let us see."})

        self.agent = ChatServer(agent)
        self.talker = ChatServer(talk, model="talker")
        self.judge = ChatServer(lambda _: self.judged, model="judge-1")

    def kwargs(self, **more):
        spec = {"cache": False, "retries": 0, **more}
        return {
            "partner": {"name": "talker", "url": self.talker.url, **spec},
            "judge": {"name": "judge-1", "url": self.judge.url, **spec},
        }

    def config(self, folder, tasks=6, **more):
        return served(
            folder, self.agent, **{**SMALL, "run__tasks": tasks}, env__kwargs=self.kwargs(**more)
        )

    def elsewhere(self, folder):
        """Return an evaluation's configuration with these servers."""
        made = folders.read_config(folder)
        env = configs.replace(made.env, kwargs=self.kwargs())
        return configs.replace(made, env=env, model=configs.replace(made.model, url=self.agent.url))


@pytest.fixture
def models():
    made = Models()
    with made.agent, made.talker, made.judge:
        yield made


def test_models_as_partner_and_judge_are_named_and_paid(tmp_path, models):
    folder = run_and_report.run(models.config(tmp_path, price_prompt=2.0, price_response=8.0))
    result_json = result(folder)
    assert (result_json["partner"], result_json["judge"]) == ("talker", "judge-1")
    assert result_json["figures"]["breakdowns"]["Goal"]["All"]["Mean"]["mean"] == 8.0
    spent = result_json["figures"]["parties"]
    others = len(models.talker.requests) + len(models.judge.requests)
    assert spent["tokens"]["calls"] == others > 6
    assert result_json["figures"]["tokens"]["calls"] == len(models.agent.requests)
    cost = (2 * spent["tokens"]["prompt"] + 8 * spent["tokens"]["response"]) / 1e6
    assert spent["cost"] == pytest.approx(cost)
    table = (folder / "table.md").read_text()
    assert "talker as partner, judged by judge-1" in table
    assert "| Goal (All) |" in table
    assert "NOT A SOTOPIA" not in table
    assert "- cost of partner and judge: " in table
    assert models.judge.url not in (folder / "result.json").read_text(), "no addresses"


def test_what_the_judge_cannot_rate_is_missing_and_never_zero(tmp_path, models, at_once):
    models.judged = "I would say they did rather well."
    with pytest.raises(EvaluationStopped, match="not one episode .*, the first for unrated"):
        run_and_report.run(models.config(tmp_path, tasks=2))
    (folder,) = tmp_path.iterdir()
    assert not (folder / "result.json").exists()
    moved = Models()
    moved.judged = f"```json\n{rating(5)}\n```"
    with moved.agent, moved.talker, moved.judge:  # addresses may change, partner and judge may not
        run_and_report.resume(folder, moved.elsewhere(folder))
    result_json = result(folder)
    assert result_json["episodes"] == {"planned": 2, "finished": 2, "missing": 0}
    assert result_json["figures"]["breakdowns"]["Goal"]["All"]["Mean"]["mean"] == 5.0
    assert result_json["figures"]["success"]["mean"] == 0
    changed = models.elsewhere(folder)
    changed.env.kwargs["judge"]["name"] = "judge-2"
    with pytest.raises(ConfigError, match="judge-2"):
        run_and_report.resume(folder, changed)


def test_the_digest_knows_models_and_not_where_they_are():
    def digest(**kwargs):
        return results.digest(EvaluationConfig(env=EvalEnvConfig(id=SOTOPIA, kwargs=kwargs)))

    near, far = "gpt-4o@http://127.0.0.1:1/v1", "gpt-4o@https://far.example/v1"
    assert digest(judge=near) == digest(judge=far) != digest(judge=near.replace("4o", "5"))
    result_json = {"name": "m", "temperature": 0.5}
    assert digest(partner={**result_json, "url": near, "retries": 1}) == digest(
        partner={**result_json, "url": far, "key_variable": "MINE"}
    )
    assert digest(partner={**result_json, "url": near}) != digest(
        partner={"name": "m", "url": near}
    )
    assert digest(partner="self") != digest(partner="scripted")


@pytest.mark.parametrize(
    ("kwargs", "split"),
    [({}, "test"), ({"source": "generated"}, "test"), ({"source": "official"}, "all")],
)
def test_settings_of_the_paper(kwargs, split):
    env = EvalEnvConfig(id="sotopia", kwargs=kwargs)
    made = defaults.resolve(EvaluationConfig(env=env, model=ModelConfig(backend="expert")))
    assert (made.env.id, made.env.split) == (SOTOPIA, split)
    assert (made.sampling.temperature, made.sampling.max_tokens) == (0.7, 2048)
    assert made.agent.context == "transcript"


def goals(partner, judge, hard=6.0, easy=8.0, **more):
    """Return the result of a hard and another task."""
    metrics = [{"goal": hard, "hard": 1.0}, {"goal": easy, "hard": 0.0}]
    records = [episode(f"t{i}/0", m["goal"] > 6, index=i, metrics=m) for i, m in enumerate(metrics)]
    result_json = made_result(
        records, env_id=SOTOPIA, split="all", model="Qwen/Qwen2.5-7B-Instruct", **more
    )
    return {**result_json, "partner": partner, "judge": judge}


def loaded_evaluations(tmp_path, *result_json):
    return [LoadedEvaluation(tmp_path, one, f"r{i}") for i, one in enumerate(result_json)]


def test_self_chat_and_partner_stand_side_by_side_as_in_the_paper(tmp_path):
    both = [goals("self", "gpt-4o"), goals("gpt-4o-2024-08-06", "gpt-4o", hard=5.0)]
    table, *_ = rows.build(loaded_evaluations(tmp_path, *both), with_reported=True)
    assert [block.title for block in table.blocks] == [
        "SOTOPIA all, self-chat, judged by gpt-4o",
        "SOTOPIA all, gpt-4o-2024-08-06 as partner, judged by gpt-4o",
    ]
    assert "self-chat, judged by gpt-4o; SOTOPIA all, gpt-4o-2024-08-06 as partner" in table.title
    ours, *papers = [row for row in table.rows if row.agent.model.startswith("Qwen")]
    assert {place: cell.mean for place, cell in ours.cells.items()} == {
        (0, "Goal (Hard)"): 6.0,
        (0, "Goal (All)"): 7.0,
        (1, "Goal (Hard)"): 5.0,
        (1, "Goal (All)"): 6.5,
    }
    (oprl,) = [row for row in papers if row.agent.method == "OPRL"]
    assert oprl.cells[0, "Goal (All)"].mean == 8.42
    assert oprl.cells[1, "Goal (Hard)"].mean == 6.76
    text = formats.tables_to_markdown([table])
    assert "judged by GPT-4o" in text


def test_no_reported_goal_stands_beside_another_partners(tmp_path):
    table, *_ = rows.build(
        loaded_evaluations(tmp_path, goals("scripted-v1", "programmatic-v1")), with_reported=True
    )
    assert {row.source for row in table.rows} == {"ours"}
    assert "- Mean ± standard deviation" in formats.tables_to_markdown([table]), "no percent"
    assert [c.heading for c in table.blocks[0].columns] == [
        "Goal (programmatic, Hard)",
        "Goal (programmatic, All)",
    ]


def test_what_has_another_partner_or_judge_is_not_compared(tmp_path):
    plain = goals("self", "gpt-4o")
    for other, what in ((("gpt-4o", "gpt-4o"), "partners"), (("self", "gpt-5"), "judges")):
        with pytest.raises(PairingError, match=f"with different {what}"):
            pair(plain, goals(*other))
        with pytest.raises(PairingError, match="cannot be compared"):
            details.comparison(loaded_evaluations(tmp_path, plain, goals(*other)))
    assert pair(plain, goals("self", "gpt-4o")).ties == 2
    older = {k: v for k, v in goals(None, None).items() if k != "partner"}
    assert pair(older, goals(None, None)).ties == 2


def test_an_episode_without_a_rating_is_told(tmp_path):
    records = [
        episode("a/0", True, metrics={"goal": 9.0, "hard": 0.0}),
        episode("b/0", False, index=1, metrics={"goal": float("nan"), "hard": 0.0}),
    ]
    result_json = made_result(records, env_id=SOTOPIA, split="all") | {
        "partner": "self",
        "judge": "j",
    }
    (one,) = loaded_evaluations(tmp_path, result_json)
    assert "1 episode WITHOUT A RATING, in no goal" in details.to_markdown(one)
    assert "9.00" in details.to_markdown(one)


@pytest.mark.parametrize("split", ["all", "hard"])
def test_a_training_run_tells_goals_and_no_addresses(tmp_path, split):
    run = keep_run(tmp_path / "run", {(1, split): {"pick-1": True, "pick-2": False}})
    config = json.loads((run / "config.json").read_text())
    judge = {"name": "j", "url": "http://127.0.0.1:1/v1", "retries": 1}
    config["env"] = {"id": SOTOPIA, "kwargs": {"partner": "self", "judge": judge}}
    config["eval"] = {"kwargs": {"partner": "p@http://127.0.0.1:2/v1"}, "max_turns": 7}
    (run / "config.json").write_text(json.dumps(config))
    (file,) = (run / "evaluations").iterdir()
    result_json = json.loads(file.read_text()) | {"parties": {"partner": "p", "judge": "j"}}
    result_json["episodes"][1]["stop_reason"] = "context_limit"
    file.write_text(json.dumps(result_json))
    result = load(run).result
    assert result["environment"]["kwargs"] == {"partner": "p", "judge": {"name": "j"}}
    assert (result["partner"], result["judge"]) == ("p", "j")
    assert result["environment"]["max_turns"] == 7
    ((name, goal),) = result["figures"]["breakdowns"]["Goal"].items()
    assert name.lower() == split
    assert (goal["Mean"]["mean"], goal["Mean"]["count"]) == (10.0, 1), "who was cut off has none"
    assert "1 episode WITHOUT A RATING" in details.to_markdown(load(run))


def test_costs_that_are_not_known_are_not_told():
    spent = {"model_calls": 2.0, "model_prompt_tokens": 30.0, "model_response_tokens": 4.0}
    records = [
        episode("a/0", True, metrics={**spent, "cost": 0.5}),
        episode("b/0", True, index=1, metrics={**spent, "cost": 0.25}),
    ]
    result_json = made_result(records, env_id=SOTOPIA)["figures"]["parties"]
    assert result_json == {"tokens": {"prompt": 60, "response": 8, "calls": 4}, "cost": 0.75}
    records[1] = replace(records[1], metrics={**spent, "cost": float("nan")})
    assert made_result(records, env_id=SOTOPIA)["figures"]["parties"]["cost"] is None


@pytest.mark.data
@pytest.mark.parametrize("partner", ["model", "self"])
def test_the_benchmark_has_goals_of_hard_tasks_and_of_all(tmp_path, models, partner):
    path = Path(os.environ.get("AGENTGYMS_TEST_DATA") or "/", "sotopia")
    if not path.is_dir():
        pytest.skip("AGENTGYMS_TEST_DATA names no folder with sotopia")
    kwargs = {**models.kwargs(), "source": "official", "data_path": str(path)}
    kwargs |= {"partner": "self"} if partner == "self" else {}
    made = served(tmp_path, models.agent, env__id="SOTOPIA", env__kwargs=kwargs, run__tasks=40)
    result_json = result(run_and_report.run(made))
    assert (result_json["environment"]["split"], result_json["episodes"]["finished"]) == ("all", 40)
    goal = result_json["figures"]["breakdowns"]["Goal"]
    assert list(goal) == ["Hard", "All"]
    assert 0 < goal["Hard"]["count"] < goal["All"]["count"] == 40
    assert goal["All"]["Mean"]["mean"] == 8.0
    assert result_json["figures"]["invalid_share"] == 0
    assert result_json["partner"] == ("self" if partner == "self" else "talker")
