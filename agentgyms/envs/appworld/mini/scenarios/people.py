"""Scenarios about the people in the rolodex, alone or with the purse."""

from __future__ import annotations

from collections import Counter

from agentgyms.envs.appworld.mini import vocabulary
from agentgyms.envs.appworld.mini.background import month_start
from agentgyms.envs.appworld.mini.people import CIRCLES, draw_stranger
from agentgyms.envs.appworld.mini.records import Contact, Payment, Request
from agentgyms.envs.appworld.mini.solution_blocks import begin, contacts_who_are, finish, pages
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
def add_contact(draw: Draw) -> Plan:
    """Add a contact with all given details."""
    scene, relation = draw.scene, draw.choose("relation", CIRCLES)
    person = draw_stranger(draw.chance, scene.cast)
    instruction = draw.wording(
        "Add {name} to my Rolodex as a {relation}: email {email}, phone {phone}.",
        "I have a new {relation}, {name}. Add the contact to Rolodex with the email {email} and "
        "the phone number {phone}.",
    )
    return plan(
        instruction.format(
            name=person.name, relation=relation, email=person.email, phone=person.phone_number
        ),
        [
            *begin(rolodex="add_contact"),
            f"apis.rolodex.add_contact(access_token=token, name={quoted(person.name)}, "
            f'email="{person.email}", phone="{person.phone_number}", relation="{relation}")',
            finish(),
        ],
        Change(
            "The contact is added with name, email, phone and relation.",
            Contact,
            added=[
                {
                    "account_id": scene.account("rolodex", scene.me),
                    "name": person.name,
                    "email": person.email,
                    "phone": person.phone_number,
                    "relation": relation,
                }
            ],
        ),
    )


@template(difficulty=3)
def decline_requests(draw: Draw) -> Plan:
    """Decline larger requests of everybody but the contacts of a relation."""
    scene, chance = draw.scene, draw.chance
    relation = draw.choose("relation", CIRCLES)
    kept = scene.cast.related(relation)
    limit = draw.choose("limit", range(2_000, 6_000, 50))
    others = [person for person in scene.cast.others if person.relation != relation]
    asking = (*kept, *chance.sample(others, 9))
    for number, person in enumerate(asking):
        # Six to decline are more than a page has by default.
        few = len(kept) <= number < len(kept) + 3
        cents = chance.between(500, limit) if few else chance.between(limit + 5, 9_000)
        scene.request(person, scene.me, cents, chance.pick(vocabulary.OCCASIONS))
    scene.request(others[0], others[1], 7_500, "lunch")
    allowed = {scene.account("purse", person) for person in kept}
    instruction = draw.wording(
        "Decline all pending requests in Purse for more than {limit} dollars, except those from my "
        "{relation}s in Rolodex.",
        "Only my {relation}s (Rolodex says who they are) may ask me for more than {limit} dollars. "
        "Decline the pending Purse requests of everybody else for more, and leave all others "
        "pending.",
    )
    return plan(
        instruction.format(relation=relation, limit=dollars(limit)),
        [
            *begin(purse="show_requests decline_request", rolodex="search_contacts"),
            contacts_who_are(relation) + 'emails = [c["email"] for c in contacts]\nprint(emails)',
            pages("requests", "apis.purse.show_requests(access_token=purse_token")
            + "\nprint(len(requests), requests[0])",
            "for request in requests:\n"
            f'    if request["amount"] > {dollars(limit)} and '
            'request["requester"]["email"] not in emails:\n'
            "        apis.purse.decline_request("
            'access_token=purse_token, request_id=request["request_id"])',
            finish(),
        ],
        Change(
            "All larger requests of others are declined, and no other request changed.",
            Request,
            updated={
                request.key: {"status": "declined"}
                for request in scene.of(Request)
                if request.payer_id == scene.account("purse", scene.me)
                and request.status == "pending"
                and request.cents > limit
                and request.requester_id not in allowed
            },
        ),
    )


@template(difficulty=3)
def birthday_gifts(draw: Draw) -> Plan:
    """Send money to all contacts whose birthday is in a month."""
    scene = draw.scene
    contacts = scene.cast.contacts
    month = Counter(person.birthday[5:7] for person in contacts).most_common(1)[0][0]
    cents = draw.choose("cents", range(1_000, 4_000, 250))
    born = [person for person in contacts if person.birthday[5:7] == month]
    instruction = draw.wording(
        "Send {amount} dollars with Purse to everyone in my Rolodex whose birthday is in {month}, "
        "with the note 'Happy birthday'.",
        "Everybody in my Rolodex who was born in {month} shall get {amount} dollars from me in "
        "Purse, with the note 'Happy birthday'.",
    )
    return plan(
        instruction.format(amount=dollars(cents), month=vocabulary.MONTHS[int(month) - 1]),
        [
            *begin(rolodex="search_contacts", purse="send_payment"),
            pages("contacts", "apis.rolodex.search_contacts(access_token=rolodex_token")
            + "\nprint(contacts)",
            "for contact in contacts:\n"
            f'    if contact["birthday"] and contact["birthday"][5:7] == "{month}":\n'
            "        apis.purse.send_payment(access_token=purse_token, "
            f'receiver_email=contact["email"], amount={dollars(cents)}, note="Happy birthday")',
            finish(),
        ],
        Change(
            "Each of them gets the amount with the note, nobody else anything.",
            Payment,
            added=[
                {
                    "sender_id": scene.account("purse", scene.me),
                    "receiver_id": scene.account("purse", person),
                    "cents": cents,
                    "note": "Happy birthday",
                }
                for person in born
            ],
        ),
    )


@template(difficulty=3)
def top_receiver(draw: Draw) -> Plan:
    """Sum the payments since a day to the contact of a relation who received the most."""
    scene, chance = draw.scene, draw.chance
    relation = draw.choose("relation", CIRCLES)
    month = month_start(scene, draw.choose("months", (1, 2, 3)))[:7]
    since = f"{month}-{draw.choose('day', range(1, 29)):02}"
    circle = scene.cast.related(relation)
    others = [person for person in scene.cast.others if person.relation != relation]
    ranked = chance.sample(circle, len(circle))
    for rank, person in enumerate(ranked):
        for _ in range(3):
            cents = 4_000 + 500 * rank + chance.between(0, 99)
            scene.payment(scene.me, person, cents, chance.pick(vocabulary.OCCASIONS), _after(draw))
        early = f"{month_start(scene, 5)}T09:{rank:02}:00"
        scene.payment(scene.me, person, 30_000 - 6_000 * rank, "deposit", early)
        scene.payment(person, scene.me, 20_000 - 5_000 * rank, "loan", _after(draw))
    for person in chance.sample(others, 6):
        for _ in range(2):
            cents = chance.between(5_000, 30_000)
            scene.payment(scene.me, person, cents, chance.pick(vocabulary.OCCASIONS), _after(draw))
    sent: Counter[int] = Counter()
    accounts = {scene.account("purse", person) for person in circle}
    for payment in scene.of(Payment):
        mine = payment.sender_id == scene.account("purse", scene.me)
        if mine and payment.receiver_id in accounts and payment.created_at >= since:
            sent[payment.receiver_id] += payment.cents
    instruction = draw.wording(
        "To which of my {relation}s (see Rolodex) did I send the most money with Purse since "
        "{since}? Tell me how many dollars that person got from me since then.",
        "Take all payments in Purse that I sent to my {relation}s in Rolodex since {since}, and "
        "add them up for each. How many dollars did the one get who got the most?",
    )
    return plan(
        instruction.format(relation=relation, since=since),
        [
            *begin(purse="show_payments", rolodex="search_contacts"),
            contacts_who_are(relation)
            + 'totals = {c["email"]: 0 for c in contacts}\nprint(contacts)',
            pages("payments", 'apis.purse.show_payments(access_token=purse_token, direction="sent"')
            + "\nprint(len(payments), payments[0])",
            "for payment in payments:\n"
            '    email = payment["receiver"]["email"]\n'
            f'    if email in totals and payment["created_at"] >= "{since}":\n'
            '        totals[email] += payment["amount"]\n'
            "print(totals)",
            "best = max(totals, key=totals.get)\n"
            'print(next(c["name"] for c in contacts if c["email"] == best), totals[best])',
            finish("round(totals[best], 2)"),
        ],
        answer=max(sent.values()) / 100,
    )


def _after(draw: Draw) -> str:
    """Return a random moment of this month, before now."""
    return draw.scene.ago(draw.chance.between(1, draw.scene.now.day - 1))
