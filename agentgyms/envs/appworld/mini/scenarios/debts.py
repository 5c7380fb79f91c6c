"""Scenarios that request money in the purse, with notes and contacts."""

from __future__ import annotations

from agentgyms.envs.appworld.mini import vocabulary
from agentgyms.envs.appworld.mini.people import CIRCLES, Person
from agentgyms.envs.appworld.mini.records import Note, Request
from agentgyms.envs.appworld.mini.solution_blocks import (
    begin,
    contacts_who_are,
    finish,
    pages,
    show_note_titled,
)
from agentgyms.envs.appworld.mini.template import (
    Change,
    Draw,
    Plan,
    dollars,
    plan,
    quoted,
    template,
)


@template(difficulty=3)
def split_bill(draw: Draw) -> Plan:
    """Request from the contacts of a relation their shares of a bill in a note."""
    scene, chance = draw.scene, draw.chance
    relation = draw.choose("relation", CIRCLES)
    occasion = draw.choose("occasion", vocabulary.OCCASIONS)
    title = draw.choose("title", vocabulary.TARGET_TITLES)
    sharers = scene.cast.related(relation)
    share = chance.between(405, 4_995)
    total = share * (len(sharers) + 1)
    scene.note(scene.me, title, f"For: {occasion}\nTotal: {dollars(total)}")
    scene.note(scene.me, f"{title} (draft)", f"For: {occasion}\nTotal: {dollars(total + 600)}")
    instruction = draw.wording(
        "I paid for the {occasion}; the total is in my note '{title}'. Split it evenly between me "
        "and my {relation}s, who are in my Rolodex, and request each one's share in Purse.",
        "My note '{title}' has what the {occasion} cost. My {relation}s (see Rolodex) and I share "
        "it equally and I paid it all: send each of them a request for their part in Purse.",
    )
    return plan(
        instruction.format(occasion=occasion, title=title, relation=relation),
        [
            *begin(
                notebook="search_notes show_note", rolodex="search_contacts", purse="create_request"
            ),
            show_note_titled(title),
            contacts_who_are(relation) + "print(contacts)",
            'total = float(note["content"].split("Total: ")[1])\n'
            "share = round(total / (len(contacts) + 1), 2)\n"
            "for contact in contacts:\n"
            "    apis.purse.create_request(access_token=purse_token, "
            f'payer_email=contact["email"], amount=share, note={quoted(occasion)})',
            finish(),
        ],
        Change(
            "Each of them is asked for one equal share, nobody else for anything.",
            Request,
            added=[
                {
                    "requester_id": scene.account("purse", scene.me),
                    "payer_id": scene.account("purse", person),
                    "cents": share,
                    "status": "pending",
                }
                for person in sharers
            ],
        ),
    )


@template(difficulty=3)
def collect_debts(draw: Draw) -> Plan:
    """Request the debts in the notes with a tag, and delete the notes."""
    scene = draw.scene
    tag = f"{draw.choose('tag', vocabulary.DEBT_TAGS)}-{scene.now.year}"
    debts, notes = _noted_debts(draw, tag)
    instruction = draw.wording(
        "Each note with the tag '{tag}' says who owes me money and how much. Request each "
        "note's amount from its person in Purse (the emails are in Rolodex), delete these notes, "
        "and tell me the sum of it all in dollars.",
        "For every note tagged '{tag}', send a Purse request for its amount to the person in it, "
        "whose email Rolodex knows, and delete the note. How many dollars do they owe me in all?",
    )
    return plan(
        instruction.format(tag=tag),
        [
            *begin(
                notebook="search_notes show_note delete_note",
                rolodex="search_contacts",
                purse="create_request",
            ),
            "found = apis.notebook.search_notes("
            f"access_token=notebook_token, tag={quoted(tag)}, page_limit=20)\n"
            "notes = [apis.notebook.show_note("
            'access_token=notebook_token, note_id=n["note_id"]) for n in found]\n'
            'for note in notes:\n    print(note["title"], note["content"])',
            pages("contacts", "apis.rolodex.search_contacts(access_token=rolodex_token")
            + '\nemails = {c["name"]: c["email"] for c in contacts}\nprint(emails)',
            "total = 0\n"
            "for note in notes:\n"
            '    fields = dict(line.split(": ") for line in note["content"].splitlines())\n'
            '    amount = float(fields["Amount"])\n'
            "    apis.purse.create_request(access_token=purse_token, "
            'payer_email=emails[fields["Who"]], amount=amount, note=note["title"])\n'
            "    apis.notebook.delete_note("
            'access_token=notebook_token, note_id=note["note_id"])\n'
            "    total += amount\n"
            "print(total)",
            finish("round(total, 2)"),
        ],
        Change(
            "Each amount is requested from the person who owes it, and nothing else is.",
            Request,
            added=[
                {
                    "requester_id": scene.account("purse", scene.me),
                    "payer_id": scene.account("purse", person),
                    "cents": cents,
                }
                for person, cents in debts
            ],
        ),
        Change(
            "The notes with the tag are deleted, no others.",
            Note,
            removed=[note.key for note in notes],
        ),
        answer=sum(cents for _, cents in debts) / 100,
    )


def _noted_debts(draw: Draw, tag: str) -> tuple[list[tuple[Person, int]], list[Note]]:
    """Write notes of debts, and of a settled one; return who owes how many cents, and the notes."""
    scene, chance = draw.scene, draw.chance
    people = chance.sample(scene.cast.contacts, chance.between(3, 4))
    sums = chance.sample(range(605, 9_000, 95), len(people) + 3)
    debts = list(zip((*people, people[0]), sums, strict=False))
    notes = [
        scene.note(
            scene.me,
            f"{chance.pick(vocabulary.OCCASIONS)} ({number})",
            f"Who: {person.name}\nAmount: {dollars(cents)}",
            [tag],
        )
        for number, (person, cents) in enumerate(debts, start=1)
    ]
    scene.note(scene.me, "Settled", f"Who: {people[1].name}\nAmount: {dollars(sums[-1])}", ["done"])
    return debts, notes
