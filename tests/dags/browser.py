"""A headless Chromium that a test looks at Airflow's pages with.

In:  chromium and chromedriver of the machine (apt packages chromium, chromium-driver).
Out: a Selenium driver; without them the test is skipped, with that reason, unless TIDEGATE_REQUIRE_BROWSER is set.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import (
    element_to_be_clickable,
    frame_to_be_available_and_switch_to_it,
)
from selenium.webdriver.support.wait import WebDriverWait

from tidegate.local.airflow import Airflow

PAGE_SECONDS_MAX = 120
# Root has no sandbox in a container; /dev/shm is small there.
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1400,1800")


@contextmanager
def browser() -> Iterator[Chrome]:
    """A new browser, closed at the end."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        if os.environ.get("TIDEGATE_REQUIRE_BROWSER"):
            raise AssertionError("no chromium or chromedriver: apt-get install chromium chromium-driver")
        pytest.skip("no chromium or chromedriver here: apt-get install chromium chromium-driver")
    options = Options()
    options.binary_location = chromium
    for argument in ARGUMENTS:
        options.add_argument(argument)
    opened = Chrome(options=options, service=Service(driver))
    try:
        yield opened
    finally:
        opened.quit()


def log_in(driver: Chrome, airflow: Airflow) -> None:
    """Through Airflow's login page, as its admin."""
    driver.get(airflow.url)
    wait = WebDriverWait(driver, PAGE_SECONDS_MAX)
    wait.until(element_to_be_clickable((By.NAME, "username"))).send_keys(airflow.user)
    driver.find_element(By.NAME, "password").send_keys(airflow.password)
    driver.find_element(By.CSS_SELECTOR, "button").click()
    wait.until(lambda page: "login" not in page.current_url)


def see(driver: Chrome, url: str | None, texts: Sequence[str]) -> None:
    """Go to a page (None: stay) and wait until it shows every text; AssertionError names those it doesn't."""
    if url:
        driver.get(url)
    missing = list(texts)

    def shown(page: Chrome) -> bool:
        nonlocal missing
        body = page.find_element(By.TAG_NAME, "body").text
        missing = [text for text in texts if text not in body]
        return not missing

    try:
        WebDriverWait(driver, PAGE_SECONDS_MAX, ignored_exceptions=[StaleElementReferenceException]).until(shown)
    except TimeoutException:
        raise AssertionError(f"{driver.current_url} doesn't show {missing}") from None


def click(driver: Chrome, selector: str) -> None:
    """Click what a CSS selector finds, once it can be clicked."""
    WebDriverWait(driver, PAGE_SECONDS_MAX).until(element_to_be_clickable((By.CSS_SELECTOR, selector))).click()


def see_in_frame(driver: Chrome, texts: Sequence[str]) -> None:
    """As see, inside the one frame of the page, which a plugin's page is shown in."""
    WebDriverWait(driver, PAGE_SECONDS_MAX).until(frame_to_be_available_and_switch_to_it((By.TAG_NAME, "iframe")))
    see(driver, None, texts)
    driver.switch_to.default_content()


def can_be_clicked(driver: Chrome, text: str) -> bool:
    """Whether the page's last button of this text, that of the form in front, is enabled within a few seconds."""

    def enabled(page: Chrome) -> bool:
        found = page.find_elements(By.XPATH, f"//button[normalize-space()='{text}']")
        return bool(found) and found[-1].is_enabled()

    try:
        WebDriverWait(driver, PAGE_SECONDS_MAX, ignored_exceptions=[StaleElementReferenceException]).until(enabled)
    except TimeoutException:
        return False
    return True
