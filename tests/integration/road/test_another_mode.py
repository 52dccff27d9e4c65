"""A mode of silver that somebody adds in one file goes the whole road: no other room needs to know of it.

In:  `gone_at`: deleted rows stay, with the commit_ts at which they went.
Out: silver that shows the server's own SELECT as live, and every deleted row with its time, by each writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.kit.road import Road
from tests.support.readers import READERS
from tests.support.servers import FreshDatabase
from tidegate import tables
from tidegate.config.table_keys.tables import Tables
from tidegate.local.server import Server
from tidegate.merge.column import SilverColumn
from tidegate.merge.past import PASTS, Past
from tidegate.schema.model.columns import TableVersion
from tidegate.verify.silver_side import DOUBTFUL, LIVE

pytestmark = [pytest.mark.server, pytest.mark.spark]

GONE = "_tg_gone_at"


class _GoneAt(Past):
    def ended(self, commit_ts: int | str) -> dict[str, str]:
        return {GONE: str(commit_ts), tables.COMMIT_TS: str(commit_ts)}

    def staged(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        at = changes.schema.get_field_index(tables.OP)
        went = pc.equal(changes.column(at), tables.OP_DELETE)
        gone = pc.if_else(went, changes.column(tables.COMMIT_TS), pa.scalar(None, pa.int64()))
        upserts = pa.array(np.full(changes.num_rows, tables.OP_UPSERT, np.int8))
        return changes.set_column(at, changes.schema.field(at), upserts).append_column(GONE, gone)

    def live_rows(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.is_null(rows.column(GONE)))

    def check(self, name: str, versions: Sequence[TableVersion], *, routed: bool) -> None:
        """Every table may have it."""


GONE_AT = _GoneAt(
    word="gone_at",
    title="deleted rows and their time",
    kept="rows that went",
    columns=(SilverColumn(GONE, "bigint", "commit_ts at which the source deleted the row"),),
    mark=GONE,
    begun={GONE: "CAST(NULL AS BIGINT)"},
    taken={},
    live=f"{GONE} IS NULL",
    was_live=f"{GONE} IS NULL",
    came_since="",
    open=f"{GONE} IS NULL",
    stamp="NULL",
    ended_in="",
    rows_stay=True,
    versions=False,
    whole_deletes=True,
    moves_along=True,
    takes_rows=False,
)


class _MoreTables(Tables):
    PASTS = (*Tables.PASTS, "gone_at")

    gone_at: tuple[str, ...] = ()


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mode's entries: of the registry, and of verify, which knows modes apart from it."""
    monkeypatch.setitem(PASTS, "gone_at", GONE_AT)
    monkeypatch.setitem(LIVE, GONE, f"{GONE} IS NULL")
    monkeypatch.setitem(DOUBTFUL, GONE, "false")


def went(road: Road, database: str, table: str) -> dict[int, bool]:
    """Of each deleted row that silver has, by id: whether it went at the commit_ts of its last change."""
    rows = READERS["DuckDB"](road.lake.uri(tables.silver_path(database, table))).to_pylist()
    return {row["id"]: row[GONE] == row[tables.COMMIT_TS] for row in rows if row[GONE] is not None}


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize("writer", ["positional", "merge"])
def test_a_mode_added_in_one_file_keeps_what_it_promises(
    mariadb: Server, fresh_database: FreshDatabase, spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    database = fresh_database(mariadb)
    every = (f"{database}.*",)
    road = Road(mariadb, tmp_path, include=every[0], apply=f", writer: {writer}")
    road.pipeline = road.pipeline.model_copy(update={"tables": _MoreTables(include=every, gone_at=every)})

    def done(*statements: str) -> list[str]:
        """The lines of the apply that takes them."""
        for statement in statements:
            mariadb.query(statement.replace("@", f"{database}."))
        road.capture()
        app = road.apply(spark)
        assert not [state.reason for state in app.states.values() if state.state == "held"]
        road.assert_equal()
        return road.lines

    road.capture()
    done(
        "CREATE TABLE @keyed (id INT PRIMARY KEY, note TEXT)",
        "CREATE TABLE @bag (id INT, note TEXT)",
        "INSERT INTO @keyed VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
        "INSERT INTO @bag VALUES (1, 'a'), (1, 'a'), (2, 'b')",
    )
    done(
        "DELETE FROM @keyed WHERE id IN (1, 2)",
        "UPDATE @keyed SET id = 5 WHERE id = 3",
        "INSERT INTO @keyed VALUES (2, 'back')",
        "DELETE FROM @bag WHERE id = 2",
    )
    assert went(road, database, "keyed") == {1: True, 3: True}
    assert went(road, database, "bag") == {2: True}
    done("ALTER TABLE @keyed ADD COLUMN extra INT DEFAULT 7, MODIFY id BIGINT")
    done("RENAME TABLE @keyed TO @other")
    assert went(road, database, "other") == {1: True, 3: True}
    done("TRUNCATE TABLE @other", "INSERT INTO @other VALUES (4, 'anew', 8)")
    assert went(road, database, "other") == {1: True, 2: True, 3: True, 5: True}
    done("DROP TABLE @bag")
    assert went(road, database, "bag") == {1: True, 2: True}
