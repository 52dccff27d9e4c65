"""The page's first answer takes seconds: a browser is told so meanwhile, and Airflow's loop goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

BROWSER = [(b"accept", b"text/html,*/*")]


class Slow:
    """An application whose import, and whose first answer, take until they are let go."""

    def __init__(self) -> None:
        self.imported, self.read = threading.Event(), threading.Event()
        self.asked = 0

    def application(self) -> Any:
        self.asked += 1
        self.imported.wait(60)
        return self._answer

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(self.read.wait, 60)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"the lake"})


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    from tidegate_airflow.page import opening

    made = Slow()
    monkeypatch.setattr(opening, "_application", made.application)
    return made


def asked(page: Any, *, method: str = "GET", headers: Any = ()) -> Coroutine[Any, Any, bytes]:
    async def ask() -> bytes:
        said: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            said.append(message)

        await page({"type": "http", "method": method, "path": "/", "headers": headers}, receive, send)
        assert [message["type"] for message in said] == ["http.response.start", "http.response.body"]
        return bytes(said[1]["body"])

    return ask()


def test_a_browser_is_told_until_the_first_answer_is_there_and_never_again(slow: Slow) -> None:
    from tidegate_airflow.page.opening import Page

    async def story() -> None:
        page, began = Page(), time.monotonic()
        beside = asyncio.create_task(asyncio.sleep(0.1, "the loop goes on"))
        assert b"Reading the lakes" in await asked(page, headers=BROWSER)
        assert await beside == "the loop goes on"
        assert time.monotonic() - began < 30
        slow.imported.set()
        assert b"http-equiv='refresh'" in await asked(page, headers=BROWSER), "the lakes are read still"
        slow.read.set()
        await asyncio.wait(page._late)
        slow.read.clear()
        later = asyncio.create_task(asked(page, headers=BROWSER))
        await asyncio.sleep(1)
        assert not later.done(), "a page that is slow once more is waited for"
        slow.read.set()
        assert await later == b"the lake"

    asyncio.run(story())


def test_a_browser_that_reloads_each_second_asks_once(slow: Slow) -> None:
    """Each reload had a thread of its own, and made a page that nobody saw, on a machine that is slow already."""
    from tidegate_airflow.page.opening import Page

    async def story() -> None:
        page = Page()
        for _ in range(5):
            assert b"Reading the lakes" in await asked(page, headers=BROWSER)
        assert slow.asked == 1
        slow.imported.set()
        slow.read.set()
        await asyncio.wait(page._late)
        assert await asked(page, headers=BROWSER) == b"the lake"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("method", "headers"),
    [("GET", []), ("GET", [(b"accept", b"application/json")]), ("POST", BROWSER)],
    ids=["script", "json", "form"],
)
def test_whoever_asks_for_no_page_gets_the_answer_itself(slow: Slow, method: str, headers: Any) -> None:
    from tidegate_airflow.page.opening import Page

    async def story() -> None:
        answer = asyncio.create_task(asked(Page(), method=method, headers=headers))
        await asyncio.sleep(1)
        assert not answer.done()
        slow.imported.set()
        slow.read.set()
        assert await answer == b"the lake"

    asyncio.run(story())


def test_a_fault_of_the_application_is_raised_and_the_next_one_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate_airflow.page import opening

    def broken() -> Any:
        raise ImportError("no module")

    page, made = opening.Page(), Slow()
    made.imported.set()
    made.read.set()
    with monkeypatch.context() as patched:
        patched.setattr(opening, "_application", broken)
        with pytest.raises(ImportError):
            asyncio.run(asked(page, headers=BROWSER))
    monkeypatch.setattr(opening, "_application", made.application)
    assert asyncio.run(asked(page, headers=BROWSER)) == b"the lake"


def test_airflows_views_lead_to_the_page_where_it_is_mounted() -> None:
    """tests/dags/test_buttons_in_airflow.py opens them in Airflow itself, each night."""
    from starlette.routing import Match

    from tidegate_airflow.page.application import app
    from tidegate_airflow.plugin import TidegatePlugin

    (mounted,) = TidegatePlugin.fastapi_apps
    assert mounted["url_prefix"] == "/tidegate"
    assert [view["destination"] for view in TidegatePlugin.external_views] == ["nav", "dag"]
    for view in TidegatePlugin.external_views:
        path = view["href"].replace("{DAG_ID}", "road__apply").removeprefix(mounted["url_prefix"])
        scope = {"type": "http", "method": "GET", "path": path}
        assert [route for route in app.routes if route.matches(scope)[0] is Match.FULL], path
