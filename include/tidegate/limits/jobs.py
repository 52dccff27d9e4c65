"""Bounds of Spark's jobs: apply, its decoding and upserts, maintain.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# --- landing --------------------------------------------------------------------------------------
# Tables at whose logs an application is at one time, unless apply.parallel_tables is more: a look and a commit take a
# millisecond of CPU, and wait for the disk or the store for the rest of their time.
AT_ONCE_TABLES_MIN: Final = 8

# --- upkeep in apply ------------------------------------------------------------------------------
# What a table may save up of apply.upkeep_bytes: as much as one large file, so that a quiet day ends in no long window.
UPKEEP_SAVED_BYTES_MAX: Final = 256 * MIB
# Packing begins with no further table after a quarter of a second for each second that the window has taken, or this
# many seconds: the next window waits for it. Tables that every window writes come to be due in the same one.
UPKEEP_PER_WINDOW_SECONDS: Final = 0.25
UPKEEP_SECONDS_MIN: Final = 0.1

# --- catching up ----------------------------------------------------------------------------------
# A wave whose marks aren't in the log may begin some minutes below the cut: bronze's files since then are still known.
WAVES_REACH_BACK_SECONDS: Final = 600

# --- maintain -------------------------------------------------------------------------------------
# A rewrite of silver that loses against apply or a person is tried this often, then left to the next run.
MAINTAIN_ATTEMPTS_MAX: Final = 3

# --- decode in apply ------------------------------------------------------------------------------
# Windows that the driver decodes by itself. Where Spark is one machine its Python workers would take the same cores,
# after starting and loading Arrow; on a cluster a job is worth it sooner (it costs about 0.2 s).
DRIVER_DECODE_LOCAL_BYTES: Final = 512 * MIB
DRIVER_DECODE_CLUSTER_BYTES: Final = 16 * MIB
# Work that is worth another thread: less takes under a second, and one thread makes one file per table, not two.
DRIVER_DECODE_THREAD_BYTES: Final = 128 * MIB
# What a worker, or all the driver's threads together, hold of decoded rows before they write them out.
STAGE_BYTES: Final = 256 * MIB

# --- upsert ---------------------------------------------------------------------------------------
# Key records in the driver's memory while the last change per key is found, over all tables of a window. 512 MiB of
# binlog of ordinary rows stay below it; tables that would need more go by MERGE, the largest first.
UPSERT_KEYS_BYTES_MAX: Final = 1792 * MIB
# Probing reads a silver file's key columns: 10 to 75 ms of CPU for a million rows, of the row groups that may hold a
# key. Up to this many rows in the files of a window the driver does it itself; above, on a cluster, one Spark job does
# it for all tables, in tasks of about PROBE_TASK_ROWS. A job costs 0.4 s before it reads anything.
PROBE_DRIVER_ROWS_MAX: Final = 16_000_000
PROBE_TASK_ROWS: Final = 2_000_000
# Bounds of row groups that the driver keeps: about 24 bytes for each 131,072 rows, and 600 for each file.
PROBE_GROUPS_BYTES_MAX: Final = 64 * MIB
# An index of a file's keys (include/tidegate/upsert/keys/key_indexes.py). To make it costs 20 to 30 ns a row, to look
# through the file 2.5 to 4 ns, to look up a key 50 ns. A small file is looked through as fast as it is asked for.
KEY_INDEX_FILE_ROWS_MIN: Final = 65_536
KEY_INDEX_READ_ROWS_MIN: Final = 8  # for each row of the file
KEY_INDEX_LOOKUP_ROWS: Final = 20
# An index that was used this lately isn't dropped for another. Files whose look-ups are counted: 500 bytes each.
KEY_INDEX_IDLE_SECONDS: Final = 60
KEY_INDEX_WATCHED_FILES_MAX: Final = 65_536
# A shard that is read anew: the driver looks through files of up to this many rows, where a statement of Spark's costs
# seconds.
SHARD_DRIVER_ROWS_MAX: Final = 4_000_000
# Changes of a table without a key that the driver counts by itself, in bytes of binlog; more go by MERGE.
HASHED_ROWS_BYTES_MAX: Final = 32 * MIB
# Changes of a table with history that the driver holds, in bytes of binlog, with the versions that they end and make: a
# few times as many bytes. More go by MERGE, at twenty times the CPU.
VERSIONED_BYTES_MAX: Final = 128 * MIB

# --- rebuild --------------------------------------------------------------------------------------
# A table that rebuild makes on this computer's disk, up to so large, is compared by DuckDB: Spark takes a JVM's start
# and four reads. DuckDB puts on the disk what doesn't fit into QUERY_MEMORY_BYTES.
COMPARE_LOCAL_BYTES: Final = 1024 * MIB

# --- columns --------------------------------------------------------------------------------------
# Files of a table that the driver writes anew by itself when an ALTER gives rows values, or takes columns. Two cores do
# some 50 MB a second, so this is about as long as executors take to come; above it a cluster's cores are more.
RESHAPE_CLUSTER_BYTES: Final = 1024 * MIB
# Where Spark is one machine it has the same cores, and takes 60 times as much of them. At a fifth of that pace (a far
# store) this is half of COMMIT_SECONDS_MAX, in which a file that waits for its commit is safe.
RESHAPE_LOCAL_BYTES: Final = 16 * 1024 * MIB
# A file counts as so many bytes at least: to open one, write one and sync it takes some ten milliseconds.
RESHAPE_FILE_BYTES: Final = MIB // 4

# A Spark job that takes this much longer than it is meant to loop hangs (a store, a lock): Airflow ends it, and the
# next try goes on where it stood. Of a window, and of a batch, none is known that takes so long.
JOB_HANGS_SECONDS: Final = 86_400
# So is a private log (spark_jobs/merge/private/log.py) that is older than two such jobs nobody's any more.
PRIVATE_LOG_SECONDS: Final = 2 * JOB_HANGS_SECONDS

# --- Spark's jobs ---------------------------------------------------------------------------------
# Releases and baselines are looked for so often while bronze stands still.
REFRESH_SECONDS: Final = 1.0
# Micro-batches move the cut of sources that only prove that they are quiet so often.
QUIET_CUT_SECONDS: Final = 10.0
# More threads than this wait for each other: what is Python in here holds its lock.
DRIVER_THREADS_MAX: Final = 4
# Fewer files of a control table are left as they are. Every window appends a file to two or three of them.
CONTROL_PACKED_FILES_MIN: Final = 8
# The oldest that a version may be when a cut names it: a day between touches, and a day between runs.
ANCHOR_HOURS: Final = 24
# Clocks of the store and of this machine may differ.
VACUUM_CLOCK_SECONDS: Final = 300
# Between two tries of a rewrite that lost.
MAINTAIN_PAUSE_SECONDS: Final = 2.0
# A silver table up to this size is rewritten where it changes: that is fewer Spark jobs than deletion vectors (1.5 to
# 2.2 CPU seconds a MERGE instead of 2.5 to 3.3, two cores), and leaves no small files behind.
REWRITE_BYTES_MAX: Final = 64 << 20
# Compiling each query's code costs more than running it over a small window. Above this many staged bytes generated
# code pays for itself.
CODEGEN_BYTES_MIN: Final = 64 << 20
# A window that fails by what may pass is tried so often by the application itself.
WINDOW_ATTEMPTS_MAX: Final = 3
MASK_KEY_BYTES_MIN = 16  # shorter keys can be guessed

# --- who waits for another job's end --------------------------------------------------------------
# Between looks whether an apply that runs has ended.
LEASE_WISH_SECONDS: Final = 2.0
# Apply's loop looks so often whether somebody waits for its lease: a listing of an empty folder.
LEASE_WISHES_LOOK_SECONDS: Final = 5.0
# Who waits says so again after so long.
LEASE_WAIT_SAID_SECONDS: Final = 30.0
# A swap waits so long for an apply that has been asked to end: its longest window, mostly.
SWAP_LEASE_WAIT_SECONDS: Final = 600.0

# --- values that are asked for at the source ------------------------------------------------------
# Rows asked for by their keys in one SELECT: a statement of some ten KB.
ASKED_STATEMENT_ROWS_MAX: Final = 500
# Rows given to the source in one INSERT, so that it computes them: a sixteenth of what a server takes by default.
ASKED_STATEMENT_BYTES_MAX: Final = 1 * MIB
# Images of a table without its generated columns that a window holds in memory: about 1 KB and 10 us each.
ASKED_ROWS_MAX: Final = 300_000
# How often in a row a table's rows had changed again when they were asked for, before it waits for a snapshot.
ASKED_ATTEMPTS_MAX: Final = 20
# A source that gives no byte for so long doesn't answer: a lock on a table, or a dead network. All tables wait with it.
ASKED_ANSWER_SECONDS: Final = 15.0
