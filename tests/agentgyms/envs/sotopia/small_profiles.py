"""A small world of our own in the form of SOTOPIA's database, for tests without its profiles."""

import copy
import json

from agentgyms.envs.sotopia.official.encounters import scenario_digest
from agentgyms.envs.sotopia.official.files import COMBINATIONS, PEOPLE, RELATIONSHIPS, SCENARIOS

EASY, HARD, PI = "small-easy", "small-hard", "small-pi"
DIGESTS = {
    split: frozenset(map(scenario_digest, ids))
    for split, ids in {"all": (EASY, HARD), "hard": (HARD,), "pi": (PI,)}.items()
}
"""The splits of the small world, as the fixture `small_splits` puts them for the benchmark's."""


def person(key, first, age=30, **fields):
    return {
        "pk": key, "first_name": first, "last_name": "Ørsted", "age": age, "occupation": "Baker",
        "gender": "Woman", "gender_pronoun": "She/her", "public_info": f"{first} swims.",
        "personality_and_values": f"{first} is calm.", "secret": f"{first} cannot bake.",
        "moral_values": ["Care", " Fairness"], "mbti": "INFJ", **fields,
    }  # fmt: skip


def scenario(key, source, **fields):
    return {
        "pk": key, "codename": "bread", "source": source, "scenario": "Two bakers & one oven.",
        "agent_goals": ["Bake first (<extra_info>you are late</extra_info>)", "Bake first too"],
        "relationship": 3, "age_constraint": "[(18, 70), (18, 70)]",
        "occupation_constraint": "nan", "agent_constraint": "none", **fields,
    }  # fmt: skip


def small_tables():
    """Return lists of rows by the names of the files that hold them."""
    return {
        PEOPLE.file: [person(f"p{n}", f"Ann{n}", age=20 + 10 * n) for n in range(4)],
        SCENARIOS.file: [scenario(EASY, "hand-craft"), scenario(HARD, "normbank", relationship=0)],
        RELATIONSHIPS.file: [
            {"pk": f"r{n}", "agent_1_id": "p0", "agent_2_id": f"p{n}", "relationship": 3,
             "background_story": "They met."} for n in (1, 2, 3)
        ],
        COMBINATIONS.file: [
            {"pk": "c0", "env_id": EASY, "agent_ids": ["p0", "p1"]},
            {"pk": "c1", "env_id": HARD, "agent_ids": ["p2", "p0"]},
        ],
    }  # fmt: skip


def write_json(tables, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for file, rows in tables.items():
        (folder / file).write_text(json.dumps(rows), encoding="utf-8")
    return folder


def write_space(tables, folder):
    """Write them as sotopia-space does: JSON lines, names of its own, numbers as texts."""
    names = {
        PEOPLE.file: ("agent_profiles", {"pk": "agent_id"}),
        SCENARIOS.file: ("environment_profiles", {"pk": "env_id"}),
        RELATIONSHIPS.file: (
            "relationship_profiles",
            {"pk": "relationship_id", "agent_1_id": "agent1_id", "agent_2_id": "agent2_id"},
        ),
        COMBINATIONS.file: ("env_agent_combo_storages", {"pk": "combo_id"}),
    }
    (folder / "profiles").mkdir(parents=True)
    for file, rows in tables.items():
        name, renamed = names[file]
        lines = []
        for row in copy.deepcopy(rows):
            if "relationship" in row:
                row["relationship"] = str(row["relationship"])
            lines.append(json.dumps({renamed.get(field, field): row[field] for field in row}))
        path = folder / "profiles" / f"{name}.jsonl"
        path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return folder


def write_store(tables, folder):
    """Write them as the package's local store does: a folder of each class, a file of each row."""
    classes = {
        PEOPLE.file: "AgentProfile",
        SCENARIOS.file: "EnvironmentProfile",
        RELATIONSHIPS.file: "RelationshipProfile",
        COMBINATIONS.file: "EnvAgentComboStorage",
    }
    for file, rows in tables.items():
        for row in rows:
            path = folder / classes[file] / f"{row['pk']}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(row), encoding="utf-8")
    return folder
