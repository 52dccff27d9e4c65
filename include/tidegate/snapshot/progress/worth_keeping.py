"""The staying rows of control/snapshots, once snapshots have long been over.

In:  its rows, a time.
Out: the staying rows. Pure.

A table's snapshot, once over, stays over (events.py), so nothing is read of it any more. The
removed records, and why no reader of control/snapshots needs them:

- `ranges`, `view`, `ended`, `paused`, `resumed` of the table give a reader's remaining work, and
  the server of its end mark. The reader, its DAG and their alarms look at snapshots not yet over.
  `requested` and the event of its end give a state, and both stay; a done one has nothing left,
  whatever its ranges were.
- `opened` without a table, `view`, `paused` and `resumed` of a whole snapshot, when all of its
  tables are over. `opened` gives the beginning of a wave cut in two by a window's end. Apply asks
  it of waves before an answer, and a rebuild, which meets old waves again, writes its own cuts down
  anew. Upkeep of bronze keeps segments for it only while its snapshot goes on.
- `definition` and `spans` of a `wave`. The columns are asked for at the first wave of its table,
  refused once the snapshot is over; a rebuild has its own version, in control/schema_history. The
  row itself stays: by it upkeep knows without a look inside that a file of bronze/chunks was taken
  as a whole.

All else stays. `opened` of a table, `applied`, `done`, `marked` and `placed` are a rebuild's
ground, and the proof of a table's rows; `failed` and `cancelled` say why one isn't asked for again;
`refused` the chunks to remove.

A killed run has made its commit or it hasn't (lake/control/upkeep.py); later appends stay. A reader
following the table by its files gets all of it anew (event_log.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.snapshot.progress.events import EventKind, Meaning, meaning

_ENDS: Final = frozenset({EventKind.DONE, EventKind.CANCELLED, EventKind.FAILED})
_OF_A_READER: Final = frozenset(
    {EventKind.RANGES, Meaning.VIEW_OF_TABLE, EventKind.ENDED, EventKind.PAUSED, EventKind.RESUMED}
)
_OF_THE_WHOLE: Final = frozenset({Meaning.WAVE_OPEN, EventKind.PAUSED, EventKind.RESUMED, Meaning.LOAD})
_PLACE: Final = ("snapshot", "source", "database", "table")
_HEAVY: Final = ("definition", "spans")

_Key = tuple[str, str, str, str]  # snapshot, source, database, table


def worth_keeping(rows: pa.Table, oldest: datetime) -> pa.Table:
    """Without the needless records of snapshots over before `oldest`."""
    kinds, times = rows["event"].to_pylist(), rows["recorded_at"].to_pylist()
    keys: list[_Key] = list(zip(*(rows[name].to_pylist() for name in _PLACE), strict=True))
    over, over_whole = _over(keys, kinds, times, oldest)

    def stays(key: _Key, kind: str) -> bool:
        said = meaning(EventKind(kind), key[3])
        if key[3]:
            return said not in _OF_A_READER or key not in over
        return said not in _OF_THE_WHOLE or key[0] not in over_whole

    kept = [stays(key, kind) for key, kind in zip(keys, kinds, strict=True)]
    thin = pa.array([kind == EventKind.WAVE and key in over for key, kind in zip(keys, kinds, strict=True)])
    for name in _HEAVY:
        column = pc.if_else(thin, pa.scalar(None, rows.schema.field(name).type), rows[name])
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
    return rows.filter(pa.array(kept, pa.bool_()))


def _over(
    keys: Sequence[_Key], kinds: Sequence[str], times: Sequence[datetime], oldest: datetime
) -> tuple[set[_Key], set[str]]:
    """Tables asked for and over by then; snapshots all of whose tables are."""
    ended = {key for key, kind, at in zip(keys, kinds, times, strict=True) if kind in _ENDS and at < oldest}
    asked = {key for key, kind in zip(keys, kinds, strict=True) if kind == EventKind.REQUESTED and key[3]}
    over = {key for key in asked if any(place in ended for place in _places(key))}
    return over, {key[0] for key in asked} - {key[0] for key in asked - over}


def _places(key: _Key) -> tuple[_Key, ...]:
    """The places of an event about a table."""
    snapshot, source, database, table = key
    return key, (snapshot, "", database, table), (snapshot, source, "", ""), (snapshot, "", "", "")
