"""The site in build/site, as a reader without a network sees it; `make site` runs this after building.

Every page is opened from its file in Chromium: no error, no request that leaves the folder, no link, anchor
or picture that leads nowhere, and nothing that scrolls sideways on a phone.
"""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from tests.helpers.browser import in_browser, requested

SITE = Path(__file__).parent.parent / "build" / "site"
PAGES = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


class Page(HTMLParser):
    """What a page refers to, and what can be referred to in it."""

    def __init__(self, path):
        super().__init__()
        self.path, self.links, self.parts, self.anchors = path, [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors.update(value for key in ("id", "name") if (value := found.get(key)))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and found.get("rel") not in ("canonical", "next", "prev", "search", "author"):
            self.parts.append(found["href"])
        self.parts += [found["src"]] if "src" in found else []
        self.parts += [part.split()[0] for part in found.get("srcset", "").split(",") if part.strip()]


def broken(page, pages):
    """References of a page that lead nowhere, or out of the folder where a part of the page is needed."""
    wrong = []
    for url in [*page.links, *page.parts]:
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            wrong += [url] if url in page.parts and parts.scheme != "data" else []
            continue
        target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
        at = unquote(parts.fragment)
        if not target.is_file() or (at and target in pages and at not in pages[target].anchors):
            wrong.append(url)
    return wrong


def wider_than_the_screen(browser):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    width = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return width - PHONE["width"]


def errors(browser):
    return [
        entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("WARNING", "SEVERE")
    ]


def look(browser, path):
    """Errors, requests that leave the folder, pictures that do not show, pixels beyond a phone's screen."""
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(path.as_uri())
    unseen = browser.execute_script(
        "return [...document.images].map(i => (i.loading = 'eager', i))"
        ".filter(i => i.complete && i.naturalWidth === 0).map(i => i.src)"
    )
    return errors(browser), requested(browser), unseen, max(0, wider_than_the_screen(browser))


def test_there_is_a_site():
    assert SITE / "index.html" in PAGES, "run make site"
    examples = [
        page for page in PAGES if page.parent.parent.name == "auto_examples" and page.name.startswith("plot_")
    ]
    assert len(examples) >= 12
    for page in examples:
        assert list((SITE / "_images").glob(f"sphx_glr_{page.stem}_*.png")), f"{page.stem} has no picture"


def test_every_link_anchor_and_picture_is_there():
    pages = {path: Page(path) for path in PAGES}
    wrong = {str(path.relative_to(SITE)): found for path in PAGES if (found := broken(pages[path], pages))}
    assert wrong == {}


@in_browser
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(SITE)))
def test_a_page_shows_without_error_or_network_and_fits_a_phone(browser, path):
    assert look(browser, path) == ([], [], [], 0)


@in_browser
def test_search_finds_predict_proba(browser):
    browser.get((SITE / "search.html").as_uri() + "?q=predict_proba")
    for page in ("kpod.KPOD.html", "choosing.html"):
        found = f'#search-results a[href*="{page}"]'
        WebDriverWait(browser, 600).until(lambda b, css=found: b.find_elements("css selector", css), page)
    assert errors(browser) == []


WORDS = {
    "NaN": "index",
    "missing values": "index",
    "imputation": "comparison",
    "MNAR": "gaps",
    "elbow": "troubleshooting",
    "n_jobs": "troubleshooting",
    "GPU": "troubleshooting",
    "time series": "troubleshooting",
    "Gaussian mixture": "mixture",
    "Dask": "growing",
    "Excel": "installing",
    "SPSS": "spss-sas",
    "categories": "mixed",
    "ratings": "sparse",
    "checkpoint": "growing",
    "memory": "from_disk",
    "silhouette": "silhouette",
    "outliers": "command-line",
    "predict_proba": "KPOD",
    "standardise": "",
    "kmeans with missing values python": "questions",
    "cluster survey data with missing answers": "questions",
    "how many clusters with nan": "choosing",
    "kpod vs imputation": "comparison",
    "kmeans sparse ratings nan not zero": "sparse",
    "cluster larger than memory csv": "scale",
    "spark kmeans missing values": "questions",
    "gaussian mixture nan sklearn": "mixture",
    "is my missingness informative": "",
    "assign new rows to clusters with missing values": "questions",
}
"""What strangers type, and the page that ought to be among the first three; "" where several would do."""


@in_browser
@pytest.mark.parametrize("words", WORDS)
def test_search_finds_what_a_stranger_types(browser, words):
    browser.get((SITE / "search.html").as_uri() + f"?q={words.replace(' ', '+')}")
    WebDriverWait(browser, 600).until(
        lambda b: any("finished" in p.text for p in b.find_elements("css selector", "#search-results p")),
        words,
    )
    hits = browser.find_elements("css selector", "#search-results ul.search > li > a")
    found = [hit.get_attribute("href") for hit in hits[:3]]
    assert any(WORDS[words].lower() in url.lower() for url in found), found


@in_browser
def test_the_live_report_is_there(browser):
    browser.get((SITE / "_static" / "wine-report.html").as_uri())
    assert browser.find_elements("css selector", "#members a, #members button")
    assert errors(browser) == []
    page = Page(SITE / "index.html")
    assert any(link.endswith("wine-report.html") for link in page.links)


@in_browser
def test_the_front_page_shows_the_live_report(browser):
    """In a frame that can be clicked: the rows of a cluster are listed in it."""
    browser.get((SITE / "index.html").as_uri())
    frame = browser.find_element("css selector", "iframe.live-report")
    browser.execute_script("arguments[0].loading = 'eager'; arguments[0].scrollIntoView()", frame)
    browser.switch_to.frame(frame)
    WebDriverWait(browser, 600).until(lambda b: b.find_elements("css selector", "#member-count"))
    browser.execute_script("document.querySelector('a.members').click()")
    assert "of cluster 0" in browser.find_element("id", "member-count").text
    browser.switch_to.default_content()
    assert browser.execute_script("return arguments[0].clientHeight", frame) > 500


@in_browser
def test_thumbnails_are_as_wide_as_their_cards(browser):
    """A picture in which something can be seen."""
    browser.get((SITE / "auto_examples" / "index.html").as_uri())
    shares = browser.execute_script(
        "return [...document.querySelectorAll('.sphx-glr-thumbcontainer img')]"
        ".map(i => [i.clientWidth, i.clientWidth / i.closest('.sphx-glr-thumbcontainer').clientWidth])"
    )
    assert len(shares) >= 12
    assert all(width >= 240 and share > 0.8 for width, share in shares), shares


@in_browser
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(browser, mode):
    browser.get((SITE / "guide.html").as_uri())
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", mode)
    shades = browser.execute_script(
        "const rgb = c => c.match(/[0-9.]+/g).slice(0, 3).map(Number);"
        "const at = (s, p) => rgb(getComputedStyle(document.querySelector(s))[p]);"
        "return [at('body', 'backgroundColor'), at('article p', 'color'),"
        "at('article pre', 'backgroundColor'), at('article pre', 'color')]"
    )
    page, text, block, code = map(luminance, shades)
    assert (page > 0.5) == (mode == "light")
    assert contrast(page, text) > 4.5
    assert contrast(block, code) > 4.5


def luminance(rgb):
    linear = [c / 12.92 if (c := v / 255) <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for v in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


@in_browser
def test_these_checks_would_see_it(browser, tmp_path):
    (tmp_path / "bad.html").write_text(
        "<!doctype html><meta name=viewport content='width=device-width'>"
        "<a href='gone.html'>a</a><a href='#gone'>b</a>"
        "<img src='http://127.0.0.1:9/x.png'><img src='lost.png'><div style='width:900px'>wide</div>"
        "<script>console.error('seen')</script>"
    )
    page = Page(tmp_path / "bad.html")
    assert broken(page, {page.path: page}) == ["gone.html", "#gone", "http://127.0.0.1:9/x.png", "lost.png"]
    messages, requests, unseen, over = look(browser, page.path)
    assert any("seen" in message for message in messages)
    assert requests == ["http://127.0.0.1:9/x.png"]
    assert len(unseen) == 2
    assert over > 400
