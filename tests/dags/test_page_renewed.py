"""An open page shows the newest state, whatever has the focus, and takes the focus from nobody."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Final

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from tests.dags.browser import browser, see
from tests.dags.page_server import Views, served
from tests.support.pipeline_views import NOW, table, view
from tidegate.config import Pipeline
from tidegate.pipelines import PipelineView
from tidegate.tables import State

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore")]

# The page asks every five seconds.
RENEWED_SECONDS_MAX: Final = 30
FIELD: Final = "This page waits while a field has the focus"


class Moving(Views):
    """Silver is a second further behind at each look. More tables are held from time to time, so that others move."""

    def __init__(self) -> None:
        super().__init__({"": view(held=False)})
        self._looks = itertools.count(1)
        self.held = 0

    def of(self, pipeline: Pipeline) -> Moving:
        del pipeline
        return self

    def view(self, span: str = "hour") -> PipelineView:
        look = super().view(span)
        assert look.standing is not None
        tables = [
            table(each.table, State.HELD) if number >= len(look.standing.tables) - self.held else each
            for number, each in enumerate(look.standing.tables)
        ]
        return replace(
            look, standing=replace(look.standing, lag_seconds=float(next(self._looks)), tables=tuple(tables))
        )


def head(chromium: Chrome) -> str:
    return chromium.find_element(By.CSS_SELECTOR, "main > p").text


def changes(chromium: Chrome) -> None:
    """Wait until the page shows a newer state."""
    before = head(chromium)
    WebDriverWait(chromium, RENEWED_SECONDS_MAX).until(lambda page: head(page) != before)


def focus(chromium: Chrome) -> str:
    at = "document.activeElement"
    return str(chromium.execute_script(f"return {at}.getAttribute('aria-label') ?? {at}.getAttribute('href')"))


def test_the_page_goes_on_and_keeps_the_focus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    moving = Moving()
    with served(monkeypatch, {"shop": moving.view()}, moving) as url, browser() as chromium:
        see(chromium, f"{url}/dags/shop__apply", ["The road", "shop.orders_00039"])
        ActionChains(chromium).click(
            chromium.find_element(By.CSS_SELECTOR, "[aria-label='List of tables'] td")
        ).perform()
        assert focus(chromium) == "List of tables"
        changes(chromium)
        assert focus(chromium) == "List of tables"
        link = chromium.find_element(By.LINK_TEXT, "shop.orders_00005")
        chromium.execute_script("arguments[0].focus()", link)
        moving.held = 3
        WebDriverWait(chromium, RENEWED_SECONDS_MAX).until(lambda page: "What waits" in page.page_source)
        assert focus(chromium).endswith("name=shop.orders_00005"), "other rows came before it"
        search = chromium.find_element(By.NAME, "q")
        search.send_keys("orders_0001")
        see(chromium, None, [FIELD])
        before = head(chromium)
        time.sleep(6)
        assert (head(chromium), search.get_property("value")) == (before, "orders_0001"), "nobody's word is taken away"
        chromium.execute_script("document.activeElement.blur()")
        changes(chromium)
        assert FIELD not in chromium.find_element(By.TAG_NAME, "body").text
        assert search.get_property("value") == "orders_0001"


def test_the_page_says_that_airflow_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = Moving()
    with browser() as chromium:
        with served(monkeypatch, {"shop": moving.view()}, moving) as url:
            see(chromium, f"{url}/dags/shop__apply", ["The road"])
        see(chromium, None, ["Airflow doesn't answer: this page shows its last answer."])
