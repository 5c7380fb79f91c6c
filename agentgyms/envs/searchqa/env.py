"""The environment of search-augmented question answering."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from agentgyms.core import keys
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.outcome import MAX_ACTION
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import Tool, Tools
from agentgyms.envs.searchqa import scoring
from agentgyms.envs.searchqa.questions import QuestionSet
from agentgyms.envs.searchqa.retriever import MOST_DOCUMENTS, PATIENCE_S, Hit, Retriever
from agentgyms.envs.searchqa.sources import open_questions, open_retriever

_ACTION: Final = re.compile(r"(search|answer)\s*\[(.*)\]", re.DOTALL | re.IGNORECASE)
_SECOND_ACTION: Final = re.compile(r"\].*\b(search|answer)\s*\[", re.DOTALL | re.IGNORECASE)


class SearchQAEnv(TextEnv):
    """Answer a question with the help of a search engine: `search[query]`, then `answer[text]`.

    The contract of Search-R1 (Jin et al. 2025, arXiv:2503.09516) and verl-agent: a few turns, the
    best `top_k` paragraphs for each query, and exact match with a golden answer as the reward.

    | argument | default | meaning |
    |---|---|---|
    | `split` | `"train"` | see below |
    | `source` | `"generated"` | `"generated"`: a closed world of our own; `"flashrag"`: files |
    | `data_path` | `None` | flashrag: folder with `<data set>/<split>.jsonl`, or one such file |
    | `datasets` | `None` | flashrag: a list of data sets; None takes those of the seven there are |
    | `corpus` | `None` | flashrag: JSON lines to search in with BM25, `{"id", "contents"}` |
    | `retriever` | `None` | address of a retriever, `http://host:port/retrieve`, instead of BM25 |
    | `request_form` | `"queries"` | what it reads: `"queries"` (Search-R1) or `"query"` (SkyRL) |
    | `retriever_patience_s` | 60.0 | seconds to retry while the retriever does not answer |
    | `top_k` | 3 | documents that a search returns, at most 100 |
    | `max_turns` | 4 | turns until the episode is truncated |
    | `oracle` | `False` | put the experts' next actions and the answers into `info["oracle"]` |

    An answer ends the episode; its reward is 1 if it equals a golden answer, both in lower case and
    without punctuation, articles and surplus blanks, else 0. Everything else has reward 0. Text of
    another form, several actions in one text, and a blank query or answer only take a turn. A
    search on the last turn is executed, although the episode is truncated (verl-agent skips it).

    `info["state_key"]` depends on the question, the set of documents found so far and the answer.
    The number and the words of searches are not part of it (the snapshot has them), so that
    episodes with the same documents are in one state.

    `info["metrics"]` has `em`, `f1` and `sub_em` of the answer, the number of `searches`, and
    whether a golden answer occurred in a document found (`answer_retrieved`). `info["progress"]`
    is the fraction of subgoals reached: one for each paragraph that the question needs, one for the
    answer; a right answer makes it 1. It is nan for questions with unknown paragraphs.
    `info["atoms"]` has them one by one: `hop 1`, ..., `answer`.

    | split | generated | files of a data set |
    |---|---|---|
    | `train` | 3000 | `train.jsonl` |
    | `valid` | 300 | `dev.jsonl` |
    | `test` | 300 | `test.jsonl`, where there is none `dev.jsonl` |
    | `sample` | 12 | the first 12 of train, else of test |

    The generated questions need one, two or three facts about invented people, places and works
    (families `1-hop`, `2-hop`, `3-hop`); nothing but searching finds the answers. Their scores are
    not comparable with those on Wikipedia. Files are in FlashRAG's format; their families are the
    data sets: `nq`, `triviaqa`, `popqa`, `hotpotqa`, `2wikimultihopqa`, `musique`, `bamboogle`.

    Experts: `best` searches fact by fact and then answers, for generated questions only; with
    `top_k` of at least 3 it solves them all. `answer` gives a golden answer at once: useful for
    analysis, not for imitation. The oracle has both, all answers as `golden`, and for generated
    questions `optimal_remaining`, the turns that `best` still takes (-1 after a wrong answer).
    """

    default_max_turns = 4
    splits = ("train", "valid", "test", "sample")
    tools = Tools(
        Tool(
            "search",
            "Look something up; you see what is found.",
            "search[{query}]",
            {"query": "A short query."},
        ),
        Tool(
            "answer",
            "Give the answer to the question, which ends the episode.",
            "answer[{text}]",
            {"text": "The answer itself and nothing more, such as Ada Lovelace."},
        ),
    )
    private_arguments = frozenset(
        {"data_path", "corpus", "retriever", "request_form", "retriever_patience_s"}
    )

    def __init__(
        self,
        *,
        source: str = "generated",
        data_path: str | os.PathLike[str] | None = None,
        datasets: Sequence[str] | None = None,
        corpus: str | os.PathLike[str] | None = None,
        retriever: str | None = None,
        request_form: str = "queries",
        retriever_patience_s: float = PATIENCE_S,
        top_k: int = 3,
        **common: Any,
    ) -> None:
        """Check arguments; raise `BadOption`, `DataMissing`, or `DataCorrupt` for bad questions."""
        super().__init__(**common)
        if type(top_k) is not int or not 1 <= top_k <= MOST_DOCUMENTS:
            raise BadOption(f"top_k must be an integer from 1 to {MOST_DOCUMENTS}, got {top_k!r}")
        self._top_k = top_k
        if data_path is not None:
            data_path = self._arguments["data_path"] = _path("data_path", data_path)
        if corpus is not None:
            corpus = self._arguments["corpus"] = _path("corpus", corpus)
        self._question_source = open_questions(source, self.split, data_path, datasets)
        if datasets is not None:
            self._arguments["datasets"] = sorted(set(datasets))
        self._open_retriever, self.blocking = open_retriever(
            source, corpus, retriever, request_form, retriever_patience_s
        )
        self.data_version = self._question_source.version

    @cached_property
    def _retriever(self) -> Retriever:
        return self._open_retriever()

    @cached_property
    def _questions(self) -> QuestionSet:
        return self._question_source.load()

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:
        """Return `"generated"`, or `"official"` for question sets in FlashRAG's form."""
        return "official" if arguments.get("source") == "flashrag" else "generated"

    def load_tasks(self) -> TaskSet:
        """Return the questions of the split."""
        return self._questions.tasks

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start with the question; episodes are deterministic."""
        self._question = self._questions.by_id[task.task_id]
        self._retrieved: dict[str, None] = {}  # keys of documents, in the order they were found
        self._searches, self._answer_retrieved = 0, False
        self._answer: str | None = None
        return self._outcome(self._question.text)

    def goal(self, task: Task) -> str:
        """Return the question."""
        return self._question.text

    def act(self, action: str) -> Outcome:
        """Search, or end the episode; `ServerUnavailable` if the retriever does not answer."""
        read = _ACTION.fullmatch(action.strip()) if len(action) <= MAX_ACTION else None
        text = " ".join(read[2].split()) if read else ""
        if read is None or not text or _SECOND_ACTION.search(text):
            reason = _malformed_reason(action, read)
            return self._outcome(
                f"Nothing happens: {reason}.", keys.INVALID_ACTION, Feedback.MALFORMED, reason
            )
        action_key = f"{read[1].lower()}[{scoring.canonical(text)}]"
        if read[1].lower() == "search":
            return self._search(text, action_key)
        self._answer = text
        return self._outcome("The answer was taken.", action_key)

    def save(self) -> Any:
        """Return the documents found, the counts and the answer."""
        return {
            "retrieved": list(self._retrieved),
            "searches": self._searches,
            "answer_retrieved": self._answer_retrieved,
            "answer": self._answer,
        }

    def load(self, task: Task, state: Any) -> None:
        """Restore what `save` returned."""
        retrieved, searches, flag, answer = (
            state[key] for key in ("retrieved", "searches", "answer_retrieved", "answer")
        )
        if type(retrieved) is not list or any(type(key) is not str for key in retrieved):
            raise TypeError(f"'retrieved' must be a list of strings, got {retrieved!r:.80}")
        if type(searches) is not int or searches < 0 or (retrieved and not searches):
            raise ValueError(f"{searches!r:.80} searches cannot have found {len(retrieved)}")
        if type(flag) is not bool or not isinstance(answer, str | None):
            raise TypeError(f"{flag!r:.80} and {answer!r:.80} are no flag and no answer")
        self._question = self._questions.by_id[task.task_id]
        self._retrieved = dict.fromkeys(retrieved)
        self._searches, self._answer_retrieved, self._answer = searches, flag, answer

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of `answer`, and of `best` where the paragraphs are known."""
        question = self._question
        actions = {"answer": f"answer[{question.golden[0]}]"}
        if question.support:
            needed = zip(question.support, question.titles, strict=True)
            missing = [title for doc_id, title in needed if doc_id not in self._retrieved]
            actions["best"] = f"search[{missing[0]}]" if missing else actions["answer"]
        return actions

    def solution(self) -> dict[str, Any]:
        """Return the experts' actions, the golden answers, and the turns that `best` still takes.

        The turns, `optimal_remaining`, are 0 after a right answer and -1 after a wrong one; they
        are there for generated questions only.
        """
        question = self._question
        solution: dict[str, Any] = {**self.expert_actions(), "golden": list(question.golden)}
        if question.support:
            missing = sum(doc_id not in self._retrieved for doc_id in question.support)
            answered, right = self._answer is not None, self._is_right()
            left = (0 if right else -1) if answered else missing + 1
            solution["optimal_remaining"] = left
        return solution

    def close(self) -> None:
        """Close the connection to a retriever."""
        if "_retriever" in vars(self):
            self._retriever.close()

    def _search(self, query: str, action_key: str) -> Outcome:
        hits = self._retriever.search(query, self._top_k)
        self._searches += 1
        for document, _ in hits:
            self._retrieved[document.key] = None
            if not self._answer_retrieved:
                self._answer_retrieved = scoring.mentions(document.contents, self._question.golden)
        if not hits:
            reason = "no document has a word of the query"
            return self._outcome("No document was found.", action_key, Feedback.NO_EFFECT, reason)
        return self._outcome(
            "\n".join(map(_document_line, range(1, len(hits) + 1), hits)), action_key
        )

    def _outcome(
        self,
        observation: str,
        action_key: str = "",
        feedback: Feedback = Feedback.OK,
        reason: str = "",
    ) -> Outcome:
        answer, golden = self._answer or "", self._question.golden
        right = self._is_right()
        canonical_answer = None if self._answer is None else scoring.canonical(answer)
        return Outcome(
            observation=observation,
            state_key=keys.state_key(
                "searchqa", self._question.question_id, sorted(self._retrieved), canonical_answer
            ),
            reward=float(right),
            terminated=canonical_answer is not None,
            admissible=("search[<query>]", "answer[<text>]"),
            admissible_complete=False,
            action_key=action_key,
            feedback=feedback,
            feedback_text=reason,
            progress=self._progress(right),
            score=float(right),
            success=right,
            metrics={
                "em": float(right),
                "f1": scoring.f1(answer, golden),
                "sub_em": float(scoring.substring_match(answer, golden)),
                "searches": float(self._searches),
                "answer_retrieved": float(self._answer_retrieved),
            },
            atoms=self._atoms(right),
        )

    def _is_right(self) -> bool:
        return scoring.exact_match(self._answer or "", self._question.golden)

    def _atoms(self, right: bool) -> dict[str, bool | float]:
        """Return whether each needed paragraph is found, or needed no more, and the answer."""
        found = [right or doc_id in self._retrieved for doc_id in self._question.support]
        hops = {f"hop {i}": met for i, met in enumerate(found, 1)}
        return {**hops, "answer": right} if hops else {}

    def _progress(self, right: bool) -> float:
        atoms = self._atoms(right)
        return sum(atoms.values()) / len(atoms) if atoms else math.nan


def _document_line(number: int, hit: Hit) -> str:
    return f'Doc {number} (Title: "{hit.document.title}") {hit.document.text}'.rstrip()


def _path(name: str, value: Any) -> str:
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise BadOption(f"{name} must be a path, got {value!r:.60}")
    return os.fspath(value)


def _malformed_reason(action: str, read: re.Match[str] | None) -> str:
    if read is not None and _SECOND_ACTION.search(read[2]):
        return "there are several actions: expected one, search[query] or answer[text]"
    if read is not None:
        return f"the {'query' if read[1].lower() == 'search' else 'answer'} is blank"
    if len(action) > MAX_ACTION:
        return f"the action is longer than {MAX_ACTION} characters"
    return "the action is neither search[query] nor answer[text]"
