"""Two sources of one pipeline with the same rows: one server under two names, or a primary and its
replica.

In:  the facts of the sources; the servers from which bronze was captured, or a first start
     recorded.
Out: a phrase for people; SourceRefused if a beginning source is the server of another one.

A pipeline's patterns apply to all its sources, so every table would come twice: under a route as
two rows of two shards, and else as one table of two sources, which is held.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.config import Flavour, MysqlSource, Pipeline
from tidegate.errors import SourceRefused
from tidegate.lake.figures.status import captured_server
from tidegate.lake.files import LakeFiles
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.mysql.start.recorded import recorded_start
from tidegate.position import MysqlGtidSet

_Known = tuple[ConnectionInfo, SourceFacts]
_WAY = "give each source a connection (conn_id) of its own server, or take one of them out"


def check_apart(lake: LakeFiles, pipeline: Pipeline, source_name: str, facts: SourceFacts) -> None:
    """Refuse a source that is the server of another source of the pipeline.

    Capture asks before a source begins, and again when its beginning is recorded: of two that begin at once one sees
    the other. A server without an id of its own (MariaDB before 10.11.12) can't be told from others.

    Raises SourceRefused, LakeUnavailable.
    """
    if not facts.server_uuid:
        return
    for name, entry in pipeline.sources.items():
        if name == source_name or not isinstance(entry, MysqlSource):
            continue
        if _server_uuid(lake, name) == facts.server_uuid:
            raise SourceRefused(
                f"source {name} is captured from this very server: every row would come twice",
                where=facts.where,
                remedy=_WAY,
            )


def _server_uuid(lake: LakeFiles, source: str) -> str:
    """The server that a source is captured from, or was about to be; "" when it hasn't begun."""
    if (server := captured_server(lake, source)) is not None:
        return server[1]
    began = recorded_start(lake, source)
    return began.server_uuid if began is not None else ""


def same_server(ours: _Known, others: Mapping[str, _Known]) -> str:
    """Which of the other sources is this very server, in a phrase; "" when none is."""
    info, facts = ours
    for name, (at, other) in others.items():
        one_id = bool(facts.server_uuid) and facts.server_uuid == other.server_uuid
        if one_id or info.endpoint == at.endpoint:
            return f"it is the server of source {name}: every row would come twice; {_WAY}"
    return ""


def shares_rows(ours: _Known, others: Mapping[str, _Known]) -> str:
    """Which of the other sources it replicates, or is replicated by, in a phrase; "" when none is."""
    for name, theirs in others.items():
        if _replicates(ours, theirs) or _replicates(theirs, ours):
            return f"it and source {name} are a primary and its replica, or were: rows of both come twice; {_WAY}"
    return ""


def _replicates(replica: _Known, primary: _Known) -> bool:
    at, facts = primary
    from_it = any(replication.primary == f"{at.host}:{at.port}" for replication in replica[1].replications)
    return from_it or _has_transactions_of(replica[1], facts)


def _has_transactions_of(facts: SourceFacts, other: SourceFacts) -> bool:
    if Flavour.MARIADB in (facts.flavour, other.flavour) or not other.server_uuid:
        return False
    return any(
        name.partition(":")[0] == other.server_uuid for name in MysqlGtidSet.parse(facts.gtid_executed).intervals
    )
