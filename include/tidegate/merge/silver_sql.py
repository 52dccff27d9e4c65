"""The SQL that writes silver, as text: names quoted, values as typed literals.

In:  a logical table's shape (SilverShape) and names of temporary views.
Out: Spark SQL statements. Each is one Delta transaction.

Keyed tables: one MERGE by key. Tables without a key: a row's key is (hash of all its columns,
occurrence number among equal rows); the net count per hash tells how many occurrences come or go.

A keyed table whose deleted rows stay is staged with upserts alone (past/form.py); without a key, the
live occurrences come first and the ended ones after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate import tables
from tidegate.limits import CHECKPOINT_INTERVAL_COMMITS
from tidegate.merge.column import SilverColumn
from tidegate.merge.past import NO_PAST, Past
from tidegate.schema.model.columns import TableVersion
from tidegate.spark_sql import literal, quote, table_at
from tidegate.table_names import Physical

# Number of leading columns with minima and maxima per file: Delta's default of
# delta.dataSkippingNumIndexedCols, which silver keeps.
STATISTICS_COLUMNS = 32
# Types that Delta can cluster by: those with min/max statistics. As Spark SQL names them, and as a schema's JSON does.
_CLUSTERABLE = (
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "date",
    "timestamp",
    "timestamp_ntz",
    "string",
    "decimal",
    "float",
    "double",
    *("byte", "short", "integer", "long"),
)
# A table property: the condition that is true of silver's rows.
ROWS_PROPERTY = "tidegate.rows"
# A table property: silver's names of columns, by the source's (schema/model/renamed.py).
NAMES_PROPERTY = "tidegate.renames"
_CLUSTER_COLUMNS_MAX = 4  # Delta's own limit


@dataclass(frozen=True, slots=True)
class SilverShape:
    """The form of a silver table: the source's columns in order, then the system columns.

    key: names of the key columns (shard columns included for a routed table); () means no key. past:
    the rows of the source's past that it has. where: the condition that is true of its rows, as text;
    "" for all. clustering: the columns to cluster by, as the pipeline file asks; () for the key's.
    comment: the table's; None where nobody has said it. names: by tables.renames, as text.
    """

    columns: tuple[SilverColumn, ...]
    key: tuple[str, ...]
    routed: bool = False
    past: Past = NO_PAST
    where: str = ""
    clustering: tuple[str, ...] = ()
    comment: str | None = None
    names: str = ""

    @property
    def properties(self) -> dict[str, str]:
        """Its table properties when it is made."""
        return properties() | self.rules

    @property
    def rules(self) -> dict[str, str]:
        """The properties with the rules of its making."""
        return {name: text for name, text in ((ROWS_PROPERTY, self.where), (NAMES_PROPERTY, self.names)) if text}

    @property
    def system(self) -> tuple[SilverColumn, ...]:
        shard = (
            SilverColumn(tables.SHARD_SOURCE, "string", "source of the row"),
            SilverColumn(tables.SHARD_DATABASE, "string", "physical database of the row"),
            SilverColumn(tables.SHARD_TABLE, "string", "physical table of the row"),
        )
        hashed = (
            SilverColumn(tables.ROW_HASH, "string", "hash of the row's columns: the table has no key"),
            SilverColumn(tables.OCCURRENCE, "bigint", "which of the rows with equal columns, from 1"),
        )
        stamp = (SilverColumn(tables.COMMIT_TS, "bigint", "commit_ts of the change that wrote the row"),)
        optional = (shard if self.routed else ()) + (() if self.key else hashed)
        return optional + stamp + self.past.columns

    @property
    def all_columns(self) -> tuple[SilverColumn, ...]:
        return self.columns + self.system

    @property
    def merge_key(self) -> tuple[str, ...]:
        return self.key or (tables.ROW_HASH, tables.OCCURRENCE)

    @property
    def cluster_by(self) -> tuple[str, ...]:
        """Columns to cluster by: of those asked for, or else of the key's, those that carry statistics."""
        kinds = [(column.name, column.type) for column in self.all_columns]
        return clusterable(self.clustering, kinds) or clusterable(self.key or (tables.ROW_HASH,), kinds)

    @property
    def hashed_names(self) -> tuple[str, ...]:
        """The columns a row hash is made of, in an order that DDL can't disturb."""
        shard = (tables.SHARD_SOURCE, tables.SHARD_DATABASE, tables.SHARD_TABLE) if self.routed else ()
        return tuple(sorted(column.name for column in self.columns)) + shard


def clusterable(names: Sequence[str], columns: Sequence[tuple[str, object]]) -> tuple[str, ...]:
    """The names that Delta can cluster by: of columns with minima and maxima per file.

    columns: name and type of each, in the table's order; a type that isn't text has none.
    """
    fit = {name for name, kind in columns[:STATISTICS_COLUMNS] if str(kind).split("(")[0] in _CLUSTERABLE}
    return tuple(name for name in names if name in fit)[:_CLUSTER_COLUMNS_MAX]


def create(uri: str, shape: SilverShape) -> str:
    """CREATE TABLE with deletion vectors and clustering: what every reader can read."""
    columns = ", ".join(
        f"{quote(c.name)} {c.type}" + (f" COMMENT {literal(c.comment)}" if c.comment else "") for c in shape.all_columns
    )
    cluster = f" CLUSTER BY ({', '.join(map(quote, shape.cluster_by))})" if shape.cluster_by else ""
    given = ", ".join(f"'{name}'={literal(value)}" for name, value in shape.properties.items())
    return f"CREATE TABLE IF NOT EXISTS {table_at(uri)} ({columns}) USING delta{cluster} TBLPROPERTIES ({given})"


def properties() -> dict[str, str]:
    """The table properties that every silver table is made with."""
    return {
        "delta.enableDeletionVectors": "true",
        "delta.checkpointInterval": str(CHECKPOINT_INTERVAL_COMMITS),
    }


def only_shard(version: TableVersion) -> str:
    """SQL condition: the rows of one physical table in a routed one."""
    return shard_is(version.physical)


def shard_is(physical: Physical) -> str:
    """The same of a table."""
    return " AND ".join(f"{quote(name)} = {literal(text)}" for name, text in zip(tables.SHARDS, physical, strict=True))


def latest_per_key(view: str, shape: SilverShape) -> str:
    """SELECT of the last change per key from staged changes, in (commit_ts, source, seq, ordinal) order."""
    keys = ", ".join(map(quote, shape.key))
    order = ", ".join(f"{quote(c)} DESC" for c in (tables.COMMIT_TS, "_tg_order_source", tables.SEQ, tables.ORDINAL))
    rank = f"row_number() OVER (PARTITION BY {keys} ORDER BY {order})"
    return f"SELECT * EXCEPT (_tg_rank) FROM (SELECT *, {rank} AS _tg_rank FROM {quote(view)}) WHERE _tg_rank = 1"


def net_rows(changes: str, uri: str, shape: SilverShape) -> str:
    """SELECT of the occurrences to insert (op 1) or delete (op 3) of a table without a key.

    changes: a view with the shape's columns plus ROW_HASH. Fails when the log deletes a row that
    silver does not hold. Where rows of the past stay, all are upserts, ended or not: live
    occurrences come first, and those that were live at any time are there, whatever the windows.
    """
    past = shape.past
    made = (tables.ROW_HASH, tables.OCCURRENCE, tables.COMMIT_TS, *past.begun)
    packed = ", ".join(quote(c.name) for c in (*shape.columns, *shape.system) if c.name not in made)
    h, occurrence, op, stamp = (quote(n) for n in (tables.ROW_HASH, tables.OCCURRENCE, tables.OP, tables.COMMIT_TS))
    order = f"{stamp}, _tg_order_source, {quote(tables.SEQ)}, {quote(tables.ORDINAL)}"
    step = f"if({op} = {tables.OP_DELETE}, -1, 1)"
    peak, live, change, chosen = "0", "", f"if(_tg_net > 0, {tables.OP_UPSERT}, {tables.OP_DELETE})", ""
    source = quote(changes)
    if past.rows_stay:
        source = f"(SELECT *, sum({step}) OVER (PARTITION BY {h} ORDER BY {order}) AS _tg_count FROM {source})"
        peak, live, change = "max(_tg_count)", f" AND {past.live}", str(tables.OP_UPSERT)
        ended = past.ended(stamp)
        for name, begun in past.begun.items():
            chosen += f", if({occurrence} > _tg_to, {ended.get(name, begun)}, {begun}) AS {quote(name)}"
    message = literal("the binlog deletes a row that silver does not hold")
    odd = literal(f"silver has rows without {tables.OCCURRENCE} that the binlog changes")  # another writer's work
    return (
        f"WITH net AS (SELECT {h}, sum({step}) AS _tg_net, {peak} AS _tg_peak, max({stamp}) AS {stamp},"
        f" any_value(struct({packed})) AS _tg_row FROM {source} GROUP BY {h}),"
        f" held AS (SELECT {h}, if(count(*) > count({occurrence}), raise_error({odd}), max({occurrence})) AS _tg_held"
        f" FROM {table_at(uri)}"
        f" WHERE {h} IN (SELECT {h} FROM net){live} GROUP BY {h}),"
        f" joined AS (SELECT net.*, coalesce(_tg_held, 0) AS _tg_from, coalesce(_tg_held, 0) + _tg_net AS _tg_to"
        f" FROM net LEFT JOIN held USING ({h}) WHERE _tg_net <> 0 OR _tg_peak > 0),"
        f" numbered AS (SELECT *, explode(if(_tg_to < 0, raise_error({message}), sequence(least(_tg_from, _tg_to) + 1,"
        f" greatest(_tg_from + _tg_peak, _tg_from, _tg_to)))) AS {occurrence} FROM joined)"
        f" SELECT CAST({change} AS TINYINT) AS {op}, _tg_row.*, {h}, {occurrence}, {stamp}{chosen} FROM numbered"
    )


def merge(uri: str, source: str, shape: SilverShape) -> str:
    """One MERGE: upserts and deletes by key."""
    on = " AND ".join(f"t.{quote(n)} = s.{quote(n)}" for n in shape.merge_key)
    names = [quote(c.name) for c in shape.all_columns]
    assign = ", ".join(f"t.{n} = s.{n}" for n in names)
    op = f"s.{quote(tables.OP)}"
    return (
        f"MERGE INTO {table_at(uri)} t USING ({source}) s ON {on}"
        f" WHEN MATCHED AND {op} = {tables.OP_DELETE} THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {assign}"
        f" WHEN NOT MATCHED AND {op} <> {tables.OP_DELETE} THEN INSERT ({', '.join(names)})"
        f" VALUES ({', '.join(f's.{n}' for n in names)})"
    )


def merge_twins(uri: str, source: str, shape: SilverShape) -> str:
    """The same where a key of the upserts may have several rows: all of them go, and the one of the source comes.

    Such an upsert becomes two rows of the MERGE's source: one that silver's rows match, and one without a match.
    """
    keys, op = ", ".join(map(quote, shape.key)), quote(tables.OP)
    twins = (
        f"SELECT {keys} FROM {table_at(uri)} JOIN (SELECT {keys} FROM changes WHERE {op} <> {tables.OP_DELETE})"
        f" USING ({keys}) GROUP BY {keys} HAVING count(*) > 1"
    )
    rows = (
        f"WITH changes AS ({source}), twins AS (SELECT *, true AS _tg_twin FROM ({twins}))"
        f" SELECT *, explode(if(_tg_twin, array(false, true), array(NULL))) AS _tg_comes"
        f" FROM changes LEFT JOIN twins USING ({keys})"
    )
    on = " AND ".join(f"t.{quote(name)} = s.{quote(name)}" for name in shape.key)
    names = [quote(column.name) for column in shape.all_columns]
    is_delete = f"s.{op} = {tables.OP_DELETE}"
    return (
        f"MERGE INTO {table_at(uri)} t USING ({rows}) s ON {on} AND s._tg_comes IS NOT TRUE"
        f" WHEN MATCHED AND ({is_delete} OR s._tg_comes IS FALSE) THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in names)}"
        f" WHEN NOT MATCHED AND NOT {is_delete} AND s._tg_comes IS NOT FALSE THEN INSERT ({', '.join(names)})"
        f" VALUES ({', '.join(f's.{name}' for name in names)})"
    )
