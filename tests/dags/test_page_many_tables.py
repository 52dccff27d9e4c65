"""A page of 10,000 tables is as small as one of 200, in a browser: counted, since a clock says more of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.dags.browser import browser, click, see
from tests.dags.page_looks import look_at, resize, walk_by_keyboard
from tests.dags.page_server import served
from tests.support.pipeline_views import NOW, view
from tidegate_airflow.page.tables_list import PAGE_ROWS

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore")]

MANY = 10_000
BYTES_MAX = 150_000
ELEMENTS_MAX = 3_000
REQUESTS = (
    "return performance.getEntriesByType('resource').filter(each => !each.name.endsWith('/favicon.ico'))"
    ".map(each => new URL(each.name).pathname)"
)
BYTES = "return performance.getEntriesByType('navigation')[0].decodedBodySize"


def test_ten_thousand_tables_are_one_small_page_and_the_server_sorts_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    screenshots = Path(os.environ.get("SCREENSHOTS", tmp_path))
    with served(monkeypatch, {"shop": view(MANY)}) as url, browser() as chromium:
        resize(chromium, 1400)
        for path, rows in (("", 2), ("dags/shop__apply", PAGE_ROWS + 10)):
            see(chromium, f"{url}/{path}", ["10,000 tables" if path else "9,996 active"])
            requests = chromium.execute_script(REQUESTS)
            assert [each.rpartition("/")[2] for each in requests] == ["page.js"], "one document, and its script"
            assert chromium.execute_script(BYTES) < BYTES_MAX
            assert len(chromium.find_elements(By.CSS_SELECTOR, "tr")) <= rows
            assert len(chromium.find_elements(By.CSS_SELECTOR, "*")) < ELEMENTS_MAX
        look_at(chromium, screenshots, "many")
        resize(chromium, 1400)
        Select(chromium.find_element(By.NAME, "sort")).select_by_visible_text("largest")
        chromium.find_element(By.NAME, "q").send_keys("orders_099", Keys.ENTER)
        see(chromium, None, ["100 of 10,000 tables"])
        names = chromium.find_elements(By.CSS_SELECTOR, "[aria-label='List of tables'] th[scope=row]")
        assert [each.text for each in names[:2]] == ["shop.orders_09999", "shop.orders_09998"]


def test_a_keyboard_alone_reaches_all_that_can_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)
    with served(monkeypatch, {"shop": view(), "calm": view(held=False, name="calm")}) as url, browser() as chromium:
        for width in (1400, 400):
            resize(chromium, width)
            see(chromium, f"{url}/", ["shop"])
            assert walk_by_keyboard(chromium) >= 3
            see(chromium, f"{url}/dags/shop__apply?q=orders_0000", ["10 of 40 tables"])
            assert walk_by_keyboard(chromium) >= 20
            click(chromium, "a[href$='name=shop.orders_00001']")
            see(chromium, None, ["Schema"])
            assert walk_by_keyboard(chromium) >= 2
