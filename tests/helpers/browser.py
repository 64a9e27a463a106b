"""A headless Chromium, and the requests of the page it shows."""

import json
import shutil

import pytest

chromium = shutil.which("chromium")
driver_path = shutil.which("chromedriver")
in_browser = pytest.mark.skipif(
    not (chromium and driver_path), reason="there is no Chromium with its driver on this machine"
)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1000,800",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    driver.command_executor.client_config.timeout = 3000  # a busy machine is slow
    driver.set_script_timeout(3000)
    driver.set_page_load_timeout(3000)
    yield driver
    driver.quit()


def requested(browser):
    """All requests of the page, itself apart; not what the browser's own first page still loads."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    urls = [params["request"]["url"] for params in requests if params["documentURL"] == browser.current_url]
    assert browser.current_url in urls
    return [url for url in urls if not url.startswith(("file:", "data:"))]
