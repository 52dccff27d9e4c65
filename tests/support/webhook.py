"""A server that takes what is posted to it, over HTTP on this machine.

In:  a status to answer with.
Out: the bodies and headers of what came.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class Webhook:
    """`with Webhook() as hook: ...; hook.bodies`. status, location: may be changed at any time. gets: how many came."""

    def __init__(self) -> None:
        self.status = 200
        self.location = ""
        self.gets = 0
        self.bodies: list[dict[str, Any]] = []
        self.refused: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.headers.append({**self.headers, "path": self.path})
                (hook.bodies if hook.status == 200 else hook.refused).append(body)
                self.send_response(hook.status)
                if hook.location:
                    self.send_header("Location", hook.location)
                self.end_headers()

            def do_GET(self) -> None:
                hook.gets += 1
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the standard library
                del format, args

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
