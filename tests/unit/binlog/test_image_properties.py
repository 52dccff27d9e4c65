"""Updates whose images lack columns, in any split between them: what both images know together is the row.

In:  tables of random types with a key; before images with the key at least, after images with the rest at least.
Out: kernel = slow twin = the row that was encoded. A column in neither image holds the table, whatever it is.

Not covered here: inserts and deletes without some of their columns, partial JSON (real servers write both:
test_images_on_servers.py, test_random_tables.py).
"""

from __future__ import annotations

import struct

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.decoding import ALL_TIME, changed_rows, decode_both
from tests.support.seeds import many
from tests.unit.binlog.encoding import events as e
from tests.unit.binlog.logs import Dress, Table, segment_of, transaction
from tests.unit.binlog.type_cells import TYPES, Cell
from tidegate.binlog.format.events import EventType
from tidegate.tables import OP, OP_DELETE

PLAIN = {name: found for name, found in TYPES.items() if "date" not in name and "timestamp" not in name}
NAME = ("shop", "t")


def bitmap(columns: set[int], count: int) -> bytes:
    return sum(1 << i for i in columns).to_bytes((count + 7) // 8, "little")


def partial_image(row: list[Cell | None], columns: set[int]) -> bytes:
    return e.image(*(None if (cell := row[i]) is None else cell[0] for i in sorted(columns)))


def update(before: list[Cell | None], known: set[int], after: list[Cell | None], logged: set[int]) -> bytes:
    count = len(before)
    head = (9).to_bytes(6, "little") + struct.pack("<HH", 1, 2) + e.packed(count)
    images = partial_image(before, known) + partial_image(after, logged)
    return e.event(EventType.UPDATE_ROWS_V2, head + bitmap(known, count) + bitmap(logged, count) + images)


def shown(row: list[Cell | None]) -> list[object]:
    return [None if cell is None else cell[1] for cell in row]


@settings(max_examples=many(120, 5000), deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_both_images_know_together_is_the_row(data: st.DataObject) -> None:
    types = [PLAIN[t] for t in data.draw(st.lists(st.sampled_from(sorted(PLAIN)), min_size=2, max_size=20))]
    key = data.draw(st.lists(st.integers(0, len(types) - 1), min_size=1, max_size=3, unique=True))
    columns = set(range(len(types)))
    before = [data.draw(found.cells if i in key else st.none() | found.cells) for i, found in enumerate(types)]
    known = set(key) | data.draw(st.sets(st.sampled_from(sorted(columns))))
    logged = (columns - known) | data.draw(st.sets(st.sampled_from(sorted(columns))))
    after = list(before)
    for i in logged:
        after[i] = data.draw(types[i].cells)
    missing = data.draw(st.none() | st.sampled_from(sorted(columns - set(key)) or [None]))
    if missing is not None:
        known, logged = known - {missing}, logged - {missing}
    if not logged:
        return  # a server logs no update that changes nothing
    table, dress = Table("t", tuple(found.wire for found in types), tuple(key)), Dress(mysql=True)
    events = [table.map_event(9, dress), update(before, known, after, logged)]
    found = decode_both(segment_of(transaction(1, events, dress), dress), {NAME: [table.version]}, {NAME: ALL_TIME})
    if missing is not None:
        assert [problem.error for problem in found.problems] == ["UnsupportedValue"]
        return
    assert found.problems == ()
    *deleted, row = changed_rows(found)
    assert [row[name] for name in table.names] == shown(after)
    moved = any(before[i][0] != after[i][0] for i in key)
    assert [one[OP] for one in deleted] == [OP_DELETE] * moved
    for one in deleted:
        assert [one[table.names[i]] for i in key] == [before[i][1] for i in key]
