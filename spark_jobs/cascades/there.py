"""The rows of children that a window finds: silver's, and those of chunks that it takes.

In:  a table's share of a window, a rule, the forms that its parents' rows had.
Out: Rows, whole ones in a Store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa

from spark_jobs.cascades.logged import IN_SILVER, Looked, Store
from spark_jobs.cascades.unsure import exact_from
from spark_jobs.window.application import Application
from spark_jobs.window.window import TableWindow, WaveChunk
from tidegate import tables
from tidegate.cascades.follow import Logged, Row
from tidegate.cascades.rules import Rule
from tidegate.cascades.values import Doubt, Likeness
from tidegate.errors import StreamCorrupt, Terminal, UnsupportedValue
from tidegate.merge.past import past_of
from tidegate.snapshot.chunks import chunk as snapshot_chunk
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.matching import Wanted, matching_of, matching_rows

Name = tuple[str, str]


def silver_rows(
    app: Application, entry: TableWindow, rule: Rule, forms: Collection[tuple[Any, ...]], looked: Looked, store: Store
) -> Iterator[Row]:
    """Rows that silver has now. Raises Doubt."""
    path = tables.silver_path(entry.database, entry.table)
    state = app.lake.log(path).state()
    if not state.created:
        return
    stored_names = {field["name"] for field in state.schema["fields"]}
    if missing := [name for name in looked.cells if name not in stored_names]:
        raise Doubt(f"silver has no column {missing[0]}", rule.child)
    try:
        layout = FileLayout.of(state, ())
        for matched in matching_rows(app.lake, path, state, layout, _wanted(rule, forms)):
            rows = past_of(matched.column_names).live_rows(matched)
            yield from rows_of(rows, looked, store.add(IN_SILVER, rows, rule.child))
    except Terminal as error:
        raise Doubt(f"silver's rows can't be looked through: {error.line}", rule.child) from error
    except Doubt as doubt:
        raise Doubt(doubt.why, rule.child) from None


def _wanted(rule: Rule, forms: Collection[tuple[Any, ...]]) -> Wanted:
    forming = tuple(None if kind is Likeness.EXACT else kind.forms for kind in rule.likeness)
    return Wanted(rule.columns, forming, set(forms))


def rows_of(rows: pa.Table, looked: Looked, part: int) -> Iterator[Row]:
    columns = {name: rows.column(name).to_pylist() for name in looked.cells}
    assert looked.key is not None, "rows that are followed have a key"
    for at in range(rows.num_rows):
        cells = {name: values[at] for name, values in columns.items()}
        yield Row(tuple(cells[name] for name in looked.key), cells, (part, at))


def chunk_rows(app: Application, entry: TableWindow, name: Name, looked: Looked, store: Store) -> Iterator[Logged]:
    """Rows of the chunks that the window takes, as changes at their low marks. Raises Doubt."""
    for chunk in sorted(entry.chunks, key=lambda by: by.low_ts):
        try:
            batches = snapshot_chunk.changes_of(
                chunk.ref.read(app.lake), chunk.low_ts, looked.left_out, _aliases(app, chunk)
            )
        except (StreamCorrupt, UnsupportedValue) as error:
            raise Doubt(f"a chunk of it can't be read: {error}", name) from error
        for batch in batches:
            table = pa.Table.from_batches([batch])
            ops = table.column(tables.OP).to_pylist()
            part = store.add(chunk.version, table, name)
            for at, row in enumerate(rows_of(table, looked, part)):
                order = (chunk.low_ts, 0, at)
                gone = ops[at] == tables.OP_DELETE
                yield Logged(order, name, row if gone else None, None if gone else row, checked=False)


def exact_rows(
    app: Application, entry: TableWindow, rule: Rule, forms: Collection[tuple[Any, ...]], looked: Looked, store: Store
) -> Iterator[Logged]:
    """The rows of an exact wave's chunks that a rule reaches, as changes at their place. The chunks are a whole table,
    perhaps larger than memory, so only these rows are kept. No other row is known at that place (unsure.py). Raises
    Doubt.
    """
    place = exact_from(entry)
    for chunk in entry.chunks:
        if chunk.low_ts != place:
            continue
        try:
            batches = snapshot_chunk.changes_of(
                chunk.ref.read(app.lake), chunk.low_ts, looked.left_out, _aliases(app, chunk)
            )
        except (StreamCorrupt, UnsupportedValue) as error:
            raise Doubt(f"a chunk of it can't be read: {error}", rule.child) from error
        try:
            rows = matching_of(pa.Table.from_batches(batches), _wanted(rule, forms)) if batches else None
        except Doubt as doubt:
            raise Doubt(doubt.why, rule.child) from None
        if rows is not None and rows.num_rows:
            for row in rows_of(rows, looked, store.add(chunk.version, rows, rule.child)):
                yield Logged((chunk.low_ts, 0, 0), rule.child, None, row, checked=False)


def _aliases(app: Application, chunk: WaveChunk) -> Mapping[str, str]:
    source, *name = chunk.physical
    versions = app.histories[source].versions(*name)
    return next((version.aliases for version in versions if version.version == chunk.version), {})
