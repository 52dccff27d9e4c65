"""The part of `tidegate check` for a Pump's TiDB before it begins.

In:  a pipeline, the name of a TiDB source in it, TiDB's SQL connection.
Out: Lines about timestamps, the DDL history, the answers for orphans, PD's record, and tables that
     will be held.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from tidegate.commit_ts import time_text
from tidegate.config import OWN_DATABASES, Pipeline, TidbSource
from tidegate.errors import SourceRefused, SourceUnavailable
from tidegate.limits import PUMP_HEARTBEAT_SECONDS
from tidegate.mysql.checking.examination import Line, SourceVerdict
from tidegate.mysql.connecting.connection import ConnectionInfo
from tidegate.mysql.demands.paste import account_of
from tidegate.pump.cluster import Clock, History, Mvcc
from tidegate.pump.etcd import etcd_of
from tidegate.pump.node import SERVING, Node, NodeState, key_of
from tidegate.tidb.tables.live_tables import LiveTables

_NO_KEY = b"t"  # no row has this key: TiDB answers that it has nothing


def pump_lines(pipeline: Pipeline, source: str, sql: ConnectionInfo) -> Iterator[Line]:
    """Raises SourceUnavailable, SourceRefused, StreamCorrupt."""
    entry = pipeline.sources[source]
    assert isinstance(entry, TidbSource), "whoever asks looks at its kind"
    if entry.pd:  # first: a TiDB that finds no Pump in PD doesn't start
        yield registered_line(source, entry, lambda: time.sleep(2 * PUMP_HEARTBEAT_SECONDS))
    yield from sql_lines(source, sql)
    tables = LiveTables.from_text(History(sql).tables_at(0))
    yield _fates(source, entry, History(sql))
    if len(pipeline.pumps(source)) == 1:
        yield Line(source, SourceVerdict.CAUTION, "it is the only Pump: while it is down, TiDB commits nothing")
    kept = sorted(".".join(name) for name, _ in tables if name[0] not in OWN_DATABASES and pipeline.tables.keeps(*name))
    if kept:
        text = "there before the first Pump begins: they wait for a snapshot, once apply has run"
        yield Line(source, SourceVerdict.NOTE, text, tuple(kept))


def sql_lines(source: str, sql: ConnectionInfo) -> Iterator[Line]:
    """The checks of a TiDB's SQL port, a changefeed's too. Raises SourceUnavailable, SourceRefused."""
    clock = Clock(sql)
    try:
        tso = clock.tso()
    finally:
        clock.close()
    yield Line(source, SourceVerdict.NOTE, f"{sql.where} gives PD's timestamps, now {time_text(tso)}")
    try:
        History(sql).jobs_at(0)
    except SourceRefused as error:
        remedy = f"run there: {'; '.join(tidb_grants(account_of(f'{sql.user}@%')))}"
        raise SourceRefused(error.what, where=error.where, remedy=remedy) from error
    yield Line(source, SourceVerdict.NOTE, "its DDL history can be read (mysql.tidb_ddl_history)")


def tidb_grants(account: str) -> list[str]:
    """For an account, quoted: timestamps need no grant."""
    tables = ("mysql.tidb_ddl_history", "mysql.tidb")
    return [f"GRANT SELECT ON {table} TO {account}" for table in tables]


def registered_line(source: str, entry: TidbSource, pause: Callable[[], None]) -> Line:
    """PD's record of a Pump. A record with another address is read twice, with a pause between: a
    living Pump writes it anew.
    """
    etcd, key = etcd_of(entry), key_of(entry.node or source)
    try:
        entry_in_pd = etcd.get(key)
        if entry_in_pd.value is None:
            return Line(source, SourceVerdict.NOTE, f"PD answers, and has no Pump {entry.node or source} yet")
        node = Node.parse(entry_in_pd.value)
        if node.host != entry.advertise and node.state in SERVING:
            pause()
            lives = etcd.get(key).revision != entry_in_pd.revision
            text = f"PD has a Pump {node.node_id} at {node.host}, {node.state}: "
            if lives:
                return Line(source, SourceVerdict.REFUSED, text + "it lives, so this one needs another `node`")
            return Line(source, SourceVerdict.CAUTION, text + f"it is silent, and its name goes to {entry.advertise}")
    except SourceUnavailable as error:
        return Line(source, SourceVerdict.UNKNOWN, str(error))
    except SourceRefused as error:
        return Line(source, SourceVerdict.REFUSED, str(error))
    if node.state is NodeState.OFFLINE:
        text = "it was closed: `tidegate pump --ask reopen` puts it back"
        return Line(source, SourceVerdict.CAUTION, f"PD has Pump {node.node_id} as offline: {text}")
    return Line(source, SourceVerdict.NOTE, f"PD has Pump {node.node_id} as {node.state} at {node.host}")


def _fates(source: str, entry: TidbSource, history: History) -> Line:
    if not entry.status_url:
        text = "without status_url a transaction whose answer got lost holds everything after it back for ever"
        return Line(source, SourceVerdict.CAUTION, text)
    try:
        mvcc = Mvcc(entry.status_url, history)
        mvcc.fate(_NO_KEY, 1)
        mvcc.safe_point()
        kept_seconds = history.kept_seconds()
    except SourceUnavailable as error:
        return Line(source, SourceVerdict.UNKNOWN, str(error))
    if kept_seconds <= 2 * entry.orphan_seconds:
        text = (
            f"TiDB keeps what became of a transaction for {kept_seconds:.0f} s (tidb_gc_life_time), and a Pump may need"
            f" twice orphan_seconds ({2 * entry.orphan_seconds:.0f} s) to ask: set one of them otherwise"
        )
        return Line(source, SourceVerdict.CAUTION, text)
    return Line(source, SourceVerdict.NOTE, f"{entry.status_url} answers for orphans")
