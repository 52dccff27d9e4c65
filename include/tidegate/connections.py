"""Airflow's connections as values: the address of a server or a store, and its credentials.

In:  AIRFLOW_CONN_<ID> as a JSON object or a URI; in Airflow its secrets backends, by the plugin.
Out: a Connection. Whoever needs one is given a function from id to Connection (`Connections`): the environment's for
     commands, Airflow's own for its tasks.

Neither the password nor the extra is in any message or repr.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from tidegate.errors import ConfigError, NoConnectionError


@dataclass(frozen=True, slots=True)
class Connection:
    """name: what errors call it; kind: Airflow's conn_type, "" when it isn't known."""

    name: str
    kind: str = ""
    host: str = ""
    port: int | None = None
    login: str = ""
    password: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)


_ENCODE: Final = "percent-encode what is special in its login and password (/ is %2F); __extra__ is JSON"

# From a connection's id. Raises ConfigError when there is none, or it can't be read.
Connections: TypeAlias = Callable[[str], Connection]


def variable(conn_id: str) -> str:
    """The environment variable that defines a connection."""
    return f"AIRFLOW_CONN_{conn_id.upper()}"


def from_environment(conn_id: str, environment: Mapping[str, str] | None = None) -> Connection:
    """The connection that Airflow would find in the environment under this id. Raises ConfigError."""
    name = variable(conn_id)
    text = (os.environ if environment is None else environment).get(name)
    if text is not None and not text.strip():
        raise ConfigError(
            "the variable is set, but empty",
            where=name,
            remedy="set it to a URI or JSON: an error of `tidegate connection` leaves it empty, so run that again; or"
            f" unset {name}",
        )
    if text is None:
        raise NoConnectionError(
            f"connection {conn_id!r} is not defined",
            where=name,
            remedy="set this variable to a URI or JSON; `tidegate connection` prints that of a server",
        )
    return from_text(name, text)


def from_text(name: str, text: str) -> Connection:
    """A JSON object, or a URI with the extra in its query. Raises ConfigError, never with the text: it holds keys."""
    return _from_json(name, text) if text.lstrip().startswith("{") else _from_uri(name, text)


def _from_json(name: str, text: str) -> Connection:
    try:
        fields = json.loads(text)
        extra: Any = fields.get("extra") or {}
        extra = json.loads(extra) if isinstance(extra, str) else extra
        port = int(fields["port"]) if fields.get("port") else None
        extra = dict(extra)
    except (ValueError, TypeError):
        raise ConfigError("the connection is not valid JSON", where=name, remedy="correct it") from None
    names = ("conn_type", "host", "login", "password")
    texts = {key: fields.get(key) or "" for key in names}
    for key, value in texts.items():
        if not isinstance(value, str):
            what = f"{key} of the connection is no text"
            raise ConfigError(what, where=name, remedy="put it in quotes")
    if port is not None and not 0 < port < 1 << 16:
        raise ConfigError(f"{port} is no port", where=name, remedy="a port is 1 to 65535")
    kind, host, login, password = map(texts.__getitem__, names)
    return Connection(name, kind, host, port, login, password, extra)


def _from_uri(name: str, text: str) -> Connection:
    try:
        url = urlsplit(text)
        port = url.port
        extra: Any = dict(parse_qsl(url.query))
        if "__extra__" in extra:
            extra = dict(json.loads(str(extra["__extra__"])))
    except (ValueError, TypeError):
        raise ConfigError("the connection is not a valid URI", where=name, remedy=_ENCODE) from None
    if port is not None and "@" in text and "@" not in url.netloc:  # it is of the password
        raise ConfigError("the connection is not a valid URI", where=name, remedy=_ENCODE)
    return Connection(
        name,
        url.scheme,
        unquote(url.hostname or ""),
        port,
        unquote(url.username or ""),
        unquote(url.password or ""),
        extra,
    )
