"""Scenarios of the planner, alone or with the rolodex."""

from __future__ import annotations

from collections import Counter

from agentgyms.envs.appworld.mini import vocabulary
from agentgyms.envs.appworld.mini.background import day_after
from agentgyms.envs.appworld.mini.people import CIRCLES
from agentgyms.envs.appworld.mini.records import Event, Todo
from agentgyms.envs.appworld.mini.solution_blocks import begin, contacts_who_are, finish, pages
from agentgyms.envs.appworld.mini.template import Change, Draw, Plan, plan, quoted, template


@template(difficulty=1)
def open_todos(draw: Draw) -> Plan:
    """Count the to-dos of a list that are not done."""
    scene, list_name = draw.scene, draw.choose("list", vocabulary.TARGET_LISTS)
    todos = _todos(draw, list_name)
    instruction = draw.wording(
        "How many to-dos of my Planner list '{list_name}' are not done yet?",
        "How much is left to do on the list '{list_name}' in my Planner? Count the open to-dos.",
    )
    scene.todo(scene.residents[1], "clean up", list_name)
    return plan(
        instruction.format(list_name=list_name),
        [
            *begin(planner=""),
            "todos = apis.planner.show_todos("
            f"access_token=token, list_name={quoted(list_name)}, done=False, page_limit=20)\n"
            "print(todos)",
            finish("len(todos)"),
        ],
        answer=sum(not todo.done for todo in todos),
    )


@template(difficulty=1)
def cancel_event(draw: Draw) -> Plan:
    """Delete an event that also takes place on other days."""
    scene, chance = draw.scene, draw.chance
    title = draw.choose("title", vocabulary.TARGET_EVENTS)
    days = sorted(chance.sample(range(2, 30), 4))
    events = [
        scene.event(scene.me, title, day_after(scene, day), chance.between(9, 18)) for day in days
    ]
    target = events[chance.between(1, 3)]
    day = target.starts_at[:10]
    scene.event(scene.me, f"{title} dinner", day, 19)
    instruction = draw.wording(
        "Delete the event '{title}' on {day} from my Planner.",
        "I cannot come to '{title}' on {day}. Delete it from my Planner.",
    )
    return plan(
        instruction.format(title=title, day=day),
        [
            *begin(planner=""),
            "events = apis.planner.show_events("
            f'access_token=token, from_date="{day}", to_date="{day}")\n'
            "print(events)",
            f'event_id = next(e["event_id"] for e in events if e["title"] == {quoted(title)})\n'
            "apis.planner.delete_event(access_token=token, event_id=event_id)",
            finish(),
        ],
        Change("The event of that day is deleted, no other.", Event, removed=[target.key]),
    )


@template(difficulty=2)
def finish_list(draw: Draw) -> Plan:
    """Complete all open to-dos of a list, which are more than the default page size."""
    list_name = draw.choose("list", vocabulary.TARGET_LISTS)
    todos = _todos(draw, list_name)
    instruction = draw.wording(
        "Everything on my Planner list '{list_name}' is done. Mark all its to-dos as done.",
        "Mark every to-do of the list '{list_name}' in my Planner as done.",
    )
    return plan(
        instruction.format(list_name=list_name),
        [
            *begin(planner="show_todos complete_todo"),
            "todos = apis.planner.show_todos("
            f"access_token=token, list_name={quoted(list_name)}, done=False, page_limit=20)\n"
            "print(todos)",
            "for todo in todos:\n"
            "    apis.planner.complete_todo("
            'access_token=token, todo_id=todo["todo_id"])',
            finish(),
        ],
        Change(
            "All to-dos of the list are done, and no other changed.",
            Todo,
            updated={todo.key: {"done": True} for todo in todos if not todo.done},
        ),
    )


@template(difficulty=2)
def busiest_day(draw: Draw) -> Plan:
    """Find the day of a span on which the most events start."""
    scene, chance = draw.scene, draw.chance
    start = draw.choose("start", range(30, 60))
    first, last = day_after(scene, start), day_after(scene, start + 9)
    days = chance.sample(range(start, start + 10), 6)
    for day, count in zip((*days, start - 1, start + 10), (5, 4, 4, 3, 3, 2, 6, 6), strict=True):
        for hour in chance.sample(range(8, 21), count):
            scene.event(
                scene.me, chance.pick(vocabulary.TARGET_EVENTS), day_after(scene, day), hour
            )
    instruction = draw.wording(
        "On which day from {first} to {last} do I have the most events in my Planner? Answer as "
        "YYYY-MM-DD.",
        "Look at my Planner from {first} to {last}, both included: which day has the most events? "
        "Answer as YYYY-MM-DD.",
    )
    counts = Counter(
        event.starts_at[:10] for event in scene.mine(Event) if first <= event.starts_at[:10] <= last
    )
    return plan(
        instruction.format(first=first, last=last),
        [
            *begin(planner="show_events"),
            pages(
                "events",
                "apis.planner.show_events("
                f'access_token=token, from_date="{first}", to_date="{last}"',
            )
            + "\nprint(len(events), events[0])",
            'days = [e["starts_at"][:10] for e in events]\n'
            "best = max(set(days), key=days.count)\nprint(best, days.count(best))",
            finish("best"),
        ],
        answer=counts.most_common(1)[0][0],
    )


@template(difficulty=3)
def birthday_events(draw: Draw) -> Plan:
    """Put the birthdays of the contacts of a relation into next year's calendar."""
    scene, relation = draw.scene, draw.choose("relation", CIRCLES)
    year = scene.now.year + 1
    hour = draw.chance.between(15, 19)
    instruction = draw.wording(
        "Put the birthdays that my {relation}s from Rolodex have in {year} into my Planner: one "
        "event each, called 'Birthday of' and the full name, from {hour}:00 to {end}:00.",
        "For each of my {relation}s in Rolodex, create an event in Planner on their birthday in "
        "{year}, from {hour}:00 to {end}:00, with the title 'Birthday of' and their full name.",
    )
    return plan(
        instruction.format(relation=relation, year=year, hour=hour, end=hour + 2),
        [
            *begin(rolodex="search_contacts", planner="create_event"),
            contacts_who_are(relation) + "print(contacts)",
            "for contact in contacts:\n"
            f'    day = "{year}" + contact["birthday"][4:]\n'
            "    apis.planner.create_event(access_token=planner_token, "
            'title="Birthday of " + contact["name"], '
            f'starts_at=day + "T{hour}:00:00", ends_at=day + "T{hour + 2}:00:00")',
            finish(),
        ],
        Change(
            "Each of them has an event on the right day and at the right time, nobody else.",
            Event,
            added=[
                {
                    "account_id": scene.account("planner", scene.me),
                    "title": f"Birthday of {person.name}",
                    "starts_at": f"{year}{person.birthday[4:]}T{hour}:00:00",
                    "ends_at": f"{year}{person.birthday[4:]}T{hour + 2}:00:00",
                }
                for person in scene.cast.related(relation)
            ],
        ),
    )


def _todos(draw: Draw, list_name: str) -> list[Todo]:
    """Add to-dos to a list of the supervisor's; 6 to 18 are open."""
    scene, chance = draw.scene, draw.chance
    titles = chance.sample(vocabulary.TODOS, chance.between(9, 21))
    return [
        scene.todo(scene.me, title, list_name, done=number < 3)
        for number, title in enumerate(titles)
    ]
