"""`harness eval` on the model of a training run: asked as in training."""

import pytest
from evaluation_helpers import CORRIDOR, config, episodes, result
from small_training import run, small

from agentgyms.recording.recording_format import read
from harness.cli.evaluate import evaluate, new_config, values_of
from harness.evaluation import defaults
from harness.inference.completers.hf import HFCompleter
from harness.reporting import run_and_report
from harness.types.errors import ConfigError

AS_TRAINED = [
    "agent.style='compact'",
    "agent.context='window'",
    "agent.window=1",
    "agent.max_tokens=14",
    "agent.max_thought_tokens=12",
    "eval.temperature=0.0",
    "run.steps=1",
    "rollout.tasks_per_step=2",
    "rollout.group_size=2",
]


@pytest.mark.slow
def test_a_runs_model_is_asked_as_it_was_in_training(tmp_path, monkeypatch):
    trainer = run(small(tmp_path, "mine", *AS_TRAINED))
    asked = []
    complete = HFCompleter.complete

    async def listening(self, messages, sampling, seed):
        asked.append((messages[-1]["content"], sampling))
        return await complete(self, messages, sampling, seed)

    monkeypatch.setattr(HFCompleter, "complete", listening)
    in_training = trainer.evaluations.play("valid_seen", None)
    before = sorted(asked, key=str)
    asked.clear()
    folder = run_and_report.run(
        config(
            tmp_path,
            model__name=str(trainer.folder.path),
            model__device="cpu",
            env__id="",
            env__split="valid_seen",
        )
    )
    assert sorted(asked, key=str) == before
    result_json = result(folder)
    assert folder.name == "corridor-valid_seen-trained-mine"
    assert result_json["environment"]["id"] == CORRIDOR
    agent = result_json["agent"]
    assert (agent["kind"], agent["style"], agent["context"]) == ("trained", "compact", "window")
    assert (agent["window"], result_json["sampling"]["max_tokens"]) == (1, 14)
    assert result_json["model"]["step"] == 1
    assert result_json["figures"]["success"]["mean"] == in_training.success.value
    assert result_json["figures"]["turns"] == pytest.approx(in_training.turns)
    actions = {e[0]["options"]["task_id"]: [t["action"] for t in e[2:]] for e in episodes(folder)}
    assert actions == {one["task_id"]: one["actions"] for one in in_training.episodes}
    assert len(read(folder / "recordings.jsonl")) == 8


RUN = {
    "env": {
        "id": CORRIDOR,
        "max_turns": 9,
        "kwargs": {"families": ["free"], "url": "http://127.0.0.1:1"},
    },
    "agent": {"style": "compact"},
}


def test_a_runs_environment_is_taken_over_where_its_model_plays_as_trained(tmp_path):
    own = defaults.resolve(config(tmp_path, env__id="", model__name="m", model__backend="hf"), RUN)
    assert (own.env.id, own.env.max_turns, own.agent.kind) == (CORRIDOR, 9, "trained")
    assert own.env.kwargs == {"families": ["free"]}
    given = config(
        tmp_path,
        env__max_turns=5,
        env__kwargs={"families": ["locked"]},
        model__name="m",
        model__backend="hf",
    )
    assert defaults.resolve(given, RUN).env.kwargs == {"families": ["locked"]}
    assert defaults.resolve(given, RUN).env.max_turns == 5


def test_what_a_run_has_for_its_evaluations_alone_comes_first(tmp_path):
    evaluated = {"max_turns": 12, "kwargs": {"families": ["free", "locked"]}}
    of_run = {**RUN, "eval": evaluated}
    own = config(tmp_path, env__id="", model__name="m", model__backend="hf")
    resolved = defaults.resolve(own, of_run)
    assert (resolved.env.max_turns, resolved.env.kwargs) == (12, evaluated["kwargs"])
    unlimited = {**of_run, "eval": {"max_turns": None, "kwargs": {}}}
    assert defaults.resolve(own, unlimited) == defaults.resolve(own, RUN)


def test_a_runs_folder_decides_neither_what_is_read_nor_who_is_asked(tmp_path):
    searched = {"id": "agentgyms/SearchQA-v0", "kwargs": {"retriever": "http://127.0.0.1:1"}}
    own = {"env__id": "", "model__name": "m", "model__backend": "hf"}
    with pytest.raises(ConfigError, match=r"retriever=.*--env-arg retriever=\.\.\."):
        defaults.resolve(config(tmp_path, **own), {**RUN, "env": searched})
    mine = config(tmp_path, **own, env__kwargs={"retriever": "http://127.0.0.1:2"})
    resolved = defaults.resolve(mine, {**RUN, "env": searched})
    assert resolved.env.kwargs == {"retriever": "http://127.0.0.1:2"}
    for_evaluations = {**RUN, "eval": {"kwargs": {"url": "http://127.0.0.1:1"}}}
    assert "url" not in defaults.resolve(config(tmp_path, **own), for_evaluations).env.kwargs


def test_a_runs_folder_imports_no_module(tmp_path, monkeypatch):
    (tmp_path / "beside.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    of_run = {**RUN, "env": {"id": f"beside:{CORRIDOR}"}}
    own = {"model__name": "m", "model__backend": "hf"}
    with pytest.raises(ConfigError, match="--env beside:agentgyms/Corridor-v0"):
        defaults.resolve(config(tmp_path, env__id="", **own), of_run)
    given = config(tmp_path, env__id=f"agentgyms:{CORRIDOR}", **own)
    assert defaults.resolve(given, of_run).env.id == f"agentgyms:{CORRIDOR}"
    of_run = {**RUN, "agent": {"style": "tools", "tool_format": "beside:format"}}
    with pytest.raises(ConfigError, match="give agent.tool_format yourself"):
        defaults.resolve(config(tmp_path, **own), of_run)


@pytest.mark.parametrize(
    "section",
    [
        {"env": {"id": f"agentgyms:{CORRIDOR}"}},
        {"env": {"id": "agentgyms/SearchQA-v0", "kwargs": {"retriever": "http://127.0.0.1:1"}}},
        {"agent": {"style": "tools", "tool_format": "harness.prompts.tool_formats:HERMES"}},
    ],
    ids=["module", "address", "format"],
)
def test_ones_own_run_is_evaluated_with_the_words_that_its_end_tells(tmp_path, section):
    of_run = {**RUN, **section}
    with pytest.raises(ConfigError):
        defaults.resolve(given(tmp_path, []), of_run)
    resolved = defaults.resolve(given(tmp_path, defaults.words_to_give(of_run)), of_run)
    assert resolved.env.id == of_run["env"]["id"]
    kwargs = of_run["env"].get("kwargs", {})
    assert resolved.env.kwargs == {k: v for k, v in kwargs.items() if k != "url"}
    assert defaults.words_to_give(RUN) == []


def given(folder, words):
    """Return the settings of `harness eval` for a model's folder and more words."""
    words = ["--model", str(folder), "--backend", "hf", *words]
    options = evaluate.make_context("eval", words).params
    changes = [*options.pop("overrides"), *(f"env.kwargs.{e}" for e in options.pop("env_args"))]
    settings = {name: options[name] for name in ("model", "backend", "env")}
    return new_config(values_of(None, settings, changes))


def test_a_prompted_agent_and_another_environment_have_their_own(tmp_path):
    prompted = config(tmp_path, model__name="m", model__backend="hf", agent__kind="react")
    assert defaults.resolve(prompted, RUN).env.max_turns is None
    elsewhere = config(tmp_path, env__id="ALFWorld", model__name="m", model__backend="hf")
    assert defaults.resolve(elsewhere, RUN).env.kwargs == {}
    with pytest.raises(ConfigError, match="give an environment with --env"):
        defaults.resolve(config(tmp_path, env__id="", model__name="m", model__backend="hf"))
