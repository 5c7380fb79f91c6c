"""Scenarios in apps that no training task uses: files and mail."""

from __future__ import annotations

from ..papers import BILLS
from ..tasks import (
    CONTACTS,
    PAGES,
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

_INBOX = f"{PAGES}\nthreads = pages(apis.gmail.show_inbox_threads, access_token=gmail_token)"


@scenario("test_challenge", 1, ["file_system"])
def files_count(setting: Setting) -> Task:
    """Count the files of a type under a folder."""
    ending = setting.choose(("csv", "txt", "md"))
    files = setting.own("file_system.File")
    found = [
        row for row in files if "/documents/" in row["path"] and row["path"].endswith(f".{ending}")
    ]
    return Task(
        f'How many files that end in ".{ending}" are in ~/documents and the folders in it?',
        [answered(True), scope()],
        [
            look_up("file_system", "show_directory"),
            log_in("file_system"),
            'paths = apis.file_system.show_directory(directory_path="~/documents", '
            'entry_type="files", recursive=True, access_token=file_system_token)',
            f'found = [path for path in paths if path.endswith(".{ending}")]\nprint(found)',
            done("len(found)"),
        ],
        len(found),
    )


@scenario("test_challenge", 2, ["gmail"])
def mail_star(setting: Setting) -> Task:
    """Star the mail of one sender."""
    threads = _inbox(setting)
    sender = setting.people[setting.choose(sorted({sender for _, sender in threads})) - 1]
    chosen = {number: True for number, sent_by in threads if sent_by == sender.id}
    return Task(
        f"Star all mail in my Gmail inbox that {sender.name} sent me.",
        [
            fields(
                "Exactly the threads of this sender are starred.",
                "gmail.UserEmailThread",
                "starred",
                chosen,
            ),
            answered(False),
            scope(updated=["gmail.UserEmailThread"]),
        ],
        [
            look_up("gmail", "show_inbox_threads"),
            log_in("gmail"),
            _INBOX,
            "chosen = [one for one in threads if any("
            f'two["email"] == "{sender.email}" for two in one["participants"])]',
            "for one in chosen:\n"
            '    apis.gmail.mark_thread_starred(email_thread_id=one["email_thread_id"], '
            "access_token=gmail_token)",
            done(),
        ],
    )


@scenario("test_challenge", 3, ["gmail", "phone"])
def mail_archive(setting: Setting) -> Task:
    """Archive the read mail of those in a relation."""
    relation = setting.choose(("roommate", "coworker", "friend"))
    wanted = {one.id for one in setting.related(relation)}
    read = {row["id"] for row in setting.own("gmail.UserEmailThread", read=True)}
    chosen = {n: True for n, sender in _inbox(setting) if sender in wanted and n in read}
    return Task(
        f"Archive all mail in my Gmail inbox that is from one of my {relation}s and that I have "
        "read. My phone's contacts say who they are.",
        [
            fields(
                "Exactly the read threads of these people are archived.",
                "gmail.UserEmailThread",
                "archived",
                chosen,
            ),
            answered(False),
            scope(updated=["gmail.UserEmailThread"]),
        ],
        [
            look_up("gmail", "show_inbox_threads"),
            log_in("gmail", "phone"),
            f"{_INBOX}\ncontacts = pages(apis.phone.search_contacts, access_token=phone_token)\n"
            f'emails = [one["email"] for one in contacts if "{relation}" in one["relationships"]]',
            'chosen = [one for one in threads if one["read"] and any('
            'two["email"] in emails for two in one["participants"])]\nprint(len(chosen))',
            "for one in chosen:\n"
            '    apis.gmail.mark_thread_archived(email_thread_id=one["email_thread_id"], '
            "access_token=gmail_token)",
            done(),
        ],
    )


@scenario("test_challenge", 3, ["file_system", "phone", "venmo"])
def bills_split(setting: Setting) -> Task:
    """Ask the room-mates for their shares of a year's bills."""
    bill = setting.choose(BILLS)
    cents = sum(
        round(float(row["content"].split("$")[1]) * 100)
        for row in setting.own("file_system.File")
        if f"/{bill}-2022-" in row["path"]
    )
    mates = setting.related("roommate")
    share = round(cents / 100 / (len(mates) + 1), 2)
    word = f"{bill} 2022"
    expected = [
        {
            "sender_id": setting.person.id,
            "receiver_id": mate.id,
            "amount": share,
            "description": word,
        }
        for mate in mates
    ]
    return Task(
        f"I paid all our {bill} bills of 2022; they are files in ~/bills. Split the total equally "
        "between me and my roommates, and request each roommate's share (rounded to cents) on "
        f'Venmo, with the description "{word}". My phone\'s contacts say who my roommates are.',
        [
            rows(
                "Exactly one request to each roommate, with the share, is new.",
                "venmo.PaymentRequest",
                "added",
                expected,
            ),
            answered(False),
            scope(added=["venmo.PaymentRequest", "venmo.Notification"]),
        ],
        [
            look_up("file_system", "show_directory"),
            log_in("file_system", "phone", "venmo"),
            'paths = apis.file_system.show_directory(directory_path="~/bills", '
            f'substring="{bill}-2022-", access_token=file_system_token)\n'
            "texts = [apis.file_system.show_file(file_path=path, "
            'access_token=file_system_token)["content"] for path in paths]\nprint(texts[0])',
            'total = sum(float(text.split("$")[1]) for text in texts)\n'
            f"{CONTACTS}\n"
            'mates = [one for one in contacts if "roommate" in one["relationships"]]\n'
            "share = round(total / (len(mates) + 1), 2)",
            "for one in mates:\n"
            '    apis.venmo.create_payment_request(user_email=one["email"], amount=share, '
            f'description="{word}", access_token=venmo_token)',
            done(),
        ],
    )


@scenario("test_challenge", 2, ["file_system"])
def bill_highest(setting: Setting) -> Task:
    """Name the month of a kind of bill that cost the most."""
    bill = setting.choose(BILLS)
    files = [row for row in setting.own("file_system.File") if f"/{bill}-" in row["path"]]
    highest = max(files, key=lambda row: float(row["content"].split("$")[1]))
    return Task(
        f"In which month was my {bill} bill the highest, of all those in ~/bills? Answer in the "
        "form YYYY-MM.",
        [answered(True), scope()],
        [
            look_up("file_system", "show_directory"),
            log_in("file_system"),
            'paths = apis.file_system.show_directory(directory_path="~/bills", '
            f'substring="{bill}-", access_token=file_system_token)',
            "amounts = {}\n"
            "for path in paths:\n"
            "    file = apis.file_system.show_file("
            "file_path=path, access_token=file_system_token)\n"
            '    amounts[path] = float(file["content"].split("$")[1])\n'
            "highest = max(amounts, key=amounts.get)\nprint(highest)",
            done("highest[-11:-4]"),
        ],
        highest["path"][-11:-4],
    )


def _inbox(setting: Setting) -> list[tuple[int, int]]:
    # Ids of received threads, and of who sent them; each thread has one email.
    threads = setting.own("gmail.UserEmailThread", incoming=True)
    emails = (setting.records.one("gmail.Email", id=row["email_ids"][0]) for row in threads)
    return [(row["id"], email["sender_id"]) for row, email in zip(threads, emails, strict=True)]
