"""Names of people, and texts of their notes, songs, payments, events and to-dos."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split(";"))


FIRST_NAMES: Final = _words(
    """Ada Alan Amy Anna Arthur Ben Carl Clara Cora Daniel David Diana Edgar Ella Emil Emma Eric
    Eva Felix Flora Frank Fred George Grace Hanna Harry Helen Henry Hugo Ida Iris Ivan Jack Jane
    Jenny Joan Julia Karl Kate Laura Leo Lisa Louis Lucy Mara Marcus Martin Mary Max Mia Milo Nancy
    Nina Nora Olga Oscar Paul Peter Rita Robert Rosa Ruth Sam Sara Simon Sofia Theo Thomas Tom Vera
    Victor Walter"""
)
LAST_NAMES: Final = _words(
    """Abbott Archer Bailey Baker Barnes Bell Bishop Blake Bond Booth Bowen Brook Burns Carter Chase
    Clay Cole Cook Cooper Cross Curtis Dale Dawson Dean Dixon Drake Ellis Fisher Fletcher Ford
    Foster Fox Frost Gardner Gibson Grant Gray Green Griffin Hale Hart Hayes Hill Holt Hudson Hunt
    Jordan Keller King Knight Lamb Lane Lawson Long Marsh Mason Miller Mills Moore Morgan Nash North
    Owen Page Palmer Parker Perry Porter Potter Price Quinn Reed Reeves Rice Rivers Rowe Sawyer
    Sharp Shaw Snow Spencer Stone Swift Tanner Taylor Thorn Turner Wade Walker Ward Waters Webb
    Wells West Winter Wood"""
)
MONTHS: Final = _words(
    """January February March April May June July August September October November
    December"""
)
TAGS: Final = _words(
    """garden kitchen travel books health school car money ideas home sports family art cooking
    repairs gifts camping music"""
)
DEBT_TAGS: Final = _words("owed lent debts refund advance loan unpaid iou dues shared bill open")
NOTE_SUBJECTS: Final = _lines(
    """Tomato plants; Paint for the hall; Train to the coast; Dentist; Reading list; Spare keys;
    Bicycle repair; Winter tyres; Bread recipe; Running plan; Camera settings; Language course;
    Piano practice; Garden fence; Museum visit; Tent and stove; Insurance papers; Window measures;
    Chess openings; Film evening; Bird feeder; Boat trip; Coffee grinder; Yoga class; Roof leak;
    Soup ideas; Photo album; Library card; Hiking boots; Attic shelves"""
)
NOTE_LINES: Final = _lines(
    """Ask again next week.; Call before noon.; Keep the receipt.; Compare two offers first.;
    Measure twice.; It worked well last time.; Not urgent.; See the blue folder.;
    Bring it on Saturday.; Needs two people."""
)
OCCASIONS: Final = _lines(
    """dinner at the harbor; concert tickets; weekend cabin; taxi to the airport; birthday cake;
    pizza night; museum tickets; boat rental; camping food; brunch in town; bowling evening;
    theater tickets; fuel for the trip; picnic basket; farewell gift; ski passes"""
)
TARGET_TITLES: Final = _lines(
    """For later; To remember; Blue folder; Weekend; Scribbles; Memo seven; This and that;
    Fridge door; Desk pad; Last page; Short list; Loose ends; Yellow slip; Pocket note;
    From Tuesday; Back cover; Spare page; Things to settle"""
)
"""Titles of notes that tasks are about; no other note has one of them."""

PURCHASES: Final = _lines(
    """a desk lamp; a bicycle helmet; new curtains; a rain jacket; a coffee machine; a chess set;
    running shoes; a garden bench; a suitcase; a tent; headphones; a bookshelf"""
)
GENRES: Final = ("rock", "jazz", "folk", "pop", "blues", "classical")
SONG_FIRST: Final = _words(
    """Amber Silent Golden Broken Distant Electric Gentle Hollow Iron Little Midnight Northern
    Paper Quiet Scarlet Silver Summer Velvet Wandering Winter"""
)
SONG_SECOND: Final = _words(
    """Avenue Bridge Candle Compass Garden Harbor Lantern Letter Mirror Morning Mountain Orchard
    Promise Rain River Road Shadow Station Train Window"""
)
BANDS: Final = _lines(
    """The Copper Kites; Orla Finch; Seven Ferries; Marble Fields; Juno and the Tides;
    The Late Gardeners; Tin Orchestra; Basil Crane; Paper Foxes; The Long Divisions; Willow Hart;
    Night Bakery"""
)
PLAYLISTS: Final = _lines(
    """Morning run; Slow Sunday; Road trip; Deep focus; Kitchen dance; Rainy days; Late night;
    Old favorites; Garden work; Train rides; Workout mix; Dinner with friends; Spring cleaning;
    Study hall; Campfire; Quiet hours; Party warm-up; Long drive; First coffee; Night shift;
    Beach day; Snow walk; Open window; Sunday lunch"""
)
EVENTS: Final = _lines(
    """Book club; Choir practice; Team meeting; Swimming lesson; Guitar lesson; House viewing;
    Parents' evening; Dance class"""
)
TARGET_EVENTS: Final = _lines(
    """Board games; Car service; Eye test; Pottery class; Project review; Language exchange;
    Badminton; Haircut"""
)
"""Events that tasks are about."""

TODO_LISTS: Final = ("Groceries", "Moving house", "Birthday party", "Spring cleaning")
TARGET_LISTS: Final = _lines(
    """Camping trip; Office; Garden; School start; New flat; Bike repairs; Paperwork; Workshop"""
)
"""Lists of to-dos that tasks are about; ordinary to-dos are on none of them."""

TODOS: Final = _lines(
    """buy tape; call the bank; clean the oven; book a van; order a cake; return the books;
    sharpen the knives; water the plants; print the tickets; fix the lamp; wash the car;
    pack the tent; send the form; sort the photos; find the charger; empty the bins;
    buy candles; renew the pass; check the tyres; sweep the yard; borrow a ladder; refill the ink;
    label the boxes; oil the chain"""
)
