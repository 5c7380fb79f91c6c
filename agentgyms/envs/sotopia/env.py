"""The SOTOPIA environment: a dialogue with a partner, rated by a judge."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Tool, Tools
from agentgyms.envs.sotopia import (
    action_parsing,
    options,
    participants,
    render,
    sources,
    state_json,
)
from agentgyms.envs.sotopia.dialogue import NOTHING, Act, Ending
from agentgyms.envs.sotopia.generated import expert
from agentgyms.envs.sotopia.metrics import episode_metrics, rating, score
from agentgyms.envs.sotopia.simulator import DialogueSimulator

_SEED_RANGE: Final = 2**31
_MAX_REASON_LENGTH: Final = 300
_TOO_LATE: Final = "the conversation was over before it"
_ACTION_FORMS: Final = ("speak: <words>", "act: <deed>", "nonverbal: <gesture>", "leave", "none")


class SOTOPIAEnv(TextEnv):
    """Talk to a partner and reach a private goal.

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

    A model is `"name@http://host:8000/v1"`, or a mapping with `name`, `url` and other settings of
    `agentgyms.models.sync_client.read_model`: a server of OpenAI's chat completions.

    An action is `speak: <words>`, `act: <deed>`, `nonverbal: <gesture>`, `leave` or `none`, or
    SOTOPIA's JSON, `{"action_type": "speak", "argument": "..."}`. Any other text counts as doing
    nothing: the partner sees nothing, the agent reads the reason, and the feedback is `malformed`.
    In generated games an act that looks like a commitment but is not (`act: accept` without an
    offer) is visible, the agent reads why it has no effect, and the feedback is `no_effect`.

    After the agent's turn the partner acts, until it is the agent's turn again or the dialogue is
    over. The first observation is the context as this seat sees it; later ones hold the lines since
    this seat's last turn, the agent's own included, in SOTOPIA's format. At seat 1 of a round-robin
    dialogue the first observation also holds the partner's first act.

    With `partner="self"` the caller acts for both seats: observation, goal and admissible actions
    are those of the seat that acts next, and `info["metrics"]["partner_turn"]` is 1 if that is not
    the agent's. Score and success are the agent's; the seat is the end of the task id
    `<combination>/<seat>`.

    The episode ends, terminated, when somebody leaves or the dialogue is stale, and truncated at
    the limits of turns. Then the judge rates both: `score` is the goal / 10, which is the reward of
    the last turn too, and `success` a goal above `success_threshold`. An episode that the judge
    does not rate (no answer, or none that can be parsed) is over and `unrated`: score and reward
    are nan, `rated` is 0, and `feedback_text` gives the reason. It is missing, not failed.

    `max_turns=None` takes 20, or as many as `max_dialogue_turns` needs.

    `info["metrics"]`: the seven dimensions (`believability`, `relationship`, `knowledge`, `secret`,
    `social_rules`, `financial_and_material_benefits`, `goal`), their mean `overall` and the
    partner's `partner_goal`, all absent before the end; `rated`; `hard` (1 for SOTOPIA-hard);
    `dialogue_turns`; `partner_turn`; `malformed_turns` and `partner_malformed`, the malformed
    texts of agent and partner; `model_calls`, `model_prompt_tokens`, `model_response_tokens`
    and `cost` of partner and judge (absent where prices are not given).

    `info["progress"]` is the share of the seat's subgoals in generated games, else nan;
    `info["atoms"]` has them one by one, and the seat's `payoff`, the goal / 10 if it ended now.
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

    A family is the source of a scenario, such as `craigslist_bargains`; those of generated games
    are `bargaining`, `division` and `contact`. The offline partner and judge are called
    `scripted-v1` and `programmatic-v1`; their ratings are not SOTOPIA scores.

    Experts (generated games only): `best` knows what the partner will accept, `plain` does not. In
    `contact` neither knows the common contact: both ask.
    """

    default_max_turns = 20
    splits = tuple(dict.fromkeys(split for known in options.SPLITS.values() for split in known))
    private_arguments = frozenset({"data_path"})
    tools = Tools(
        Tool("speak", "Say something.", "speak: {words}", {"words": "What you say."}),
        Tool(
            "act",
            "Do something; for an offer or an agreement use the words that the situation names.",
            "act: {deed}",
            {"deed": "What you do, such as hand over the keys."},
        ),
        Tool(
            "nonverbal",
            "Show a gesture or an expression.",
            "nonverbal: {gesture}",
            {"gesture": "What you show, such as shrug."},
        ),
        Tool("leave", "End the conversation for good; say goodbye in the turn before.", "leave"),
        Tool("none", "Let the turn pass.", "none"),
    )

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
            BadOption: An argument is invalid, or two arguments conflict.
            DataMissing: The official data is missing.
            DataCorrupt: The official data is damaged.
            DependencyNotInstalled: A model takes part, and the extra `sotopia` is missing.
        """
        self._rules = options.check_rules(
            order, max_dialogue_turns, stale_turns, masked_turns_count
        )
        if common.get("max_turns") is None:
            needed = options.max_actions(self._rules, both_seats=partner == participants.SELF)
            common["max_turns"] = max(self.default_max_turns, needed)
        super().__init__(**common)
        options.check_source(source, self.split)
        self._threshold = options.check_threshold(success_threshold)
        data_path = options.check_path(source, data_path)
        if data_path is not None:
            self._arguments["data_path"] = data_path
        self._participants = participants.Participants(source, partner, judge)
        for role, name in participants.DEFAULTS.items():
            if self._arguments.get(role) == name:
                del self._arguments[role]  # the same environment, and the same snapshots
        self.parties, self.blocking = self._participants.names, self._participants.blocking
        self._source = sources.open_source(source, self.split, data_path)
        if families is not None:
            self._source = sources.filter_families(self._source, families)
            self._arguments["families"] = sorted(set(families))
        self.data_version = self._source.version

    @classmethod
    def is_private(cls, name: str, value: Any) -> bool:
        """Return whether only a server may set a value: addresses of models and files."""
        if name in participants.OFFLINE:
            return value is not None and value not in participants.OFFLINE[name]
        return super().is_private(name, value)

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:
        """Return `"generated"` or `"official"`, the argument `source`."""
        return str(arguments.get("source", "generated"))

    def load_tasks(self) -> TaskSet:
        """Return the tasks of the split: combinations of people and scenario, at each seat."""
        return self._source.load()

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start the dialogue; a partner at seat 0 acts first.

        Raises `EnvUnavailable` if the partner does not respond.
        """
        simulator = self._new_simulator(task, int(rng.integers(_SEED_RANGE)))
        self._state = simulator.begin()
        self._simulator = simulator
        return self._outcome()

    def goal(self, task: Task) -> str:
        """Return the goal of the agent's seat."""
        return render.goal(self._simulator.encounter, self._simulator.encounter.seat)

    def act(self, action: str) -> Outcome:
        """Apply the action and the partner's acts; after an `EnvUnavailable` it may be retried."""
        simulator, read = self._simulator, action_parsing.parse_action(action)
        if isinstance(read, action_parsing.ParseFailure):
            self._state = simulator.step(self._state, NOTHING, read.reason, malformed=True)
            return self._outcome(keys.INVALID_ACTION, Feedback.MALFORMED, read.reason)
        reason = self._no_effect_reason(read)
        self._state = simulator.step(self._state, read, reason)
        feedback = Feedback.NO_EFFECT if reason else Feedback.OK
        return self._outcome(action_parsing.format_action(read), feedback, reason)

    def save(self) -> Any:
        """Return the dialogue, its usage and the verdict."""
        return state_json.write(self._state, self._simulator.seed)

    def load(self, task: Task, state: Any) -> None:
        """Restore what `save` returned; no request is sent to a model."""
        simulator = self._new_simulator(task, state_json.read_seed(state))
        self._state = state_json.read(state, simulator)
        self._simulator = simulator

    def expert_actions(self) -> dict[str, str]:
        """Return each expert's next action for the seat that acts next; generated games only."""
        encounter = self._simulator.encounter
        if encounter.game is None:
            raise BadOption(
                f"task {encounter.task_id} has no expert: only generated games have one "
                "(source='generated')"
            )
        return self._experts()

    def solution(self) -> dict[str, Any]:
        """Return the experts' actions, the other seat's goal and secret, the judge's reasons."""
        encounter, verdict = self._simulator.encounter, self._state.verdict
        other = 1 - self._simulator.acting(self._state)
        oracle: dict[str, Any] = {} if encounter.game is None else {**self._experts()}
        oracle["hidden"] = {
            "goal": render.goal(encounter, other),
            "secret": encounter.people[other].secret,
        }
        if verdict is not None and verdict.ratings is not None:
            oracle["reasons"] = [dict(rating.reasons) for rating in verdict.ratings]
        return oracle

    def interrupt(self) -> None:
        """Cancel the requests to models that are in progress."""
        self._participants.interrupt()

    def close(self) -> None:
        """Close the connections to models."""
        self._participants.close()

    def _new_simulator(self, task: Task, seed: int) -> DialogueSimulator:
        return DialogueSimulator(
            encounter=self._source.encounter(task.task_id),
            rules=self._rules,
            partner=self._participants.partner,
            judge=self._participants.judge,
            seed=seed,
            max_turns=self.max_turns,
        )

    def _no_effect_reason(self, act: Act) -> str:
        simulator, state = self._simulator, self._state
        if simulator.ending(state) is not Ending.OPEN:
            return _TOO_LATE
        game = simulator.encounter.game
        return game.no_effect_reason(state.dialogue, simulator.acting(state), act) if game else ""

    def _experts(self) -> dict[str, str]:
        simulator, state = self._simulator, self._state
        encounter, seat = simulator.encounter, simulator.acting(state)
        return expert.actions(encounter, simulator.rules, state.dialogue, seat, simulator.seed)

    def _outcome(
        self, action_key: str = "", feedback: Feedback = Feedback.OK, reason: str = ""
    ) -> Outcome:
        simulator, state = self._simulator, self._state
        learner, seat = simulator.encounter.seat, simulator.acting(state)
        over = state.verdict is not None
        scored, own = score(state, learner), rating(state, learner)
        game = simulator.encounter.game
        subgoals = game.subgoals(state.dialogue, seat) if game else {}
        payoff = {"payoff": game.goal_score(state.dialogue, seat) / 10} if game else {}
        return Outcome(
            observation=self._observation(seat),
            state_key=keys.state_key("sotopia", *self._state_parts()),
            reward=scored,
            terminated=over and simulator.ending(state) in (Ending.LEFT, Ending.STALE),
            truncated=over and simulator.ending(state) not in (Ending.LEFT, Ending.STALE),
            admissible=() if over else self._admissible(seat),
            action_key=action_key,
            feedback=feedback,
            feedback_text="; ".join(filter(None, (reason, self._unrated_reason()))),
            progress=sum(subgoals.values()) / len(subgoals) if subgoals else math.nan,
            score=scored,
            success=own is not None and own.scores["goal"] > self._threshold,
            metrics=episode_metrics(simulator, state),
            goal=render.goal(simulator.encounter, seat),
            atoms={**subgoals, **payoff},
        )

    def _observation(self, seat: int) -> str:
        encounter, dialogue = self._simulator.encounter, self._state.dialogue
        first = self._simulator.first_unread(self._state, seat)
        feedback = self._state.feedback_texts[seat]
        texts = [f"Nothing happens: {feedback}\n"] if feedback else []
        if first is None:
            texts.append(render.first_observation(encounter, seat))
        unread = range(first or 0, len(dialogue))
        return "".join([*texts, *(render.turn_text(encounter, n, dialogue[n]) for n in unread)])

    def _admissible(self, seat: int) -> tuple[str, ...]:
        game = self._simulator.encounter.game
        suggested = game.suggestions(self._state.dialogue, seat) if game else ()
        return tuple(dict.fromkeys([*suggested, *_ACTION_FORMS]))

    def _state_parts(self) -> tuple[Any, ...]:
        simulator, state = self._simulator, self._state
        rules = (simulator.rules.order, simulator.rules.max_turns, simulator.rules.stale_turns)
        acts = [[(seat, act.kind, act.argument) for seat, act in turn] for turn in state.dialogue]
        pending = state.pending and (state.pending.kind, state.pending.argument)
        over = state.verdict is not None
        return (
            simulator.encounter.task_id,
            *rules,
            simulator.rules.masked_turns_count,
            simulator.seed,
            acts,
            pending,
            over,
        )

    def _unrated_reason(self) -> str:
        """Return why the episode is unrated, in one line; "" if it is rated or not over."""
        verdict = self._state.verdict
        if verdict is None or verdict.ratings is not None:
            return ""
        return f"unrated: {' '.join(verdict.reason.split())[:_MAX_REASON_LENGTH]}"
