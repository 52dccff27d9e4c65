"""Any rows of any type, in any log: what was encoded is what both decoders give.

In:  the encoder of encoding/types.py, which knows the formats' descriptions and nothing of the decoder.
Out: kernel = slow twin = what was encoded: values, operations, order, commit_ts.

`make test-long` runs many times as many examples.

Not covered here: absent columns and partial JSON, compressed events, XA, DDL between rows; JSON doubles with exponents
and geometry beyond a point and a line (real servers write those in test_decode_on_servers.py); NaN.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.decoding import ALL_TIME, changed_rows, decode_both
from tests.support.seeds import many, share
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.logs import (
    DELETE,
    METADATA,
    UPDATE,
    WRITE,
    Dress,
    Table,
    rows_event,
    segment_of,
    transaction,
)
from tests.unit.binlog.type_cells import TYPES, Cell
from tidegate.commit_ts import compose
from tidegate.tables import COMMIT_TS, OP, OP_DELETE, OP_UPSERT, ORDINAL

SETTINGS = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
VALUES = settings(max_examples=many(8, 1000), **SETTINGS)
LOGS = settings(max_examples=many(40, 5000), **SETTINGS)

DRESSES = st.builds(
    Dress,
    checksum=st.booleans(),
    version=st.sampled_from([1, 2]),
    extra=st.binary(max_size=20),
    metadata=st.sampled_from(METADATA),
    default_charset=st.booleans(),
    mysql=st.booleans(),
    spare_bits=st.booleans(),
)
Row = tuple[Cell | None, ...]


def image(row: Row, dress: Dress) -> bytes:
    """Servers set the null bits that stand for no column; others don't."""
    made = e.image(*(None if cell is None else cell[0] for cell in row))
    nulls = (len(row) + 7) // 8
    spare = (0xFF << len(row) - 8 * (nulls - 1)) & 0xFF if dress.spare_bits else 0
    return made[: nulls - 1] + bytes([made[nulls - 1] | spare]) + made[nulls:]


def values(row: Row) -> tuple[Any, ...]:
    return tuple(None if cell is None else cell[1] for cell in row)


@pytest.mark.long
@pytest.mark.parametrize("name", share(list(TYPES)))
@VALUES
@given(data=st.data())
def test_a_value_of_any_type_comes_back(name: str, data: st.DataObject) -> None:
    found = TYPES[name]
    rows = data.draw(st.lists(st.tuples(st.none() | found.cells), min_size=1, max_size=12))
    dress = data.draw(DRESSES)
    table = Table("t", (found.wire,))
    events = [
        table.map_event(9, dress),
        rows_event(WRITE, 9, 1, b"".join(image(row, dress) for row in rows), dress, end=True),
    ]
    named = (table.database, table.name)
    decoded = decode_both(segment_of(transaction(1, events, dress), dress), {named: [table.version]}, {named: ALL_TIME})
    assert decoded.problems == ()
    assert [(row["c0"],) for row in changed_rows(decoded)] == [values(row) for row in rows]
    assert decoded.ledger.null_dates == sum(row[0] is not None and row[0][1] is None for row in rows)


# --- whole logs ------------------------------------------------------------------------------------------------------


@st.composite
def tables(draw: st.DrawFn, name: str) -> tuple[Table, list[list[Cell | None]]]:
    """A table of 1 to 600 columns, and for each column a few values of which its rows are made."""
    types = [TYPES[t] for t in draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=6))]
    count = draw(st.sampled_from([len(types)] * 6 + [8, 9, 64, 249, 250, 251, 252, 255, 256, 257, 600]))
    pools: list[list[Cell | None]] = [
        draw(st.lists(found.cells, min_size=1, max_size=4)) + [None] * draw(st.integers(0, 2)) for found in types
    ]
    types, pools = (types * count)[:count], (pools * count)[:count]
    key = draw(st.lists(st.integers(0, min(count, 12) - 1), unique=True, max_size=3))
    # A key column is never NULL, nor a date that would become NULL.
    good = {column: [cell for cell in pools[column] if cell is not None and cell[1] is not None] for column in key}
    key = [column for column in key if good[column]]
    for column in key:
        pools[column] = good[column]
    return Table(name, tuple(found.wire for found in types), tuple(key)), pools


def expected_changes(table: Table, op: int, rows: list[Row]) -> list[tuple[int, tuple[Any, ...]]]:
    if op != UPDATE:
        return [(OP_DELETE if op == DELETE else OP_UPSERT, values(row)) for row in rows]
    made = []
    for before, after in zip(rows[::2], rows[1::2], strict=True):
        moved = not table.key or any(before[i][0] != after[i][0] for i in table.key)
        made += [(OP_DELETE, values(before))] * moved + [(OP_UPSERT, values(after))]
    return made


class Log:
    """Events, and what decoding them must give: table -> (op, values, commit_ts), in order."""

    def __init__(self, dress: Dress) -> None:
        self.dress = dress
        self.events: list[bytes] = []
        self.expected: dict[tuple[str, str], list[tuple[int, tuple[Any, ...], int]]] = {}

    def statement(self, data: st.DataObject, made: list[tuple[Table, list[list[Cell | None]]]], commit_ts: int) -> None:
        """TABLE_MAPs of some tables, under ids that an earlier statement may have used for others; then their rows."""
        chosen = data.draw(st.lists(st.sampled_from(made), min_size=1, unique_by=lambda pair: pair[0].name))
        ids = data.draw(st.permutations([7, 8, 9, (1 << 48) - 1]))[: len(chosen)]
        pairs = list(zip(ids, chosen, strict=True))
        self.events += [table.map_event(table_id, self.dress) for table_id, (table, _) in pairs]
        parts = data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=4))
        for number, (table_id, (table, pools)) in enumerate(parts, 1):
            op = data.draw(st.sampled_from([WRITE, UPDATE, DELETE]))
            random = data.draw(st.randoms(use_true_random=True))
            count = data.draw(st.integers(1, 5)) * (2 if op == UPDATE else 1)
            rows = [tuple(random.choice(pool) for pool in pools) for _ in range(count)]
            images = b"".join(image(row, self.dress) for row in rows)
            end = number == len(parts)
            self.events.append(rows_event(op, table_id, len(table.types), images, self.dress, end=end))
            changes = [(op, row, commit_ts) for op, row in expected_changes(table, op, rows)]
            self.expected.setdefault((table.database, table.name), []).extend(changes)


@pytest.mark.long
@LOGS
@given(data=st.data())
def test_any_log_gives_the_changes_it_was_made_of(data: st.DataObject) -> None:
    log = Log(data.draw(DRESSES))
    made = [data.draw(tables(name)) for name in data.draw(st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]]))]
    whole: list[bytes] = []
    for number in range(data.draw(st.integers(1, 3))):
        log.events = []
        for _ in range(data.draw(st.integers(1, 3))):
            log.statement(data, made, compose(e.SECONDS * 1000) + number)
        whole += transaction(number + 1, log.events, log.dress)
    versions = {(table.database, table.name): [table.version] for table, _ in made}
    decoded = decode_both(segment_of(whole, log.dress), versions, dict.fromkeys(versions, ALL_TIME))
    assert decoded.problems == ()
    found: dict[tuple[str, str], list[tuple[int, tuple[Any, ...], int]]] = {}
    for change in decoded.changes:
        rows = change.batch.to_pylist()
        columns = change.batch.schema.names[4:]
        listed = [(row[OP], tuple(row[name] for name in columns), row[COMMIT_TS]) for row in rows]
        found[change.database, change.table] = listed
    assert found == log.expected
    ordinals = [row[ORDINAL] for row in changed_rows(decoded)]
    assert len(set(ordinals)) == len(ordinals)
    assert decoded.ledger.rows == len(ordinals)
