"""A newcomer's questions, answered by the page alone, in a browser: light and dark, narrow and wide."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.dags.browser import browser, click, see
from tests.dags.page_looks import look_at, resize
from tests.dags.page_server import served
from tests.support.pipeline_views import NOW, source, view
from tidegate.capture.source import Retention
from tidegate.commit_ts import compose
from tidegate.lake.figures.maintained import LastMaintain, LeftStep, MaintainStep
from tidegate.pipelines import PipelineView
from tidegate.segments.prewrites import Prewrite
from tidegate.tables.prewrites_table import PrewriteState

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore")]

HOST = "tidegate@shop-production.cluster-c1x2y3z4w5.eu-central-1.rds.amazonaws.com:3306"
# The words of the road that go over an end of a line.
_TORN = """
const torn = [], walker = document.createTreeWalker(document.querySelector('.road'), NodeFilter.SHOW_TEXT);
while (walker.nextNode())
  for (const word of walker.currentNode.data.matchAll(/\\w+/g)) {
    const range = document.createRange();
    range.setStart(walker.currentNode, word.index);
    range.setEnd(walker.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map(each => Math.round(each.top))).size > 1) torn.push(word[0]);
  }
return torn;
"""


def behind() -> PipelineView:
    """Capture of eu is down for three hours, and its server purges soon."""
    stands = view().standing
    assert stands is not None
    eu = source("eu")
    captured = replace(eu.captured, resolved_ts=compose(int((NOW - 10_800) * 1000)), heard_at=NOW - 10_800)  # type: ignore[type-var]
    late = replace(
        eu,
        captured=captured,
        nothing_missing=False,
        lag_seconds=10_800.0,
        behind_bytes=52_000_000,
        server=replace(eu.server, host=HOST),
        purge=Retention(6 * 3600.0, "age", "binlog.000005", 1),
    )
    stands = replace(stands, lag_seconds=10_801.0, sources=(late, stands.sources[1]))
    hours_ago = compose(int((NOW - 18_000) * 1000))
    parked = Prewrite("eu", "X'6f72646572',X'',1", hours_ago, 1, 1, ("shop.orders_00001",), PrewriteState.PARKED)
    steps = (MaintainStep("cluster", 12, 90, 14, 5_000_000, 4_000_000, 75.0),)
    full = LeftStep("shop.orders_00007", "vacuum", "left", "No space left on device")
    maintained = LastMaintain(NOW - 18_000, steps, (full,), 1)
    return replace(view(), standing=stands, prewrites=(parked,), maintained=maintained)


def test_the_page_answers_a_newcomers_questions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    screenshots = Path(os.environ.get("SCREENSHOTS", tmp_path))
    with served(monkeypatch, {"shop": behind(), "calm": view(held=False, name="calm")}) as url, browser() as chromium:
        see(chromium, f"{url}/", ["behind", "Capture of eu is 3.0 h behind its server", "in 6.0 h (eu)", "20 equal"])
        look_at(chromium, screenshots, "overview")
        see(
            chromium,
            f"{url}/dags/shop__apply",
            [
                "It has run for 15 min, and its last segment came 3.0 h ago.",
                "52.0 MB of binlog wait",
                "Changes: the server may purge what isn't captured in 6.0 h",
                "About 40.0 s left, done at 2026-09-21",
                "Since 2026-09-21 14:00:00 UTC",
                "What ends it",
                "19 equal",
                "99,961",
                "Last schema changes",
                "qty int(11) -> bigint(20)",
                "no: the table is held",
                "your answer, by tidegate prewrites shop --commit",
                "The last run ended 5.0 h ago",
                "No space left on device",
            ],
        )
        look_at(chromium, screenshots, "pipeline")
        resize(chromium, 3840, 2160)
        wide = chromium.execute_script("return document.querySelector('main').getBoundingClientRect().width")
        assert wide > 0.95 * 3840, "a large screen is used whole"
        places = (
            "return [...document.querySelectorAll('svg.chart')].map(svg => Math.round(svg.getBoundingClientRect().top))"
        )
        for width in (1400, 1150, 900, 700, 400):
            resize(chromium, width)
            assert chromium.execute_script(_TORN) == [], f"a host breaks at its separators, {width} pixels wide"
            tops = chromium.execute_script(places)
            assert len(set(tops)) == -(-6 // _in_a_row(chromium)), f"charts of a row begin at one height: {tops}"
        click(chromium, "a[href$='name=shop.orders_00001']")
        see(chromium, None, ["+ note text", "qty int(11) -> bigint(20)", "ALTER TABLE t ADD note", "What ends it"])
        look_at(chromium, screenshots, "table")
        assert not chromium.find_elements(By.CSS_SELECTOR, "form[method=post], [formmethod=post]")


def _in_a_row(chromium: Chrome) -> int:
    """How many charts stand side by side."""
    lefts = "return [...document.querySelectorAll('figure')].map(each => Math.round(each.getBoundingClientRect().left))"
    return len(set(chromium.execute_script(lefts)))
