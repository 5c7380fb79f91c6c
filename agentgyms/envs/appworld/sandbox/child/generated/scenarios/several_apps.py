"""Scenarios that need two or three apps, of difficulty 2 and 3."""

from __future__ import annotations

from ..people import NOW, Person
from ..tasks import (
    CONTACTS,
    PROJECTS,
    Requirement,
    Setting,
    Task,
    answered,
    done,
    fields,
    log_in,
    look_up,
    rows,
    scenario,
    scope,
)
from ..writing import ERRANDS, PROJECT_NAMES, read_shares

_NOTE = """\
notes = apis.simple_note.search_notes(query="{title}", access_token=simple_note_token)
note_id = [note["note_id"] for note in notes if note["title"] == "{title}"][0]
note = apis.simple_note.show_note(note_id=note_id, access_token=simple_note_token)
print(note["content"])"""

_SHARES = """\
shares = {}
for line in note["content"].splitlines():
    name, amount = line.split(": $")
    shares[name] = float(amount)"""

_EMAILS = f"""{CONTACTS}
emails = {{one["first_name"] + " " + one["last_name"]: one["email"] for one in contacts}}"""


def _by_name(setting: Setting) -> dict[str, Person]:
    return {one.name: one for one in setting.people}


def _balances(setting: Setting, moved: dict[int, float]) -> Requirement:
    accounts = {row["id"]: row["venmo_balance"] for row in setting.records.of("venmo.User")}
    values = {number: round(accounts[number] + amount, 2) for number, amount in moved.items()}
    text = "The Venmo balances are as after exactly those payments."
    return fields(text, "venmo.User", "venmo_balance", values, beside=["last_logged_in"])


@scenario("train", 3, ["phone", "venmo"])
def requests_approve(setting: Setting) -> Task:
    """Approve the pending requests of those in a relation."""
    relation = setting.choose(("roommate", "coworker", "friend"))
    wanted = {one.id for one in setting.related(relation)}
    pending = setting.records.of(
        "venmo.PaymentRequest", receiver_id=setting.person.id, denied_at=None
    )
    chosen = [row for row in pending if row["sender_id"] in wanted]
    moved: dict[int, float] = {setting.person.id: 0.0}
    for row in chosen:
        moved[row["sender_id"]] = moved.get(row["sender_id"], 0.0) + row["amount"]
        moved[setting.person.id] -= row["amount"]
    return Task(
        f"Approve all pending Venmo payment requests from my {relation}s, as my phone's contacts "
        "have them, and leave the others pending. Use my Venmo balance.",
        [
            fields(
                "Exactly the pending requests of these people are approved.",
                "venmo.PaymentRequest",
                "approved_at",
                {row["id"]: NOW.isoformat() for row in chosen},
            ),
            _balances(setting, moved),
            answered(False),
            scope(
                updated=["venmo.PaymentRequest", "venmo.User"],
                added=["venmo.Transaction", "venmo.Notification"],
            ),
        ],
        [
            look_up("venmo", "show_received_payment_requests"),
            log_in("phone", "venmo"),
            f"{CONTACTS}\n"
            f'emails = [one["email"] for one in contacts if "{relation}" in one["relationships"]]',
            "requests = pages(apis.venmo.show_received_payment_requests, "
            'status="pending", access_token=venmo_token)',
            "for one in requests:\n"
            '    if one["sender"]["email"] in emails:\n'
            "        apis.venmo.approve_payment_request("
            'payment_request_id=one["payment_request_id"], '
            "access_token=venmo_token)",
            done(),
        ],
    )


@scenario("train", 3, ["simple_note", "phone", "venmo"])
def dinner_requests(setting: Setting) -> Task:
    """Ask everyone in a dinner's note for their share."""
    notes = [n for n in setting.own("simple_note.Note") if n["title"].startswith("Dinner at")]
    note = setting.choose(notes)
    title, people = note["title"], _by_name(setting)
    word = setting.choose(("Dinner", "Your share", "Last night"))
    expected = [
        {
            "sender_id": setting.person.id,
            "receiver_id": people[name].id,
            "amount": amount,
            "description": word,
        }
        for name, amount in read_shares(note["content"]).items()
    ]
    return Task(
        f'My SimpleNote note "{title}" says what everyone owes me for it. Request the money from '
        f'each of them on Venmo, with the description "{word}". You find their email addresses in '
        "my phone's contacts.",
        [
            rows(
                "Exactly one request to each person of the note, with the amount, is new.",
                "venmo.PaymentRequest",
                "added",
                expected,
            ),
            answered(False),
            scope(added=["venmo.PaymentRequest", "venmo.Notification"]),
        ],
        [
            look_up("venmo", "create_payment_request"),
            log_in("simple_note", "phone", "venmo"),
            _NOTE.format(title=title),
            f"{_SHARES}\n{_EMAILS}",
            "for name, amount in shares.items():\n"
            "    apis.venmo.create_payment_request(user_email=emails[name], amount=amount, "
            f'description="{word}", access_token=venmo_token)',
            done(),
        ],
    )


@scenario("dev", 2, ["phone"])
def text_all(setting: Setting) -> Task:
    """Send a text message to those in a relation."""
    relation = setting.choose(("roommate", "coworker", "friend"))
    message = f"Can you {setting.choose(ERRANDS)} for me?"
    expected = [
        {"sender_id": setting.person.id, "receiver_id": one.id, "message": message}
        for one in setting.related(relation)
    ]
    return Task(
        f'Send the text message "{message}" by phone to each of my {relation}s, '
        "as my contacts have them.",
        [
            rows(
                "Exactly one message to each of these people is sent.",
                "phone.GlobalTextMessage",
                "added",
                expected,
            ),
            answered(False),
            scope(added=["phone.GlobalTextMessage", "phone.UserTextMessage"]),
        ],
        [
            look_up("phone", "send_text_message"),
            log_in("phone"),
            f"{CONTACTS}\n"
            f'chosen = [one for one in contacts if "{relation}" in one["relationships"]]',
            "for one in chosen:\n"
            '    apis.phone.send_text_message(phone_number=one["phone_number"], '
            f'message="{message}", access_token=phone_token)',
            done(),
        ],
    )


@scenario("dev", 3, ["simple_note", "todoist"])
def errands_to_tasks(setting: Setting) -> Task:
    """Make a task of each line of a note."""
    title = setting.choose(("Saturday errands", "Sunday errands"))
    (note,) = setting.own("simple_note.Note", title=title)
    name = setting.choose(PROJECT_NAMES)
    (project,) = setting.own("todoist.Project", name=name)
    expected = [
        {"project_id": project["id"], "title": line.removeprefix("- "), "priority": "high"}
        for line in note["content"].splitlines()
    ]
    return Task(
        f'Make a task of high priority in my Todoist project "{name}" of each line of my '
        f'SimpleNote note "{title}", without the dash in front.',
        [
            rows(
                "Exactly one task of each line is new in the project.",
                "todoist.Task",
                "added",
                expected,
            ),
            answered(False),
            scope(added=["todoist.Task"]),
        ],
        [
            look_up("todoist", "create_task"),
            log_in("simple_note", "todoist"),
            _NOTE.format(title=title),
            f'{PROJECTS}\nproject = [one for one in projects if one["name"] == "{name}"][0]',
            'for line in note["content"].splitlines():\n'
            '    apis.todoist.create_task(project_id=project["project_id"], title=line[2:], '
            'priority="high", access_token=todoist_token)',
            done(),
        ],
    )


@scenario("test_normal", 3, ["simple_note", "phone", "venmo"])
def debts_pay(setting: Setting) -> Task:
    """Pay back what a note lists, to those owed less than an amount."""
    (note,) = setting.own("simple_note.Note", title="Money I owe")
    people, shares = _by_name(setting), read_shares(note["content"])
    limit = sorted(shares.values())[-1]
    word = setting.choose(("Thank you", "Paying you back", "As promised"))
    paid = {name: amount for name, amount in shares.items() if amount < limit}
    expected = [
        {
            "sender_id": setting.person.id,
            "receiver_id": people[name].id,
            "amount": amount,
            "description": word,
        }
        for name, amount in paid.items()
    ]
    moved = {people[name].id: amount for name, amount in paid.items()}
    moved[setting.person.id] = -sum(paid.values())
    return Task(
        'Pay back my debts by Venmo: my SimpleNote note "Money I owe" lists them. Send the money '
        f"to everyone to whom I owe less than ${limit:.2f}, from my Venmo balance, with the "
        f'description "{word}". Their email addresses are in my phone\'s contacts.',
        [
            rows(
                "Exactly one payment to each person owed less, with the amount, is made.",
                "venmo.Transaction",
                "added",
                expected,
            ),
            _balances(setting, moved),
            answered(False),
            scope(updated=["venmo.User"], added=["venmo.Transaction", "venmo.Notification"]),
        ],
        [
            look_up("venmo", "create_transaction"),
            log_in("simple_note", "phone", "venmo"),
            _NOTE.format(title="Money I owe"),
            f"{_SHARES}\n{_EMAILS}",
            "for name, amount in shares.items():\n"
            f"    if amount < {limit:.2f}:\n"
            "        apis.venmo.create_transaction(receiver_email=emails[name], amount=amount, "
            f'description="{word}", access_token=venmo_token)',
            done(),
        ],
    )
