"""Bounds of verify and repair.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# A statement of verify hashes so many rows: one value of 50 bytes a row, below a max_allowed_packet of 16 MiB.
VERIFY_CHUNK_ROWS_DEFAULT: Final = 50_000
# Tables are read one after the other until they have so many rows. Then verify waits for one cut for all of them.
VERIFY_GROUP_ROWS: Final = 2_000_000
VERIFY_GROUP_TABLES: Final = 500
# DuckDB's memory; what needs more goes to temporary files.
VERIFY_MEMORY_BYTES_DEFAULT: Final = 1024 * MIB
# Keys that seem to differ are read again in rounds of so many of a table: their rows are in memory, on both sides.
VERIFY_ROUND_ROWS: Final = 10_000
# ... and so many at most: each is in memory as text.
VERIFY_SUSPECT_ROWS_MAX: Final = 1_000_000
# ... and so often: a key that changes between each two reads stays unsettled.
VERIFY_SETTLE_ATTEMPTS_MAX: Final = 8
# ... and so many of one statement: literals in a list of conditions.
VERIFY_STATEMENT_ROWS: Final = 500
# On a MySQL without GTIDs these rows are read under a shared lock, which verify waits for this
# long.
VERIFY_LOCK_SECONDS: Final = 1
# More keys than this are no repair: the whole table is copied again. A repair that is refused is tried so often.
REPAIR_ROWS_MAX: Final = 10_000
REPAIR_ATTEMPTS_MAX: Final = 3
# Begun again so often: a table whose definition changes while it is compared, and a view while the log changes its
# file.
VERIFY_TABLE_ATTEMPTS_MAX: Final = 3
VERIFY_VIEW_ATTEMPTS_MAX: Final = 10
# A side that reads at cuts goes on at a newer one after this: TiDB forgets what is older than tidb_gc_life_time, 600 s.
VERIFY_CUT_SECONDS: Final = 120.0
# Verify looks so often for a cut that holds everything.
VERIFY_POLL_SECONDS: Final = 0.5
# Verify says what it waits for after this; a working pipeline has such a cut sooner.
VERIFY_TOLD_SECONDS: Final = 3.0
# A verification says so often what it does.
VERIFY_REPORT_SECONDS: Final = 30.0
