"""Airflow's notifier for whatever takes JSON over HTTP.

In:  an HTTP connection's id: schema, host, port and path, and a token as its password.
Out: one POST of {"pipeline", "subject", "text", "severity", "changes"}, or of the template `body`.

Slack, mail, PagerDuty, Teams and others have providers with notifiers of their own. This one needs no provider.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError

from airflow.sdk import BaseHook, BaseNotifier

from tidegate.errors import ConfigError
from tidegate.limits import ALERT_SEND_SECONDS

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

_SCHEMES: Final = ("http", "https")
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes a redirect an error: urllib would send a GET to the new address, without the message,
    but with the token.
    """

    def redirect_request(self, *answer: Any) -> None:
        """No new request."""
        del answer


class WebhookNotifier(BaseNotifier):
    """http_conn_id: of a connection of type HTTP; its login and password become HTTP's, a password alone a bearer's
    token, and `headers` in its extra are sent. body: a template of JSON in place of the alert's.
    """

    template_fields: Sequence[str] = ("body",)

    def __init__(self, http_conn_id: str, body: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.http_conn_id = http_conn_id
        self.body = body

    def notify(self, context: Context) -> None:
        """Raises urllib.error.URLError, OSError; ConfigError for a connection that can't be used."""
        connection = BaseHook.get_connection(self.http_conn_id)
        alert: Any = context.get("alert") or {"text": "an alert without a message"}
        request = urllib.request.Request(  # noqa: S310 - address() takes no other scheme
            address(connection), (self.body or json.dumps(alert)).encode(), headers(connection), method="POST"
        )
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=ALERT_SEND_SECONDS) as answer:
                answer.read(1)
        except HTTPError as error:
            error.close()  # it holds the connection
            raise


def address(connection: Connection) -> str:
    """The address of a connection. Airflow allows a whole URL as the host, or its parts."""
    host = (connection.host or "").strip()
    if "://" not in host:
        scheme = connection.conn_type if connection.conn_type in _SCHEMES else "https"
        place = f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host  # IPv6
        place = f"{place}:{connection.port}" if connection.port else place
        # Airflow keeps the scheme of http://host/https in `schema`; else that is the path.
        if connection.schema in _SCHEMES:
            scheme, path = connection.schema, ""
        else:
            path = connection.schema or ""
        endpoint = str(connection.extra_dejson.get("endpoint", path)).lstrip("/")
        host = f"{scheme}://{place}/{endpoint}" if host else ""
    if not host.startswith(("http://", "https://")):
        raise ConfigError(
            "the connection has no address of HTTP", where=connection.conn_id, remedy="give it a host, of type HTTP"
        )
    if _CONTROL.search(host):
        raise ConfigError(
            "its address has a space or a line break", where=connection.conn_id, remedy="write it without them"
        )
    return host


def headers(connection: Connection) -> dict[str, str]:
    """HTTP's headers, with the connection's secrets. Raises ConfigError, by a header's name alone."""
    from base64 import b64encode

    made = {"Content-Type": "application/json"}
    if connection.login and connection.password:
        made["Authorization"] = "Basic " + b64encode(f"{connection.login}:{connection.password}".encode()).decode()
    elif connection.password:
        made["Authorization"] = f"Bearer {connection.password.strip()}"  # pasted with its line's end
    made |= {str(name): str(value).strip() for name, value in connection.extra_dejson.get("headers", {}).items()}
    for name, value in made.items():
        # Checked here: the standard library's own errors quote the value, and no log mask knows it.
        if not value.isprintable() or not _is_latin(value):
            raise ConfigError(
                f"the header {name} has a character that HTTP doesn't allow",
                where=connection.conn_id,
                remedy="correct the connection's password or its headers",
            )
    return made


def _is_latin(text: str) -> bool:
    return all(ord(character) < 256 for character in text)
