"""The SQL of MERGE for the history of rows: every version with the commit_ts of its beginning and end.

In:  a view of a phase's staged changes, with READ_UPTO and BEGUN; silver's shape.
Out: one MERGE statement. merge/versions.py has the same rules for the positional writer.

A change is one row of the source, or two: the end of the current version, and its own version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate import tables
from tidegate.merge.past.history import HISTORY
from tidegate.merge.silver_sql import SilverShape
from tidegate.spark_sql import quote, table_at

READ_UPTO: Final = "_tg_read_upto"  # long: of a row that a snapshot read: when its reading ended; 0 of a change
BEGUN: Final = "_tg_begun"  # boolean: of a shard that silver has nothing of yet, however far it is with the others
_ENDS: Final = "_tg_ends"
_OWN: Final = frozenset(column.name for column in HISTORY.columns)


def merge_versions(
    changes: str, uri: str, shape: SilverShape, applied_ts: int, *, reads: bool, last_of_each: bool = False
) -> str:
    """applied_ts: silver has the changes up to there, but BEGUN's. reads: whether some rows were read by a snapshot.
    last_of_each: as Spans.last_of_each (versions.py).
    """
    keys = ", ".join(map(quote, shape.key))
    again_ts = f"if({BEGUN}, 0, {applied_ts})"
    stamp, op = quote(tables.COMMIT_TS), quote(tables.OP)
    names = [column.name for column in shape.all_columns if column.name not in _OWN and column.name != tables.COMMIT_TS]
    of_key = f"PARTITION BY {keys} ORDER BY {stamp}"
    last = f"PARTITION BY {keys}, {stamp} ORDER BY {READ_UPTO} = 0 DESC, {tables.SEQ} DESC, {tables.ORDINAL} DESC"
    on = " AND ".join(f"t.{quote(name)} = s.{quote(name)}" for name in shape.key)
    same, held, beside, again, one_each, seen = "false", "", "", "", "kept", stamp
    if reads:
        again = _read_after_change(names, keys, of_key)
        one_each, seen = "(SELECT * FROM seen WHERE NOT _tg_again)", "_tg_seen"
        # The current version. If another writer has added a second one, both end.
        equal = " AND ".join(f"s.{quote(name)} <=> t.{quote(name)}" for name in names)
        current = f"(SELECT * FROM {table_at(uri)} WHERE {HISTORY.open})"
        read, of_span = f"s._tg_nth = 1 AND s.{READ_UPTO} > 0", ", ".join(f"s.{quote(name)}" for name in shape.key)
        held = (
            f", held AS (SELECT {of_span}, count(*) = 1 AND bool_and(s.{op} <> {tables.OP_DELETE} AND {equal}) AS"
            f" _tg_equal FROM spans s JOIN {current} t ON {on} WHERE {read} GROUP BY {of_span})"
        )
        same, beside = "coalesce(t._tg_equal, false)", f" LEFT JOIN held t ON {read} AND {on}"
    one_each = _last_of_each(one_each, stamp, of_key) if last_of_each else one_each
    # Not an end: the version itself. If a row is read again unchanged, the current version
    # continues.
    ended = f"if({_ENDS} AND NOT _tg_same, {stamp}, _tg_next)"
    values = {
        tables.COMMIT_TS: f"if({_ENDS} AND NOT _tg_same, NULL, {seen})",
        tables.VALID_FROM: stamp,
        tables.VALID_TO: ended,
        tables.IS_CURRENT: f"{ended} IS NULL",
        tables.FROM_KNOWN: f"{READ_UPTO} = 0",
    }
    selected = ", ".join([*map(quote, names), *(f"{value} AS {name}" for name, value in values.items()), _ENDS])
    rows = (
        f"WITH ranked AS (SELECT *, row_number() OVER ({last}) AS _tg_rank FROM {quote(changes)}),"
        f" ordered AS (SELECT *, lead({stamp}) OVER ({of_key}) AS _tg_behind FROM ranked WHERE _tg_rank = 1),"
        f" kept AS (SELECT * FROM ordered WHERE if({READ_UPTO} > 0,"
        f" _tg_behind IS NULL OR _tg_behind > greatest({READ_UPTO}, {again_ts}), {stamp} > {again_ts}))"
        f"{again}, spans AS (SELECT *, row_number() OVER ({of_key}) AS _tg_nth, lead({stamp}) OVER ({of_key}) AS"
        f" _tg_next FROM {one_each}){held}, compared AS (SELECT s.*, {same} AS _tg_same FROM spans s{beside})"
        f" SELECT {selected} FROM compared LATERAL VIEW explode(if(_tg_nth = 1, array(true, false), array(false))) e"
        f" AS {_ENDS} WHERE {_ENDS} OR ({op} <> {tables.OP_DELETE} AND NOT _tg_same)"
    )
    is_open = f"(t.{tables.IS_CURRENT} IS NOT FALSE OR t.{tables.VALID_TO} IS NULL)"
    every = [quote(column.name) for column in shape.all_columns]
    return (
        f"MERGE INTO {table_at(uri)} t USING ({rows}) s ON {on} AND {is_open} AND s.{_ENDS}"
        f" WHEN MATCHED THEN UPDATE SET t.{tables.VALID_TO} = s.{tables.VALID_TO},"
        f" t.{tables.IS_CURRENT} = s.{tables.IS_CURRENT},"
        f" t.{tables.COMMIT_TS} = coalesce(s.{tables.COMMIT_TS}, t.{tables.COMMIT_TS})"
        f" WHEN NOT MATCHED AND NOT s.{_ENDS} THEN INSERT ({', '.join(every)})"
        f" VALUES ({', '.join(f's.{name}' for name in every)})"
    )


def _read_after_change(names: Sequence[str], keys: str, of_key: str) -> str:
    """CTEs up to `seen`: of a row read as the change before it left it, that change's version goes on (_tg_again)."""
    values, stamp, op = ", ".join(map(quote, names)), quote(tables.COMMIT_TS), quote(tables.OP)
    return (
        f", beside AS (SELECT *, coalesce({READ_UPTO} > 0 AND {op} <> {tables.OP_DELETE} AND lag({op}) OVER"
        f" ({of_key}) <> {tables.OP_DELETE} AND struct({values}) <=> lag(struct({values})) OVER ({of_key}),"
        f" false) AS _tg_again FROM kept), numbered AS (SELECT *, count_if(NOT _tg_again) OVER ({of_key}) AS"
        f" _tg_version FROM beside), seen AS (SELECT *, max({stamp}) OVER (PARTITION BY {keys}, _tg_version) AS"
        " _tg_seen FROM numbered)"
    )


def _last_of_each(changes: str, stamp: str, of_key: str) -> str:
    """The last change of each key alone."""
    later = f"SELECT *, lead({stamp}) OVER ({of_key}) AS _tg_later FROM {changes}"
    return f"(SELECT * FROM ({later}) WHERE _tg_later IS NULL)"
