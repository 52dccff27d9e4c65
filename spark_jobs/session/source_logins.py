"""How apply reaches sources, to ask for values missing in their logs.

In:  the submitter's texts in the environment; else AIRFLOW_CONN_<ID>.
Out: ConnectionInfo by source, with a bound on the time of an answer. They stay in the driver; a
     source without one isn't asked, and its tables wait.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace

from tidegate.config import Pipeline
from tidegate.connections import from_environment
from tidegate.errors import ConfigError
from tidegate.home import SOURCE_LOGINS_ENV
from tidegate.limits import ASKED_ANSWER_SECONDS
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.source_logins import asked_sources, login


def source_logins(pipeline: Pipeline) -> dict[str, ConnectionInfo]:
    """Those that can be read."""
    texts: dict[str, str] = json.loads(os.environ.get(SOURCE_LOGINS_ENV, "{}"))
    logins = {}
    for source, conn_id in asked_sources(pipeline).items():
        with suppress(ConfigError):
            info = ConnectionInfo.of(login(conn_id, texts) or from_environment(conn_id))
            logins[source] = replace(info, answer_seconds=ASKED_ANSWER_SECONDS)
    return logins
