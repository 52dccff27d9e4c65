"""A large table under updates by random key: CPU seconds a second, with indexes of keys and without.

In:  sizes. One MariaDB with a table of so many narrow rows, capture and apply as processes of their own.
Out: rows that only the report shows: smaller is better. The peer is tidegate itself with apply.key_index_bytes 0.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.bench_quiet import NAME, Bench, running
from benchmarks.figures import Row
from benchmarks.sizes import Sizes

_INDEX_BYTES: Final = 2 << 30
_FILL_ROWS: Final = 500_000
_UPDATES_A_TICK: Final = 10
_TICK_SECONDS: Final = 0.1
_WARM_SECONDS: Final = 20.0  # files get their indexes meanwhile
_CAUGHT_UP_SECONDS: Final = 3.0
_WAIT_SECONDS_MAX: Final = 900.0


def measure(sizes: Sizes) -> list[Row]:
    """Rows for 100 updates a second, seen from commit to silver."""
    rows = sizes.large_table_rows
    title = f"100 updates a second by random key among {rows:,} rows"
    cpu = Row("large_cpu", f"{title}, capture and apply together", "CPU seconds a second")
    p95 = Row("large_p95", f"{title}, commit to visible, p95", "seconds")
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as bench:
        _fill(bench, rows)
        ours = _figures(bench, rows, _INDEX_BYTES, sizes.quiet_seconds)
        theirs = _figures(bench, rows, 0, sizes.quiet_seconds)
    for row, mine, other in zip((cpu, p95), ours, theirs, strict=True):
        row.ours, row.theirs, row.peer = [mine], [other], "tidegate without indexes of keys"
    return [cpu, p95]


def _fill(bench: Bench, rows: int) -> None:
    with bench.server.connect(NAME) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE large (id BIGINT PRIMARY KEY, n INT, t VARCHAR(40))")
        for first in range(1, rows + 1, _FILL_ROWS):
            last = min(first + _FILL_ROWS - 1, rows)
            cursor.execute(f"INSERT INTO large SELECT seq, seq % 1000, CONCAT('row ', seq) FROM seq_{first}_to_{last}")
            connection.commit()
    bench.wait_for_all(_WAIT_SECONDS_MAX)


def _figures(bench: Bench, rows: int, index_bytes: int, seconds: float) -> tuple[float, float]:
    """(CPU seconds a second, p95 of latency) of an application of its own, behind its backlog."""
    bench.start_caught_up(f", key_index_bytes: {index_bytes}", _CAUGHT_UP_SECONDS, _WAIT_SECONDS_MAX)
    _update(bench, rows, _WARM_SECONDS)
    before, started = bench.cpu(), time.monotonic()
    since, written = _update(bench, rows, seconds)
    spent = sum(bench.cpu().values()) - sum(before.values())
    took = time.monotonic() - started
    p95 = bench.all_visible(since, written).p95
    bench.stop_apply()
    return spent / took, p95


def _update(bench: Bench, rows: int, seconds: float) -> tuple[int, int]:
    """(when the first marker was due, Unix microseconds; how many markers came)."""
    since, written = bench.markers_begin(), 0
    with bench.server.connect(NAME) as connection, connection.cursor() as cursor:
        started = due = time.monotonic()
        while time.monotonic() < started + seconds:
            for _ in range(_UPDATES_A_TICK):
                cursor.execute("UPDATE large SET n = n + 1 WHERE id = %s", (random.randint(1, rows),))
            connection.commit()
            bench.mark()
            written, due = written + 1, due + _TICK_SECONDS
            time.sleep(max(0.0, due - time.monotonic()))
    return since, written
