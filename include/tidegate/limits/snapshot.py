"""Bounds of snapshots: chunks, waves, locks, tries.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# A chunk fits a worker's memory several times over; its statement ends before anybody waits for what it holds back.
SNAPSHOT_CHUNK_ROWS_DEFAULT: Final = 100_000
SNAPSHOT_CHUNK_BYTES_DEFAULT: Final = 16 * MIB
SNAPSHOT_STATEMENT_SECONDS: Final = 2.0
# In a smaller chunk the fixed cost (a row group, a line of the log) is more than that of its rows.
SNAPSHOT_CHUNK_BYTES_MIN: Final = 64 << 10
# A table of fewer rows is read faster than it is divided, which takes some hundred questions to its server.
SNAPSHOT_DIVIDED_ROWS_MIN: Final = 50_000
SNAPSHOT_THREADS_DEFAULT: Final = 4
# A wave's chunks stay in memory until they are landed; the log is applied again from its low mark.
SNAPSHOT_WAVE_BYTES_DEFAULT: Final = 256 * MIB
SNAPSHOT_WAVE_SECONDS_DEFAULT: Final = 10.0
# control/snapshots and a busy source are looked at again after this.
SNAPSHOT_LOOK_SECONDS: Final = 0.5
# Chunks that nobody took stay so long: their wave may still be at work, or wait for an answer.
SNAPSHOT_ORPHAN_DAYS: Final = 7
# Where no mark is logged, a wave waits so long for capture to come to its end.
SNAPSHOT_STANDING_SECONDS: Final = 120.0
# The server is asked for the columns of each table of a wave.
SNAPSHOT_WAVE_TABLES_MAX: Final = 200
# While a reader waits for the lock on tables without a key, new writers wait behind it. So it waits for this at most,
# and tries again later.
SNAPSHOT_LOCK_SECONDS: Final = 0.2
SNAPSHOT_LOCK_AGAIN_SECONDS: Final = 10.0
# A view that may lack an XA COMMIT is opened again so often, then its tables are left for later.
SNAPSHOT_VIEW_ATTEMPTS_MAX: Final = 20
# One statement may read a table with a key, of up to so many rows, from one view (snapshot/by_view.py): minutes of a
# server's work.
SNAPSHOT_VIEW_ROWS_MAX: Final = 100_000_000
# Rows are landed when they fill so many bytes, and the wave goes on. A table without a key comes in one result, so the
# server has to wait for each landing: up to SNAPSHOT_SEND_SECONDS.
SNAPSHOT_LAND_BYTES: Final = 64 * MIB
SNAPSHOT_SEND_SECONDS: Final = 600
# A table whose statements fail in so many waves, one after the other, is given up with the server's words.
SNAPSHOT_TABLE_ATTEMPTS_MAX: Final = 3
# ... and a table is given up when apply has refused so many waves and taken none, with the reason
# of the last refusal.
SNAPSHOT_WAVE_ATTEMPTS_MAX: Final = 10
# When a table is held again after its snapshot, or the snapshot failed, a new one begins by itself after this. Each
# further one within a day waits four times as long, up to the bound: a large table must not be read all day in vain.
SNAPSHOT_AGAIN_SECONDS: Final = 60.0
SNAPSHOT_AGAIN_SECONDS_MAX: Final = 6 * 3600.0
# A running reader looks so often for tables that have come to wait.
SNAPSHOT_WAITING_SECONDS: Final = 3.0
# A reader that follows tries a failed source or lake again after this.
SNAPSHOT_FOLLOW_AGAIN_SECONDS: Final = 5.0
# ... or, where a look costs more, after so many seconds for each CPU second of it: its share of the time stays small.
SNAPSHOT_WAITING_PER_CPU_SECONDS: Final = 30.0
# A table without a version that is older than the cut by this was there before capture. (A CREATE TABLE is logged a
# moment after the time of creation that the server gives.)
SNAPSHOT_UNHEARD_SECONDS: Final = 10.0
# A reader that leaves a table open for so long without a word counts as gone, and another one is woken.
SNAPSHOT_SILENT_SECONDS: Final = 60.0
# After so long people are told that no reader comes: one is woken after the time above. On a
# busy machine Airflow and the reader itself then start for a minute more.
SNAPSHOT_NO_READER_SECONDS: Final = 3 * SNAPSHOT_SILENT_SECONDS
# ... again after as long, then twice as long each time that nothing came of it, up to this.
SNAPSHOT_WAKE_SECONDS_MAX: Final = 900.0
