"""Evaluations for tests of the page: real environments, played by an expert who errs."""

import asyncio
import base64
import copy
import hashlib
import json
import random
import re
from dataclasses import replace

from made_rollouts import HOSTILE

from agentgyms.core import experts, serialization
from agentgyms.recording.recording_format import turn_line
from harness.evaluation import episodes
from harness.evaluation.episodes import describe_episode
from harness.evaluation.figures import summarise
from harness.reporting.evaluation_page import packed_episodes
from harness.reporting.results.loading import load
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.views import Decision
from harness.types.rollout import Completion, Usage
from harness.types.task_draws import TaskDraw

ALFWORLD = "agentgyms/ALFWorld-v0"
VISUAL = "agentgyms/VisualSokoban-v0"
PREAMBLE = "Here is how such a task is solved.\n\nTask: put a mug on a desk.\n> go to shelf 1"


class Wavering:
    """Does what the expert says, but for a share of its turns.

    Args:
        noise: The share.
        broken: Share of its other answers that break the format.
    """

    def __init__(self, noise, broken=0.2):
        self.noise, self.broken = noise, broken

    async def act(self, view, seed):
        rng, action = random.Random(seed), experts.choose(json.loads(view.info["oracle"]), "best")
        valid = True
        if rng.random() < self.noise:
            valid = rng.random() >= self.broken
            action = rng.choice(view.info["admissible_actions"]) if valid else ""
        thought = f"Turn {len(view.turns) + 1}: what is left is to {action or 'think'}."
        answer = f"<think>{thought}</think>\n<action>{action}</action>" if valid else thought
        prompt = f"{view.info['goal']}\n\nYou see:\n{view.observation}\n\nWhat do you do?"
        usage = Usage(len(prompt) // 4, len(answer) // 4, 1)
        left_out = "2 turns" if len(view.turns) == 3 else ""
        completion = Completion(answer, finished=rng.random() > 0.02, usage=usage)
        return Decision(action, completion, valid, prompt, left_out)


def spread(ids, count):
    """`count` of the tasks, evenly spread."""
    return [ids[i * len(ids) // count] for i in range(count)]


def evaluation(
    folder,
    *,
    env_id=ALFWORLD,
    split="valid_seen",
    noise=0.3,
    num_tasks=6,
    seeds=(0, 1),
    trials=1,
    max_turns=16,
    missing=(),
    model="tiny-model",
):
    """Play and write an evaluation, and return it loaded.

    `missing` holds pairs of seed and index of the task.
    """
    pool = EnvPool(env_id, 1, 4, record=True, split=split, oracle=True, max_turns=max_turns)
    group = pool.take()
    known = group.envs[0].tasks
    pool.release(group)
    tasks = spread([known.find(name) for name in known], num_tasks)
    recordings = [
        recording
        for seed in seeds
        for index, task in enumerate(tasks)
        if (seed, index) not in missing
        for recording in unit(pool, task.task_id, index, seed, noise, trials)
    ]
    pool.close()
    result = {
        "environment": {
            "id": env_id,
            "split": split,
            "kwargs": {"oracle": True},
            "max_turns": max_turns,
            "data_version": "generated-1",
            "tasks": len(tasks),
        },
        "agent": {
            "kind": "reflexion" if trials > 1 else "react",
            "style": "think",
            "context": "window",
            "window": 2,
            "trials": trials,
            "prompt_versions": {"alfworld/think": "0a1b2c3d4e5f"},
        },
        "model": {"backend": "openai", "name": model, "revision": None},
        "seeds": list(seeds),
        "tasks": [[task.task_id, task.family] for task in tasks],
        "missing": [
            {"task_id": tasks[i].task_id, "seed": s, "trial": 1, "error": "ModelUnavailable: 503"}
            for s, i in missing
        ],
    }
    return written(folder, result, recordings)


def unit(pool, task, index, seed, noise, trials):
    """Recordings of a task at a seed: trials until one succeeds."""
    for trial in range(1, trials + 1):
        actor = Wavering(noise / trial**2)
        episode_seed = seed * 1000 + index * 10 + trial
        (rollout,) = asyncio.run(collect(pool, [TaskDraw(task, index)], actor, seed=episode_seed))
        reflect = not rollout.success and trial < trials
        describe_episode(
            rollout.recording,
            index=index,
            seed=seed,
            trial=trial,
            stop_reason=rollout.stop_reason,
            reflection=reflection(trial) if reflect else None,
            preamble=PREAMBLE + f"\n\nReflections so far: {trial - 1}" * (trial > 1),
        )
        yield rollout.recording
        if rollout.success:
            return


def reflection(trial):
    return {
        "prompt": f"Trial {trial} failed. Why?",
        "answer": f"I wandered about in trial {trial}; next time I go straight to the desk.",
        "tokens": [60, 20],
    }


def written(folder, result, recordings):
    """Write the folder of an evaluation and return it loaded; figures are counted for real."""
    folder.mkdir(parents=True)
    lines = [
        line
        for recording in recordings
        for line in (serialization.dumps(recording.header), *map(turn_line, recording.turns))
    ]
    file = folder / "recordings.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, trials = episodes.read(file), result["agent"]["trials"]
    env_id, seeds = result["environment"]["id"], result["seeds"]
    finished, planned = len({(e.seed, e.index) for e in found}), len(seeds) * len(result["tasks"])
    whole = {
        "format": "agentgyms-evaluation-1",
        "config": {"service": {"price_prompt": 0.5, "price_response": 1.5}},
        "digest": "c0ffee123456",
        **result,
        "sampling": {"temperature": 0.4, "top_p": 1.0, "max_tokens": 512},
        "judge": None,
        "versions": {"agentgyms": "0.1.0", "revision": "f11bd96", "python": "3.11.8"},
        "episodes": {"planned": planned, "finished": finished, "missing": planned - finished},
        "figures": summarise(found, env_id=env_id, seeds=seeds, trials=trials, prices=(0.5, 1.5)),
        "recordings": {
            "file": file.name,
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        },
        "outcomes": [[e.index, e.seed, e.trial, e.success, e.score, e.turns] for e in found],
    }
    (folder / "result.json").write_text(json.dumps(whole), encoding="utf-8")
    return load(folder)


def summary(html):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    return json.loads(found[1])


def packed(html, kind):
    found = re.findall(rf'<script type="text/plain" id="{kind}-(\d+)">([^<]*)</script>', html)
    assert [int(number) for number, _ in found] == list(range(len(found)))
    return [packed_episodes.unpack(text) for _, text in found]


def edited(evaluated, folder, change):
    """An evaluation like another, each of its recordings changed."""
    recordings = [copy.deepcopy(recording) for recording in evaluated.recordings()]
    for number, recording in enumerate(recordings):
        change(number, recording)
    tasks = [list(task) for task in evaluated.result["tasks"]]
    for recording in recordings:
        index = recording.header["provenance"][episodes.EPISODE_KEY]["index"]
        tasks[index][0] = recording.turns[0].info["task_id"]
    return written(folder, {**evaluated.result, "tasks": tasks}, recordings)


def nasty(number):
    return HOSTILE[number % len(HOSTILE)]


def make_hostile(number, recording):
    """Put an attack into every text of a recording that a page shows."""
    about = recording.header["provenance"][episodes.EPISODE_KEY]
    about["preamble"] = nasty(number)
    about["reflection"] = {
        "prompt": nasty(number + 1),
        "answer": nasty(number + 2),
        "tokens": [1, 1],
    }
    for i, turn in enumerate(recording.turns):
        info = {**turn.info, "goal": nasty(number + i), "feedback_text": nasty(i + 3)}
        task_id = f"{turn.info['task_id']}{nasty(about['index'])}"
        info |= {"family": nasty(number), "task_id": task_id}
        info |= {"metrics": {nasty(number) or "m": 1.0}}
        agent = dict(turn.agent)
        if agent:
            agent |= {"prompt": nasty(i), "left_out": nasty(i + 1), "answer": nasty(number + i)}
        recording.turns[i] = replace(
            turn,
            action=nasty(i + number) if i else "",
            observation=nasty(i + 4) if i % 2 else {"text": nasty(i), "<b>": "part"},
            info=info,
            agent=agent,
        )


def hostile(evaluated, folder):
    """An evaluation every text of which is an attack, in its recordings and its result."""
    made = edited(evaluated, folder, make_hostile)
    result = json.loads(json.dumps(made.result))
    for section in ("agent", "model", "sampling", "environment"):
        result[section] |= {nasty(i): nasty(i + 1) for i in range(len(HOSTILE))}
    result["tasks"] = [[task, nasty(i)] for i, (task, _) in enumerate(made.result["tasks"])]
    result["missing"] = [
        {"task_id": nasty(i), "seed": 0, "trial": 1, "error": nasty(i)} for i in range(len(HOSTILE))
    ]
    result["figures"]["breakdowns"] = {nasty(0): result["figures"]["families"]}
    return replace(made, result=result, label=HOSTILE[0])


def long_episode(number, recording):
    """Give an episode texts that do not compress, and some more turns."""
    size = 60_000 if number == 2 else 300
    for i, turn in enumerate(recording.turns[1:], 1):
        noise = base64.b64encode(random.Random(i * 100 + number).randbytes(size)).decode()
        agent = {**turn.agent, "prompt": noise[:3000] * 2}
        recording.turns[i] = replace(turn, observation=noise, agent=agent)
