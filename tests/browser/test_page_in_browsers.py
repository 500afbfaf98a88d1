"""The page in real browsers: every view, looking back, steering, a server that goes, a very large run.

Each test is a visit; browsers are slow to start, so there are few, and they share one. All are in this
module, so that one worker runs them, one after another.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.driver import PATIENCE, Browser
from tests.browser.stage import LargeRun, large_story

from anabranch import Session, col, count
from anabranch.engine.run import Run
from anabranch.observe.page.opening import page_of_run
from anabranch.observe.page.server import Page
from anabranch.testing.faults import Schedule, slow

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
VIEWS = ("plan", "map", "heat", "time", "sites", "decisions", "streams", "results", "warnings")
READY = "document.documentElement.dataset.ready === 'yes'"


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    with Browser(request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def axe() -> str:
    found = subprocess.run(
        [ROOT / "scripts" / "ensure-browsers.sh"], check=True, capture_output=True, text=True
    )
    return (Path(found.stdout.strip()) / "axe.min.js").read_text()


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """One that goes on, with moves and state that is put aside."""
    settings = {
        "max_rows_per_epoch": 3_000, "least_gain_seconds": 0.0, "site_memory_bytes": 40_000,
        "partitions_per_site": 8,
    }  # fmt: skip
    session = Session.in_process(sites=3, settings=settings)
    session.stream("tcp", generator="packets", rows=50_000_000, ordered="time", lateness=2)
    flows = session.from_stream("tcp").group_by((col("time") // 20).alias("tb"), "srcIP", "destIP")
    session.query("flows", flows.agg(count().alias("cnt")))
    burdens = Schedule([slow(1, seconds_per_row=0.00002)])
    started = session.start(sinks={"flows": "memory"}, trigger=1.0, burdens=burdens)
    wait_for(lambda: sum(one["accepted"] for one in started.history()) >= 3)
    yield started
    started.stop()


@pytest.fixture
def page(run: Run) -> Iterator[Page]:
    opened = page_of_run(run, control=True)
    yield opened
    opened.close()


def wait_for(condition: Any) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


def visit(browser: Browser, page: Page, width: int = 1300, height: int = 900) -> None:
    browser.errors.clear()
    browser.size(width, height)
    browser.open(page.url)
    browser.wait(READY)
    assert "token" not in browser.script("location.href")


def show(browser: Browser, view: str, part: str) -> None:
    """Scrolls a view into sight, and waits until it is drawn: what is out of sight is not."""
    browser.script(f"document.getElementById('view-{view}').scrollIntoView({{block: 'start'}})")
    browser.wait(f"document.querySelector({json.dumps(part)}) !== null", part)


def findings(browser: Browser, axe: str) -> list[str]:
    """What axe calls serious or worse."""
    browser.script(f"(() => {{ {axe}\n; window.axe = axe; return true; }})()")
    found = browser.script("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {[node['html'][:200] for node in one['nodes']][:3]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def test_every_view_shows_the_run_and_goes_on(browser: Browser, page: Page, axe: str) -> None:
    beyond = (
        "document.querySelector('#plan').scrollWidth - document.querySelector('#plan').clientWidth"
    )
    visit(browser, page)
    browser.wait("document.querySelector('#status').dataset.state === 'running'")
    for view in VIEWS:
        body = {"map": "strips", "time": "charts"}.get(view, view)
        show(browser, view, f"#{body} > *")
    show(browser, "plan", "#plan .node")
    browser.wait("document.querySelectorAll('#plan .node').length === 3")
    browser.wait(
        "[...document.querySelectorAll('#plan .edge text')].some((one) => one.textContent.endsWith('/s'))"
    )
    # A plan that is wider than its panel is made smaller, as long as it can be read; then it scrolls
    assert browser.script("Number(document.querySelector('#plan svg').getAttribute('width'))") > 900
    browser.size(900, 900)
    browser.wait("document.querySelector('#plan').clientWidth < 900")
    assert browser.script(beyond) <= 0, "the plan is cut off"
    browser.size(500, 900)
    browser.wait("document.querySelector('#plan').clientWidth < 500")
    assert browser.script(beyond) > 0, "the plan is too small to be read"
    browser.size(1300, 900)
    show(browser, "decisions", "#decisions li:not(.empty):nth-child(3)")
    show(browser, "sites", "#sites tbody tr:nth-child(3)")
    seen = browser.script("Number(document.querySelector('#scrubber').max)")
    browser.wait(f"Number(document.querySelector('#scrubber').max) > {seen}", "the next epoch")
    for theme in ("light", "dark"):
        if browser.script("document.documentElement.dataset.theme") != theme:
            browser.click("#theme")
        assert findings(browser, axe) == []
    assert browser.errors == []


def test_looking_back_by_mouse_and_by_keyboard(browser: Browser, page: Page) -> None:
    visit(browser, page)
    browser.wait("Number(document.querySelector('#scrubber').max) > 5")
    browser.click("#back")
    browser.wait("document.querySelector('#live').getAttribute('aria-pressed') === 'false'")
    stays = browser.text("#moment")
    browser.script("document.querySelector('#scrubber').focus()")
    browser.press("ArrowLeft", "ArrowLeft")
    browser.wait(f"document.querySelector('#moment').textContent !== {json.dumps(stays)}")
    show(browser, "decisions", "#decisions .link")
    # The list may be drawn anew at any time: what is clicked is what is read
    chosen = browser.script(
        "(() => { const one = document.querySelector('#decisions .link');"
        " one.click(); return one.textContent; })()"
    )
    browser.wait(f"document.querySelector('#moment').textContent.startsWith('{chosen} ')")
    show(browser, "map", "#strips canvas")
    browser.script("document.querySelector('#strips canvas').focus()")
    browser.press("ArrowRight", "ArrowRight")
    browser.wait("document.querySelector('#strips .readout').textContent.includes('on site')")
    for mode in range(5):
        browser.click(f"#strip-modes button:nth-child({mode + 1})")
    browser.click("#heat-modes button:nth-child(2)")
    browser.click("#decision-modes button:nth-child(2)")
    browser.script("document.activeElement.blur()")
    browser.press("l")
    browser.wait("document.querySelector('#live').getAttribute('aria-pressed') === 'true'")
    assert browser.errors == []


def fill_in(browser: Browser, command: str, **values: int | str) -> None:
    """Fills in the form of commands, and tries it on paper."""
    browser.wait("document.querySelector('#control select') !== null")
    browser.script(
        "(() => { const which = document.querySelector('#control select[name=command]');"
        f" which.value = {json.dumps(command)}; which.dispatchEvent(new Event('change'));"
        + "".join(
            f" document.querySelector('#control input[name={name}]').value = {json.dumps(value)};"
            for name, value in values.items()
        )
        + " return true; })()"
    )
    browser.click("#try")


def test_steering_by_the_page(browser: Browser, page: Page, run: Run) -> None:
    visit(browser, page)
    start = run.partition_map("flows@1").starts[2]

    fill_in(browser, "pin", partition=start, site=2)
    browser.wait("document.querySelector('#do') !== null", "what is expected")
    assert f"Partition {start} of" in browser.text("#answer")
    browser.click("#do")
    browser.wait("/Done|refused/.test(document.querySelector('#answer').textContent)")
    assert "refused" in browser.text("#answer") or run.pins == {"flows@1": {start: 2}}
    fill_in(browser, "set_sites", sites=2)
    browser.wait("document.querySelector('#cancel') !== null")
    browser.click("#cancel")
    browser.wait("document.querySelector('#answer').textContent.includes('Nothing was done')")
    assert run.sites == 3
    fill_in(browser, "move", partition=start + 1, site=0)
    browser.wait("document.querySelector('#answer').textContent.includes('cannot be done')")
    assert [error for error in browser.errors if "409" not in error] == []


def test_another_shape_of_a_join_is_asked_for_and_seen(browser: Browser, axe: str) -> None:
    settings = {
        "max_rows_per_epoch": 600, "plans": "fixed", "policy": "none", "partitions_per_site": 4,
    }  # fmt: skip
    session = Session.in_process(sites=2, settings=settings)
    for name in "abc":
        session.stream(
            name, generator="packets", rows=50_000_000, ordered="time", rows_per_second=200
        )
    near = "b.time - a.time BETWEEN -1 AND 1 AND c.time - a.time BETWEEN -1 AND 1"
    session.query(
        "pairs",
        "SELECT a.time, a.srcIP FROM a, b, c WHERE a.srcIP = b.srcIP AND a.srcIP = c.srcIP "
        f"AND {near} AND b.len < c.len",
    )
    run = session.start(sinks={"pairs": "memory"}, trigger=0.5)
    page = page_of_run(run, control=True)
    subquery = next(name for name, one in run.plan.subqueries.items() if one.shaped)
    try:
        visit(browser, page)
        browser.wait("document.querySelectorAll('#shapes .shape svg circle').length > 0")
        assert "(0,1,2) on 8 partitions" in browser.text("#shapes")
        fill_in(browser, "replan", shape="((0,1),(2,3))")
        browser.wait("document.querySelector('#answer').textContent.includes('cannot be done')")
        fill_in(browser, "replan", shape="((0,1),2)")
        browser.wait("document.querySelector('#do') !== null", "what is expected")
        told = browser.text("#answer")
        assert f"'{subquery}' works as ((0,1),2) on all partitions, so far as (0,1,2)" in told
        assert "also keeps what a and b give with each other" in told
        browser.click("#do")
        show(browser, "plan", "#shapes .shape")
        browser.wait("document.querySelector('#shapes').textContent.includes('((0,1),2) on 8')")
        show(browser, "decisions", "#decisions .link")
        assert f"run {subquery} as ((0,1),2)" in browser.text("#decisions")
        assert findings(browser, axe) == []
        assert [error for error in browser.errors if "409" not in error] == []
    finally:
        page.close()
        run.stop()


def test_a_phone_a_server_that_goes_and_a_run_that_ends(browser: Browser, axe: str) -> None:
    session = Session.in_process(sites=2, settings={"max_rows_per_epoch": 2_000})
    session.stream("tcp", generator="packets", rows=10_000, ordered="time")
    flows = session.from_stream("tcp").group_by((col("time") // 60).alias("tb"), "srcIP")
    session.query("flows", flows.agg(count().alias("cnt")))
    run = session.start(sinks={"flows": "memory"})
    run.await_termination()
    page = page_of_run(run)
    try:
        visit(browser, page, 390, 844)
        browser.wait("document.querySelector('#status').textContent.includes('Ended')")
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.script(overflow) <= 0
        assert findings(browser, axe) == []
        assert browser.script("document.querySelector('#view-control').hidden")
        assert browser.errors == []
    finally:
        page.close()
    browser.wait("document.querySelector('#status').dataset.state === 'lost'")
    browser.wait("!document.querySelector('#notice').hidden")


HEAT = "document.querySelector('#heat canvas').toDataURL()"
DRAWN = """
(() => {
  window.frames_ = []; window.added_ = 0;
  new MutationObserver((seen) => seen.forEach((one) => { window.added_ += one.addedNodes.length; }))
    .observe(document.querySelector('main'), { childList: true, subtree: true });
  const stats = window.anabranchStats;
  let last = stats.last;
  const set = (to) => { last = to; window.frames_.push(to); };
  Object.defineProperty(stats, 'last', { get: () => last, set });
  return true;
})()
"""
"""Notes from now on what each frame takes, and how many nodes come into the page."""


def test_256_sites_8192_partitions_and_10000_decisions(browser: Browser) -> None:
    first, epochs = 320, 6
    story, large = large_story(epochs=first, decisions=10_000), LargeRun()
    page = Page(story, lambda query: None, live=True)
    try:
        # Every view is in sight, and more epochs than the map of slots and time has room for
        visit(browser, page, 620, 6_000)
        browser.wait("document.querySelectorAll('#strips canvas').length === 1")
        browser.wait("document.querySelectorAll('#decisions .link').length > 20")
        browser.script(DRAWN)
        for number in range(first, first + epochs):
            story.add(large.epoch(number))
            browser.wait(
                f"document.querySelector('#moment').textContent.startsWith('epoch {number} ')"
            )
        browser.wait(f"document.querySelector('#heat small').textContent.includes('to {number} ')")
        frames = sorted(browser.script("window.frames_"))
        assert frames[len(frames) // 2] < 50, frames
        # Only what changed is drawn anew: rows of streams and results, say, but no tick, line or decision
        assert browser.script("window.added_") < 60 * epochs
        kept = browser.script(HEAT)
        browser.click("#heat-modes button:nth-child(2)")
        browser.click("#heat-modes button:nth-child(1)")
        assert browser.script(HEAT) == kept, "the map that was kept is not what the epochs say"
        browser.size(1300, 900)
        browser.script("window.scrollTo(0, 0)")
        show(browser, "sites", "#sites canvas")
        show(browser, "decisions", "#decisions .link")
        shown = browser.script("document.querySelectorAll('#decisions li').length")
        assert 0 < shown <= 400, "a long list is shown in parts"
        browser.click("#older")
        browser.wait(f"document.querySelectorAll('#decisions li').length > {shown}")
        assert browser.errors == []
    finally:
        page.close()
