"""The leaderboard's site in Chromium: on a phone, in the dark, and from a square to its episode."""

import pytest
from evaluation_helpers import config
from test_credit_page import Window

from harness.reporting import run_and_report
from harness.reporting.leaderboard import site
from tests.contrast import LOW_CONTRAST

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def window():
    window = Window()
    yield window
    window.driver.quit()


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaderboard")
    more = {"env__id": "ALFWorld", "env__split": "sample"}
    for name in ("expert", "random"):
        run_and_report.run(config(folder / "all", model__name=name, run__name=name, **more))
    run_and_report.run(
        config(folder / "all", model__name="random", run__name="r" * 90, run__tasks=3, **more)
    )
    (folder / "all" / ("<b>" + "x" * 120)).mkdir()
    (folder / "all" / ("<b>" + "x" * 120) / "result.json").write_text("{}")
    site.build(folder / "all", folder / "site")
    return folder / "site" / site.INDEX


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_can_be_read_in_both_themes(window, index, width):
    window.open(index, width)
    for _ in range(2):
        window.look("for (const d of document.querySelectorAll('details')) d.open = true")
        assert window.look("return document.documentElement.scrollWidth") <= width
        assert window.look(LOW_CONTRAST) == []
        window.look("document.querySelector('.theme').click()")
    shown = window.look("return document.body.innerText")
    assert "ALFWorld sample, generated tasks, not the benchmark" in shown
    assert "Departs from the protocol: 3 of 12 tasks." in shown
    assert "recordings.jsonl is missing" in shown
    assert window.errors() == []


def test_a_square_leads_to_its_episode(window, index):
    window.open(index)
    link = window.look("return document.querySelectorAll('.strip a.won')[3].href")
    window.driver.get(link)
    assert window.look("return document.documentElement.dataset.shown") is not None
    task = window.look("return new URLSearchParams(location.hash.slice(1)).get('episode')")
    assert task in window.look("return document.getElementById('reader').innerText")
    assert window.errors() == []
