"""Plausible wrong solutions of MiniAppWorld's tasks, which must fail: each drops one condition."""

from __future__ import annotations

import re

import pytest

from agentgyms.envs.appworld.mini.scenarios import CHALLENGE, COMMON
from tests.agentgyms.envs.appworld.mini_play import made, opened, play

_ALL = "if True"
_FIRST_PAGE = (r"page \+= 1", "break")
_SMALL_PAGE = (r", page_limit=20", "")

SHORTCUTS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("countnotes", "stops after a page", [_SMALL_PAGE]),
    ("countnotes", "searches for the word", [("tag=", "query=")]),
    ("deletenote", "trusts any match", [(r"next\(.*\)$", 'notes[0]["note_id"]')]),
    (
        "deletenote",
        "deletes all matches",
        [(r"^note_id = .*\n", "for n in notes: "), ("note_id=note_id", 'note_id=n["note_id"]')],
    ),
    (
        "likesong",
        "likes all of the title",
        [
            (r', artist="[^"]*"', ""),
            (r"^song_id = next\(.* for s in songs (if .*)\)$", r"songs = [s for s in songs \1]"),
            (r"^(apis.*)song_id=song_id", r'for s in songs: \1song_id=s["song_id"]'),
        ],
    ),
    ("likesong", "trusts the title", [(r', artist="[^"]*"', "")]),
    ("addcontact", "forgets the phone", [(r'phone="\d+", ', "")]),
    ("addcontact", "forgets the relation", [(r', relation="\w+"', "")]),
    ("balanceafter", "tells the balance", [(r"round\(.*2\)", "balance")]),
    ("longestsong", "takes the last song", [(r"max\(.*\)\[", "songs[-1][")]),
    ("longestsong", "takes the most played", [(r'\["seconds"\]', '["plays"]')]),
    (
        "longestsong",
        "looks at all playlists",
        [
            (
                r"^songs = .*$",
                "songs = [s for p in playlists for s in apis.jukebox.show_playlist("
                'access_token=token, playlist_id=p["playlist_id"])["songs"]]',
            )
        ],
    ),
    ("payback", "forgets the note", [(r', note="[^"]*"', "")]),
    (
        "payback",
        "trusts the first name",
        [
            (r'query=owed\["Owed to"\]', 'query=owed["Owed to"].split()[0]'),
            (r"^email = .*$", 'email = people[0]["email"]'),
        ],
    ),
    ("payback", "trusts any note", [(r"^note_id = .*$", 'note_id = notes[0]["note_id"]')]),
    ("likedplaylist", "stops after a page", [_FIRST_PAGE, ("page_limit=20", "page_limit=5")]),
    ("likedplaylist", "takes all genres", [(r'if song\["genre"\] == ".*"', _ALL)]),
    ("likedseconds", "stops after a page", [_FIRST_PAGE, ("page_limit=20", "page_limit=5")]),
    ("likedseconds", "takes unliked songs", [(r"show_liked_songs\(", "search_songs(")]),
    ("likedseconds", "takes all artists", [(r' if s\["artist"\] == "[^"]*"', "")]),
    (
        "approverequests",
        "trusts the first name",
        [(r'\["name"\] == "(\w+) \w+"', r'["name"].split()[0] == "\1"')],
    ),
    ("approverequests", "approves all", [(r' if r\["requester"\]\["name"\] == "[^"]*"', "")]),
    (
        "approverequests",
        "pays without approving",
        [
            (
                r"approve_request\(access_token=token, .*\)",
                'send_payment(access_token=token, amount=request["amount"], '
                'receiver_email=request["requester"]["email"])',
            )
        ],
    ),
    ("senttotal", "forgets the month", [(r' and p\["created_at"\]\.startswith\("[^"]*"\)', "")]),
    ("senttotal", "forgets the person", [(r'p\["receiver"\]\["name"\] == "[^"]*" and ', "")]),
    (
        "senttotal",
        "trusts the first name",
        [(r'\["name"\] == "(\w+) \w+"', r'["name"].split()[0] == "\1"')],
    ),
    ("senttotal", "stops after a page", [_FIRST_PAGE, ("page_limit=20", "page_limit=5")]),
    ("retagnotes", "drops the other tags", [(r'note\["tags"\] \+ ', "")]),
    ("retagnotes", "stops after a page", [_SMALL_PAGE]),
    ("splitbill", "forgets oneself", [(r"\(len\(contacts\) \+ 1\)", "len(contacts)")]),
    ("splitbill", "asks all contacts", [(r' relation="\w+",', "")]),
    (
        "splitbill",
        "trusts any note",
        [(r"^note_id = .*$", 'note_id = max(n["note_id"] for n in notes if "(" in n["title"])')],
    ),
    ("declinerequests", "declines all", [(r' and request\["requester"\].*:', ":")]),
    ("declinerequests", "forgets the limit", [(r'request\["amount"\] > \S+ and ', "")]),
    ("declinerequests", "mixes up whom", [("not in emails", "in emails")]),
    (
        "declinerequests",
        "stops after a page",
        [_FIRST_PAGE, ("page_limit=20\\)\\:", "page_limit=5):")],
    ),
    ("birthdaygifts", "gives to all", [(r'if contact\["birthday"\].*:', f"{_ALL}:")]),
    ("birthdaygifts", "forgets the note", [(r', note="Happy birthday"', "")]),
    ("birthdaygifts", "takes day for month", [(r"\[5:7\]", "[8:]")]),
    ("collectdebts", "keeps the notes", [(r"^ *apis.notebook.delete_note.*\n", "")]),
    ("collectdebts", "takes all notes", [(r' tag="[^"]*",', ' query="Amount",')]),
    (
        "collectdebts",
        "asks each only once",
        [
            (
                r"^for note in notes:\n    fields",
                'for note in {n["content"].split("Amount")[0]: n for n in notes}.values():\n'
                "    fields",
            )
        ],
    ),
    ("topreceiver", "forgets the day", [(r' and payment\["created_at"\] >= "[^"]*"', "")]),
    (
        "topreceiver",
        "takes the other direction",
        [('direction="sent"', 'direction="received"'), (r'\["receiver"\]', '["sender"]')],
    ),
    (
        "topreceiver",
        "takes the largest payment",
        [
            (
                r'totals\[email\] \+= payment\["amount"\]',
                'totals[email] = max(totals[email], payment["amount"])',
            ),
            (r' and payment\["created_at"\] >= "[^"]*"', ""),
        ],
    ),
    ("topreceiver", "takes all contacts", [(r', relation="\w+"', "")]),
    ("movesongs", "takes the limit too", [(r'\["plays"\] >', '["plays"] >=')]),
    ("movesongs", "copies", [(r"^ *apis.jukebox.remove_song.*$", "")]),
    ("opentodos", "counts what is done", [(", done=False", "")]),
    ("opentodos", "stops after a page", [_SMALL_PAGE]),
    (
        "cancelevent",
        "forgets the day",
        [(r', from_date="[^"]*", to_date="[^"]*"', ", page_limit=20")],
    ),
    (
        "cancelevent",
        "deletes the whole day",
        [
            (r"^event_id = .*\n", "for e in events: "),
            ("event_id=event_id", 'event_id=e["event_id"]'),
        ],
    ),
    ("finishlist", "stops after a page", [_SMALL_PAGE]),
    ("finishlist", "finishes all lists", [(r', list_name="[^"]*"', "")]),
    ("busiestday", "forgets the span", [(r', from_date="[^"]*", to_date="[^"]*"', "")]),
    ("busiestday", "stops after a page", [_FIRST_PAGE, ("page_limit=20", "page_limit=3")]),
    ("birthdayevents", "takes the year of birth", [(r"day = .*$", 'day = contact["birthday"]')]),
    ("birthdayevents", "takes all contacts", [(r', relation="\w+"', "")]),
    ("notetodos", "takes done lines too", [(r'line\.startswith\("- "\)', "True")]),
    ("notetodos", "keeps the note", [(r"^apis.notebook.delete_note.*$", "")]),
    ("notetodos", "keeps the marks", [(r"line\[2:\]", "line")]),
    (
        "renameplaylist",
        "makes a new one",
        [
            (
                r"^apis.jukebox.rename_playlist\(access_token=token, playlist_id=playlist_id,",
                "apis.jukebox.create_playlist(access_token=token,",
            )
        ],
    ),
    (
        "renameplaylist",
        "takes any",
        [
            (
                r"^playlist_id = .*$",
                'playlist_id = max(p["playlist_id"] for p in playlists if "(" in p["title"])',
            )
        ],
    ),
    ("topupto", "adds the goal", [(r" - balance", "")]),
    ("topupto", "takes the other card", [(r'c\["card_name"\] ==', 'c["card_name"] !=')]),
    (
        "songlist",
        "takes all of a title",
        [
            (r", artist=artist", ""),
            (
                r"^    apis.jukebox.add_song(.*)found\[0\]",
                r"    for each in found: apis.jukebox.add_song\1each",
            ),
        ],
    ),
]


@pytest.mark.parametrize(
    ("template", "name", "changes"),
    SHORTCUTS,
    ids=[f"{template}-{name.replace(' ', '-')}" for template, name, _ in SHORTCUTS],
)
def test_a_shortcut_fails(template: str, name: str, changes: list[tuple[str, str]]) -> None:
    letter = "t" if template in {each.name for each in COMMON} else "c"
    outcomes = []
    for number in (1, 2, 3):
        task_id = f"{template}-{letter}001_{number}"
        code = "\n".join(made(task_id).solution)
        for pattern, replacement in changes:
            code, count = re.subn(pattern, replacement, code, flags=re.MULTILINE)
            assert count, (pattern, code)
        world = opened(task_id)
        play(world, [code])
        assert world.completed
        outcomes.append(world.report().success)
    assert outcomes == [False] * 3, name


def test_every_template_has_a_shortcut() -> None:
    assert {name for name, _, _ in SHORTCUTS} == {each.name for each in (*COMMON, *CHALLENGE)}
