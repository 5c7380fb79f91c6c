"""The page of `harness credit`: what is inside it, and what Chromium makes of it."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from made_rollouts import HOSTILE, embedded, hostile_rollouts, shown, turn

from harness.reporting.credit_view import compare, figures, page, recordings
from harness.types.rollout import Rollout
from tests.contrast import LOW_CONTRAST


@pytest.fixture(scope="module")
def played():
    return recordings.load_example()


# --- the page without a browser -----------------------------------------------------------------


def test_no_text_can_leave_its_place():
    html = shown(hostile_rollouts())
    assert html.count("</script") == 2
    assert html.count("<script") == 2
    assert "<img" not in html
    assert "<b>file" not in html
    assert "\u2028" not in html
    texts = embedded(html)["texts"]
    assert HOSTILE[0] in texts
    assert HOSTILE[2] in texts
    assert HOSTILE[5][:4000] + "…" in texts


def test_the_page_asks_nothing_of_a_network(played):
    html = page.render(played, compare.compare(played.turns, compare.choose()))
    assert "default-src 'none'" in html
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert "@import" not in html
    assert "src=" not in html


def test_the_json_inside_is_the_credit(played):
    results = compare.compare(played.turns, compare.choose())
    data = embedded(page.render(played, results))
    assert len(data["groups"]) == 3
    for index, result in enumerate(results):
        values = [value for g in data["groups"] for value in g["credit"].get(str(index), [])]
        if result.advantage is None:
            assert values == []
            assert data["methods"][index]["missing"] == list(result.missing)
        else:
            np.testing.assert_allclose(values, result.advantage, rtol=1e-3)


def large_rollouts(groups=16, size=8, turns=50):
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(300)]

    def say(count):
        return " ".join(rng.choice(words, count))

    rollouts = []
    for index in range(groups * size):
        rollout = Rollout(f"task {index // size}", "f", index // size, index % size, 0, say(8))
        states = rng.integers(0, 30, turns + 1)
        rollout.turns = [
            turn(f"go to {states[t + 1]}", f"s{a}", f"s{b}", seen=say(60), outcome=say(60))
            for t, (a, b) in enumerate(itertools.pairwise(states))
        ]
        rollout.success = bool(rng.random() < 0.4)
        rollout.turns[-1] = replace(rollout.turns[-1], reward=float(rollout.success))
        rollouts.append(rollout)
    return rollouts


@pytest.mark.slow
def test_a_large_batch_gives_a_page_below_five_megabytes():
    html = shown(large_rollouts())
    assert len(html.encode()) < 5_000_000
    assert len(embedded(html)["groups"]) == 16


def test_short_numbers():
    rounded = [figures.four_digits(x) for x in (0.123456, -2.0, 1e-9, 12345.6)]
    assert rounded == [0.1235, -2, 1e-9, 12350]


# --- the page in a real browser -----------------------------------------------------------------


class Window:
    """A browser's window with a page, and what went wrong in it."""

    def __init__(self):
        from selenium import webdriver

        from agentgyms.envs.webshop.browser.launch import find_binaries

        found = find_binaries(None, None, True)
        options = webdriver.ChromeOptions()
        options.binary_location = found.browser
        for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(found.driver)
        self.driver = webdriver.Chrome(options=options, service=service)

    def open(self, path, width=1280):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(path.as_uri())
        assert self.look("return document.documentElement.dataset.ready") == "yes"

    def look(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys):
        """Press keys at whatever has the focus at that moment, as a keyboard does.

        Never at an element looked up before: the page may have drawn itself again since.
        """
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def window():
    window = Window()
    yield window
    window.driver.quit()


@pytest.fixture(scope="module")
def example_page(tmp_path_factory, played):
    path = tmp_path_factory.mktemp("page") / "example.html"
    path.write_text(page.render(played, compare.compare(played.turns, compare.choose())))
    return path


SVGS = "return FIGURES.filter(f => !f.table).map(f => svgText(f)).concat(svgText(FIGURES[1]))"


@pytest.mark.browser
def test_hostile_rollouts_are_text_and_nothing_else(window, tmp_path):
    path = tmp_path / "hostile.html"
    path.write_text(shown(hostile_rollouts()), encoding="utf-8")
    window.open(path)
    for group in (0, 1):
        window.look("showGroup(arguments[0]); FIGURES.forEach(f => svgText(f))", group)
    window.look("find('theme').click()")
    window.look("for (const b of document.querySelectorAll('.pick')) b.click()")
    assert window.errors() == []
    assert window.look("return window.hacked") is None
    assert window.look("return document.querySelectorAll('img, script').length") == 2
    assert HOSTILE[0] in window.look("return document.getElementById('card').parentNode.innerText")


@pytest.mark.browser
def test_figures_can_be_saved_as_vector_graphics(window, example_page):
    from xml.etree import ElementTree

    window.open(example_page)
    drawings = [ElementTree.fromstring(svg.encode()) for svg in window.look(SVGS)]
    assert [drawing.tag for drawing in drawings] == ["{http://www.w3.org/2000/svg}svg"] * 5
    for drawing in drawings:
        assert len(list(drawing.iter())) > 30
        assert not list(drawing.iter("{http://www.w3.org/2000/svg}image"))
    assert window.errors() == []


@pytest.mark.browser
def test_values_are_read_with_the_keyboard(window, example_page):
    from selenium.webdriver.common.keys import Keys

    window.open(example_page)
    window.look("document.querySelector('#credit svg').focus()")
    window.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    tip = "return document.getElementById('tip').innerText"
    assert window.look(tip).startswith("rollout 0, turn 2 of 9\nopen microwave 1")
    window.press(Keys.ARROW_DOWN)
    assert window.look(tip).startswith("rollout 1, turn 2 of 8\nlook")
    window.press(Keys.ENTER)
    assert "Rollout 1: success after 8 turns" in window.look(
        "return document.querySelector('#turns figcaption').innerText"
    )
    chosen = "return document.querySelector('#turns tr.chosen').innerText"
    assert window.look(chosen).split("\t")[:2] == ["2", "look"]
    window.press(Keys.ESCAPE)
    assert window.look("return document.getElementById('tip').hidden")
    window.look("document.getElementById('group-after').focus()")
    window.press(Keys.ENTER)
    assert "chill a bowl" in window.look("return document.getElementById('task').innerText")
    assert window.errors() == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_and_can_be_read(window, example_page, width, dark):
    window.open(example_page, width)
    if dark:
        window.look("document.getElementById('theme').click()")
    assert window.look("return document.documentElement.scrollWidth") <= width
    assert window.look(LOW_CONTRAST) == []
    assert window.errors() == []


PANELS = "return [...document.querySelectorAll('#turns th.of')].map(e => e.textContent)"
TITLES = """return [...document.querySelectorAll('#credit svg text[font-weight="600"]')].map(
  e => e.textContent)"""


@pytest.mark.browser
def test_a_phone_shows_methods_that_tell_turns_apart_first(window, example_page, played):
    results = [r for r in compare.compare(played.turns, compare.choose()) if not r.missing]
    names = [r.choice.name for r in results]
    window.open(example_page)
    assert window.look(PANELS) == names
    window.open(example_page, 390)
    shown = window.look(PANELS)
    assert window.look(TITLES) == ["what happened", *shown]
    of_rollouts = {"reinforce", "reinforce_pp", "rloo", "grpo", "dr_grpo", "gvpo", "maxrl"}
    of_rollouts |= {"tree_grpo", "treerpo", "at2po"}  # without branches
    trajectory = [name for name in names if name in of_rollouts]
    assert shown == [*(name for name in names if name not in trajectory), *trajectory]
    seen = """const edge = document.querySelector('#turns .canvas').getBoundingClientRect().right;
      return [...document.querySelectorAll('#turns th.of')].filter(
        e => e.getBoundingClientRect().right <= edge).length"""
    assert window.look(seen) >= 3
    assert "come first" in window.look("return document.querySelector('#credit').innerText")
    saved = window.look("return svgText(FIGURES[0])")
    assert saved.index(">reinforce<") < saved.index(">gigpo<")  # as on a wide page
    assert window.errors() == []


@pytest.mark.browser
def test_methods_can_be_put_aside_and_scales_shared(window, example_page):
    window.open(example_page)
    panels = "return document.querySelectorAll('#turns th.of').length"
    before = window.look(panels)
    window.look("document.querySelector('#boxes input').click()")
    assert window.look(panels) == before - 1
    window.look("find('scale').value = 'shared'; find('scale').dispatchEvent(new Event('change'))")
    legend = window.look("return document.querySelector('#credit svg').textContent")
    assert "+7.50" in legend
    assert "+scale" not in legend
    window.look(
        "for (const box of document.querySelectorAll('#boxes input')) if (box.checked) box.click()"
    )
    assert "No method is chosen." in window.look("return find('credit').innerText")
    assert window.errors() == []


@pytest.mark.browser
def test_a_large_page_opens_and_turns_its_groups(window, tmp_path):
    path = tmp_path / "large.html"
    path.write_text(shown(large_rollouts()), encoding="utf-8")
    window.open(path)
    window.look("showGroup(15)")
    assert "task 15" in window.look("return document.getElementById('task').innerText")
    assert window.look("return document.querySelectorAll('#credit rect').length") > 8 * 50
    assert window.errors() == []
