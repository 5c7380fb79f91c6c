"""Scenarios of the purse."""

from __future__ import annotations

from agentgyms.envs.appworld.mini import vocabulary
from agentgyms.envs.appworld.mini.background import month_start
from agentgyms.envs.appworld.mini.people import Person
from agentgyms.envs.appworld.mini.records import Card, Payment, Request, TopUp
from agentgyms.envs.appworld.mini.solution_blocks import begin, finish, pages
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
def balance_after(draw: Draw) -> Plan:
    """Subtract a price from the balance."""
    scene = draw.scene
    thing = draw.choose("thing", vocabulary.PURCHASES)
    cents = draw.choose("cents", range(1_105, 99_000, 115))
    instruction = draw.wording(
        "How many dollars would be left in my Purse if I paid {amount} dollars for {thing}?",
        "I want to buy {thing} for {amount} dollars. How much of my Purse balance would remain?",
    )
    return plan(
        instruction.format(amount=dollars(cents), thing=thing),
        [
            *begin(purse=""),
            'balance = apis.purse.show_balance(access_token=token)["balance"]\nprint(balance)',
            finish(f"round(balance - {dollars(cents)}, 2)"),
        ],
        answer=(scene.balance(scene.me) - cents) / 100,
    )


@template(difficulty=2)
def sent_total(draw: Draw) -> Plan:
    """Sum the payments to a person in a month."""
    scene, chance = draw.scene, draw.chance
    friend = _with_namesake(draw)[0]
    month = month_start(scene, draw.choose("month", (1, 2, 3)))[:7]
    for _ in range(chance.between(4, 7)):
        _pay(draw, scene.me, friend, f"{month}-{chance.between(1, 28):02}")
    for _ in range(3):
        _pay(draw, scene.me, friend, month_start(scene, chance.pick((0, 4, 5))))
        _pay(draw, friend, scene.me, f"{month}-{chance.between(1, 28):02}")
        namesake = scene.cast.namesakes[friend.first_name]
        _pay(draw, scene.me, namesake, f"{month}-{chance.between(1, 28):02}")
    for person in chance.sample(scene.cast.others, 10):
        _pay(draw, scene.me, person, f"{month}-{chance.between(1, 28):02}")
    instruction = draw.wording(
        "How many dollars have I sent to {name} in {month} with Purse, all together?",
        "What is the sum of my Purse payments to {name} in {month}, in dollars?",
    )
    receiver = scene.account("purse", friend)
    return plan(
        instruction.format(
            name=friend.name, month=f"{vocabulary.MONTHS[int(month[5:]) - 1]} {month[:4]}"
        ),
        [
            *begin(purse="show_payments"),
            pages("payments", 'apis.purse.show_payments(access_token=token, direction="sent"')
            + "\nprint(len(payments), payments[0])",
            "total = sum(\n"
            '    p["amount"] for p in payments\n'
            f'    if p["receiver"]["name"] == {quoted(friend.name)} '
            f'and p["created_at"].startswith({quoted(month)})\n'
            ")\nprint(total)",
            finish("round(total, 2)"),
        ],
        answer=sum(
            payment.cents
            for payment in scene.of(Payment)
            if payment.sender_id == scene.account("purse", scene.me)
            and payment.receiver_id == receiver
            and payment.created_at.startswith(month)
        )
        / 100,
    )


@template(difficulty=2)
def approve_requests(draw: Draw) -> Plan:
    """Approve all pending requests of a person who has a namesake."""
    scene, chance = draw.scene, draw.chance
    friend, other = _with_namesake(draw)
    for cents in chance.sample(range(505, 9_000, 85), chance.between(2, 4)):
        scene.request(friend, scene.me, cents, chance.pick(vocabulary.OCCASIONS))
    scene.request(friend, scene.me, 1_250, "taxi home", "declined")
    scene.request(scene.me, friend, 980, "coffee")
    scene.request(friend, other, 2_220, "breakfast")
    for person in (other, other, *chance.sample(scene.cast.others, 6)):
        if person is not friend:
            scene.request(person, scene.me, chance.between(500, 9_000), "as agreed")
    approved = [
        request
        for request in scene.of(Request)
        if request.requester_id == scene.account("purse", friend)
        and request.payer_id == scene.account("purse", scene.me)
        and request.status == "pending"
    ]
    instruction = draw.wording(
        "Approve all pending requests from {name} in Purse. How many dollars is that in all?",
        "Pay everything that {name} still asks me for in Purse by approving the requests, and "
        "tell me the total in dollars.",
    )
    return plan(
        instruction.format(name=friend.name),
        [
            *begin(purse="show_requests approve_request"),
            pages("requests", "apis.purse.show_requests(access_token=token")
            + f'\nwanted = [r for r in requests if r["requester"]["name"] == '
            f"{quoted(friend.name)}]\nprint(len(requests), wanted)",
            "for request in wanted:\n"
            "    apis.purse.approve_request("
            'access_token=token, request_id=request["request_id"])',
            finish('round(sum(r["amount"] for r in wanted), 2)'),
        ],
        Change(
            "All pending requests of the person are approved, no others.",
            Request,
            updated={request.key: {"status": "approved"} for request in approved},
        ),
        Change(
            "They are paid, and nothing else is.",
            Payment,
            added=[
                {
                    "sender_id": request.payer_id,
                    "receiver_id": request.requester_id,
                    "cents": request.cents,
                }
                for request in approved
            ],
        ),
        answer=sum(request.cents for request in approved) / 100,
    )


@template(difficulty=2)
def top_up_to(draw: Draw) -> Plan:
    """Top up a balance to an amount from one of several cards."""
    scene = draw.scene
    have = draw.chance.between(1_005, 19_995)
    scene.set_balance(scene.me, have)
    want = draw.choose("want", range(25_000, 90_000, 500))
    card = draw.chance.pick(scene.mine(Card))
    instruction = draw.wording(
        "Top up my Purse from my card '{card}', once, so that I have exactly {amount} dollars in "
        "it.",
        "Bring my Purse balance to exactly {amount} dollars with one top-up from my card '{card}'.",
    )
    return plan(
        instruction.format(card=card.card_name, amount=dollars(want)),
        [
            *begin(purse="show_balance show_cards top_up"),
            'balance = apis.purse.show_balance(access_token=token)["balance"]\n'
            "cards = apis.purse.show_cards(access_token=token)\nprint(balance, cards)",
            'card_id = next(c["card_id"] for c in cards if c["card_name"] == '
            f"{quoted(card.card_name)})\n"
            "apis.purse.top_up(access_token=token, card_id=card_id, "
            f"amount=round({dollars(want)} - balance, 2))",
            finish(),
        ],
        Change(
            "What is lacking comes from that card, at once.",
            TopUp,
            added=[{"card_id": card.key, "cents": want - have}],
        ),
    )


def _with_namesake(draw: Draw) -> tuple[Person, Person]:
    """Return a contact and the stranger with the same first name."""
    namesakes = draw.scene.cast.namesakes
    known = [each for each in draw.scene.cast.contacts if each.first_name in namesakes]
    friend = draw.chance.pick(known)
    return friend, namesakes[friend.first_name]


def _pay(draw: Draw, sender: Person, receiver: Person, day: str) -> None:
    moment = f"{day}T{draw.chance.between(8, 21):02}:{draw.chance.between(0, 59):02}:00"
    cents = draw.chance.between(205, 8_995)
    draw.scene.payment(sender, receiver, cents, draw.chance.pick(vocabulary.OCCASIONS), moment)
