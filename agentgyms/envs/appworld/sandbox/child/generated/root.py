"""Writes the generated world as a data root of AppWorld: databases, API docs, tasks, truth."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .money import add_payments
from .music import add_catalogue, add_listening
from .papers import add_files, add_mail
from .people import ACCOUNTS, NOW, Person, add_people, make_people
from .records import Records
from .scenarios import SCENARIOS
from .tasks import Scenario, Setting, Task
from .writing import add_writing

SPLITS = ("train", "dev", "test_normal", "test_challenge")
TASKS_PER_SCENARIO = 3


def plan() -> tuple[Records, list[Person]]:
    """Return the records of the world, the same at every call, and its people."""
    records, people = Records(), make_people()
    add_people(records, people)
    add_catalogue(records)
    for person in people:
        add_listening(records, person)
        add_writing(records, person, people)
        add_payments(records, person)
        add_files(records, person)
        add_mail(records, person)
    return records, people


def plan_tasks() -> Iterator[tuple[str, Scenario, Person, Task]]:
    """Yield each task's id, scenario, who asks, and the task, in the data sets' order."""
    records, people = plan()
    for number, scenario in enumerate(SCENARIOS):
        for part in range(TASKS_PER_SCENARIO):
            task_id = f"{scenario.name}_{part + 1}"
            person = people[(number + 4 * part) % len(people)]
            setting = Setting(records, people, person, scenario.name, part)
            yield task_id, scenario, person, scenario.make(setting)


def write_root(root: Path, version: str) -> None:
    """Write all under `root/data`; the folder must not exist. Only once in a process."""
    # AppWorld reads its root when it is imported and keeps state in the process.
    import appworld
    from appworld.apps.api_lib import set_local_date_and_time, unset_local_date_and_time

    appworld.update_root(str(root))
    base = root / "data" / "base_dbs"
    base.mkdir(parents=True)
    clock = set_local_date_and_time(NOW)
    try:
        _write_base(root, base)
        _write_tasks(root, base)
    finally:
        unset_local_date_and_time(clock)
    (root / "data" / "version.txt").write_text(version)


def _write_base(root: Path, base: Path) -> None:
    from appworld.apps import get_all_apps
    from appworld.collections.models import ModelCollection

    # In memory first: a commit to disk of each record takes longer than the record.
    with _models(ModelCollection, ":memory:base", ":memory:base", get_all_apps()) as models:
        models.api_docs.ApiDoc.save_all([models.api_docs.ApiDoc(**doc) for doc in _docs(root)])
        for name, rows in plan()[0].models():
            app, _, model = name.partition(".")
            _save(models[app][model], rows)
        models.save(db_home_path=str(base), format="full", delete_if_exists=True)


def _docs(root: Path) -> Iterator[dict[str, Any]]:
    from appworld.apps import get_all_apps
    from appworld.collections.api_docs import ApiDocCollection

    docs = ApiDocCollection.build(
        load_apps=tuple(get_all_apps(skip_admin=True)), include_response_schemas=True
    )
    folder = root / "data" / "api_docs" / "standard"
    folder.mkdir(parents=True)
    for app, by_name in docs.items():
        marked = {name: {**doc, "canary_string": ""} for name, doc in by_name.items()}
        (folder / f"{app}.json").write_text(json.dumps(marked))
        for doc in by_name.values():
            fields = dict(doc)
            fields["app_name_"] = fields.pop("app_name")
            yield fields


def _save(model: Any, rows: list[dict[str, Any]]) -> None:
    records = [model(**{name: v for name, v in row.items() if name != "id"}) for row in rows]
    model.save_all(records)
    ids = [record.id for record in records]
    if ids != [row["id"] for row in rows]:
        raise RuntimeError(
            f"{model.__name__} has the ids {ids}, expected 1 to {len(rows)} in order"
        )


@contextmanager
def _models(kind: Any, to: str, source: str, apps: list[str]) -> Iterator[Any]:
    models = kind.load(
        to_db_home_path=to, from_db_home_path=source, load_apps=apps, create_db=to == source
    )
    try:
        yield models
    finally:
        models.close()


def _write_tasks(root: Path, base: Path) -> None:
    from appworld.apps import get_all_apps
    from appworld.collections.models import ModelCollection

    splits: dict[str, list[str]] = {split: [] for split in SPLITS}
    apps = get_all_apps()
    for task_id, scenario, person, task in plan_tasks():
        splits[scenario.split].append(task_id)
        folder = root / "data" / "tasks" / task_id
        folder.mkdir(parents=True)
        with _models(ModelCollection, f":memory:{task_id}", str(base), apps) as models:
            _add_supervisor(models.supervisor, person, task)
            models.save(
                db_home_path=str(folder / "dbs"),
                format="changes",
                app_names=list(apps),
                delete_if_exists=True,
                save_model_hashes=True,
            )
        _write_specs(folder, person, task)
        _write_truth(folder / "ground_truth", scenario, task)
    datasets = root / "data" / "datasets"
    datasets.mkdir()
    for split, task_ids in splits.items():
        (datasets / f"{split}.txt").write_text("".join(f"{one}\n" for one in task_ids))


def _add_supervisor(models: Any, person: Person, task: Task) -> None:
    supervisor = models.Supervisor(
        first_name=person.first_name,
        last_name=person.last_name,
        email=person.email,
        phone_number=person.phone_number,
        birthday=person.birthday,
        sex=person.sex,
    )
    supervisor.save()
    for account in ACCOUNTS:
        models.AccountPassword(
            supervisor_id=supervisor.id, account_name=account, password=person.password(account)
        ).save()
    models.Task(supervisor_id=supervisor.id, instruction=task.instruction).save()


def _write_specs(folder: Path, person: Person, task: Task) -> None:
    from appworld.common.constants import DB_VERSION

    specs = {
        "instruction": task.instruction,
        "supervisor": {
            "first_name": person.first_name,
            "last_name": person.last_name,
            "email": person.email,
            "phone_number": person.phone_number,
        },
        "datetime": NOW.isoformat(),
        "db_version": DB_VERSION,
        "canary_string": "",
    }
    (folder / "specs.json").write_text(json.dumps(specs))


def _write_truth(folder: Path, scenario: Scenario, task: Task) -> None:
    folder.mkdir()
    files: dict[str, Any] = {
        "metadata": {
            "difficulty": scenario.difficulty,
            "mode": "minimal",
            "num_apps": len(scenario.apps),
            "num_apis": len(set(task.calls)),
            "num_api_calls": len(task.calls),
            "num_solution_code_lines": sum(len(block.splitlines()) for block in task.blocks),
        },
        "public_data": {},
        "private_data": {"requirements": list(task.requirements)},
        "answer": task.answer,
        "test_data": [
            {"requirement": one["requirement"], "label": _label(one)} for one in task.requirements
        ],
        "solution_blocks": list(task.blocks),
    }
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    shutil.copyfile(Path(__file__).with_name("evaluation.py"), folder / "evaluation.py")


def _label(requirement: dict[str, Any]) -> str:
    return "no_op_pass" if requirement["kind"] == "scope" else "no_op_fail"
