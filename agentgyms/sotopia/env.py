"""The SOTOPIA environment: a dialogue with a partner, rated by a judge."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from agentgyms import keys
from agentgyms.core import Feedback, Outcome, TextEnv
from agentgyms.errors import BadOption
from agentgyms.sotopia import figures, opening, options, reading, render, saved, sources
from agentgyms.sotopia.dialogue import NOTHING, Act, Ending
from agentgyms.sotopia.episode import Episode
from agentgyms.sotopia.generated import expert
from agentgyms.tasks import Task, TaskSet

_SEED_RANGE: Final = 2**31
_LONGEST_REASON: Final = 300
_LATE: Final = "the conversation was over before it"
_FORMS: Final = ("speak: <words>", "act: <deed>", "nonverbal: <gesture>", "leave", "none")


class SOTOPIAEnv(TextEnv):
    """Talk to somebody, and reach a goal that they do not know.

    SOTOPIA (Zhou et al. 2024, arXiv:2310.11667): two people meet in a scenario; each has a goal and
    secrets, and what they know of each other depends on their relationship. The agent plays one of
    them, a partner the other one, and a judge rates both when the dialogue is over.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `source` | `"generated"` | `"generated"`: games of our own; `"official"`: the benchmark |
    | `data_path` | `None` | official: a folder with the files; None: where they were imported |
    | `families` | `None` | a list of families to restrict the tasks to, in any order |
    | `partner` | `None` | `"scripted"` (generated: the default), `"self"`, or a model |
    | `judge` | `None` | `"programmatic"` (generated: the default), or a model |
    | `order` | `"round-robin"` | seat 0 begins, then turn by turn; or `"simultaneous"` |
    | `max_dialogue_turns` | 20 | turns of the dialogue, in round-robin order of both together |
    | `stale_turns` | 2 | more acts of doing nothing in a row end the dialogue |
    | `masked_turns_count` | `False` | waiting for the other one counts as doing nothing |
    | `success_threshold` | 6 | a goal above it is a success |
    | `max_turns` | 20 | turns of the agent until the episode is truncated; see below |
    | `oracle` | `False` | put the experts' actions and the judge's reasons into `info["oracle"]` |

    A model is `"name@http://host:8000/v1"`, or a mapping with `name`, `url` and whatever else
    `agentgyms.chat.asking.read_model` knows: the address speaks OpenAI's chat completions.

    An action is `speak: <words>`, `act: <deed>`, `nonverbal: <gesture>`, `leave` or `none`, or
    SOTOPIA's JSON, `{"action_type": "speak", "argument": "..."}`. Any other text does nothing in
    its turn: the partner sees nothing, the agent reads why, and the feedback is `malformed`. In
    generated games a deed that reads like a commitment and is none (`act: accept` without an offer)
    is seen, the agent reads why it has no effect, and the feedback is `no_effect`.

    After the agent's turn the partner takes its own, until it is the agent's turn again or the
    dialogue is over. The first observation is the context as this seat sees it; a later one has the
    lines since then, the agent's own among them, as SOTOPIA writes them. Who sits at seat 1 of a
    round-robin dialogue meets the partner's first words at the reset.

    With `partner="self"` the caller acts for both seats: observation, goal and admissible actions
    are those of the seat that acts next, and `info["metrics"]["partner_turn"]` is 1 if that is not
    the agent's. Score and success are the agent's, task `<combination>/<seat>` says whose.

    The episode ends, terminated, when somebody leaves or the dialogue is stale, and truncated at
    the limits of turns. Then the judge rates both: `score` is the goal / 10, which is the reward of
    the last turn too, and `success` a goal above `success_threshold`. An episode that the judge
    does not rate (no answer, or none of use) is over and `unrated`: score and reward are nan,
    `rated` is 0, and `feedback_text` says why. It is lost, and no failure.

    `max_turns=None` takes 20, or as many as `max_dialogue_turns` needs.

    `info["metrics"]`: the seven dimensions (`believability`, `relationship`, `knowledge`, `secret`,
    `social_rules`, `financial_and_material_benefits`, `goal`), their mean `overall` and the
    partner's `partner_goal`, all nan before the end; `rated`; `hard` (1 for SOTOPIA-hard);
    `dialogue_turns`; `partner_turn`; `malformed_turns` and `partner_malformed`, the texts of agent
    and partner that were no action; `model_calls`, `model_prompt_tokens`, `model_response_tokens`
    and `cost` of partner and judge (nan where prices are not given).

    `info["progress"]` is the share of the seat's subgoals in generated games, else nan.
    `info["state_key"]` is that of the task, the rules, the seed and all acts so far.

    | split | generated | official |
    |---|---|---|
    | `train` | 2000 | |
    | `valid`, `test` | 200 each, with numbers and tables that train lacks | |
    | `all` | | 900: 450 combinations, at both seats |
    | `hard` | | 140: those of the 14 scenarios of SOTOPIA-hard |
    | `pi` | | scenarios of SOTOPIA-pi, if they were imported |
    | `other` | | scenarios of your own, if they were imported |
    | `sample` | 12 | 12 |

    Families are what scenarios were made from, such as `craigslist_bargains`; those of generated
    games are `bargaining`, `division` and `contact`. The offline partner and judge are called
    `scripted-v1` and `programmatic-v1`; what they give is no SOTOPIA score.

    Expert: `best` knows what the partner will accept, `plain` does not (and neither whom both know:
    they ask); for generated games alone.
    """

    default_max_turns = 20
    splits = tuple(dict.fromkeys(split for known in options.SPLITS.values() for split in known))
    private_arguments = frozenset({"data_path"})

    def __init__(
        self,
        *,
        source: str = "generated",
        data_path: str | os.PathLike[str] | None = None,
        families: Sequence[str] | None = None,
        partner: Any = None,
        judge: Any = None,
        order: str = "round-robin",
        max_dialogue_turns: int = 20,
        stale_turns: int = 2,
        masked_turns_count: bool = False,
        success_threshold: float = 6,
        **common: Any,
    ) -> None:
        """Check the arguments; see the class for their meaning.

        Raises:
            BadOption: An argument has a value it cannot have, or two do not go together.
            DataMissing: The official data is not there.
            DataCorrupt: It is damaged.
            DependencyNotInstalled: A model takes part, and the extra `sotopia` is missing.
        """
        self._rules = options.check_rules(
            order, max_dialogue_turns, stale_turns, masked_turns_count
        )
        if common.get("max_turns") is None:
            needed = options.longest(self._rules, both_seats=partner == opening.SELF)
            common["max_turns"] = max(self.default_max_turns, needed)
        super().__init__(**common)
        options.check_source(source, self.split)
        self._threshold = options.check_threshold(success_threshold)
        data_path = options.check_path(source, data_path)
        if data_path is not None:
            self._arguments["data_path"] = data_path
        self._others = opening.Parties(source, partner, judge)
        for role, name in opening.DEFAULTS.items():
            if self._arguments.get(role) == name:
                del self._arguments[role]  # the same environment, and the same snapshots
        self.parties, self.blocking = self._others.names, self._others.blocking
        self._source = sources.open_source(source, self.split, data_path)
        if families is not None:
            self._source = sources.restricted(self._source, families)
            self._arguments["families"] = sorted(set(families))
        self.data_version = self._source.version

    @classmethod
    def is_private(cls, name: str, value: Any) -> bool:
        """Return whether a value is a server's to set: addresses of models are, and files."""
        if name in opening.OFFLINE:
            return value is not None and value not in opening.OFFLINE[name]
        return super().is_private(name, value)

    def load_tasks(self) -> TaskSet:
        """Return the tasks of the split: combinations of people and scenario, at each seat."""
        return self._source.load()

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Let the two meet; a partner at seat 0 begins.

        Raises:
            EnvUnavailable: The partner is not reached.
        """
        episode = self._new_episode(task, int(rng.integers(_SEED_RANGE)))
        self._state = episode.begin()
        self._play = episode
        return self._outcome()

    def goal(self, task: Task) -> str:
        """Return the goal of the agent's seat."""
        return render.goal(self._play.encounter, self._play.encounter.seat)

    def act(self, action: str) -> Outcome:
        """Act, and let the partner answer.

        Raises:
            EnvUnavailable: The partner is not reached. Nothing has happened: the same turn may be
                taken again.
        """
        play, read = self._play, reading.read_action(action)
        if isinstance(read, reading.Refusal):
            self._state = play.take(self._state, NOTHING, read.reason, malformed=True)
            return self._outcome(keys.INVALID_ACTION, Feedback.MALFORMED, read.reason)
        reason = self._objection(read)
        self._state = play.take(self._state, read, reason)
        feedback = Feedback.NO_EFFECT if reason else Feedback.OK
        return self._outcome(reading.written(read), feedback, reason)

    def save(self) -> Any:
        """Return the dialogue, what it took, and the verdict."""
        return saved.write(self._state, self._play.seed)

    def load(self, task: Task, state: Any) -> None:
        """Take up what `save` returned; nobody is asked again."""
        episode = self._new_episode(task, saved.read_seed(state))
        self._state = saved.read(state, episode)
        self._play = episode

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of each expert for the seat that acts next.

        Raises:
            BadOption: The situation is open, so that no program knows what to say.
        """
        encounter = self._play.encounter
        if encounter.game is None:
            raise BadOption(
                f"task {encounter.task_id} has no expert: only generated games have one "
                "(source='generated')"
            )
        return self._experts()

    def solution(self) -> dict[str, Any]:
        """Return the experts' actions, what the other seat hides, and the judge's reasons."""
        encounter, verdict = self._play.encounter, self._state.verdict
        other = 1 - self._play.acting(self._state)
        told: dict[str, Any] = {} if encounter.game is None else {**self._experts()}
        told["hidden"] = {
            "goal": render.goal(encounter, other),
            "secret": encounter.people[other].secret,
        }
        if verdict is not None and verdict.ratings is not None:
            told["reasons"] = [dict(rating.reasons) for rating in verdict.ratings]
        return told

    def interrupt(self) -> None:
        """End the requests to models that are waited for."""
        self._others.interrupt()

    def close(self) -> None:
        """Give back the connections to models."""
        self._others.close()

    def _new_episode(self, task: Task, seed: int) -> Episode:
        return Episode(
            encounter=self._source.encounter(task.task_id),
            rules=self._rules,
            partner=self._others.partner,
            judge=self._others.judge,
            seed=seed,
            max_turns=self.max_turns,
        )

    def _objection(self, act: Act) -> str:
        """Return why an act has no effect, "" if it may have one."""
        play, state = self._play, self._state
        if play.ending(state) is not Ending.OPEN:
            return _LATE
        game = play.encounter.game
        return game.objection(state.dialogue, play.acting(state), act) if game else ""

    def _experts(self) -> dict[str, str]:
        play, state = self._play, self._state
        return expert.actions(
            play.encounter, play.rules, state.dialogue, play.acting(state), play.seed
        )

    def _outcome(
        self, action_key: str = "", feedback: Feedback = Feedback.OK, reason: str = ""
    ) -> Outcome:
        play, state = self._play, self._state
        learner, seat = play.encounter.seat, play.acting(state)
        over = state.verdict is not None
        score, own = figures.score(state, learner), figures.rating(state, learner)
        game = play.encounter.game
        return Outcome(
            observation=self._seen(seat),
            state_key=keys.state_key("sotopia", *self._true_state()),
            reward=score,
            terminated=over and play.ending(state) in (Ending.LEFT, Ending.STALE),
            truncated=over and play.ending(state) not in (Ending.LEFT, Ending.STALE),
            admissible=() if over else self._admissible(seat),
            action_key=action_key,
            feedback=feedback,
            feedback_text="; ".join(filter(None, (reason, self._unrated()))),
            progress=game.progress(state.dialogue, seat) if game else math.nan,
            score=score,
            success=own is not None and own.scores["goal"] > self._threshold,
            metrics=figures.of_episode(play, state),
            goal=render.goal(play.encounter, seat),
        )

    def _seen(self, seat: int) -> str:
        """Return what a seat reads that is to act: all that it has not read before."""
        encounter, dialogue = self._play.encounter, self._state.dialogue
        first = self._play.first_unread(self._state, seat)
        refusal = self._state.refusals[seat]
        texts = [f"Nothing happens: {refusal}\n"] if refusal else []
        if first is None:
            texts.append(render.first_observation(encounter, seat))
        unread = range(first or 0, len(dialogue))
        return "".join([*texts, *(render.line(encounter, n, dialogue[n]) for n in unread)])

    def _admissible(self, seat: int) -> tuple[str, ...]:
        game = self._play.encounter.game
        suggested = game.suggestions(self._state.dialogue, seat) if game else ()
        return tuple(dict.fromkeys([*suggested, *_FORMS]))

    def _true_state(self) -> tuple[Any, ...]:
        play, state = self._play, self._state
        rules = (play.rules.order, play.rules.max_turns, play.rules.stale_turns)
        acts = [[(seat, act.kind, act.argument) for seat, act in turn] for turn in state.dialogue]
        pending = state.pending and (state.pending.kind, state.pending.argument)
        over = state.verdict is not None
        return (
            play.encounter.task_id,
            *rules,
            play.rules.masked_turns_count,
            play.seed,
            acts,
            pending,
            over,
        )

    def _unrated(self) -> str:
        """Return why there is no rating, in one line; "" if there is, or the end is not yet."""
        verdict = self._state.verdict
        if verdict is None or verdict.ratings is not None:
            return ""
        return f"unrated: {' '.join(verdict.reason.split())[:_LONGEST_REASON]}"
