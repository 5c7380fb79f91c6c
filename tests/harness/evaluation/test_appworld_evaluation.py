"""AppWorld evaluated: every agent plays it, and TGC and SGC are a recount of what was played."""

import pytest
from chat_server import ChatServer
from click.testing import CliRunner
from evaluation_helpers import config, episodes, last_message, result, served

from agentgyms.envs.appworld.mini.generator import MiniTasks
from agentgyms.envs.appworld.world import Brief
from harness.cli.main import main
from harness.evaluation.breakdowns import SCENARIO_TASKS
from harness.reporting import run_and_report

NOTE = "Read what the docs say before you call an API."


def solutions(split):
    """Return the blocks of each task's reference solution, by its instruction."""
    tasks = MiniTasks()
    told = {}
    for task_id in tasks.families(split):
        world = tasks.open(task_id)
        brief: Brief = world.brief
        told[brief.instruction] = (task_id, tasks.solution(task_id))
        world.close()
    return told


def solver(split, fails=lambda task_id: False):
    """Return a model that knows the solutions, and gives up at once on some tasks until it is told.

    Code is in tags, fences, or in a fence within tags, as models have it.
    """
    known = solutions(split)

    def script(messages):
        text = last_message(messages[:1])
        if "Write the note alone." in text:
            return f"<think>Why?</think>{NOTE}"
        goal = next(goal for goal in known if f"Task: {goal}\n" in text)
        task_id, blocks = known[goal]
        turn = sum(message["role"] == "assistant" for message in messages)
        code = blocks[turn]
        if fails(task_id) and NOTE not in text:
            code = 'apis.supervisor.complete_task(status="fail")' if turn else "print(1 / 0)"
        form = ("<code>{}</code>", "```python\n{}\n```", "<code>\n```\n{}\n```\n</code>")[turn % 3]
        return "<think>So.</think>\n" + form.format(code)

    return script


def recount(folder):
    """Return TGC, SGC and scenarios that are incomplete by difficulty, from the raw lines."""
    done = {}
    for header, _, *turns in episodes(folder):
        last = turns[-1]["info"]
        scenario, _, number = header["options"]["task_id"].rpartition("_")
        level = f"{last['metrics']['difficulty']:.0f}"
        for group in (level, "All"):
            done.setdefault(group, {}).setdefault(scenario, {})[number] = last["success"]
    told = {}
    for group, scenarios in done.items():
        tasks = [won for numbers in scenarios.values() for won in numbers.values()]
        whole = [all(n.values()) for n in scenarios.values() if len(n) == SCENARIO_TASKS]
        told[group] = (
            sum(tasks) / len(tasks),
            sum(whole) / len(whole) if whole else None,
            len(scenarios) - len(whole),
        )
    return told


def looked_up(folder):
    """Return the turns per episode and the share of turns that read documentation, by raw lines."""
    played = [[turn["action"] for turn in turns] for _, _, *turns in episodes(folder)]
    found = {}
    for name in ("show_api_doc", "show_api_descriptions"):
        count = sum(name in action for actions in played for action in actions)
        shares = {"calls": count / len(played), "share": count / sum(map(len, played))}
        found[name] = {key: pytest.approx(value) for key, value in shares.items()}
    return found


def told(folder):
    """Return the same from `result.json`."""
    levels = result(folder)["figures"]["breakdowns"]["Difficulty"]
    return {
        name: (level["TGC"]["mean"], level["SGC"]["mean"], level["incomplete_scenarios"])
        for name, level in levels.items()
    }


def test_the_expert_reaches_all_tasks_and_scenarios_by_the_command(tmp_path):
    command = ["eval", "--env", "AppWorld", "--split", "dev", "--model", "expert", "--tasks", "18"]
    done = CliRunner().invoke(main, [*command, "--set", f"run.output='{tmp_path}'"])
    assert done.exit_code == 0, done.output
    (folder,) = tmp_path.iterdir()
    assert told(folder) == dict.fromkeys(("1", "2", "3", "All"), (1.0, 1.0, 0))
    found = result(folder)
    assert found["environment"]["max_turns"] == 50
    assert found["config"]["agent"]["context"] == "transcript"
    assert "| Method | TGC | SGC |\n" in (folder / "table.md").read_text()


@pytest.mark.slow
def test_the_expert_reaches_the_whole_of_dev(tmp_path):
    folder = run_and_report.run(
        config(tmp_path, model__name="expert", env__id="AppWorld", env__split="dev")
    )
    assert told(folder) == dict.fromkeys(("1", "2", "3", "All"), (1.0, 1.0, 0))


@pytest.mark.parametrize("agent", ["direct", "react", "reflexion"])
def test_every_agent_is_counted_by_tasks_and_scenarios(tmp_path, agent):
    fails = {"1": lambda n: n == "3", "2": lambda n: True, "3": lambda n: False}
    levels = {task_id: str(level) for task_id, level in MiniTasks().families("dev").items()}

    def loses(task_id):
        return fails[levels[task_id]](task_id.rpartition("_")[2])

    with ChatServer(solver("dev", loses)) as server:
        made = served(
            tmp_path,
            server,
            env__id="AppWorld",
            env__split="dev",
            agent__kind=agent,
            run__tasks=10,
        )
        folder = run_and_report.run(made)
    figures = result(folder)["figures"]
    if agent == "reflexion":
        assert [t["success"]["mean"] for t in figures["trials"]][1:] == [1.0, 1.0]
        assert {(tgc, sgc) for tgc, sgc, _ in told(folder).values()} == {(1.0, 1.0)}
        return
    assert told(folder) == recount(folder)
    assert 0 < told(folder)["All"][0] < 1
    assert told(folder)["All"][2] == 1, "10 tasks are three scenarios and a task of a fourth"
    assert "; 1 scenario INCOMPLETE, in TGC alone\n" in (folder / "table.md").read_text()
    assert figures["failed_share"] > 0
    assert figures["documentation"] == looked_up(folder)
