"""Episodes in the agent trajectory interchange format (ATIF) of Harbor, version 1.7.

See https://harborframework.com/docs/trajectory-format; Harbor's files hold one trajectory each.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

from agentgyms.adapters.export.episode import Episode, answer, text_seen
from agentgyms.adapters.messages import image_urls
from agentgyms.core.serialization import encode_number
from agentgyms.recording import RecordedTurn

VERSION: Final = "ATIF-v1.7"


def trajectory(episode: Episode) -> dict[str, Any]:
    """Return a trajectory: the first step is the user's, each turn is a step of the agent."""
    header = episode.recording.header
    key = json.dumps(
        [header["env_id"], header["kwargs"], header["seed"], episode.recording.actions]
    )
    steps = [{"step_id": 1, "source": "user", "message": _content(episode, episode.turns[0][0])}]
    for number, ((_, turn), seen) in enumerate(
        zip(episode.turns, episode.outcomes, strict=True), 1
    ):
        steps.append(
            {"step_id": number + 1, "source": "agent", **_step(episode, turn, seen, number)}
        )
    facts = Episode(episode.recording).facts([])  # pictures stand in the steps
    return {
        "schema_version": VERSION,
        "session_id": sha256(key.encode()).hexdigest()[:32],
        "agent": {
            "name": episode.actor or "agent",
            "version": str(episode.provenance.get("agentgyms", "")),
            "tool_definitions": episode.tools.schemas,
        },
        "steps": steps,
        "final_metrics": {**_total_tokens(episode), "total_steps": len(steps)},
        "extra": facts,
    }


def _step(episode: Episode, turn: RecordedTurn, seen: RecordedTurn, number: int) -> dict[str, Any]:
    name, call, reply = f"call_{number}", episode.tools.call(turn.action), answer(turn)
    # the result names its call; an action that is no tool call has none
    source = {} if call is None else {"source_call_id": name}
    step: dict[str, Any] = {
        "message": turn.action if reply is None else reply,
        "observation": {"results": [{**source, "content": _content(episode, seen)}]},
        "extra": {
            "action": turn.action,
            "reward": encode_number(turn.reward),
            "feedback": turn.info["feedback"],
            "state_key": turn.info["state_key"],
        },
    }
    if call is not None:
        arguments = dict(call.arguments)
        step["tool_calls"] = [
            {"tool_call_id": name, "function_name": call.name, "arguments": arguments}
        ]
    if tokens := _tokens(turn):
        step["metrics"] = dict(zip(("prompt_tokens", "completion_tokens"), tokens, strict=True))
    return step


def _content(episode: Episode, seen: RecordedTurn) -> str | list[dict[str, Any]]:
    """Return the observation: a text, or parts in all steps of a file that has pictures."""
    text = text_seen(seen, episode.tools.shown, pictures=False)
    if not episode.pictures:
        return text
    pictures = [
        {"type": "image", "source": {"media_type": "image/png", "path": url}}
        for url in image_urls(seen.observation).values()
    ]
    return [{"type": "text", "text": text}, *pictures]


def _total_tokens(episode: Episode) -> dict[str, int]:
    """Return the tokens of all prompts and answers, if each turn's are known."""
    tokens = [_tokens(turn) for _, turn in episode.turns]
    # a sum of the known ones would look like the whole
    if not all(tokens):
        return {}
    prompts, answers = map(sum, zip(*tokens, strict=True))
    return {"total_prompt_tokens": prompts, "total_completion_tokens": answers}


def _tokens(turn: RecordedTurn) -> list[int]:
    """Return the tokens of a turn's prompt and answer; none if they are not known."""
    match turn.agent.get("tokens"):
        case [int(prompt), int(response)] if prompt:
            return [prompt, response]
    return []
