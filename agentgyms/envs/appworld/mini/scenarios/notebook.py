"""Scenarios of the notebook, alone or with the purse."""

from __future__ import annotations

from agentgyms.envs.appworld.mini import vocabulary
from agentgyms.envs.appworld.mini.records import Note, Payment
from agentgyms.envs.appworld.mini.solution_blocks import begin, finish, show_docs, show_note_titled
from agentgyms.envs.appworld.mini.template import (
    Change,
    Draw,
    Plan,
    dollars,
    plan,
    quoted,
    template,
)


@template(difficulty=1)
def count_notes(draw: Draw) -> Plan:
    """Count the notes with a tag, which are more than the default page size."""
    scene, tag = draw.scene, draw.choose("tag", vocabulary.TAGS)
    for subject in draw.chance.sample(vocabulary.NOTE_SUBJECTS, draw.chance.between(6, 17)):
        scene.note(scene.me, f"{subject} again", draw.chance.pick(vocabulary.NOTE_LINES), [tag])
    scene.note(scene.me, f"About the {tag}", "No tag needed.", [])
    scene.note(scene.residents[1], f"More {tag}", "Mine.", [tag])
    instruction = draw.wording(
        "How many of my notes in Notebook have the tag '{tag}'?",
        "Count my notes that are tagged '{tag}'.",
        "I tag my notes. How many have the tag '{tag}'?",
    )
    return plan(
        instruction.format(tag=tag),
        [
            *begin(notebook=""),
            f"notes = apis.notebook.search_notes(access_token=token, tag={quoted(tag)}, "
            "page_limit=20)\nprint(len(notes))",
            finish("len(notes)"),
        ],
        answer=sum(tag in note.tags for note in scene.mine(Note)),
    )


@template(difficulty=1)
def delete_note(draw: Draw) -> Plan:
    """Delete a note among others with similar titles."""
    scene, title = draw.scene, draw.choose("title", vocabulary.TARGET_TITLES)
    copy = scene.note(scene.me, f"{title} (copy)", "Keep.")
    target = scene.note(scene.me, title, draw.chance.pick(vocabulary.NOTE_LINES), after=copy)
    scene.note(scene.me, f"{title} 2", "Keep.", after=target)
    scene.note(scene.residents[1], title, "Mine.")
    instruction = draw.wording(
        "Delete my note with the title '{title}'.",
        "I no longer need the note '{title}', please delete it from Notebook.",
    )
    return plan(
        instruction.format(title=title),
        [
            *begin(notebook=""),
            f"notes = apis.notebook.search_notes(access_token=token, query={quoted(title)}, "
            "page_limit=20)\n"
            "print(notes)",
            f'note_id = next(n["note_id"] for n in notes if n["title"] == {quoted(title)})\n'
            "apis.notebook.delete_note(access_token=token, note_id=note_id)",
            finish(),
        ],
        Change(
            "The note with exactly that title is deleted, no other.", Note, removed=[target.key]
        ),
    )


@template(difficulty=2)
def retag_notes(draw: Draw) -> Plan:
    """Add a tag to all notes with another one, keeping the tags they have."""
    scene, chance = draw.scene, draw.chance
    old = draw.choose("old", vocabulary.TAGS)
    new = f"{draw.choose('new', vocabulary.TAGS)}-{scene.now.year}"
    for number, subject in enumerate(
        chance.sample(vocabulary.NOTE_SUBJECTS, chance.between(7, 13))
    ):
        more = [new] if number % 4 == 3 else [chance.pick(("later", "draft", "shared"))]
        scene.note(
            scene.me, f"{subject} once more", chance.pick(vocabulary.NOTE_LINES), [old, *more]
        )
    scene.note(scene.me, f"On {old}", f"Everything about {old}.", ["later"])
    instruction = draw.wording(
        "Add the tag '{new}' to all my notes that have the tag '{old}', and leave their other "
        "tags as they are.",
        "All my notes tagged '{old}' should get the tag '{new}' too, beside the tags they have.",
    )
    return plan(
        instruction.format(old=old, new=new),
        [
            *begin(notebook="search_notes update_note"),
            f"notes = apis.notebook.search_notes(access_token=token, tag={quoted(old)}, "
            "page_limit=20)\nprint(notes)",
            "for note in notes:\n"
            f'    if {quoted(new)} not in note["tags"]:\n'
            f'        tags = note["tags"] + [{quoted(new)}]\n'
            "        apis.notebook.update_note("
            'access_token=token, note_id=note["note_id"], tags=tags)',
            finish(),
        ],
        Change(
            "Each note with the old tag has the new tag beside its other ones.",
            Note,
            updated={
                note.key: {"tags": (*note.tags, new)}
                for note in scene.mine(Note)
                if old in note.tags and new not in note.tags
            },
        ),
    )


@template(difficulty=2)
def pay_back(draw: Draw) -> Plan:
    """Pay the amount in a note to the person in it, who has a namesake."""
    scene, chance = draw.scene, draw.chance
    title = draw.choose("title", vocabulary.TARGET_TITLES)
    occasion = draw.choose("occasion", vocabulary.OCCASIONS)
    namesakes = scene.cast.namesakes
    known = [person for person in scene.cast.contacts if person.first_name in namesakes]
    # If possible, the namesake comes first in the alphabet: a search by first name finds it first.
    second = [person for person in known if namesakes[person.first_name].name < person.name]
    creditor = chance.pick(second or known)
    paid = chance.pick([person for person in known if person is not creditor])
    cents = chance.between(805, 19_995)
    decoy = f"Owed to: {paid.name}\nAmount: {dollars(cents + 250)}"
    other = scene.note(scene.me, f"{title} (paid)", decoy)
    content = f"Owed to: {creditor.name}\nAmount: {dollars(cents)}"
    scene.note(scene.me, title, content, after=other)
    instruction = draw.wording(
        "My note '{title}' says to whom I owe money and how much. Send it in Purse, with "
        "'{occasion}' as the payment's note.",
        "My note '{title}' speaks of a debt. Pay it in Purse, and write '{occasion}' in the "
        "payment's note.",
    )
    return plan(
        instruction.format(title=title, occasion=occasion),
        [
            show_docs("purse"),
            *begin(notebook="search_notes show_note", purse="search_people send_payment"),
            show_note_titled(title),
            'owed = dict(line.split(": ") for line in note["content"].splitlines())\n'
            "people = apis.purse.search_people("
            'access_token=purse_token, query=owed["Owed to"])\n'
            "print(people)",
            'email = next(p["email"] for p in people if p["name"] == owed["Owed to"])\n'
            "apis.purse.send_payment(access_token=purse_token, receiver_email=email, "
            f'amount=float(owed["Amount"]), note={quoted(occasion)})',
            finish(),
        ],
        Change(
            "One payment is sent: of the note's amount, to the person in it, with the note asked.",
            Payment,
            added=[
                {
                    "sender_id": scene.account("purse", scene.me),
                    "receiver_id": scene.account("purse", creditor),
                    "cents": cents,
                    "note": occasion,
                }
            ],
        ),
    )
