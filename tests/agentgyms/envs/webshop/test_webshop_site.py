"""The shop as a web site: what people see and do, and what nobody gets to do."""

import html
import io
import json
import re
import threading
from dataclasses import replace

import pytest
from click.testing import CliRunner
from markupsafe import escape
from werkzeug.test import create_environ, run_wsgi_app

from agentgyms.envs.webshop.rules.session import Shop, ShopSession
from agentgyms.serving.served import EXTENSION
from env_servers.webshop_site.__main__ import main
from env_servers.webshop_site.app import MAX_QUERY, Offer, create_site
from env_servers.webshop_site.browser_control import answer_requests

LAMP = "B0TEST0001/0"  # color: walnut, size: small
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "../../etc/passwd",
    "a/b//c/?x=1#y",
    "click[buy now]",
    "] click[buy now]",
    "[[[]]]",
    "%2e%2e%00%ff",
    "\x00\x01\x7f",
    "漆黒 😀 ‮ ر",
    "{{ 7 * 7 }} {% raw %}",
    "' OR 1=1 --",
    " ",
    "",
    "a" * 8000,
    "b " * (MAX_QUERY // 2),
]


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Person:
    """Someone with a browser that follows redirects."""

    def __init__(self, app):
        self.client = app.test_client()

    def enter(self, task_id=LAMP):
        return self.follow(self.client.get("/", query_string={"task_id": task_id}))

    def follow(self, response):
        assert response.status_code == 303, response.text
        self.address = response.location
        return self.get(self.address)

    def get(self, address):
        response = self.client.get(address)
        self.text = response.text
        response.close()  # of a file
        return response

    def search(self, query):
        return self.follow(self.client.post(self.address, data={"query": query}))

    def click(self, label):
        return self.follow(self.client.post(self.address, data={"at": self.place(label)}))

    def place(self, label):
        buttons = re.findall(r'<button[^>]* value="([\d.]+)"[^>]*>([^<]*)<', self.text)
        return next(at for at, words in buttons if html.unescape(words) == label)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make_site(small_shop, clock):
    def make(**options):
        offer = Offer(small_shop, small_shop.goals.tasks("train"))
        if LAMP not in offer.tasks:
            offer = offer._replace(tasks=all_tasks(small_shop))
        return create_site(offer, clock=clock, **options)

    return make


def all_tasks(shop):
    from agentgyms.core.tasks import Task, TaskSet

    goals = [shop.goals[i] for i in range(len(shop.goals))]
    return TaskSet("all", [Task(goal.task_id, goal.category) for goal in goals])


@pytest.fixture
def person(make_site):
    return Person(make_site())


def buy(person):
    person.enter()
    person.search("walnut desk lamp")
    person.click("B0TEST0001")
    person.click("walnut")
    person.click("small")
    return person.click("Buy Now")


# --- a purchase ---------------------------------------------------------------------------------


def test_a_visit_begins_with_a_task_of_the_split(make_site, small_shop):
    person = Person(make_site())
    person.follow(person.client.get("/"))
    instructions = {small_shop.goals[i].instruction_text for i in range(len(small_shop.goals))}
    assert any(str(escape(text)) in person.text for text in instructions)
    assert "Your task" in person.text


def test_a_purchase(person):
    page = buy(person)
    assert "Thank you for shopping with us!" in page.text
    assert "100 of 100" in page.text


def test_the_score_is_in_a_part_of_the_receipt_that_agents_do_not_read(person):
    buy(person)
    marked = re.findall(r'data-at="\d+"[^>]*>([^<]*)<', person.text)
    assert "B0TEST0001" in marked
    assert not [text for text in marked if "100" in text or "1.0" in text]


def test_the_task_is_on_every_page(person, small_shop):
    instruction = escape(small_shop.goals.find(LAMP).instruction_text)
    pages = [person.enter(), person.search("lamp"), person.click("B0TEST0001")]
    pages += [person.click("Features"), person.click("< Prev"), person.click("Buy Now")]
    assert all(str(instruction) in page.text for page in pages)


def test_the_chosen_value_is_pressed_and_no_other(person):
    person.enter()
    person.search("walnut desk lamp")
    person.click("B0TEST0001")
    person.click("oak [light]")
    pressed = re.findall(r'aria-pressed="true"[^>]*>([^<]*)<', person.text)
    assert pressed == ["oak [light]"]


def test_what_does_nothing_says_so(person):
    person.enter()
    person.search("walnut desk lamp")
    person.click("B0TEST0001")
    person.click("small")
    person.click("small")
    assert "size is small already" in person.text


def test_pages_of_results(person):
    person.enter()
    person.search("candle")
    assert person.text.count('data-kind="card"') == 10
    person.click("Next >")
    person.click("Next >")
    assert person.text.count('data-kind="card"') == 3
    assert "Next &gt;" not in person.text


def test_a_chosen_option_stays_in_sight_and_what_did_nothing_is_said_at_the_top(person):
    person.enter()
    person.search("walnut desk lamp")
    person.click("B0TEST0001")
    person.click("small")
    anchor = person.address.partition("#")[2]
    assert re.search(rf'id="{anchor}"[^>]* aria-pressed="true"[^>]*>small<', person.text)
    person.click("small")
    assert "#" not in person.address


def test_results_can_be_paged_from_their_end_too(person):
    person.enter()
    person.search("candle")
    end = person.text.rpartition("</ul>")[2]
    labels = re.findall(r'<button[^>]* value="(\d+)"[^>]*>([^<]*)<', end)
    assert labels == [(person.place("Next >"), "Next &gt;")]
    assert "data-at" not in end.partition("</form>")[0]


def test_the_receipt_says_what_was_bought_in_words(person):
    buy(person)
    rows = re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td>', person.text)
    assert rows[:4] == [
        ("Product", "Walnut Desk Lamp with Dimmer"),
        ("Price", "$34.0"),
        ("color", "walnut"),
        ("size", "small"),
    ]


# --- going back ---------------------------------------------------------------------------------


def test_an_earlier_page_is_still_there_and_can_be_gone_on_from(person):
    person.enter()
    person.search("candle")
    results = person.address
    person.click("B0TESTC000")
    first_item = person.address
    person.get(results)
    person.address = results
    person.click("B0TESTC001")
    assert "Beeswax Candle No. 1<" in person.text
    assert person.address == first_item  # in place of what came after the results before


def test_what_came_after_an_earlier_page_is_dropped(person):
    person.enter()
    first = person.address
    person.search("candle")
    person.click("B0TESTC000")
    dropped = person.address
    person.address = first
    person.search("lamp")
    assert person.get(dropped).status_code == 404


def test_sending_a_form_twice_does_it_once(person):
    person.enter()
    form = {"data": {"query": "candle"}}
    first, second = (person.client.post(person.address, **form) for _ in range(2))
    assert first.location == second.location
    person.follow(second)
    person.click("B0TESTC000")


def test_after_the_purchase_nothing_can_be_done(person):
    person.enter()
    first = person.address
    person.search("lamp")
    results = person.address
    person.click("B0TEST0001")
    person.click("Buy Now")
    receipt = person.address
    for address in (first, results, receipt):
        refused = person.client.post(address, data={"query": "candle"})
        assert refused.status_code in (409, 422)
    assert receipt in person.client.post(first, data={"query": "candle"}).text
    earlier = person.get(results)
    assert earlier.status_code == 200
    assert receipt in earlier.text
    assert re.findall(r"<button[^>]*>", earlier.text)
    assert all("disabled" in button for button in re.findall(r"<button[^>]*>", earlier.text))


def test_only_the_last_pages_of_a_long_visit_are_kept(person):
    person.enter()
    first = person.address
    for _ in range(201):
        person.search("lamp")
    assert person.get(first).status_code == 410
    assert person.get(person.address).status_code == 200


# --- hostile input ------------------------------------------------------------------------------


@pytest.mark.parametrize("query", HOSTILE, ids=lambda q: ascii(q)[:20])
def test_any_query_is_searched_for_or_refused_with_a_reason(person, query):
    person.enter()
    page = person.search(query)
    assert page.status_code == 200
    assert "<script" not in page.text
    assert "<img" not in page.text
    assert "49" not in re.findall(r'value="([^"]*)"', page.text)
    person.search("walnut desk lamp")
    person.click("B0TEST0001")


def test_a_query_that_is_too_long(person):
    person.enter()
    page = person.client.post(person.address, data={"query": "c" * (MAX_QUERY + 1)})
    assert page.status_code == 422
    assert f"at most {MAX_QUERY}" in page.text
    assert person.client.post(person.address, data={"query": "c" * 2**19}).status_code == 413


@pytest.mark.parametrize(
    "place",
    ["", "-1", "99", "1", "3", "4.0", "0.0", "1e3", "٣", "9" * 5000, "x", "4.99", "3.", "\0"],
)
def test_places_where_nothing_can_be_clicked(person, place):
    person.enter()
    person.search("candle")
    assert person.client.post(person.address, data={"at": place}).status_code == 422


def test_forms_that_are_none(person):
    person.enter()
    assert person.client.post(person.address).status_code == 422
    broken = {"data": b"\xff\xfe%%%", "content_type": "multipart/form-data; boundary=x"}
    assert person.client.post(person.address, **broken).status_code == 422
    assert person.client.post(person.address, json={"at": "0"}).status_code == 422


def test_wrong_addresses(person):
    person.enter()
    visit = person.address.rpartition("/")[0]
    for turn in ("1", "-1", "x", "9" * 5000, "1.0", "٣", "%00"):
        assert person.get(f"{visit}/{turn}").status_code == 404, turn
    for address in (
        "/s/nobody/0",
        "/s/%ff%00/0",
        "/s//0",
        "/nowhere",
        "/s",
        "/static/../app.py",
    ):
        page = person.get(address)
        assert page.status_code == 404, address
        assert 'href="/"' in page.text
    assert person.client.put(person.address).status_code == 405


def test_an_address_with_two_slashes_leads_nowhere_else(person):
    for path in ("//", "//elsewhere.example", "//elsewhere.example/", "///s/x/0"):
        environ = create_environ() | {"PATH_INFO": path}
        _, status, headers = run_wsgi_app(person.client.application, environ)
        assert status.startswith("404") or headers["Location"].startswith("/s/"), path


def test_an_unknown_task(person):
    page = person.client.get("/", query_string={"task_id": "<b>/9"})
    assert page.status_code == 404
    assert "<b>" not in page.text


def test_products_are_shown_as_they_are_written(person):
    person.enter()
    person.search("walnut desk lamp")
    person.click("B0TEST0001")
    assert "Warm light &lt;soft&gt;" in person.click("Features").text
    person.click("< Prev")
    assert "A lamp for desks &amp; shelves." in person.click("Description").text


def test_text_that_no_page_can_say(small_shop):
    from agentgyms.envs.webshop.catalogue.catalogue import Catalogue
    from agentgyms.envs.webshop.goals.goal_list import GoalList

    lamp = replace(small_shop.product("B0TEST0001"), title="Half \ud83d\r\n a <lamp>\0")
    catalogue = Catalogue.of([lamp], "half")
    shop = Shop(catalogue, GoalList.of(catalogue), small_shop.nouns)
    person = Person(create_site(Offer(shop, all_tasks(shop))))
    person.enter()
    person.search("lamp")
    assert "Half ?&#13;\n a &lt;lamp&gt;" in person.click("B0TEST0001").text


# --- visits -------------------------------------------------------------------------------------


def test_a_visit_that_is_not_used_expires(make_site, clock):
    person = Person(make_site(ttl_s=60))
    person.enter()
    clock.now = 59
    assert person.get(person.address).status_code == 200
    clock.now = 118
    assert person.get(person.address).status_code == 200
    clock.now = 179
    gone = person.get(person.address)
    assert gone.status_code == 410
    assert 'href="/"' in gone.text
    assert person.client.post(person.address, data={"query": "lamp"}).status_code == 410


def test_a_full_shop_says_when_to_come_back(make_site, clock):
    app = make_site(max_visits=2, ttl_s=30)
    Person(app).enter()
    clock.now = 10
    Person(app).enter()
    refused = app.test_client().get("/")
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 21
    clock.now = 31
    Person(app).enter()


def test_a_visit_that_was_left_at_once_gives_way(make_site, clock):
    app = make_site(max_visits=2)
    left, used = Person(app), Person(app)
    left.enter()
    used.enter()
    used.search("shoes")
    clock.now = 299
    assert app.test_client().get("/").status_code == 429
    clock.now = 301
    Person(app).enter()
    assert app.test_client().get(left.address).status_code == 410
    assert app.test_client().get(used.address).status_code == 200


def test_a_visit_that_is_over_gives_way(make_site):
    app = make_site(max_visits=1)
    buyer = Person(app)
    buy(buyer)
    Person(app).enter()
    assert buyer.get(buyer.address).status_code == 410


def test_ids_cannot_be_guessed(make_site):
    person = Person(make_site())
    ids = set()
    for _ in range(20):
        person.enter()
        ids.add(person.address.split("/")[2])
    assert len(ids) == 20
    assert all(len(visit_id) >= 22 for visit_id in ids)


def test_many_people_at_once(make_site):
    app, errors = make_site(), []

    def shop():
        try:
            assert "100 of 100" in buy(Person(app)).text
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=shop) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(app.extensions[EXTENSION].sessions) == 16


def test_one_visit_in_two_windows_at_once(person):
    person.enter()
    address, codes = person.address, []

    def search(word):
        client = person.client.application.test_client()
        codes.extend(client.post(address, data={"query": word}).status_code for _ in range(20))

    threads = [threading.Thread(target=search, args=(word,)) for word in ("lamp", "candle")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) == {303}
    assert person.get(address.rpartition("/")[0] + "/1").status_code == 200


# --- around the pages ---------------------------------------------------------------------------


def test_every_answer_has_the_headers_that_protect_it(person):
    person.enter()
    for address in ("/", person.address, "/nowhere", "/static/shop.css", "/robots.txt"):
        headers = person.get(address).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
        assert "Set-Cookie" not in headers


def test_looking_without_asking_for_a_page_begins_no_visit(make_site):
    app = make_site()
    assert app.test_client().head("/").status_code == 200
    assert len(app.extensions[EXTENSION].sessions) == 0


def test_small_files(person):
    assert "Disallow: /" in person.get("/robots.txt").text
    assert person.get("/favicon.ico").mimetype == "image/svg+xml"
    assert person.get("/healthz").json == {"status": "ok"}


def test_nothing_on_a_page_comes_from_elsewhere(person):
    pages = [person.enter().text, person.search("lamp").text, person.click("B0TEST0001").text]
    for page in pages:
        assert not re.findall(r'(?:src|href|action)="(?!/)(?!#)', page)
        assert "<script" not in page
        assert " style=" not in page


def test_a_site_that_is_about_to_stop(make_site):
    app = make_site()
    app.extensions[EXTENSION].draining = True
    assert app.test_client().get("/").status_code == 503


# --- the token ----------------------------------------------------------------------------------


def test_a_token_is_asked_for(make_site):
    client = make_site(token="lamp-light").test_client()
    for address in ("/", "/s/x/0", "/nowhere"):
        refused = client.get(address)
        assert refused.status_code == 401
        assert 'type="password"' in refused.text
    assert client.post("/s/x/0", data={"query": "a"}).status_code == 401
    assert client.get("/healthz").status_code == 200
    with client.get("/static/shop.css") as style:
        assert style.status_code == 200


@pytest.mark.parametrize("wrong", ["", "lamp", "lamp-lighT", "é", "\0", "x" * 3000])
def test_a_wrong_token(make_site, wrong):
    client = make_site(token="lamp-light").test_client()
    refused = client.post("/access", data={"token": wrong})
    assert refused.status_code == 401
    assert "Set-Cookie" not in refused.headers
    assert "not the token" in refused.text
    client.set_cookie("webshop_access", wrong.replace("\0", "") or "x")
    assert client.get("/").status_code == 401


def test_the_right_token(make_site):
    client = make_site(token="lamp-light").test_client()
    admitted = client.post("/access", data={"token": " lamp-light "})
    assert admitted.status_code == 303
    cookie = admitted.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "lamp-light" not in cookie
    assert client.get("/").status_code == 303
    other = make_site(token="lamp-light").test_client()
    assert other.get("/", headers={"Authorization": "Bearer lamp-light"}).status_code == 303


def test_beyond_this_machine_a_token_is_needed(monkeypatch):
    monkeypatch.delenv("AGENTGYMS_TOKEN", raising=False)
    result = CliRunner().invoke(main, ["--host", "0.0.0.0", "--port", "0"])
    assert result.exit_code == 2
    assert "AGENTGYMS_TOKEN" in result.output


def test_wrong_arguments_end_with_a_sentence():
    result = CliRunner().invoke(main, ["--goal-seed", "-1"])
    assert result.exit_code == 2
    assert "goal_seed" in result.output


# --- the line to environments -------------------------------------------------------------------


def talk(visits, *requests):
    answers = io.StringIO()
    answer_requests(io.StringIO("".join(json.dumps(r) + "\n" for r in requests)), answers, visits)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


@pytest.fixture
def visits():
    return create_site(None).extensions[EXTENSION].sessions


@pytest.fixture
def opened(visits, small_shop, monkeypatch):
    from agentgyms.envs.webshop.sources import OpenedShop
    from env_servers.webshop_site import browser_control

    monkeypatch.setattr(
        browser_control, "open_shop", lambda: OpenedShop(lambda: small_shop, "small")
    )
    saved = ShopSession(small_shop, small_shop.goals.find(LAMP)).save()
    wanted = {"task_id": LAMP, "compat": False, "show_attributes": False, "saved": saved}
    (answer,) = talk(visits, {"open": wanted})
    return answer["visit"]


def test_without_an_offer_nobody_begins_at_the_start_page():
    assert create_site(None).test_client().get("/").status_code == 404


def test_environments_learn_what_became_of_actions(visits, opened):
    nothing, told = talk(
        visits, {"act": opened, "turn": 1, "action": "click[nothing]"}, {"read": opened}
    )
    assert nothing["turn"] == told["turn"] == 2
    assert told["result"]["feedback"] == "inadmissible"
    (moved,) = talk(visits, {"put": opened, "saved": told["saved"]})
    assert moved["turn"] == 3


def test_visits_of_environments_that_are_gone(visits, opened):
    ended, gone = talk(visits, {"end": opened}, {"read": opened})
    assert ended == {}
    assert "gone" in gone


@pytest.mark.parametrize("request_", [{}, {"open": {}}, {"put": "x"}, {"act": 1}, "junk", 3])
def test_requests_that_are_none_are_answered(visits, request_, caplog):
    (answer,) = talk(visits, request_)
    assert "error" in answer
