"""The programmatic judge: goals by formula, the other dimensions by documented heuristics."""

from __future__ import annotations

from typing import Final

from agentgyms.core.errors import BadOption
from agentgyms.envs.sotopia.dialogue import Dialogue, Kind, Rules
from agentgyms.envs.sotopia.generated.acts import Verb, acts_of, commitment, is_insult
from agentgyms.envs.sotopia.generated.contact import Contact
from agentgyms.envs.sotopia.generated.negotiation import Negotiation
from agentgyms.envs.sotopia.generated.words import has_word_run, word_set, words_of
from agentgyms.envs.sotopia.partner_judge import RANGES, Rating, Verdict
from agentgyms.envs.sotopia.profiles import Encounter

IDENTITY: Final = "programmatic-v1"
COMPUTED: Final = frozenset({"goal", "financial_and_material_benefits"})
"""Dimensions that the game computes; the others are heuristics."""

_SECRET_RUN: Final = 4
_PER_FACT: Final = 3
_PER_REPEAT: Final = 2
_PER_INSULT: Final = 3


class ProgrammaticJudge:
    """Rates generated games without a model. Its ratings are not SOTOPIA scores.

    `goal` and `financial_and_material_benefits` are computed by the game. Heuristics:
    `believability` 10, minus 2 for each repeated utterance and each `none` act;
    `relationship` 2 if the game is settled, plus 1 for a courteous word, minus 1 for each rejection
    and 3 for each insult; `knowledge` 3 for each fact that the other seat has told about itself;
    `secret` -10 if the seat says four consecutive words of its secret, or all of a shorter one;
    `social_rules` -3 for each insult. All are clipped to their ranges.
    """

    identity = IDENTITY

    def rate(self, encounter: Encounter, rules: Rules, dialogue: Dialogue, seed: int) -> Verdict:
        """Return the ratings of both seats; `BadOption` if the encounter has no generated game."""
        game = encounter.game
        if not isinstance(game, Negotiation | Contact):
            raise BadOption(
                f"judge {IDENTITY} rates generated scenarios, and {encounter.task_id!r} is none:"
                " give a model as judge"
            )
        first, second = (_rate(encounter, game, dialogue, seat) for seat in (0, 1))
        return Verdict((first, second))


def _rate(
    encounter: Encounter,
    game: Negotiation[int] | Negotiation[tuple[int, ...]] | Contact,
    dialogue: Dialogue,
    seat: int,
) -> Rating:
    settled = game.settled(dialogue)
    outcome = "the game is settled" if settled else "the game is not settled"
    found = {
        "believability": _believability(dialogue, seat),
        "relationship": _relationship(dialogue, seat, settled),
        "knowledge": _knowledge(game.facts(1 - seat), dialogue, 1 - seat),
        "secret": _secret(encounter.people[seat].secret, dialogue, seat),
        "social_rules": _social_rules(dialogue, seat),
        "financial_and_material_benefits": (game.material(dialogue, seat), outcome),
        "goal": (game.goal_score(dialogue, seat), outcome),
    }
    scores, reasons = {}, {}
    for dimension, (low, high) in RANGES.items():
        score, reason = found[dimension]
        scores[dimension] = min(high, max(low, score))
        how = "computed" if dimension in COMPUTED else "heuristic"
        reasons[dimension] = f"{how}: {reason}"
    return Rating(scores, reasons)


def _believability(dialogue: Dialogue, seat: int) -> tuple[int, str]:
    acts = acts_of(dialogue, seat)
    said = [" ".join(words_of(act.argument)) for act in acts if act.kind is Kind.SPEAK]
    repeats = len(said) - len(set(said))
    idle = sum(act.kind is Kind.NONE for act in acts)
    return 10 - _PER_REPEAT * (repeats + idle), f"{repeats} repetitions, {idle} idle turns"


def _relationship(dialogue: Dialogue, seat: int, settled: bool) -> tuple[int, str]:
    acts = acts_of(dialogue, seat)
    bound = [commitment(act) for act in acts]
    rejections = sum(found is not None and found.verb is Verb.REJECT for found in bound)
    insults = sum(map(is_insult, acts))
    courtesies = word_set("manners", "courtesies")
    kind = any(not courtesies.isdisjoint(words_of(act.argument)) for act in acts)
    score = 2 * settled + kind - rejections - _PER_INSULT * insults
    return score, f"settled {settled}, courteous {kind}, {rejections} rejections, {insults} insults"


def _knowledge(facts: tuple[str, ...], dialogue: Dialogue, teller: int) -> tuple[int, str]:
    acts = [act for act in acts_of(dialogue, teller) if act.kind is Kind.SPEAK]
    said = {word for act in acts for word in words_of(act.argument)}
    heard = sum(fact.lower() in said for fact in facts)
    return _PER_FACT * heard, f"{heard} of {len(facts)} facts heard"


def _secret(secret: str, dialogue: Dialogue, seat: int) -> tuple[int, str]:
    for act in acts_of(dialogue, seat):
        if has_word_run(act.argument, secret, _SECRET_RUN):
            return -10, "words of the secret were said"
    return 0, "no words of the secret were said"


def _social_rules(dialogue: Dialogue, seat: int) -> tuple[int, str]:
    insults = sum(map(is_insult, acts_of(dialogue, seat)))
    return -_PER_INSULT * insults, f"{insults} insults"
