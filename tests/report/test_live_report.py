"""What readers do in a report: point at rows, list the members of a cluster, search, sort, colour, keep."""

import base64
import csv
import io
import json
import re
import time

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import kpod
from kpod import KPOD, TablePreparer
from kpod._report.rendering import resource
from tests.helpers.browser import in_browser

POINTS = "[id^=rows-points] :is(use, :not(defs) > path)"


def towns(n=60, seed=0):
    """Towns with names, numbers, a year, a category and gaps."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    frame = pd.DataFrame({
        "town": [f"Town {i:03d}" for i in range(n)],
        "people": np.round(10.0 ** (3 + group) * rng.lognormal(sigma=0.2, size=n)),
        "rain": np.round(group * 4 + rng.normal(size=n), 3),
        "founded": rng.integers(1700, 1900, n).astype(float),
        "coast": np.where(group == 1, "north", np.where(rng.random(n) < 0.5, "south", "none")),
    })  # fmt: skip
    numbers = ["people", "rain", "founded"]
    frame[numbers] = frame[numbers].mask(rng.random((n, 3)) < 0.1)
    frame.loc[5, "coast"] = None
    return frame


@pytest.fixture(scope="module")
def frame():
    return towns()


@pytest.fixture(scope="module")
def analysis(frame):
    return kpod.analyze(frame, 3, categories=["coast"], random_state=0)


@pytest.fixture(scope="module")
def page(analysis, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    analysis.report().save(path)
    return path


@pytest.fixture
def opened(browser, page):
    browser.get(f"file://{page}")
    return browser


def test_members_are_the_rows_of_the_table(analysis, frame):
    """Names, clusters, numbers, years and the words of categories are those that went in."""
    held = analysis.report().data["members"]
    rows = [int(name.removeprefix("Town ")) for name in held["names"]]
    assert sorted(rows) == sorted(np.flatnonzero(analysis.labels >= 0))
    assert held["clusters"] == [int(analysis.labels[i]) for i in rows]
    columns = {column["name"]: column for column in held["columns"]}
    assert set(columns) == {"people", "rain", "founded", "coast"}
    for name, column in columns.items():
        went_in = [None if pd.isna(value) else value for value in frame[name].iloc[rows]]
        assert column["values"] == went_in, name


def test_few_words_are_enough_for_a_category_of_two(frame):
    two = frame.assign(coast=frame["coast"].replace("none", "south"))
    model = make_pipeline(TablePreparer(categories=["coast"]), KPOD(2, random_state=0)).fit(two)
    held = kpod.report(model, two).data["members"]
    coast = next(column for column in held["columns"] if column["name"] == "coast")
    rows = [int(name) - 1 for name in held["names"]]
    assert coast["values"] == [None if pd.isna(value) else value for value in two["coast"].iloc[rows]]


def test_rows_can_be_left_out(frame):
    """None of their values is in the page then, but for the smallest and the largest."""
    secret = frame.assign(rain=frame["rain"] + 0.0001234)
    report = kpod.report(KPOD(3, random_state=0).fit(secret[["people", "rain"]]), secret[["people", "rain"]],
                         with_rows=False)  # fmt: skip
    assert report.data["members"] is None
    written = {f"{value:.6g}" for value in sorted(secret["rain"].dropna())[1:-1]}
    assert not any(re.search(rf"(?<![\d.]){re.escape(value)}", report.html) for value in written)
    assert 'id="rows-data"' not in report.html
    assert 'id="members"' not in report.html


def test_a_page_of_many_rows_and_columns_stays_small():
    """Rows and columns together are limited, whatever the table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 300)).astype(np.float32)
    held = kpod.report(KPOD(2, n_init=1, max_iter=3, tol=1.0, random_state=0).fit(X), X).data["members"]
    assert len(held["names"]) <= 2024
    assert len(held["names"]) * len(held["columns"]) <= 200_000
    assert held["n_rows"] == 5000


def test_nothing_in_a_table_ends_the_script():
    frame = pd.DataFrame({"</script><b>": np.arange(20.0), "y": [0.0, 9.0] * 10})
    html = kpod.report(KPOD(2, random_state=0).fit(frame), frame, row_names=["</script>"] * 20).html
    held = re.search(r'<script type="application/json" id="rows-data">(.*?)</script>', html, re.DOTALL)
    assert json.loads(held[1])["names"][0] == "</script>"


def test_the_script_is_small():
    assert len(resource("report.js")) < 60_000


def point_at(browser, point):
    from selenium.webdriver.common.action_chains import ActionChains

    browser.execute_script("document.querySelector('#rows-picture').scrollIntoView()")
    ActionChains(browser).move_to_element(point).perform()


def listed(browser):
    return [cell.text for cell in browser.find_elements("css selector", "#member-table tbody td:first-child")]


def value_of(frame, name, column):
    return frame.set_index("town")[column][name]


@in_browser
def test_a_row_is_named_where_it_is_pointed_at(opened, analysis, frame):
    held = analysis.report().data["members"]
    points = opened.find_elements("css selector", POINTS)
    assert len(points) == len(held["names"])
    for i in (0, len(points) // 2, len(points) - 1):
        point_at(opened, points[i])
        tip = opened.find_element("id", "tip").text
        name = tip.split("\n")[0].rpartition(" cluster ")[0]
        # Another row may lie on the same spot: is the tip true of the row that it names?
        at = held["names"].index(name)
        assert tip.split("\n")[0].endswith(f"cluster {held['clusters'][at]}")
        people = value_of(frame, name, "people")
        assert f"people\n{'–' if pd.isna(people) else f'{people:,.0f}'}" in tip  # noqa: RUF001


@in_browser
def test_a_point_is_that_of_its_row(opened, analysis):
    """The script takes the points in the order of the names: they lie where the display has these rows."""
    report = analysis.report()
    held, display = report.data["members"], report.rows
    at = {f"Town {row:03d}": point for row, point in zip(display.rows, display.points, strict=True)}
    expected = np.array([at[name] for name in held["names"]])
    drawn = opened.execute_script(
        f"return [...new Set({held['clusters']})].flatMap("
        "m => [...document.querySelectorAll(`#rows-points-${m} :is(use, :not(defs) > path)`)])"
        ".map(p => p.getBBox()).map(b => [b.x + b.width / 2, b.y + b.height / 2])"
    )
    for axis, sign in ((0, 1), (1, -1)):  # on a screen, up is negative
        assert np.corrcoef(np.array(drawn)[:, axis], expected[:, axis])[0, 1] * sign > 0.9999


@in_browser
def test_members_of_a_cluster(opened, analysis):
    """Clicking a cluster lists its rows and no others; searching narrows them down; headings sort them."""
    opened.execute_script("document.querySelectorAll('a.members')[1].click()")
    opened.execute_script("document.querySelector('#member-more').click()")
    towns_of = {f"Town {i:03d}" for i in np.flatnonzero(analysis.labels == 1)}
    assert set(listed(opened)) == towns_of
    assert opened.find_element("id", "member-count").text == f"{len(towns_of)} rows of cluster 1"
    search = opened.find_element("id", "member-search")
    search.send_keys(min(towns_of).lower())
    assert listed(opened) == [min(towns_of)]
    search.clear()
    search.send_keys(" ")
    opened.execute_script("document.querySelector('#member-more').click()")
    first = opened.find_element("css selector", "#member-table thead button")
    opened.execute_script("arguments[0].click()", first)
    assert listed(opened) == sorted(towns_of)
    opened.execute_script("arguments[0].click()", first)
    assert listed(opened) == sorted(towns_of, reverse=True)


@in_browser
def test_members_can_be_kept_as_csv(opened, analysis, frame, tmp_path):
    opened.execute_cdp_cmd(
        "Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )  # fmt: skip
    opened.execute_script("document.querySelectorAll('a.members')[0].click()")
    opened.execute_script("document.querySelector('#member-download').click()")
    path = tmp_path / "cluster-0.csv"
    while not path.exists():  # the limit is that of the test
        time.sleep(0.05)
    with path.open(newline="", encoding="utf-8") as file:
        kept = list(csv.DictReader(file))
    assert {row["name"] for row in kept} == {f"Town {i:03d}" for i in np.flatnonzero(analysis.labels == 0)}
    for row in kept:
        rain = value_of(frame, row["name"], "rain")
        assert row["rain"] == ("" if pd.isna(rain) else f"{rain:g}")


@in_browser
def test_points_are_coloured_by_any_column(opened, analysis):
    held = analysis.report().data["members"]
    before = [p.value_of_css_property("fill") for p in opened.find_elements("css selector", POINTS)]
    options = [o.text for o in opened.find_elements("css selector", "#colour-by option")]
    assert options == ["cluster", *(column["name"] for column in held["columns"])]

    def coloured(name):
        opened.execute_script(
            "const s = document.querySelector('#colour-by'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('change'));",
            "" if name == "cluster" else str(options.index(name) - 1),
        )
        return [p.value_of_css_property("fill") for p in opened.find_elements("css selector", POINTS)]

    coast = next(column["values"] for column in held["columns"] if column["name"] == "coast")
    by_word = coloured("coast")
    assert len(set(zip(coast, by_word, strict=True))) == len(set(by_word)) == 4  # three words and a gap
    rain = next(column["values"] for column in held["columns"] if column["name"] == "rain")
    by_rain = coloured("rain")
    low, high = np.nanargmin(np.array(rain, float)), np.nanargmax(np.array(rain, float))
    assert by_rain[low] != by_rain[high]
    assert coloured("cluster") == before


@in_browser
def test_rows_are_reached_by_the_keyboard(opened, analysis):
    from selenium.webdriver.common.keys import Keys

    held = analysis.report().data["members"]
    picture = opened.find_element("id", "rows-picture")
    picture.send_keys(Keys.ARROW_RIGHT)
    assert opened.find_element("id", "live").get_attribute("textContent").startswith(held["names"][0])
    picture.send_keys(Keys.ARROW_RIGHT)
    assert opened.find_element("id", "live").get_attribute("textContent").startswith(held["names"][1])
    picture.send_keys(Keys.ENTER)
    assert listed(opened)[0] == held["names"][1]


@in_browser
def test_light_and_dark_by_a_button(opened):
    def paper():
        return opened.execute_script("return getComputedStyle(document.body).backgroundColor")

    first = paper()
    opened.find_element("id", "theme").click()
    second = paper()
    opened.find_element("id", "theme").click()
    assert first != second
    assert paper() == first


@in_browser
def test_without_scripts_everything_but_the_interaction_is_there(browser, page):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(f"file://{page}")
    shown = browser.find_element("tag name", "body").text
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "Column by column" in shown
    assert "Cluster 0" in shown
    for control in ("Colour by", "Search", "show its rows", "Download"):
        assert control not in shown


@in_browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 375])
def test_no_violation_of_accessibility(opened, theme, width):
    axe = pytest.importorskip("axe_core_python.selenium")
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    opened.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    found = axe.Axe().run(opened)
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(found["passes"]) > 10
    assert [(one["id"], one["nodes"][0]["target"]) for one in found["violations"]] == []


@in_browser
def test_many_clusters_and_columns_stay_on_the_page(browser, tmp_path):
    """Forty clusters and a thousand columns: what is wide scrolls by itself, what is long is folded."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1000))
    X[rng.random(X.shape) < 0.1] = np.nan
    model = KPOD(40, n_init=1, max_iter=2, tol=1.0, random_state=0).fit(X)
    kpod.report(model, X).save(tmp_path / "wide.html")
    browser.get(f"file://{tmp_path / 'wide.html'}")
    size = browser.execute_script(
        "const e = document.documentElement; return [e.scrollWidth, e.clientWidth, e.scrollHeight]"
    )
    assert size[0] <= size[1]
    assert size[2] < 15_000
    rows = browser.find_elements("css selector", "#column-table tbody tr")
    assert len(rows) == 500
    assert sum(row.is_displayed() for row in rows[:40]) == 15
    browser.execute_script("document.querySelector('button.unfold').click()")
    assert all(row.is_displayed() for row in rows[:40])


@pytest.fixture(scope="module")
def long_names(tmp_path_factory):
    """A page of numbers of seven digits, under names that are longer than any column should be."""
    rng = np.random.default_rng(0)
    group = np.arange(90) % 3
    words = ["share_of_population_in_metropolitan_areas", "od280_od315_of_diluted_wines", "x" * 45]
    X = rng.normal(size=(90, 3)) * 0.123456 + group[:, None] * np.array([2.34567, -3.45678, 1.23456]) + 50
    X[rng.random(X.shape) < 0.2] = np.nan
    analysis = kpod.analyze(pd.DataFrame(X, columns=words), 3, random_state=0)
    path = tmp_path_factory.mktemp("page") / "report.html"
    analysis.report().save(path)
    return path


@in_browser
@pytest.mark.parametrize("width", [1280, 375])
def test_headings_of_long_names_do_not_overlap(browser, long_names, width):
    emulate(browser, width=width)
    browser.get(f"file://{long_names}")
    over = browser.execute_script(
        "return [...document.querySelectorAll('th button')].filter(b => b.getBoundingClientRect().right >"
        " b.parentNode.getBoundingClientRect().right + 1 || b.scrollWidth > b.clientWidth + 1)"
        ".map(b => b.textContent)"
    )
    emulate(browser)
    assert over == []


@in_browser
def test_words_in_pictures_can_be_read_on_a_phone(browser, long_names):
    """The smallest is at least 6 pixels high: what does not fit is scrolled instead."""
    emulate(browser, width=375)
    browser.get(f"file://{long_names}")
    heights = browser.execute_script(
        "return [...document.querySelectorAll('section > figure svg')].filter(s => s.clientWidth).map(s =>"
        " [s.closest('figure').dataset.name, Math.min(...[...s.querySelectorAll('text')].map(t =>"
        " parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a || 99))])"
    )
    emulate(browser)
    assert {name for name, _ in heights} >= {"rows", "centers", "columns", "gaps", "verdict"}
    assert [one for one in heights if one[1] < 6] == []


@in_browser
def test_numbers_are_not_broken_on_paper(browser, long_names):
    """Every word of a cell of the table of columns is on one line, and no table leaves the page."""
    emulate(browser, width=680, media="print")
    browser.get(f"file://{long_names}")
    broken, wide = browser.execute_script(
        """
        const broken = [], range = document.createRange();
        for (const cell of document.querySelectorAll('#column-table :is(td, th):not(:first-child)')) {
          const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
          for (let node; (node = walk.nextNode());)
            for (const word of node.data.matchAll(/\\S+/g)) {
              range.setStart(node, word.index);
              range.setEnd(node, word.index + word[0].length);
              const tops = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
              if (tops.size > 1) broken.push(word[0]);
            }
        }
        const page = document.body.getBoundingClientRect().right + 1;
        const out =
          [...document.querySelectorAll("table")].filter(t => t.getBoundingClientRect().right > page);
        return [broken, out.length];
        """
    )
    emulate(browser)
    assert broken == []
    assert wide == 0


def emulate(browser, *, width=None, media=""):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
    if width is None:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    else:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def test_what_was_observed_is_not_bright_on_a_dark_page(long_names):
    """The picture of the gaps is see-through where nothing is missing; what lies below follows the theme."""
    page = long_names.read_text()
    figure = page[page.index('id="gaps-') : page.index("</svg>", page.index('id="gaps-'))]
    png = base64.b64decode(re.search(r"data:image/png;base64,([^\"]+)", figure)[1])
    pixels = matplotlib.image.imread(io.BytesIO(png))
    # Gaps are all but opaque, all else all but see-through, where resampling leaves a trace.
    assert {0.0, 1.0} <= set(np.unique(pixels[..., 3].round(2)))
    assert (pixels[..., 3] < 0.01).mean() > 0.6
    assert "fill: var(--observed)" in figure


def test_one_cluster_is_not_compared(tmp_path):
    """With one cluster there is no separation, nothing explained, and no section without content."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    page = kpod.report(KPOD(1, random_state=0).fit(X), X).html
    shown = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(
        "separation|of variance explained|others|Clusters that overlap", shown, re.IGNORECASE
    )
    sections = re.findall(r'<section id="([a-z]+)".*?</h2>(.*?)</section>', shown, re.DOTALL)
    assert {anchor for anchor, _ in sections} >= {"clusters", "centers", "missing", "careful"}
    assert all(re.sub(r"<[^>]*>|\s", "", content) for _, content in sections)
    anchors = re.findall(r'<a href="#([a-z]+)">', shown[: shown.index("<main>")])
    assert anchors == [anchor for anchor, _ in sections if anchor != "members"]
