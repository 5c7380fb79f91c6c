"""The rules and texts of sotopia 0.1.4: the package plays the same dialogues and shows the same."""

import json
import random

import pytest
from chat_server import ChatServer
from small_profiles import small_tables, write_json
from talking import rated, saying

from agentgyms.envs.sotopia import action_parsing, render
from agentgyms.envs.sotopia.dialogue import NOTHING, ORDERS, Act, Ending, Kind, Rules
from agentgyms.envs.sotopia.env import SOTOPIAEnv
from agentgyms.envs.sotopia.markup import visible_text
from agentgyms.envs.sotopia.official.encounters import read
from agentgyms.envs.sotopia.official.files import COMBINATIONS, PEOPLE, SCENARIOS

pytestmark = pytest.mark.sotopia

WORDS = [
    *("hello", "I", 'said "no"', "does nothing", "100 &", "M&M", "café", "…", "50 > 40"),
    *("{history}", "\n", "Turn #3:", ";", "'", "  ", "日本", "😀"),
]  # fmt: skip
PIECES = [
    *("<extra_info>", "</extra_info>", "<strategy_hint>", "</strategy_hint>", "<b>", "</b>"),
    *("<p viewer='agent_0'>", '<p viewer="agent_1">', '<p viewer="environment">', "</p>", "</"),
    *("<extra info>", "<extra_info", "</extra_info", "<br/>", "<", "< ", ">", "=", "&lt;", " & "),
    *("<!-- x -->", "/", "\x01", "\r\n", "<?x y?>", "M&M", "$5", "é", "a", "word ", " ", "\n"),
    *("'", '"'),
]  # fmt: skip
REASONS = {
    Ending.OPEN: (),
    Ending.LEFT: ("Agent 1 is leaving", "Agent 2 is leaving"),
    Ending.STALE: ("The conversation stales for too long",),
    Ending.TURN_LIMIT: ("The conversation is too long",),
}


class World:
    """Profiles as they are in files, for the package, and as they are read, for us."""

    def __init__(self, folder):
        self.folder = folder
        rows = {
            table.file: json.loads((folder / table.file).read_text("utf-8"))
            for table in (PEOPLE, SCENARIOS, COMBINATIONS)
        }
        self._rows = {file: {row["pk"]: row for row in listed} for file, listed in rows.items()}
        self._official = read(folder)
        self.combinations = sorted(self._rows[COMBINATIONS.file])

    def encounter(self, combination):
        return self._official.encounter(f"{combination}/0")

    def play(self, peer, combination, dialogue, rules):
        """Return what the package shows while a dialogue is played, up to its end."""
        row = self._rows[COMBINATIONS.file][combination]
        acts = [[dict(turn).get(seat, NOTHING) for seat in (0, 1)] for turn in dialogue]
        return peer(
            environment=self._rows[SCENARIOS.file][row["env_id"]],
            agents=[self._rows[PEOPLE.file][key] for key in row["agent_ids"]],
            order=rules.order,
            max_turns=rules.max_turns,
            stale_turns=rules.stale_turns,
            dialogue=[[[act.kind.value, act.argument] for act in turn] for turn in acts],
        )


@pytest.fixture
def small(tmp_path, small_splits):
    return World(write_json(small_tables(), tmp_path))


@pytest.fixture(scope="module")
def benchmark(benchmark):
    return World(benchmark)


def check(world, peer, combination, dialogue, rules):
    """Compare everything that anybody reads, and when it ends; return how it ended."""
    encounter = world.encounter(combination)
    shown = world.play(peer, combination, dialogue, rules)
    assert shown["first"] == [render.first_observation(encounter, seat) for seat in (0, 1)]
    assert shown["context"] == render.context(encounter, None)
    for number, turn in enumerate(shown["turns"]):
        so_far = dialogue[:number]
        assert turn["histories"] == [render.history(encounter, so_far, seat) for seat in (0, 1)]
        for seat in rules.acting(number):
            assert f"{render.history(encounter, so_far, seat)}.\n" in turn["prompts"][str(seat)]
        assert len(turn["prompts"]) == len(rules.acting(number))
        assert turn["lines"] == [render.turn_text(encounter, number, dialogue[number])] * 2
        ending = rules.ending(dialogue[: number + 1])
        assert turn["terminated"] == (ending is not Ending.OPEN)
        assert not REASONS[ending] or any(reason in turn["comments"] for reason in REASONS[ending])
    played = dialogue[: len(shown["turns"])]
    assert shown["judge_prompt"].startswith(f"{render.judge_history(encounter, played)},\nBased on")
    return rules.ending(played)


def drawn(draw, rules, quiet):
    """Return a dialogue of acts drawn at random, of which some end it."""
    kinds = [Kind.SPEAK, Kind.SPEAK, Kind.NONVERBAL, Kind.ACTION, *[Kind.NONE] * quiet]
    turns = []
    for number in range(rules.max_turns):
        acts = []
        for seat in rules.acting(number):
            kind = Kind.LEAVE if draw.random() < 0.03 else draw.choice(kinds)
            said = " ".join(draw.choices(WORDS, k=draw.randint(1, 4)))
            acts.append((seat, Act(kind, "" if kind in (Kind.NONE, Kind.LEAVE) else said)))
        turns.append(tuple(acts))
    return turns


@pytest.mark.data
def test_every_combination_of_the_benchmark(benchmark, peer):
    """Each of the 450 is seen by both seats and the judge, and played for some turns."""
    draw, rules = random.Random(0), Rules(max_turns=4, masked_turns_count=True)
    for combination in benchmark.combinations:
        check(benchmark, peer, combination, drawn(draw, rules, quiet=0), rules)
    assert len(benchmark.combinations) == 450


@pytest.mark.parametrize("order", ORDERS)
def test_dialogues_end_as_the_packages_do(order, small, peer):
    draw, endings = random.Random(order), set()
    for number in range(150):
        rules = Rules(order, draw.choice([3, 8, 20]), draw.choice([0, 1, 2, 4]), True)
        dialogue = drawn(draw, rules, quiet=number % 4)
        endings.add(check(small, peer, draw.choice(small.combinations), dialogue, rules))
    assert endings == set(Ending) - {Ending.OPEN}


@pytest.mark.parametrize("order", ORDERS)
def test_self_chat_is_the_packages_episode(order, small, peer):
    """Both seats read through the environment what they read there, and the judge is asked once."""
    draw = random.Random(f"self-chat, {order}")
    with ChatServer(lambda _: json.dumps(rated())) as server:
        judge = {"name": server.model, "url": server.url, "cache": False}
        for number in range(40):
            rules = Rules(order, draw.choice([3, 8, 20]), draw.choice([1, 2, 4]), True)
            env = SOTOPIAEnv(
                source="official", split="all", data_path=small.folder, partner="self",
                judge=judge, order=order, max_dialogue_turns=rules.max_turns,
                stale_turns=rules.stale_turns, masked_turns_count=True,
            )  # fmt: skip
            name, seat = draw.choice(small.combinations), draw.randrange(2)
            read, dialogue = played(env, f"{name}/{seat}", drawn(draw, rules, quiet=number % 4))
            env.close()
            shown = small.play(peer, name, dialogue, rules)
            ends = [turn["terminated"] for turn in shown["turns"]]
            assert ends == [False] * (len(dialogue) - 1) + [True]
            said = server.requests[-1].body["messages"][0]["content"]
            assert (len(server.requests), said) == (number + 1, shown["judge_prompt"])
            lines = [turn["lines"][0] for turn in shown["turns"]]
            acted = {}
            for reader, turn, seen in read:
                first = "" if reader in acted else shown["first"][reader]
                expected = first + "".join(lines[acted.get(reader, 0) : turn])
                assert seen == expected or seen.startswith("Nothing happens: ")
                assert seen.endswith(expected)
                acted[reader] = turn


def played(env, task_id, dialogue):
    """Return what each seat read before which turn, and the dialogue as it was understood."""
    seen, _ = env.reset(seed=0, options={"task_id": task_id})
    read, turns = [], []
    for number, turn in enumerate(dialogue):
        turns.append([])
        for seat, act in turn:
            action = saying(act.kind, act.argument)
            understood = action_parsing.parse_action(action)
            turns[-1].append((seat, understood if isinstance(understood, Act) else NOTHING))
            read.append((seat, number, seen))
            seen, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
    assert (terminated or truncated, info["metrics"]["rated"]) == (True, 1.0)
    return [*read, (int(task_id[-1]), len(turns), seen)], turns


def test_one_silence_of_the_second_person_ends_the_packages_dialogue(small, peer):
    """What `masked_turns_count` is for: by our own count, the same dialogue goes on."""
    silent = [((0, Act(Kind.SPEAK, "Hello.")),), ((1, NOTHING),)]
    shown = small.play(peer, "c0", silent, Rules())
    assert [turn["terminated"] for turn in shown["turns"]] == [False, True]
    assert Rules(masked_turns_count=True).ending(silent) is Ending.STALE
    assert Rules().ending(silent) is Ending.OPEN


def test_what_the_package_hides_from_its_judge_is_shown_to_ours(small, peer):
    said = Act(Kind.SPEAK, "I did nothing wrong, fool.")
    dialogue = [((0, said),), ((1, Act(Kind.LEAVE)),)]
    encounter = small.encounter("c0")
    shown = small.play(peer, "c0", dialogue, Rules())["judge_prompt"].partition(",\nBased on")[0]
    hidden = f"\n{encounter.people[0].name} {said.describe()}"
    assert hidden in render.judge_history(encounter, dialogue)
    assert shown == render.judge_history(encounter, dialogue).replace(hidden, "")


def test_markup_is_read_as_the_package_reads_it(peer):
    draw = random.Random(0)
    texts = ["".join(draw.choices(PIECES, k=draw.randint(1, 9))) for _ in range(3000)]
    for text, shown in zip(texts, peer(texts=texts), strict=True):
        assert [visible_text(text, viewer) for viewer in (0, 1, None)] == shown, text


@pytest.mark.data
def test_markup_of_the_benchmark(benchmark, peer):
    scenarios = {benchmark.encounter(name).scenario for name in benchmark.combinations}
    texts = sorted({text for s in scenarios for text in (s.text, *s.goals)})
    for text, shown in zip(texts, peer(texts=texts), strict=True):
        assert [visible_text(text, viewer) for viewer in (0, 1, None)] == shown, text
    assert any("&" in text for text in texts)
