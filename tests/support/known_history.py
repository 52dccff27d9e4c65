"""From when on a lake says that a table's history is known, and whether its answers before the kept cuts are right.

In:  a road, the states that the server's own SELECT showed (past.py).
Out: since(): the recorded commit_ts; demand(): another writer's protocol for silver; check(): each moment by the
     readers, or its refusal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.past import Past, shown
from tidegate import tables
from tidegate.delta.object_names import commit_name
from tidegate.errors import CutForgotten, QueryRefused
from tidegate.lake.control.upkeep import rewrite
from tidegate.lake.cuts.kept_cuts import kept_rows
from tidegate.lake.cuts.published import known_cuts
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.known_history import history_name, known_history
from tidegate.limits import QUERY_MEMORY_BYTES
from tidegate.query import duck, pinned
from tidegate.query.pinned import PinnedCut

_EACH = 7  # so often Polars and Spark read, too


def forget_cuts(road: Road) -> None:
    """As maintain does long after: of the cuts only the newest one stays."""
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    rewrite(road.lake, tables.CUTS, lambda rows: kept_rows(rows, tomorrow, timedelta(0), 60))


def taken(road: Road, spark: SparkSession | None) -> None:
    """All that the server has is in silver, and no table waits."""
    road.capture()
    app = road.apply(spark)
    assert not [state.reason for state in app.states.values() if state.state == "held"]


def since(road: Road, name: str) -> int:
    """0: nobody knows."""
    log = LakeFiles(road.lake.root).log(tables.silver_path(*name.split(".")))
    known = known_history(log, log.state(), history_name("road", name))
    return known.since_ts if known is not None else 0


def protocol_of(road: Road, name: str) -> dict[str, Any]:
    """Of a table's silver."""
    return dict(road.lake.log(tables.silver_path(*name.split("."))).state().protocol)


def demand(road: Road, name: str, protocol: dict[str, Any]) -> None:
    """Another writer's commit: tidegate refuses some of these itself."""
    log = Path(road.lake.log(tables.silver_path(*name.split("."))).place, "_delta_log")
    version = 1 + max(int(file.stem) for file in log.glob("*.json"))
    actions = ({"commitInfo": {"operation": "UPGRADE PROTOCOL", "timestamp": 1}}, {"protocol": protocol})
    (log / commit_name(version)).write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def check(road: Road, past: Past, table: str, spark: SparkSession | None = None) -> int:
    """Every moment before the kept cut; how many had an answer. Others have a refusal that says why."""
    with _extension_loaded_once():
        return _checked(road, past, table, spark)


@contextmanager
def _extension_loaded_once() -> Iterator[None]:
    """Loading it costs more than a moment's query. Each moment begins without a view."""
    database = duck.connect(QUERY_MEMORY_BYTES)

    def connect(_: int) -> duckdb.DuckDBPyConnection:
        cursor = database.cursor()
        for (schema,) in cursor.sql("SELECT schema_name FROM duckdb_schemas() WHERE NOT internal").fetchall():
            if schema != "main":
                cursor.execute(f"DROP SCHEMA {duck.identifier(schema)} CASCADE")
        return cursor

    # Only the cuts' own look at the module is replaced: others keep a database for longer than this one lives.
    once = SimpleNamespace(**vars(duck) | {"connect": connect})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pinned, "duck", once)
        yield
    database.close()


def _checked(road: Road, past: Past, table: str, spark: SparkSession | None) -> int:
    name, oldest = past.silver_of(table), known_cuts(road.lake)[0]
    begin, moments, compared = since(road, name), past.moments(road), 0
    for number, state in enumerate(past.states):
        at = moments[number]
        if at >= oldest or number in past.unknown.get(table, ()):
            continue
        if not begin or at < begin:
            why = rf"its history tells all from {begin} " if begin else "nobody knows from when on its history"
            with pytest.raises((CutForgotten, QueryRefused), match=why):
                PinnedCut.at(road.lake, "road", at).table(name)
            continue
        wanted = state.get(table, [])
        with PinnedCut.at(road.lake, "road", at) as cut:
            assert cut.past_ts == at
            readers: list[Any] = [cut.connection().sql('FROM "{}"."{}"'.format(*name.split("."))).to_arrow_table()]
            if compared % _EACH == 0:
                readers.append(cut.polars(name).collect().to_arrow())
                readers += [cut.spark(spark, name).toArrow()] if spark is not None else []
            for rows in readers:
                live = [row for row in past.own(rows.to_pylist(), table) if row[tables.IS_CURRENT]]
                assert all(row[tables.VALID_TO] is None for row in live)
                shared = {column for row in wanted[:1] for column in row}.intersection(rows.column_names)
                assert shown(live, shared) == shown(wanted, shared), f"state {number} of {table} at {at}"
        compared += 1
    return compared
