"""The page's application for Airflow's API server. It is imported in a thread, when the page is first opened.

In:  requests. The first one may wait some seconds, for imports and a first look at the lakes.
Out: the application's answers. Until the first one a browser gets a page that says so.

The loop serves all of Airflow, tasks' heartbeats among them: no import runs in it. A waiting browser
reloads each second: only its first request makes a page, which it doesn't see any more.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tidegate.limits import PAGE_OPENING_SECONDS
from tidegate_airflow.page.layout import HEADERS, asks_for_html, opening


class Page:
    """An ASGI application."""

    def __init__(self) -> None:
        self._has_answered = False
        self._late = set[asyncio.Task[None]]()  # kept here, as asyncio keeps no reference to them

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._has_answered or not _is_a_persons(scope):
            await self._answer(scope, receive, send)
            return
        if self._late:
            await asyncio.wait(self._late, timeout=PAGE_OPENING_SECONDS)
            await (self._answer(scope, receive, send) if self._has_answered else _tell(send))
            return
        held: list[Any] = []

        async def hold(message: Any) -> None:
            held.append(message)

        answer = asyncio.create_task(self._answer(scope, receive, hold))
        await asyncio.wait([answer], timeout=PAGE_OPENING_SECONDS)
        if answer.done():
            answer.result()
        else:
            self._late.add(answer)
            answer.add_done_callback(self._late.discard)
            await _tell(send)
            return
        for message in held:
            await send(message)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        application = await asyncio.to_thread(_application)
        await application(scope, receive, send)
        self._has_answered = True


def _application() -> Any:
    from tidegate_airflow.page.application import app

    return app


def _is_a_persons(scope: Any) -> bool:
    """Whether a browser opens a page."""
    return bool(scope["type"] == "http" and scope["method"] == "GET" and asks_for_html(scope))


async def _tell(send: Any) -> None:
    """Send the page for the time until then."""
    headers = {"content-type": "text/html; charset=utf-8"} | HEADERS
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": encoded})
    await send({"type": "http.response.body", "body": opening().encode()})
