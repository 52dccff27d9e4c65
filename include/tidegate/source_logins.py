"""The logins of sources asked by apply for values missing in their logs: they never leave the
driver.

In:  a pipeline; connections by their ids.
Out: given(): what the submitter hands to the driver in its environment. login(): one of it as a
     Connection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from tidegate.config import Computed, Pipeline
from tidegate.connections import Connection, Connections, from_text
from tidegate.errors import ConfigError


def asked_sources(pipeline: Pipeline) -> dict[str, str]:
    """Sources to be asked: name -> id of their connection."""
    if pipeline.ddl.unlogged_generated is not Computed.ASK:
        return {}
    asked = dict[str, str]()
    for name, source in pipeline.sources.items():
        if source.traits.leaves_out_generated and source.traits.sql_conn_id is not None:
            asked[name] = source.traits.sql_conn_id
    return asked


def given(pipeline: Pipeline, connections: Connections) -> dict[str, str]:
    """Connections as texts, by their ids. A missing one is left out: most windows ask for
    nothing.
    """
    texts = {}
    for conn_id in sorted(set(asked_sources(pipeline).values())):
        with suppress(ConfigError):
            texts[conn_id] = _text(connections(conn_id))
    return texts


def login(conn_id: str, texts: Mapping[str, str]) -> Connection | None:
    """None where the driver wasn't given it."""
    return from_text(f"connection {conn_id}", texts[conn_id]) if conn_id in texts else None


def _text(connection: Connection) -> str:
    return json.dumps(
        {
            "conn_type": connection.kind,
            "host": connection.host,
            "port": connection.port,
            "login": connection.login,
            "password": connection.password,
            "extra": dict(connection.extra),
        }
    )
