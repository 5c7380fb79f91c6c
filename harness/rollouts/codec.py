"""Encodes a rollout as one JSON line of `harness.rollouts.rollout_files`, and decodes it.

Images are listed once; a prompt that continues the previous turn keeps only the added tokens.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentgyms.core import serialization
from agentgyms.core.env import Feedback
from agentgyms.core.errors import BadRequest
from harness.types import fields
from harness.types.messages import GENERATED_IMAGE_TOKEN, Image, shared_image
from harness.types.rollout import Completion, Rollout, StopReason, Turn, Usage

_FEEDBACK: Final = tuple(feedback.value for feedback in Feedback)
_STOP_REASONS: Final = tuple(reason.value for reason in StopReason)


class GroupNumbers:
    """Numbers the groups of a file and the members of each group."""

    def __init__(self) -> None:
        self._numbers: dict[str | int, int] = {}
        self._members: defaultdict[int, itertools.count[int]] = defaultdict(itertools.count)

    def number(self, line: Mapping[str, Any]) -> int:
        """Return a rollout's group number; raise `BadRequest` for none, or numbers beside names."""
        name = line.get("group", line.get("task_id"))
        if name is None:
            raise BadRequest(
                "a rollout needs 'task_id' or 'group': rollouts of one group are compared"
            )
        if not isinstance(name, str) and not fields.is_non_negative_int(name):
            raise BadRequest(f"'group' must be a string or a number from 0, got {name!r:.40}")
        if self._numbers and type(next(iter(self._numbers))) is not type(name):
            raise BadRequest("some rollouts of the file have numbered groups and others do not")
        return self._numbers.setdefault(name, name if isinstance(name, int) else len(self._numbers))

    def member(self, group: int) -> int:
        """Return the number of earlier rollouts of a group, and count this one."""
        return next(self._members[group])


def encode(
    rollout: Rollout, columns: Mapping[str, Sequence[float]], *, tokens: bool, images: bool
) -> dict[str, Any]:
    """Return a rollout as JSON-plain values, with `columns` as numbers of its turns."""
    shown: dict[Image, int] = {}
    turns = []
    before = Completion("")
    for i, turn in enumerate(rollout.turns):
        line = _encode_turn(turn) | {name: column[i] for name, column in columns.items()}
        if turn.summary is not None:
            line["summary"] = {"text": turn.summary.text, "finished": turn.summary.finished}
            line["summary"] |= _encode_tokens(turn.summary, before) if tokens else {}
            before = turn.summary
        if tokens:
            line |= _encode_tokens(turn.completion, before)
            before = turn.completion
        if images:
            line |= _encode_images(turn, shown)
        turns.append(line)
    encoded = {
        "task_id": rollout.task_id,
        "family": rollout.family,
        "group": rollout.group,
        "member": rollout.member,
        "seed": rollout.seed,
        "goal": rollout.goal,
        "stop_reason": rollout.stop_reason.value,
        "success": rollout.success,
        "score": rollout.score,
        "error": rollout.error,
        "turns": turns,
    }
    if rollout.parent is not None:
        encoded |= {"parent": rollout.parent, "branch_turn": rollout.branch_turn}
    if shown:
        encoded["images"] = [serialization.encode_part(image.pixels) for image in shown]
    return encoded


def _encode_turn(turn: Turn) -> dict[str, Any]:
    return {
        "observation": turn.observation,
        "state_key": turn.state_key,
        "text": turn.completion.text,
        "finished": turn.completion.finished,
        "action": turn.action,
        "action_key": turn.action_key,
        "feedback": turn.feedback,
        "reward": turn.reward,
        "next_observation": turn.next_observation,
        "next_state_key": turn.next_state_key,
        "progress": serialization.encode_number(turn.progress),
        **({"atoms": dict(turn.atoms)} if turn.atoms else {}),
        **({"next_atoms": dict(turn.next_atoms)} if turn.next_atoms else {}),
    }


def _encode_tokens(completion: Completion, before: Completion) -> dict[str, Any]:
    context = before.prompt_ids + before.response_ids
    continues = bool(context) and completion.prompt_ids[: len(context)] == context
    prompt = completion.prompt_ids[len(context) :] if continues else completion.prompt_ids
    line = {
        "goes_on": continues,
        "prompt_ids": list(prompt),
        "response_ids": list(completion.response_ids),
        "logprobs": list(completion.logprobs),
    }
    if completion.num_sampled < len(completion.response_ids):
        line["inserted"] = list(completion.inserted)
    if completion.thought_tokens is not None:
        line["thought_tokens"] = completion.thought_tokens
    if completion.version is not None:
        line["version"] = completion.version
    if completion.usage != Usage():
        line["usage"] = [completion.usage.prompt, completion.usage.response, completion.usage.calls]
    return line


def _encode_images(turn: Turn, shown: dict[Image, int]) -> dict[str, Any]:
    def number(image: Image) -> int | None:
        return None if image == GENERATED_IMAGE_TOKEN else shown.setdefault(image, len(shown))

    line: dict[str, Any] = {}
    if turn.image is not None:
        line["image"] = number(turn.image)
    if turn.completion.images:
        line["images"] = [number(image) for image in turn.completion.images]
    return line


def decode(
    line: Mapping[str, Any],
    index: int,
    groups: GroupNumbers,
    columns: Sequence[str],
) -> tuple[Rollout, dict[str, list[float]]]:
    """Return the rollout of a line, and the columns of its turns.

    A line has the fields of `encode` or fewer; see `harness.rollouts.rollout_files`. States without
    a key get one with `index`, the rollout's place in its file. A `BadRequest` names a wrong field.
    """
    turns = fields.items(line, "turns", "rollout")
    error = fields.text(line, "error", "rollout", "")
    if not turns and not error:
        raise BadRequest("a rollout needs turns: 'turns' is empty")
    images = [_image(part) for part in fields.items(line, "images", "rollout", [])]
    decoded = _decode_turns(turns, images, index)
    success = fields.flag(line, "success", "rollout", sum(turn.reward for turn in decoded) > 0)
    default_reason = StopReason.ERROR if error else StopReason.TERMINATED
    group = groups.number(line)
    rollout = Rollout(
        task_id=fields.text(line, "task_id", "rollout", ""),
        family=fields.text(line, "family", "rollout", ""),
        group=group,
        member=fields.non_negative_int(line, "member", "rollout", groups.member(group)),
        seed=fields.non_negative_int(line, "seed", "rollout", 0),
        goal=fields.text(line, "goal", "rollout", ""),
        turns=decoded,
        stop_reason=StopReason(
            fields.one_of(line, "stop_reason", "rollout", _STOP_REASONS, default_reason.value)
        ),
        success=success,
        score=fields.number(line, "score", "rollout", float(success)),
        error=error,
    )
    if "parent" in line:
        rollout.parent = fields.non_negative_int(line, "parent", "rollout", 0)
        rollout.branch_turn = fields.non_negative_int(line, "branch_turn", "rollout", 0)
    return rollout, _columns(turns, columns)


def _decode_turns(turns: Sequence[Any], images: Sequence[Image], rollout: int) -> list[Turn]:
    decoded: list[Turn] = []
    for i, turn in enumerate(turns):
        what = f"turn {i}"
        if not isinstance(turn, Mapping):
            raise BadRequest(f"{what} must be an object, got {type(turn).__name__}")
        following = turns[i + 1] if i + 1 < len(turns) else {}
        if not isinstance(following, Mapping):
            raise BadRequest(f"turn {i + 1} must be an object, got {type(following).__name__}")
        before = decoded[-1].completion if decoded else Completion("")
        summary = _summary(turn, what, before)
        before = summary or before
        action = fields.text(turn, "action", what)
        has_progress = turn.get("progress") is not None
        later = f"turn {i + 1}"
        own_key, next_key = f"rollout {rollout}, turn {i}", f"rollout {rollout}, turn {i + 1}"
        decoded.append(
            Turn(
                observation=fields.text(turn, "observation", what, ""),
                state_key=fields.text(turn, "state_key", what, own_key),
                completion=_completion(turn, what, before, images, action),
                action=action,
                action_key=fields.text(turn, "action_key", what, action),
                feedback=fields.one_of(turn, "feedback", what, _FEEDBACK, Feedback.OK.value),
                reward=fields.number(turn, "reward", what),
                next_observation=fields.text(
                    turn, "next_observation", what, fields.text(following, "observation", later, "")
                ),
                next_state_key=fields.text(
                    turn,
                    "next_state_key",
                    what,
                    fields.text(following, "state_key", later, next_key),
                ),
                progress=fields.number(turn, "progress", what) if has_progress else math.nan,
                image=None if turn.get("image") is None else _shown(turn["image"], images, what),
                summary=summary,
                atoms=_atoms(turn, "atoms", what),
                next_atoms=_atoms(turn, "next_atoms", what),
            )
        )
    return decoded


def _atoms(turn: Mapping[str, Any], field: str, what: str) -> dict[str, bool | float]:
    given = turn.get(field, {})
    if not isinstance(given, Mapping):
        raise BadRequest(f"{field!r} of {what} must be an object, got {type(given).__name__}")
    return serialization.decode_atoms(given, f"{field!r} of {what}")


def _summary(turn: Mapping[str, Any], what: str, before: Completion) -> Completion | None:
    given = turn.get("summary")
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise BadRequest(f"'summary' of {what} must be an object, got {type(given).__name__}")
    return _completion(given, f"the summary of {what}", before, (), "")


def _completion(
    turn: Mapping[str, Any], what: str, before: Completion, images: Sequence[Image], action: str
) -> Completion:
    prompt = fields.token_ids(turn, "prompt_ids", what)
    if fields.flag(turn, "goes_on", what, False):
        prompt = before.prompt_ids + before.response_ids + prompt
    response = fields.token_ids(turn, "response_ids", what)
    logprobs = fields.items(turn, "logprobs", what, [])
    if any(not fields.is_number(value) for value in logprobs):
        raise BadRequest(f"'logprobs' of {what} must hold finite numbers alone")
    inserted = _inserted(turn, len(response), what)
    sampled = len(response) - (inserted[1] - inserted[0])
    if logprobs and len(logprobs) != sampled:
        raise BadRequest(f"{what} has {sampled} response_ids and {len(logprobs)} logprobs")
    usage = fields.items(turn, "usage", what, [0, 0, 0])
    if len(usage) != 3 or not all(map(fields.is_non_negative_int, usage)):
        raise BadRequest(f"'usage' of {what} must hold tokens read, tokens written and calls")
    return Completion(
        text=fields.text(turn, "text", what, action),
        prompt_ids=prompt,
        response_ids=response,
        logprobs=tuple(map(float, logprobs)),
        finished=fields.flag(turn, "finished", what, True),
        images=tuple(
            _shown(number, images, what) for number in fields.items(turn, "images", what, [])
        ),
        usage=Usage(*usage),
        inserted=inserted,
        thought_tokens=_optional_count(turn, "thought_tokens", what),
        version=_optional_count(turn, "version", what),
    )


def _optional_count(turn: Mapping[str, Any], name: str, what: str) -> int | None:
    return fields.non_negative_int(turn, name, what, 0) if name in turn else None


def _inserted(turn: Mapping[str, Any], size: int, what: str) -> tuple[int, int]:
    given = fields.items(turn, "inserted", what, [0, 0])
    whole = len(given) == 2 and all(map(fields.is_non_negative_int, given))
    if not whole or not given[0] <= given[1] <= size:
        raise BadRequest(f"'inserted' of {what} must hold a start and an end in its response_ids")
    return given[0], given[1]


def _columns(turns: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name in names:
        have = [name in turn for turn in turns]
        if not any(have):
            continue
        if not all(have):
            raise BadRequest(f"turn {have.index(False)} has no {name!r}, and other turns have it")
        found[name] = [fields.number(turn, name, f"turn {i}") for i, turn in enumerate(turns)]
    return found


def _image(part: Any) -> Image:
    decoded = serialization.decode_part(part, "images")
    if isinstance(decoded, str):
        raise BadRequest('\'images\' of the rollout must hold {"png": "<base64>"} alone')
    return shared_image(decoded)


def _shown(number: Any, images: Sequence[Image], what: str) -> Image:
    if number is None:
        return GENERATED_IMAGE_TOKEN
    if type(number) is not int or not 0 <= number < len(images):
        raise BadRequest(f"{what} names image {number!r:.40}, the rollout has {len(images)}")
    return images[number]
