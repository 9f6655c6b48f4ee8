# SPDX-License-Identifier: Apache-2.0
"""Looks at the page of a console in headless Chromium.

Usage: page.py PART URL. Changes of the world are asked for by lines "please ..." on standard output, which are answered by a
line on standard input. Exits with 1 and a reason if the page is not as it should be.
"""

import os
import sys
import time
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

PART, URL = sys.argv[1], sys.argv[2]
PICTURES = os.environ.get("TARAN_BROWSER_PICTURES")
TIMEOUT_MS = 30_000
SIZES = {"wide": (1200, 900), "narrow": (390, 844)}


def please(action):
    print(f"please {action}", flush=True)
    answer = sys.stdin.readline().strip()
    check(answer == "done", f"{action}: {answer!r}")


def check(condition, reason):
    if not condition:
        raise SystemExit(f"{PART}: {reason}")


class Watched:
    """A page whose complaints and requests are collected."""

    def __init__(self, browser, size="wide", scheme="dark"):
        width, height = SIZES[size]
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce")
        self.page = self.context.new_page()
        self.page.set_default_timeout(TIMEOUT_MS)
        self.complaints = []
        self.is_console_expected = True
        self.page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        self.page.on("console", self.on_message)
        self.page.on("request", self.on_request)
        self.page.goto(URL)
        self.page.wait_for_selector("#connection[data-state=live]")

    def on_message(self, message):
        # A console that was asked to end cannot be reached.
        if message.type in ("error", "warning") and self.is_console_expected:
            self.complaints.append(f"{message.type}: {message.text}")

    def on_request(self, request):
        if urlsplit(request.url).netloc != urlsplit(URL).netloc:
            self.complaints.append(f"request to elsewhere: {request.url}")

    def check_fits(self, what):
        sizes = self.page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        check(sizes[0] <= sizes[1], f"{what}: the page scrolls sideways: {sizes}")

    def rows(self):
        return self.page.locator("tr.stream")

    def selected(self):
        return self.page.evaluate(
            "[...document.querySelectorAll('tr.stream')].findIndex((row) => row.ariaSelected === 'true')")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def picture(self, name, whole=True):
        if PICTURES:
            os.makedirs(PICTURES, exist_ok=True)
            self.page.screenshot(path=os.path.join(PICTURES, f"{name}.png"), full_page=whole)

    def close(self):
        check(self.complaints == [], f"complaints: {self.complaints}")
        self.context.close()


def eventually(what, condition):
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while not condition():
        check(time.monotonic() < deadline, f"waited in vain for {what}")
        time.sleep(0.05)


def await_text(watched, selector, text):
    eventually(f"{text!r} in {selector}",
               lambda: text in " ".join(watched.page.locator(selector).all_inner_texts()))


def desk(browser):
    for scheme in ("dark", "light"):
        for size in SIZES:
            watched = Watched(browser, size, scheme)
            await_text(watched, "#attention", "limited by subscriber")
            await_text(watched, "#attention", "critical")
            await_text(watched, "#attention", "no driver is running")
            await_text(watched, "#drivers", "no driver")
            await_text(watched, "#drivers", "alive")
            await_text(watched, "#streams", "market-data[4711]")
            await_text(watched, "#attention", "risk<img src=x onerror=alert(1)>")
            ground = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
            brightness = sum(int(part) for part in ground[4:-1].split(","))
            check((brightness > 380) == (scheme == "light"), f"{scheme}: ground {ground}")
            eventually("nodes and edges", lambda: watched.page.locator("#flow .edge").count() >= 8)
            # It is stuck once it has read nothing for two seconds.
            eventually("the edge of the stuck subscriber", lambda: watched.page.locator("#flow .edge.stuck").count() == 1)
            watched.check_fits(f"{scheme} {size}")
            watched.picture(f"desk-{scheme}-{size}")
            watched.press("a")
            eventually("details", lambda: watched.page.locator("tr.details").count() == 1)
            watched.check_fits(f"{scheme} {size} with details")
            watched.picture(f"details-{scheme}-{size}")
            watched.close()
    keys(browser)


def keys(browser):
    watched = Watched(browser)
    page = watched.page
    eventually("streams", lambda: watched.rows().count() >= 5)
    every = watched.rows().count()
    watched.press("/")
    page.keyboard.type("strategy 2001")
    eventually("the filter", lambda: watched.rows().count() == 1)
    check(page.locator("#flow .node.stream").count() == 1, "the graph follows the filter")
    page.keyboard.type(" nonsense")
    await_text(watched, "#streams-empty", "No stream passes the filter")
    watched.press("Escape")
    eventually("all streams", lambda: watched.rows().count() == every)
    watched.press("s", "s", "s", "s")
    check(page.locator("th[aria-sort=ascending]").inner_text().startswith("Stream"), "ordered by stream")
    watched.press("j", "j")
    check(watched.selected() == 1, f"the second stream is selected, not {watched.selected()}")
    watched.press("k")
    check(watched.selected() == 0, "the first stream is selected")
    watched.press("Enter")
    eventually("details", lambda: page.locator("tr.details").count() == 1)
    eventually("a line", lambda: "L" in (page.locator("tr.details .line.flow").get_attribute("d") or ""))
    watched.press("Enter")
    check(page.locator("tr.details").count() == 0, "no details")
    watched.press("n")
    check(page.locator("#nonzero").is_checked(), "only moving streams")
    watched.press("n", "?")
    check(page.locator("#help").is_visible(), "the list of keys")
    watched.press("Escape")
    check(not page.locator("#help").is_visible(), "no list of keys")
    watched.press("t", "t")
    check(page.evaluate("document.documentElement.dataset.theme") == "dark", "the dark theme")
    watched.picture("keys", whole=False)
    page.locator("#flow .node.stream").first.click()
    eventually("details", lambda: page.locator("tr.details").count() == 1)
    watched.close()


def many(browser):
    for size in SIZES:
        watched = Watched(browser, size)
        eventually("200 streams", lambda: watched.rows().count() == 200)
        await_text(watched, "#flow-note", "of 200 streams")
        watched.check_fits(f"200 streams, {size}")
        watched.picture(f"many-{size}", whole=False)
        watched.press("/")
        watched.page.keyboard.type("service-3[")
        eventually("the filter", lambda: 0 < watched.rows().count() < 200)
        watched.press("Escape")
        eventually("200 streams", lambda: watched.rows().count() == 200)
        for _ in range(30):
            watched.press("j")
        check(watched.selected() >= 0, "a selected stream")
        eventually("the selected stream on the screen", lambda: watched.page.evaluate("""() => {
            const box = document.querySelector('tr[aria-selected=true]').getBoundingClientRect();
            return box.top >= 0 && box.bottom <= innerHeight;
        }"""))
        watched.close()


def life(browser):
    watched = Watched(browser)
    await_text(watched, "#drivers", "alive")
    eventually("streams", lambda: watched.rows().count() >= 5)
    please("kill the driver")
    await_text(watched, "#drivers", "dead")
    await_text(watched, "#attention", "was killed or has crashed")
    await_text(watched, "#drivers .reason", "Since ")
    watched.check_fits("a dead driver")
    watched.picture("dead")
    please("start the driver")
    await_text(watched, "#drivers", "alive")
    await_text(watched, "#streams", "moving")
    watched.is_console_expected = False
    please("end the console")
    watched.page.wait_for_selector("#connection[data-state=reconnecting]")
    watched.picture("reconnecting")
    please("start the console")
    watched.page.wait_for_selector("#connection[data-state=live]")
    await_text(watched, "#streams", "moving")
    watched.close()


with sync_playwright() as playwright:
    chromium = playwright.chromium.launch(
        executable_path=os.environ.get("TARAN_BROWSER"),
        # The tests run as root in containers, where Chromium has no sandbox of its own.
        args=["--no-sandbox", "--disable-dev-shm-usage"])
    {"desk": desk, "many": many, "life": life}[PART](chromium)
    chromium.close()
