"""Ranges of about equal size for several readers of a table at once, found without a scan.

In:  a table version with a key, or a TiDB's without one; a way to ask the server.
Out: Touching spans, together the whole table.

A place between the ends of the key's first column is guessed (scales.py; for text alphabets.py, by
the server's own order of characters). EXPLAIN's estimates (dives into the index) tell how many rows
lie before it. If the values are even, the first guess is good enough. A far outlier, a common
prefix of most texts, or holes only need more guesses. If one value has more rows than a range
should have, it is divided by the key's next column. A table that one statement reads isn't divided.

A TiDB keeps rows in regions of similar size (sampled.py). If a table has enough regions, their
first rows are the bounds, for any key, and also for scattered numbers (AUTO_RANDOM,
SHARD_ROW_ID_BITS). If it has few, integers are divided by arithmetic, with the scattering bits as
the highest, and other keys by the regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tidegate.mysql.sql_text.sql import quote_name
from tidegate.schema.model.columns import TableVersion
from tidegate.schema.model.type_table import Kind
from tidegate.schema.model.types import canonical
from tidegate.snapshot.chunks.dives import Ask, even_bounds
from tidegate.snapshot.chunks.sampled import has_rowids, region_starts
from tidegate.snapshot.chunks.spans import WHOLE, Key, Span
from tidegate.tidb.jobs import ROWID_NAME

_REGIONS_PER_PART: Final = 2  # with fewer of a TiDB's, ranges are as uneven as regions are


def divide(version: TableVersion, ask: Ask, parts: int, rows_min: int = 0) -> tuple[Span, ...]:
    """At most `parts` ranges; (WHOLE,) if the table can't be divided, or has fewer than about
    rows_min rows.

    ask: runs a SELECT in the session of SESSION. Nobody knows how many rows a TiDB's table has.
    """
    if parts < 2:
        return (WHOLE,)
    return _touching(_in_tidb(version, ask, parts) if version.origin else even_bounds(version, ask, parts, rows_min))


def _touching(bounds: Sequence[Key]) -> tuple[Span, ...]:
    distinct = list(dict.fromkeys(bounds))
    return tuple(Span(after, upto) for after, upto in pairwise([None, *distinct, None]))


def _in_tidb(version: TableVersion, ask: Ask, parts: int) -> list[Key]:
    """Its EXPLAIN doesn't dive, and its statistics may be old or none. The first region's first row divides nothing."""
    starts = region_starts(version, ask)[1:]
    lead = next((column for column in version.columns if column.id == version.key[0]), None) if version.key else None
    numbers = lead is None or canonical(lead).kind in (Kind.INT, Kind.UNSIGNED_BIGINT)
    if numbers and len(starts) < _REGIONS_PER_PART * parts and (lead is not None or has_rowids(version)):
        return _by_arithmetic(version, ROWID_NAME if lead is None else lead.name, ask, parts)
    return [starts[len(starts) * n // parts] for n in range(1, parts)] if starts else []


def _place(version: TableVersion) -> str:
    return quote_name(version.database, version.table)


def _by_arithmetic(version: TableVersion, lead: str, ask: Ask, parts: int) -> list[Key]:
    name = quote_name(lead)
    ((low, high),) = ask(f"SELECT MIN({name}), MAX({name}) FROM {_place(version)}")
    if low is None:
        return []
    first, last = int(low), int(high)
    return [(str(first + (last - first) * n // parts),) for n in range(1, parts) if last - first >= parts]
