"""Questions and documents from files: what is read, what is refused, and real ones end to end."""

import json
import math

import gymnasium as gym
import pytest

import agentgyms
from agentgyms.core.errors import BadOption, DataCorrupt, DataMissing
from agentgyms.envs.searchqa.corpus import Document, load_corpus
from agentgyms.envs.searchqa.env import SearchQAEnv
from agentgyms.envs.searchqa.flashrag import DATA_SETS, load_questions

ENV_ID = "agentgyms/SearchQA-v0"


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows))
    return path


def row(number, **fields):
    answers = [f"answer {number}"]
    return {"id": f"q_{number}", "question": f"what {number}?", "golden_answers": answers} | fields


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "nq/train.jsonl", [row(i) for i in range(20)])
    write(tmp_path / "nq/test.jsonl", [row(i) for i in range(3)])
    write(tmp_path / "nq/dev.jsonl", [row(i) for i in range(4)])
    write(tmp_path / "musique/dev.jsonl", [row(i, metadata={"hops": 2}) for i in range(5)])
    write(tmp_path / "squad/test.jsonl", [row(i) for i in range(6)])
    return tmp_path


def sizes(*arguments):
    counts = {}
    for question in load_questions(*arguments).by_id.values():
        counts[question.family] = counts.get(question.family, 0) + 1
    return counts


def test_splits_and_data_sets(folder):
    assert sizes(folder, "train") == {"nq": 20}
    assert sizes(folder, "valid") == {"nq": 4, "musique": 5}
    assert sizes(folder, "test") == {"nq": 3, "musique": 5}, "without test.jsonl dev.jsonl counts"
    assert sizes(folder, "sample") == {"nq": 12}
    assert sizes(folder, "test", ["musique", "squad"]) == {"musique": 5, "squad": 6}
    question = load_questions(folder, "test", ["musique"]).by_id["musique/q_2"]
    assert (question.text, question.golden) == ("what 2?", ("answer 2",))
    assert len(DATA_SETS) == 7


def test_one_file_serves_every_split(tmp_path):
    file = write(tmp_path / "bamboogle/test.jsonl", [row(0), "\n", row(1, data_source="nq")])
    for split in ("train", "valid", "test", "sample"):
        assert list(load_questions(file, split).tasks) == ["bamboogle/q_0", "nq/q_1"]
        assert load_questions(file, split).tasks.split == split
    assert load_questions(file, "test", ["nq"]).tasks.families() == {"nq": 1}
    named = write(tmp_path / "my_questions.jsonl", [row(0, golden_answers="one", id=7)])
    (question,) = load_questions(named, "test").by_id.values()
    assert (question.question_id, question.golden) == ("my_questions/7", ("one",))


def test_a_changed_file_is_read_again(tmp_path):
    file = write(tmp_path / "nq.jsonl", [row(0)])
    versions = {SearchQAEnv(source="flashrag", data_path=file, corpus=file).data_version}
    write(file, [row(0), row(1)])
    assert len(load_questions(file, "test").tasks) == 2
    assert load_questions(file, "test") is load_questions(file, "test")
    versions.add(SearchQAEnv(source="flashrag", data_path=file, corpus=file).data_version)
    assert len(versions) == 2
    assert all(version.startswith("flashrag-") for version in versions)


def test_ids_of_two_files_may_not_clash(tmp_path):
    write(tmp_path / "nq/test.jsonl", [row(0)])
    write(tmp_path / "musique/test.jsonl", [row(1), row(0, data_source="nq")])
    with pytest.raises(DataCorrupt, match=r"line 2: the id 'nq/q_0' occurs twice"):
        load_questions(tmp_path, "test")


def test_what_is_not_there_is_named(folder):
    with pytest.raises(DataMissing, match="nothing of split 'train' of musique: .* train.jsonl"):
        load_questions(folder, "train", ["nq", "musique"])
    with pytest.raises(DataMissing, match=r"nothing of split 'test' of nq, .*bamboogle"):
        load_questions(folder / "nq", "test")
    with pytest.raises(DataMissing, match="does not exist"):
        load_questions(folder / "nothing", "test")
    file = write(folder / "only.jsonl", [row(0, data_source="nq")])
    env = SearchQAEnv(source="flashrag", data_path=file, corpus=file, datasets=["popqa"])
    with pytest.raises(BadOption, match="has no task with these arguments"):
        env.reset(seed=0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{not json\n", "no JSON"),
        ("[1]\n", "expected a JSON object"),
        ("[" * 100_000 + "\n", "no JSON"),
        (row(1, id=None), "'id' must be"),
        (row(1, id=""), "'id' must be"),
        (row(1, id=True), "'id' must be"),
        (row(1, question=" "), "'question' must be a text"),
        (row(1, question=["x"]), "'question' must be a text"),
        (row(1, golden_answers=[]), "'golden_answers' must be"),
        (row(1, golden_answers=[3]), "'golden_answers' must be"),
        (row(1, golden_answers=None), "'golden_answers' must be"),
        (row(1, data_source=3), "'data_source' must be"),
        (row(0), "'nq/q_0' occurs twice"),
    ],
)
def test_bad_lines_are_named_with_file_and_line(tmp_path, line, says):
    file = write(tmp_path / "nq/dev.jsonl", [row(0), "\n", line])
    with pytest.raises(DataCorrupt, match=rf"dev\.jsonl, line 3: .*{says}"):
        load_questions(tmp_path, "valid")
    assert file.is_file()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("\x00\n", "no JSON"),
        ('"text"\n', "expected a JSON object"),
        ({"id": "2"}, "'contents' must be a text"),
        ({"id": "2", "contents": " "}, "'contents' must be a text"),
        ({"id": 2.5, "contents": "x"}, "'id' must be"),
        ({"contents": "x"}, "has no 'id'"),
        ({"id": 1, "contents": "x"}, "'1' occurs twice"),
    ],
)
def test_bad_documents_are_named_with_file_and_line(tmp_path, line, says):
    file = write(tmp_path / "c.jsonl", [{"id": "1", "contents": '"T"\nx'}, line])
    with pytest.raises(DataCorrupt, match=rf"c\.jsonl, line 2: .*{says}"):
        load_corpus(file)


def test_documents_as_they_are_read(tmp_path):
    file = write(tmp_path / "c.jsonl", [{"id": 7, "contents": '"A "B" C"\none\ntwo  three'}, "\n"])
    (document,) = load_corpus(file)
    assert (document.doc_id, document.title, document.text) == ("7", 'A "B" C', "one two three")
    assert Document("", "x").key == Document("", "x").key != Document("", "y").key
    with pytest.raises(DataCorrupt, match="holds no document"):
        load_corpus(write(tmp_path / "empty.jsonl", ["\n"]))
    with pytest.raises(DataMissing, match="no file"):
        load_corpus(tmp_path / "nothing.jsonl")


def test_files_that_are_no_utf8_are_named(tmp_path):
    file = tmp_path / "c.jsonl"
    file.write_bytes(b'{"id": "1", "contents": "x\xff"}\n')
    with pytest.raises(DataCorrupt, match="line 1: no JSON"):
        load_corpus(file)


def test_questions_without_known_paragraphs(tmp_path):
    questions = write(tmp_path / "nq.jsonl", [row(0, golden_answers=["The End", "Fin"])])
    corpus = write(tmp_path / "c.jsonl", [{"id": 1, "contents": '"Last page"\nhere is the end'}])
    env = SearchQAEnv(source="flashrag", data_path=questions, corpus=corpus, oracle=True)
    info = env.reset(seed=0)[1]
    assert math.isnan(info["progress"])
    assert json.loads(info["oracle"]) == {
        "answer": "answer[The End]",
        "golden": ["The End", "Fin"],
    }
    with pytest.raises(BadOption, match="no expert 'best': expected one of answer"):
        agentgyms.expert(env)()
    observation, *_, info = env.step("search[page]")
    assert observation == 'Doc 1 (Title: "Last page") here is the end'
    assert info["metrics"]["answer_retrieved"] == 1
    _, reward, _, _, info = env.step("answer[fin.]")
    assert (reward, info["family"]) == (1, "nq")
    assert math.isnan(info["progress"])


@pytest.mark.data
def test_real_questions_end_to_end(wikipedia):
    env = gym.make(
        ENV_ID,
        source="flashrag",
        data_path=wikipedia,
        corpus=wikipedia / "corpus.jsonl",
        split="test",
    ).unwrapped
    assert env.tasks.families() == {"2wikimultihopqa": 20, "hotpotqa": 29, "musique": 20}
    act, found = agentgyms.expert(env, "answer"), 0
    for task_id in env.tasks:
        _, info = env.reset(options={"task_id": task_id})
        observation, *_, info = env.step(f"search[{info['goal']}]")
        assert observation.startswith('Doc 1 (Title: "')
        found += info["metrics"]["answer_retrieved"]
        _, reward, terminated, _, _ = env.step(act())
        assert (reward, terminated) == (1, True)
    assert found >= 0.6 * len(env.tasks), (
        "the question itself finds most answers in three documents"
    )
