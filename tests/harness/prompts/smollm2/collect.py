"""Asks SmolLM2-135M-Instruct for the answers that lie beside this file.

    python tests/harness/prompts/smollm2/collect.py FOLDER [--answers 560] [--only sokoban webshop]

The model gets the prompts of `harness eval`, on generated tasks: of the agent direct, and of ReAct
with the styles think, compact and tools, some with a worked example or with notes on a failed
trial. Half of the actions are the expert's, so that later turns are reached; the others are the
model's. Each asked prompt has several answers. FOLDER has a file for each environment with a line
for each prompt; the script begins with what lies here, and goes on where it was stopped. `--pack`
writes from them the files here: of equal answers to a prompt the first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import lzma
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import BadOption
from harness import prompts
from harness.config import (
    EvalAgentConfig,
    EvalEnvConfig,
    EvaluationConfig,
    ModelConfig,
    SamplingConfig,
)
from harness.evaluation import defaults
from harness.evaluation.baselines import Baseline
from harness.evaluation.baselines.examples import gather
from harness.inference.completers import Completer
from harness.rollouts.agent import choices_of
from harness.rollouts.collect import collect
from harness.rollouts.demonstrations import expert_answer
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.views import Decision, EpisodeView
from harness.types.errors import ConfigError
from harness.types.rollout import Completion
from harness.types.task_draws import TaskSampler, seed_of

HERE: Final = Path(__file__).parent
ENVIRONMENTS: Final = (
    "Sokoban", "ALFWorld", "WebShop", "SearchQA", "AppWorld", "SOTOPIA", "Corridor",
)  # fmt: skip
TOKENS: Final = {"direct": 32, "think": 64, "compact": 16, "tools": 48}
ASKED: Final = (0, 2)
"""Turns whose prompts the model is asked with."""
SAMPLES: Final = 24
KINDS: Final = ((0.7, 0, False), (0.5, 1, False), (0.4, 0, True), (1.0, 0, False))
"""Temperature, worked examples, and whether there are notes: of the episodes in turn."""
TOOLS: Final = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""  # noqa: E501 (the words of other models' chat templates)
NOTE: Final = "I did not look closely enough. Next time I go step by step and check what I see."


def with_tools(messages: list[Any]) -> list[Any]:
    """Return a chat whose tools stand in a system message: the model's chat template has none."""
    first, *rest = messages
    if "tools" not in first:
        return messages
    shown = "\n".join(map(json.dumps, first["tools"]))
    plain = {name: value for name, value in first.items() if name != "tools"}
    return [{"role": "system", "content": TOOLS.format(shown)}, plain, *rest]


class Asker:
    """Plays an episode; the model's answers to the prompts of some turns are kept."""

    def __init__(self, baseline: Baseline, notes: tuple[str, ...]) -> None:
        self.agent: Any = baseline.actor(notes)
        self.asked: list[dict[str, Any]] = []

    async def act(self, view: EpisodeView, seed: int) -> Decision:
        """Return the expert's action or the model's."""
        messages, turn = with_tools(self.agent.messages(view)), len(view.turns)
        answers: list[Completion] = []
        if turn in ASKED:
            wait = [
                self.agent.completer.complete(messages, self.agent.sampling, seed_of(seed, i))
                for i in range(SAMPLES)
            ]
            answers = list(await asyncio.gather(*wait))
            texts = [[one.text, one.finished] for one in answers]
            self.asked.append({"turn": turn, "actions": choices_of(view), "answers": texts})
        if answers and (turn != ASKED[0] or random.Random(seed).random() < 0.5):
            return self.agent.decide(view, answers[0])
        try:
            answer = expert_answer(self.agent.style, view, "best")
        except (BadOption, ConfigError):
            answer = answers[0].text if answers else ""
        return self.agent.decide(view, Completion(answer))


async def ask(completer: Completer, name: str, style: str, number: int) -> list[dict[str, Any]]:
    """Return the asked prompts of an episode in a style, with their answers."""
    temperature, examples, has_notes = KINDS[number % len(KINDS)]
    config = defaults.resolve(
        EvaluationConfig(
            env=EvalEnvConfig(id=name),
            model=ModelConfig(name="smollm2-135m"),
            agent=EvalAgentConfig(
                kind="direct" if style == "direct" else "react",
                style=style,
                examples=0 if name == "AppWorld" else examples,  # its prompts have one
            ),
            sampling=SamplingConfig(temperature=temperature, max_tokens=TOKENS[style]),
        ),
        tool_format=None if style != "tools" else "hermes",
    )
    loaded = prompts.load(style, config.env.id)
    baseline = Baseline(config, completer, gather(config, loaded))
    asker = Asker(baseline, (NOTE,) if has_notes else ())
    kwargs = {**config.env.kwargs, "split": config.env.split, "max_turns": ASKED[-1] + 1}
    pool = EnvPool(config.env.id, 1, 1, oracle=True, **kwargs)
    try:
        draws = TaskSampler(pool.tasks(), 0).draw(number, 1)
        await collect(pool, draws, asker, seed=number)
    finally:
        pool.close()
    about = {
        "style": style,
        "context": config.agent.context,
        "episode": number,
        "temperature": temperature,
        "examples": config.agent.examples,
    }
    return [about | one for one in asker.asked]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the prompts of a file that may not exist yet."""
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _distinct(path: Path) -> int:
    return len({text for one in lines(path) for text, _ in one["answers"]})


async def ask_all(folder: Path, names: list[str], wanted: int) -> None:
    """Ask until each environment has enough different answers."""
    from harness.inference.completers.hf import HFCompleter
    from harness.model.policy import Policy

    folder.mkdir(parents=True, exist_ok=True)
    for packed in HERE.glob("*.jsonl.xz"):
        if not (folder / packed.stem).exists():
            (folder / packed.stem).write_bytes(lzma.decompress(packed.read_bytes()))
    policy = Policy.load("smollm2-135m", "cpu", tested=False)
    policy.round_for_generation()
    completer = HFCompleter(policy, max_batch=64)
    number = 0
    while names:
        for style in TOKENS:
            for name in names:
                await _ask_once(completer, folder / f"{name.lower()}.jsonl", name, style, number)
        names = [one for one in names if _distinct(folder / f"{one.lower()}.jsonl") < wanted]
        number += 1


async def _ask_once(completer: Completer, path: Path, name: str, style: str, number: int) -> None:
    if any((one["style"], one["episode"]) == (style, number) for one in lines(path)):
        return
    made = await ask(completer, name, style, number)
    with path.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in made)
    sys.stderr.write(f"{name}, {style}, episode {number}: {_distinct(path)} answers\n")


def pack(folder: Path) -> None:
    """Write the files here, of the environments that have answers."""
    for path in sorted(folder.glob("*.jsonl")):
        rows = list(lines(path))
        for row in rows:
            row["answers"] = [list(one) for one in dict(row["answers"]).items()]
        text = "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)
        (HERE / f"{path.name}.xz").write_bytes(lzma.compress(text.encode(), preset=9))


def main() -> None:
    """Ask, or pack."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--answers", type=int, default=560, help="of each environment")
    parser.add_argument("--only", nargs="*", default=list(ENVIRONMENTS), help="environments")
    parser.add_argument("--pack", action="store_true")
    given = parser.parse_args()
    if given.pack:
        pack(given.folder)
    else:
        asyncio.run(ask_all(given.folder, list(given.only), given.answers))


if __name__ == "__main__":
    main()
