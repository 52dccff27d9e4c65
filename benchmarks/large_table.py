"""A large table under updates by random key: CPU seconds a second, with indexes of keys and without.

In:  sizes. One MariaDB with a table of so many narrow rows, capture and apply as processes of their own.
Out: rows that only the report shows: smaller is better. The peer is tidegate itself with apply.key_index_bytes 0.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.bench_quiet import NAME, Bench, running
from benchmarks.figures import Row
from benchmarks.sizes import Sizes

TABLE: Final = "large"
COLUMNS: Final = "id BIGINT PRIMARY KEY, n INT, t VARCHAR(40)"
_INDEX_BYTES: Final = 2 << 30
_FILL_ROWS: Final = 500_000
_UPDATES_A_TICK: Final = 10
_TICK_SECONDS: Final = 0.1
_WARM_SECONDS: Final = 20.0  # files get their indexes meanwhile
_CAUGHT_UP_SECONDS: Final = 3.0
_WAIT_SECONDS_MAX: Final = 900.0


class Figures(NamedTuple):
    """cpu: seconds a second of capture and apply. p50, p95: seconds from commit to visible. driver_mb: the most that
    it had. start: seconds until a new application had caught up.
    """

    cpu: float
    p50: float
    p95: float
    driver_mb: float
    start: float


def measure(sizes: Sizes) -> list[Row]:
    """Rows for 100 updates a second, seen from commit to silver."""
    rows = sizes.large_table_rows
    title = f"100 updates a second by random key among {rows:,} rows"
    cpu = Row("large_cpu", f"{title}, capture and apply together", "CPU seconds a second")
    p95 = Row("large_p95", f"{title}, commit to visible, p95", "seconds")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as bench:
        fill(bench, rows)
        ours = updated(bench, range(1, rows + 1), _INDEX_BYTES, sizes.quiet_seconds)
        theirs = updated(bench, range(1, rows + 1), 0, sizes.quiet_seconds)
    for row, mine, other in ((cpu, ours.cpu, theirs.cpu), (p95, ours.p95, theirs.p95)):
        row.ours, row.theirs, row.peer = [mine], [other], "tidegate without indexes of keys"
    return [cpu, p95]


def fill(bench: Bench, rows: int) -> None:
    """Make the table, with so many rows, through the log. Returns when capture has them."""
    with bench.server.connect(NAME) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {TABLE} ({COLUMNS})")
        for first in range(1, rows + 1, _FILL_ROWS):
            last = min(first + _FILL_ROWS - 1, rows)
            rows_of = f"SELECT seq, seq % 1000, CONCAT('row ', seq) FROM seq_{first}_to_{last}"
            cursor.execute(f"INSERT INTO {TABLE} {rows_of}")
            connection.commit()
    bench.wait_for_all(_WAIT_SECONDS_MAX)


def updated(
    bench: Bench, keys: Sequence[int], index_bytes: int, seconds: float, warm_seconds: float = _WARM_SECONDS
) -> Figures:
    """Of an application of its own, behind its backlog, while rows with any of these keys are updated."""
    began = time.monotonic()
    bench.start_caught_up(f", key_index_bytes: {index_bytes}", _CAUGHT_UP_SECONDS, _WAIT_SECONDS_MAX)
    start = time.monotonic() - began
    _update(bench, keys, warm_seconds)
    before, started = bench.cpu(), time.monotonic()
    since, written = _update(bench, keys, seconds)
    spent = sum(bench.cpu().values()) - sum(before.values())
    took = time.monotonic() - started
    visible = bench.all_visible(since, written)
    assert bench.apply is not None
    memory = bench.apply.memory_mb()["driver"]
    bench.stop_apply()
    return Figures(spent / took, visible.p50, visible.p95, memory, start)


def _update(bench: Bench, keys: Sequence[int], seconds: float) -> tuple[int, int]:
    """(when the first marker was due, Unix microseconds; how many markers came)."""
    since, written = bench.markers_begin(), 0
    with bench.server.connect(NAME) as connection, connection.cursor() as cursor:
        started = due = time.monotonic()
        while time.monotonic() < started + seconds:
            for _ in range(_UPDATES_A_TICK):
                cursor.execute(f"UPDATE {TABLE} SET n = n + 1 WHERE id = %s", (random.choice(keys),))
            connection.commit()
            bench.mark()
            written, due = written + 1, due + _TICK_SECONDS
            time.sleep(max(0.0, due - time.monotonic()))
    return since, written
