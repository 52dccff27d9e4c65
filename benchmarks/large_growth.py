"""What 100 updates a second by random key cost in tables of 1, 10 and 100 million rows: what grows with the table.

In:  numbers of rows. A MariaDB, capture and apply as processes of their own. Silver is written here, by apply's own
     writer of files: to play 100 million rows through a server would take an hour and 20 GB.
Out: by number of rows CPU seconds a second, latency, the driver's memory, a restart's seconds; by what power of the
     rows each grows; what an index of keys costs beside the load of its rows.

Apply never reads the source's table. So the source needs only rows that change, and they change on the real road:
server, capture, apply. In the end silver's log must count as many live rows as before: a missed key would add a row.

`python -m benchmarks.large_growth 1000000 10000000 100000000`: twenty minutes, and 3 GB of memory.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.bench_quiet import NAME, Bench, running
from benchmarks.large_table import COLUMNS, TABLE, Figures, fill, updated
from tidegate import tables
from tidegate.delta.log import Change
from tidegate.delta.table.actions import add
from tidegate.delta.table.state import TableState
from tidegate.upsert.files.data_file import write
from tidegate.upsert.files.file_layout import FileLayout
from tidegate.upsert.keys.file_index import index_of

_SECONDS: Final = 30.0
# A file gets its index when windows have read its rows eight times. Of 100 million rows each window reads a row group
# for each key, so this takes minutes.
_WARM_SECONDS: Final = 240.0
_KEYS_MAX: Final = 50_000
_PIECE_ROWS: Final = 5_000_000
_INSERT_ROWS: Final = 5_000
_BULK_ROWS: Final = 1_000_000
_CAUGHT_UP_SECONDS: Final = 3.0
_WAIT_SECONDS_MAX: Final = 900.0
_PATH: Final = tables.silver_path(NAME, TABLE)
_SEED: Final = (1, 2)


def measure(rows: int, index_bytes: int, seconds: float = _SECONDS) -> Figures:
    """The figures of a table of so many rows, and a first one."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as bench:
        with bench.server.connect(NAME) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {TABLE} ({COLUMNS})")
            cursor.execute(f"INSERT INTO {TABLE} VALUES (0, 0, 'so that apply makes silver')")
            connection.commit()
        bench.start([], _WAIT_SECONDS_MAX)
        bench.stop_apply()
        keys = _fill(bench, rows)
        figures = updated(bench, keys, index_bytes, seconds, _WARM_SECONDS)
        live = _live_rows(bench)
        assert live == rows + 1, f"silver has {live} rows, not {rows + 1}: a key was missed"
    return figures


def index_costs() -> dict[str, float]:
    """Bytes a row; CPU nanoseconds a row, and those of apply and capture to load it from the log."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as bench:
        bench.start_caught_up("", _CAUGHT_UP_SECONDS, _WAIT_SECONDS_MAX)
        before = sum(bench.cpu().values())
        fill(bench, _BULK_ROWS)
        bench.visible_at(int(time.time() * 1000), _WAIT_SECONDS_MAX)
        load = sum(bench.cpu().values()) - before
        bench.stop_apply()
        state = bench.lake.log(_PATH).state()
        schema = FileLayout.of(state, ("id",)).key_schema
        index_of(bench.lake, _PATH, state.files[0], schema, _SEED)  # kernels are loaded
        began, size, rows = time.process_time(), 0, 0
        for file in state.files:
            made = index_of(bench.lake, _PATH, file, schema, _SEED)
            size, rows = size + made.nbytes, rows + made.rows
        spent = time.process_time() - began
    return {"bytes": size / rows, "cpu_ns": 1e9 * spent / rows, "load_cpu_ns": 1e9 * load / _BULK_ROWS}


def power(found: Mapping[int, float]) -> float:
    """By what power of the key the values grow: 0 not at all, 1 in proportion. By least squares of logarithms."""
    return float(np.polyfit(np.log(list(found)), np.log(list(found.values())), 1)[0])


def _fill(bench: Bench, rows: int) -> list[int]:
    """Silver gets all rows, in a commit that apply takes as its own. Returns the keys that the source has."""
    log = bench.lake.log(_PATH)
    layout = FileLayout.of(log.state(), ("id",))
    adds = [body for piece in _pieces(rows) for body in write(bench.lake, _PATH, layout.fit(piece), layout)]
    name = tables.app_id(NAME, f"{NAME}.{TABLE}")

    def decide(read: TableState) -> Change:
        return Change([add(body, data_change=True) for body in adds], "WRITE", {name: read.transaction(name)})

    log.update(decide)
    keys = random.sample(range(1, rows + 1), min(_KEYS_MAX, rows))
    with bench.server.connect(NAME) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        for at in range(0, len(keys), _INSERT_ROWS):
            values = ", ".join(f"({key}, {key % 1000}, 'row {key}')" for key in keys[at : at + _INSERT_ROWS])
            cursor.execute(f"INSERT INTO {TABLE} VALUES {values}")
        connection.commit()
    return keys


def _pieces(rows: int) -> Iterator[pa.Table]:
    for first in range(1, rows + 1, _PIECE_ROWS):
        keys = np.arange(first, min(first + _PIECE_ROWS, rows + 1))
        yield pa.table(
            {
                "id": pa.array(keys),
                "n": pa.array((keys % 1000).astype(np.int32)),
                "t": pc.binary_join_element_wise("row", pa.array(keys).cast(pa.string()), " "),
                tables.COMMIT_TS: pa.repeat(pa.scalar(1, pa.int64()), len(keys)),
            }
        )


def _live_rows(bench: Bench) -> int:
    """Silver's live rows, by its log."""
    files = bench.lake.log(_PATH).state().files
    dead = sum(file.deletion_vector.cardinality for file in files if file.deletion_vector is not None)
    return sum(file.rows or 0 for file in files) - dead


def main() -> None:
    costs = index_costs()
    print("an index of keys:", ", ".join(f"{name} {value:.3g}" for name, value in costs.items()), flush=True)
    found: dict[int, Figures] = {}
    for rows in map(int, sys.argv[1:]):
        found[rows] = measure(rows, 2 << 30)
        print(f"{rows:,} rows:", ", ".join(f"{name} {value:.3g}" for name, value in found[rows]._asdict().items()))
    if len(found) > 1:
        for name in Figures._fields:
            grows = power({rows: getattr(figures, name) for rows, figures in found.items()})
            print(f"{name} grows by the power {grows:.2f} of the rows", flush=True)


if __name__ == "__main__":
    main()
