"""Answers to requests that are refused: a page in words for a browser, JSON for a program.

In:  a request, why it is refused: no login, no right, no such page, a value that the page doesn't know.
Out: the answer, with its status.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from fastapi import FastAPI
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from jwt import InvalidTokenError
from starlette.exceptions import HTTPException

from tidegate.text_layout import sentence
from tidegate_airflow.page.layout import HEADERS, asks_for_html, document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import Request
    from fastapi.responses import Response

_NO_LOGIN: Final = "You aren't logged in"
_HEADS: Final = {401: _NO_LOGIN, 403: "Not allowed", 404: "There is no such page"}
_REFUSED: Final = "The page can't answer that"


def add_to(app: FastAPI) -> None:
    """Let the application answer so."""
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _not_understood)


async def _refused(request: Request, error: Any) -> Response:
    if not asks_for_html(request.scope):
        return await http_exception_handler(request, error)
    # Airflow answers 403 to a token that isn't one of its own.
    is_known = error.status_code != 401 and not isinstance(error.__context__, InvalidTokenError)
    head = _HEADS.get(error.status_code, _REFUSED) if is_known else _NO_LOGIN
    words = str(error.detail) if is_known else "Airflow doesn't know you, or your login has ended."
    return _page(request, error.status_code, head, words, needs_login=not is_known, headers=error.headers or {})


async def _not_understood(request: Request, error: Any) -> Response:
    if not asks_for_html(request.scope):
        return await request_validation_exception_handler(request, error)
    words = "; ".join(f"{fault['loc'][-1]}: {fault['msg']}" for fault in error.errors())
    return _page(request, 422, _REFUSED, f"The address has a value that the page doesn't know. {words}.")


def _page(
    request: Request,
    status: int,
    head: str,
    words: str,
    *,
    needs_login: bool = False,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    root = "../" * (path.count("/") - 1)
    links = []
    if needs_login:
        back = request.url.path + f"?{request.url.query}" * bool(request.url.query)
        links.append(f"<a href='{root}../api/v2/auth/login?next={quote(back, safe='')}' target='_top'>Log in</a>")
    if path.endswith("/act") and (name := request.query_params.get("name")):
        links.append(f"<a href='table?{escape(urlencode({'name': name}))}'>Back to the table</a>")
    links.append(f"<a href='{root}'>All pipelines</a>")
    said = f"<p class='said bad' role='alert'>{escape(sentence(words.rstrip('.')))}</p>"
    body = f"<h2>{escape(head)}</h2>{said}<nav>{' '.join(links)}</nav>"
    return HTMLResponse(document(head, body, root, "ask.js"), status, HEADERS | dict(headers or {}))
