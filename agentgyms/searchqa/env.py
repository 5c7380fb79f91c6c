"""The environment of search-augmented question answering."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from agentgyms import keys
from agentgyms.core import Feedback, Outcome, TextEnv
from agentgyms.errors import BadOption
from agentgyms.outcome import MAX_ACTION
from agentgyms.searchqa import scoring
from agentgyms.searchqa.questions import QuestionSet
from agentgyms.searchqa.retriever import MOST_DOCUMENTS, PATIENCE_S, Hit, Retriever
from agentgyms.searchqa.sources import open_questions, open_retriever
from agentgyms.tasks import Task, TaskSet

_ACTION: Final = re.compile(r"(search|answer)\s*\[(.*)\]", re.DOTALL | re.IGNORECASE)
_ANOTHER: Final = re.compile(r"\].*\b(search|answer)\s*\[", re.DOTALL | re.IGNORECASE)


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
    | `retriever_patience_s` | 60.0 | how long a lost retriever is waited for, in seconds |
    | `top_k` | 3 | documents that a search returns, at most 100 |
    | `max_turns` | 4 | turns until the episode is truncated |
    | `oracle` | `False` | put the experts' next actions into `info["oracle"]` |

    An answer ends the episode; its reward is 1 if it equals a golden answer, both in lower case and
    without punctuation, articles and surplus blanks, else 0. Everything else has reward 0. Text of
    another form, several actions in one text, and a blank query or answer do nothing but take a
    turn. A search on the last turn is carried out, though the episode is truncated (verl-agent
    leaves it out).

    `info["state_key"]` is that of what is known: the question, the documents found so far in any
    order, and the answer. How often and with what words was searched is no part of it (the
    snapshot has it), so that episodes which found the same are in one state.

    `info["metrics"]` has `em`, `f1` and `sub_em` of the answer, the number of `searches`, and
    whether a golden answer stood in what was found (`answer_retrieved`). `info["progress"]` is the
    share of the subgoals reached: one for each paragraph that the question needs, one for the
    answer; a right answer makes it 1. It is nan for questions whose paragraphs are not known.

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

    Experts: `best` searches fact by fact and then answers, for generated questions only; with a
    `top_k` from 3 on it solves them all. `answer` gives a golden answer at once, which is of use
    for analysis and none for imitation.
    """

    default_max_turns = 4
    splits = ("train", "valid", "test", "sample")
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
        """Check the arguments; see the class for their meaning.

        Raises:
            BadOption: An argument has a value it cannot have, or two do not go together.
            DataMissing: A file that an argument names is not there.
            DataCorrupt: The question file is damaged.
        """
        super().__init__(**common)
        if type(top_k) is not int or not 1 <= top_k <= MOST_DOCUMENTS:
            raise BadOption(f"top_k must be an integer from 1 to {MOST_DOCUMENTS}, got {top_k!r}")
        self._top_k = top_k
        if data_path is not None:
            data_path = self._arguments["data_path"] = _path("data_path", data_path)
        if corpus is not None:
            corpus = self._arguments["corpus"] = _path("corpus", corpus)
        self._opened = open_questions(source, self.split, data_path, datasets)
        if datasets is not None:
            self._arguments["datasets"] = sorted(set(datasets))
        self._open_retriever, self.blocking = open_retriever(
            source, corpus, retriever, request_form, retriever_patience_s
        )
        self.data_version = self._opened.version

    @cached_property
    def _retriever(self) -> Retriever:
        return self._open_retriever()

    @cached_property
    def _questions(self) -> QuestionSet:
        return self._opened.load()

    def load_tasks(self) -> TaskSet:
        """Return the questions of the split."""
        return self._questions.tasks

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Ask the question; nothing in an episode is left to chance."""
        self._question = self._questions.by_id[task.task_id]
        self._retrieved: dict[str, None] = {}  # keys of documents, in the order they were found
        self._searches, self._answer_retrieved = 0, False
        self._answer: str | None = None
        return self._outcome(self._question.text)

    def goal(self, task: Task) -> str:
        """Return the question."""
        return self._question.text

    def act(self, action: str) -> Outcome:
        """Search, or take the answer.

        Raises:
            ServerUnavailable: The retriever at `retriever` is lost.
        """
        read = _ACTION.fullmatch(action.strip()) if len(action) <= MAX_ACTION else None
        text = " ".join(read[2].split()) if read else ""
        if read is None or not text or _ANOTHER.search(text):
            return self._refuse(_refusal(action, read))
        action_key = f"{read[1].lower()}[{scoring.canonical(text)}]"
        if read[1].lower() == "search":
            return self._search(text, action_key)
        self._answer = text
        return self._outcome("The answer was taken.", action_key)

    def save(self) -> Any:
        """Return what was found and answered."""
        return {
            "retrieved": list(self._retrieved),
            "searches": self._searches,
            "answer_retrieved": self._answer_retrieved,
            "answer": self._answer,
        }

    def load(self, task: Task, state: Any) -> None:
        """Take up what `save` returned."""
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

    def close(self) -> None:
        """Give back the connection to a retriever."""
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
        return self._outcome("\n".join(map(_line, range(1, len(hits) + 1), hits)), action_key)

    def _refuse(self, reason: str) -> Outcome:
        return self._outcome(
            f"Nothing happens: {reason}.", keys.INVALID_ACTION, Feedback.MALFORMED, reason
        )

    def _outcome(
        self,
        observation: str,
        action_key: str = "",
        feedback: Feedback = Feedback.OK,
        reason: str = "",
    ) -> Outcome:
        answer, golden = self._answer or "", self._question.golden
        right = scoring.exact_match(answer, golden)
        said = None if self._answer is None else scoring.canonical(answer)
        return Outcome(
            observation=observation,
            state_key=keys.state_key(
                "searchqa", self._question.question_id, sorted(self._retrieved), said
            ),
            reward=float(right),
            terminated=said is not None,
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
        )

    def _progress(self, right: bool) -> float:
        support = self._question.support
        if not support:
            return math.nan
        found = sum(doc_id in self._retrieved for doc_id in support)
        return 1.0 if right else found / (len(support) + 1)


def _line(number: int, hit: Hit) -> str:
    return f'Doc {number} (Title: "{hit.document.title}") {hit.document.text}'.rstrip()


def _path(name: str, value: Any) -> str:
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise BadOption(f"{name} must be a path, got {value!r:.60}")
    return os.fspath(value)


def _refusal(action: str, read: re.Match[str] | None) -> str:
    """Return why an action was not carried out."""
    if read is not None and _ANOTHER.search(read[2]):
        return "there are several actions: expected one, search[query] or answer[text]"
    if read is not None:
        return f"the {'query' if read[1].lower() == 'search' else 'answer'} is blank"
    if len(action) > MAX_ACTION:
        return f"the action is longer than {MAX_ACTION} characters"
    return "the action is neither search[query] nor answer[text]"
