"""Direct, ReAct, Reflexion, worked examples, and the actors that need no model."""

import asyncio
from dataclasses import replace

import gymnasium as gym
import pytest

from agentgyms.core.env import TextEnv
from agentgyms.envs.corridor import CorridorEnv
from harness import config as configs
from harness import prompts
from harness.config import CONTEXTS, EvaluationConfig, build
from harness.evaluation.baselines import Baseline
from harness.evaluation.baselines.examples import gather
from harness.evaluation.baselines.prompted import ExpertActor, RandomActor
from harness.evaluation.baselines.reflexion import LONGEST_REFLECTION, Reflector
from harness.evaluation.defaults import resolve
from harness.evaluation.evaluate import choose
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.rollouts.views import EpisodeView
from harness.types.errors import ConfigError, ContextOverflow, ModelUnavailable
from harness.types.messages import content_text
from harness.types.rollout import Completion, Rollout, StopReason, Turn, Usage
from harness.types.task_draws import TaskDraw
from tests.harness.lamp_env import LAMPS

CORRIDOR = "agentgyms/Corridor-v0"


def config_of(env_id=CORRIDOR, **sections):
    values = {"env": {"id": env_id}, "model": {"name": "m", "backend": "hf"}}
    for name, section in sections.items():
        values[name] = {**values.get(name, {}), **section}
    return resolve(build(EvaluationConfig, values))


def silent(style, env_id=CORRIDOR, context="window", window=2, **kwargs):
    completer = ScriptedCompleter(lambda _: "")
    return Agent(completer, prompts.load(style, env_id), Sampling(), window, context, **kwargs)


def play(env_id, split, actor, tasks=6, task_ids=None, **kwargs):
    pool = EnvPool(env_id, 1, 32, record=True, split=split, oracle=True, **kwargs)
    if task_ids is None:
        group = pool.take()
        task_ids = choose(group.envs[0].tasks, tasks)
        pool.release(group)
    draws = [TaskDraw(task_id, 100 + i) for i, task_id in enumerate(task_ids)]
    rollouts = asyncio.run(collect(pool, draws, actor, seed=1, options=CollectOptions(pause_s=0)))
    pool.close()
    return rollouts


WORLDS = {
    "ALFWorld": ("valid_seen", {}, ("compact", "direct", "think")),
    "WebShop": ("sample", {}, ("direct", "think")),
    "Sokoban": ("train", {"rooms": 12}, ("compact", "direct", "think")),
    "VisualSokoban": ("train", {"rooms": 12}, ("compact", "direct", "look", "think")),
    "SearchQA": ("valid", {}, ("compact", "direct", "think")),
    "AppWorld": ("dev", {}, ("compact", "direct", "think")),
    "SOTOPIA": ("valid", {}, ("compact", "direct", "think")),
    "Tau2": ("valid", {}, ("compact", "direct", "think")),
    "Corridor": ("valid_seen", {}, ("compact", "direct", "think")),
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    ("name", "style"),
    [(name, style) for name, (_, _, styles) in WORLDS.items() for style in styles],
)
def test_the_expert_wins_every_task_in_every_style_and_context(name, style, context):
    split, kwargs, _ = WORLDS[name]
    env_id = f"agentgyms/{name}-v0"
    if name == "VisualSokoban" and context == "summary":
        with pytest.raises(ConfigError, match="'summary' is for texts, and the style .* images"):
            silent(style, env_id, context)
        return
    rollouts = play(env_id, split, ExpertActor(silent(style, env_id, context)), **kwargs)
    assert [rollout.success for rollout in rollouts] == [True] * 6
    for rollout in rollouts:
        agent_records = [recorded.agent for recorded in rollout.recording.turns[1:]]
        assert len(agent_records) == len(rollout.turns)
        assert all(turn["valid"] and turn["finished"] and turn["prompt"] for turn in agent_records)
        assert all(turn.completion.usage == Usage(0, 0, 1) for turn in rollout.turns)


def test_the_expert_is_asked_for_by_the_configuration_and_needs_the_oracle():
    config = config_of(model={"backend": "expert"}, agent={"kind": "react"})
    baseline = Baseline(config, None)
    (rollout,) = play(CORRIDOR, "valid_seen", baseline.actor(), tasks=1)
    assert rollout.success
    assert "<think></think><action>" in rollout.turns[0].completion.text
    view = EpisodeView("o", "o", {"goal": "g", "admissible_actions": []}, 9)
    with pytest.raises(ConfigError, match="make the environment with oracle=True"):
        asyncio.run(baseline.actor().act(view, 0))
    reflection = asyncio.run(Baseline(replace_kind(config), None).reflect(rollout, [], 0))
    assert (reflection.answer, reflection.usage) == ("", Usage())
    assert "open the door" in reflection.prompt


def replace_kind(config):
    return configs.replace(config, agent=configs.replace(config.agent, kind="reflexion"))


@pytest.mark.parametrize("name", ["ALFWorld", "WebShop", "SearchQA", "SOTOPIA", "Corridor"])
def test_a_random_actor_takes_legal_actions_by_its_seed(name):
    env_id = f"agentgyms/{name}-v0"
    split = WORLDS[name][0]
    config = config_of(env_id, model={"backend": "random"}, agent={"kind": "direct"})
    played = [play(env_id, split, Baseline(config, None).actor(), tasks=3) for _ in range(2)]
    actions = [[turn.action for turn in rollout.turns] for rollout in played[0]]
    assert actions == [[turn.action for turn in rollout.turns] for rollout in played[1]]
    turns = [turn for rollout in played[0] for turn in rollout.turns]
    assert {turn.feedback for turn in turns} <= {"ok", "no_effect"}
    if name == "WebShop":
        goals = {rollout.goal.lower() for rollout in played[0]}
        searches = {t.action[7:-1].lower() for t in turns if t.action.startswith("search[")}
        assert searches
        assert searches <= goals


def test_a_random_actor_draws_all_actions():
    info = {"goal": "g", "admissible_actions": ["left", "right", "take key"]}
    view = EpisodeView("o", "o", info, 9)
    drawn = [asyncio.run(RandomActor(silent("direct")).act(view, s)).action for s in range(60)]
    assert {action: drawn.count(action) > 8 for action in set(drawn)} == dict.fromkeys(
        info["admissible_actions"], True
    )
    info["admissible_actions"] = []
    assert asyncio.run(RandomActor(silent("direct")).act(view, 1)).action == "g"


def test_direct_react_and_trained_differ_in_their_prompts_alone():
    prompts_sent = []

    def script(messages):
        prompts_sent.append(content_text(messages[-1]["content"]))
        return "<think>so</think><action>right</action>"

    trained = {"agent": {"style": "compact", "context": "transcript", "window": 0}}
    values = {"env": {"id": CORRIDOR}, "model": {"name": "m", "backend": "hf"}}
    kinds = {
        "direct": config_of(agent={"kind": "direct"}),
        "react": config_of(agent={"kind": "react"}),
        "trained": resolve(build(EvaluationConfig, values), trained),
    }
    for kind, config in kinds.items():
        baseline = Baseline(config, ScriptedCompleter(script))
        assert baseline.trials == 1
        assert baseline.preamble() == ""
        style = prompts.load({"direct": "direct", "react": "think"}.get(kind, "compact"), CORRIDOR)
        assert baseline.prompt_versions == {style.name: style.version}
        prompts_sent.clear()
        play(CORRIDOR, "valid_seen", baseline.actor(), tasks=1, max_turns=2)
        assert ("<think>" in prompts_sent[0]) is (kind == "react")
        assert baseline.actor().context == ("transcript" if kind == "trained" else "window")
    with pytest.raises(ConfigError, match="'react' does not reflect"):
        asyncio.run(Baseline(kinds["react"], ScriptedCompleter(script)).reflect(None, [], 0))


def test_what_training_asks_react_asks_to_the_letter():
    (first,) = play(CORRIDOR, "valid_seen", ExpertActor(silent("think")), tasks=1)
    config = config_of(agent={"kind": "react"})
    sampling = []

    class Noting(ScriptedCompleter):
        async def complete(self, messages, how, seed):
            sampling.append(how)
            return await super().complete(messages, how, seed)

    actor = Baseline(config, Noting(lambda _: "<think></think><action>right</action>")).actor()
    (second,) = play(CORRIDOR, "valid_seen", actor, tasks=1)
    prompts_sent = [[t.agent["prompt"] for t in r.recording.turns[1:]] for r in (first, second)]
    assert prompts_sent[0][0] == prompts_sent[1][0]
    assert sampling[0] == Sampling(config.sampling.temperature, config.sampling.max_tokens, 1.0)


# --- Reflexion -----------------------------------------------------------------------------------

NOTE = "The door was at the right end, so always go right."


def walker(messages):
    """A model that goes wrong until its own note tells it better."""
    text = "".join(content_text(message["content"]) for message in messages)
    if "Write the note alone." in text:
        return f"<think>hm</think> {NOTE} (note {text.count(NOTE) + 1})"
    ahead = "open door" if "- open" in content_text(messages[-1]["content"]) else "right"
    return f"<think>so</think><action>{ahead if NOTE in text else 'left'}</action>"


@pytest.mark.parametrize("context", CONTEXTS)
def test_reflexion_fails_notes_why_and_wins(context):
    prompts_sent = []

    def script(messages):
        prompts_sent.append(messages)
        return walker(messages)

    config = config_of(agent={"kind": "reflexion", "context": context, "trials": 3})
    baseline = Baseline(config, ScriptedCompleter(script))
    assert baseline.trials == 3
    names = ["memory", "reflect", *(["summarise", "summary"] if context == "summary" else [])]
    parts = {name: prompts.load_part(name, CORRIDOR) for name in names}
    style = prompts.load("think", CORRIDOR)
    assert baseline.prompt_versions == {
        style.name: style.version,
        **{part.name: part.version for part in parts.values()},
    }
    task = {"task_ids": ["valid_seen/free-000"], "max_turns": 20}
    (failed,) = play(CORRIDOR, "valid_seen", baseline.actor(), **task)
    assert not failed.success
    reflection = asyncio.run(baseline.reflect(failed, [], 7))
    assert reflection.answer == f"{NOTE} (note 1)", "without the model's thoughts"
    assert reflection.prompt == prompts_sent[-1][0]["content"]
    assert "it reached its limit of 20 turns" in reflection.prompt
    prompts_sent.clear()
    (won,) = play(CORRIDOR, "valid_seen", baseline.actor([reflection.answer]), **task)
    assert won.success
    assert won.turns[0].state_key == failed.turns[0].state_key
    preamble = baseline.preamble([reflection.answer])
    for messages in prompts_sent:
        texts = [content_text(message["content"]) for message in messages]
        assert texts[0].startswith(preamble)
        assert sum(text.count(NOTE) for text in texts) == 1
    agent_records = [recorded.agent for recorded in won.recording.turns[1:]]
    assert not any(NOTE in turn["prompt"] for turn in agent_records), (
        "the preamble is no turn's own"
    )


def test_the_memory_holds_the_last_notes_and_each_is_shown_once():
    config = config_of(agent={"kind": "reflexion", "memory": 2})
    prompts_seen = []

    def script(messages):
        prompts_seen.append(content_text(messages[0]["content"]))
        return "<think></think><action>left</action>"

    baseline = Baseline(config, ScriptedCompleter(script))
    notes = ["first note", "", "second note", "third note"]
    for count in range(len(notes) + 1):
        prompts_seen.clear()
        play(CORRIDOR, "valid_seen", baseline.actor(notes[:count]), tasks=1, max_turns=1)
        shown = [note for note in notes if note and note in prompts_seen[0]]
        assert shown == [note for note in notes[:count] if note][-2:]
        assert prompts_seen[0].startswith(baseline.preamble(notes[:count]))
    rollout = failed_rollout(1)
    reflection = asyncio.run(baseline.reflect(rollout, notes, 1))
    assert [note for note in notes if note and note in reflection.prompt] == notes[2:]


def failed_rollout(turns, length=100, reason=StopReason.TURN_LIMIT):
    taken = [
        Turn(
            f"OBS{i} " + "o" * length,
            "s",
            Completion("x"),
            f"act {i}",
            f"act {i}",
            "inadmissible",
            0.0,
            f"OBS{i + 1} " + "o" * length,
            "t",
            0.0,
        )
        for i in range(turns)
    ]
    return Rollout("t", "f", 0, 0, 0, "open the door", taken, reason)


class Narrow(ScriptedCompleter):
    """A model whose context has so many characters."""

    def __init__(self, script, longest):
        super().__init__(script)
        self.longest, self.calls = longest, []

    async def complete(self, messages, sampling, seed):
        self.calls.append((len(messages[0]["content"]), sampling, seed))
        if self.calls[-1][0] > self.longest:
            raise ContextOverflow("too long for the model")
        return replace(await super().complete(messages, sampling, seed), usage=Usage(5, 3, 1))


def reflect(model, rollout, reflections=(), sampling=None, **kwargs):
    reflector = Reflector(model, sampling or Sampling(0.4, 4096), CORRIDOR, **kwargs)
    return asyncio.run(reflector.reflect(rollout, reflections, 11))


def test_a_reflection_shows_the_trial_within_its_budget():
    model = Narrow(lambda _: "note", 10**9)
    whole = reflect(model, failed_rollout(4))
    assert [f"OBS{i} " in whole.prompt for i in range(5)] == [True] * 5
    assert "act 3 (not possible)" in whole.prompt
    assert (whole.answer, whole.usage) == ("note", Usage(5, 3, 1))
    assert model.calls[0][1:] == (Sampling(0.4, 512), 11)
    short = reflect(model, failed_rollout(40), max_prompt=2000)
    assert len(short.prompt) <= 2000
    assert "earlier turns left out)" in short.prompt
    assert "OBS40 " in short.prompt
    assert "OBS39 " in short.prompt
    assert "OBS0 " not in short.prompt
    huge = reflect(model, failed_rollout(2, 10**5), ["NOTE " + "n" * 900], max_prompt=1200)
    assert len(huge.prompt) <= 1200
    assert "NOTE" not in huge.prompt
    assert huge.prompt.count("characters left out ...]") == 2
    with pytest.raises(ContextOverflow, match="the limit is 300: raise agent.max_prompt"):
        reflect(model, failed_rollout(2), max_prompt=300)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (StopReason.TURN_LIMIT, "reached its limit of 2 turns"),
        (StopReason.TERMINATED, "ended after 2 turns without success"),
        (StopReason.CONTEXT_LIMIT, "grown too long"),
    ],
)
def test_a_reflection_is_told_how_the_trial_ended(reason, words):
    assert words in reflect(None, failed_rollout(2, reason=reason)).prompt


def test_a_reflection_halves_its_prompt_until_the_model_can_read_it():
    model = Narrow(lambda _: "note", 3000)
    reflection = reflect(model, failed_rollout(40, 400))
    assert reflection.answer == "note"
    lengths = [length for length, *_ in model.calls]
    assert lengths[0] > 12000
    assert lengths[-1] <= 3000
    assert len(lengths) == 4
    with pytest.raises(ContextOverflow):
        reflect(Narrow(lambda _: "note", 10), failed_rollout(4))


def test_a_long_reflection_is_cut_and_a_lost_one_is_no_reflection():
    answer = reflect(ScriptedCompleter(lambda _: "word " * 2000), failed_rollout(1)).answer
    assert len(answer) == LONGEST_REFLECTION
    assert answer.endswith("characters left out ...]")

    def lost(_):
        raise ModelUnavailable("nobody answers")

    with pytest.raises(ModelUnavailable):
        reflect(ScriptedCompleter(lost), failed_rollout(1))


# --- worked examples -----------------------------------------------------------------------------


def examples_of(env_id=CORRIDOR, count=2, style=None, **sections):
    agent = {"kind": "react", "examples": count, "style": style}
    config = config_of(env_id, agent={k: v for k, v in agent.items() if v is not None}, **sections)
    return config, gather(config, prompts.load(config.agent.style, config.env.id))


EXEMPLARY = ["ALFWorld", "Sokoban", "SearchQA", "SOTOPIA", "Tau2", "Corridor"]


@pytest.mark.parametrize("name", [*EXEMPLARY, pytest.param("WebShop", marks=pytest.mark.slow)])
def test_examples_are_solved_training_tasks_of_different_families(name):
    env_id = f"agentgyms/{name}-v0"
    env = {"kwargs": {"rooms": 20}} if name == "Sokoban" else {}
    _, texts = examples_of(env_id, 2, env=env)
    assert examples_of(env_id, 2, env=env)[1] == texts
    assert len(set(texts)) == 2
    for text in texts:
        assert text.startswith("Task: ")
        assert "<think>" not in text
        kinds = ("<search>", "<answer>") if name == "SearchQA" else ("<action>",)
        assert all(kind in text for kind in kinds)
    if name == "Corridor":
        assert ["key" in text for text in texts] == [False, True], "a free and a locked corridor"


def test_an_example_replays_to_success_and_is_no_evaluated_task():
    config, texts = examples_of(count=4)
    env = gym.make(CORRIDOR).unwrapped
    seen = {}
    for task_id in env.tasks:
        observation, info = env.reset(seed=0, options={"task_id": task_id})
        seen.setdefault((observation, info["goal"]), []).append(task_id)
    evaluated = set(gym.make(CORRIDOR, split=config.env.split).unwrapped.tasks)
    assert not evaluated & set(env.tasks)
    for text in texts:
        actions = [line[14:-9] for line in text.splitlines() if line.startswith("Done: <action>")]
        starts = [ids for (first, _), ids in seen.items() if f"Seen: {first}\n" in text]
        won = []
        for task_id in (task_id for ids in starts for task_id in ids):
            env.reset(seed=0, options={"task_id": task_id})
            over, steps = False, iter(actions)
            while not over and (action := next(steps, None)) is not None:
                *_, over, _, info = env.step(action)
            won.append(info["success"])
        assert any(won)


def test_examples_stand_before_the_prompt_and_are_versioned():
    config, texts = examples_of()
    baseline = Baseline(config, ScriptedCompleter(lambda _: ""), texts)
    assert all(text in baseline.preamble() for text in texts)
    assert set(baseline.prompt_versions) == {
        "default/think",
        "default/examples",
        "default/episode",
    }
    assert examples_of(count=0)[1] == ()


def test_examples_that_cannot_be_had_are_refused():
    with pytest.raises(ConfigError, match="all its tasks are evaluated: evaluate another split"):
        examples_of(env={"split": "train"})
    with pytest.raises(ConfigError, match="shows images: set agent.examples to 0"):
        examples_of(LAMPS, style="look")
    with pytest.raises(ConfigError, match=r"solves 40 of the 40 tasks tried: .* at most 40"):
        examples_of(count=41)
    with pytest.raises(ConfigError, match=r"tried within 1 turns: .* or env\.max_turns higher"):
        examples_of(count=1, env={"max_turns": 1})


def test_an_environment_without_an_expert_or_a_train_split_gives_no_examples():
    class Untold(CorridorEnv):
        expert_actions = TextEnv.expert_actions

    class Untrained(CorridorEnv):
        splits = ("valid_seen",)

    for env in (Untold, Untrained):
        env_id = f"test/{env.__name__}-v0"
        if env_id not in gym.registry:
            gym.register(env_id, env)
    with pytest.raises(ConfigError, match="need an expert: .*set agent.examples to 0"):
        examples_of("test/Untold-v0", env={"split": "valid_seen"})
    with pytest.raises(ConfigError, match="split 'train': .*set agent.examples to 0"):
        examples_of("test/Untrained-v0", env={"split": "valid_seen"})


def test_an_unresolved_configuration_is_refused():
    with pytest.raises(ConfigError, match=r"agent.style is not set: resolve the configuration"):
        Baseline(EvaluationConfig(), None)
    with pytest.raises(ConfigError, match="the backend 'hf' needs a model, got none"):
        Baseline(config_of(), None)
