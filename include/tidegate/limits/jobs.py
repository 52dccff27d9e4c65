"""Bounds of Spark's jobs: apply, its decoding and upserts, maintain.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# --- landing --------------------------------------------------------------------------------------
# A job works on the logs of so many tables at one time, unless apply.parallel_tables is more. A look or a commit takes
# a millisecond of CPU, and waits for the disk or the store for the rest of its time.
AT_ONCE_TABLES_MIN: Final = 8

# --- upkeep in apply ------------------------------------------------------------------------------
# A table may save up so much of apply.upkeep_bytes: one large file. More would end a quiet day with a long window.
UPKEEP_SAVED_BYTES_MAX: Final = 256 * MIB
# Packing takes on no further table after UPKEEP_PER_WINDOW_SECONDS for each second of the window, or after
# UPKEEP_SECONDS_MIN: the next window waits for it. Tables that every window writes fall due in the same one.
UPKEEP_PER_WINDOW_SECONDS: Final = 0.25
UPKEEP_SECONDS_MIN: Final = 0.1

# --- catching up ----------------------------------------------------------------------------------
# A snapshot's wave without marks in the log may begin some minutes below the cut. The files that bronze got since then
# must still be known.
WAVES_REACH_BACK_SECONDS: Final = 600

# --- maintain -------------------------------------------------------------------------------------
# A rewrite of silver that loses against apply or a person is tried this often, then left to the next run.
MAINTAIN_ATTEMPTS_MAX: Final = 3

# --- decode in apply ------------------------------------------------------------------------------
# The driver decodes windows up to this by itself. Where Spark is one machine, its Python workers would take the same
# cores, after they have started and loaded Arrow. On a cluster a job (about 0.2 s) pays sooner.
DRIVER_DECODE_LOCAL_BYTES: Final = 512 * MIB
DRIVER_DECODE_CLUSTER_BYTES: Final = 16 * MIB
# Another thread begins for each so many bytes. Less takes under a second, and one thread makes one file per table, not
# two.
DRIVER_DECODE_THREAD_BYTES: Final = 128 * MIB
# A worker, or all threads of the driver together, hold so many bytes of decoded rows before they write them out.
STAGE_BYTES: Final = 256 * MIB
# A table's rows wait for so many bytes of them before conditions, masks and computed columns are
# applied: these cost milliseconds for a single row, too.
STAGED_PIECE_BYTES: Final = MIB

# --- upsert ---------------------------------------------------------------------------------------
# Key records in the driver's memory, of all tables of a window, while the last change per key is found. 512 MiB of
# binlog with ordinary rows stay below it. Where a window would need more, its largest tables go by MERGE.
UPSERT_KEYS_BYTES_MAX: Final = 1792 * MIB
# Probing reads the key columns of a silver file, in the row groups that may hold a key: 10 to 75 ms of CPU for a
# million rows. The driver itself probes up to this many rows of a window's files. For more, on a cluster, one Spark job
# does it for all tables, in tasks of about PROBE_TASK_ROWS. A job costs 0.4 s before it reads anything.
PROBE_DRIVER_ROWS_MAX: Final = 16_000_000
PROBE_TASK_ROWS: Final = 2_000_000
# Smallest and largest keys of row groups, which the driver keeps: about 24 bytes for 131,072 rows, and 600 for a file.
PROBE_GROUPS_BYTES_MAX: Final = 64 * MIB
# An index of a file's keys (include/tidegate/upsert/keys/key_indexes.py): to make one costs 20 to 30 ns a row, to scan
# the file 2.5 to 4 ns a row, to look up a key 50 ns. A small file is scanned as fast as an index is asked.
KEY_INDEX_FILE_ROWS_MIN: Final = 65_536
KEY_INDEX_READ_ROWS_MIN: Final = 8  # for each row of the file
KEY_INDEX_LOOKUP_ROWS: Final = 20
# An index that was used this lately isn't dropped for another one. Look-ups are counted for so many files, of 500 bytes
# each.
KEY_INDEX_IDLE_SECONDS: Final = 60
KEY_INDEX_WATCHED_FILES_MAX: Final = 65_536
# Of a shard that is read anew the driver scans files of up to this many rows: a statement of Spark's costs seconds.
SHARD_DRIVER_ROWS_MAX: Final = 4_000_000
# Changes of a table without a key that the driver counts by itself, in bytes of binlog; more go by MERGE.
HASHED_ROWS_BYTES_MAX: Final = 32 * MIB
# The driver holds so many changes of a table with history, in bytes of binlog, and the versions that they end and make,
# which are a few times as large. More go by MERGE, at twenty times the CPU.
VERSIONED_BYTES_MAX: Final = 128 * MIB
# Which table the bytes of a segment belong to is known after decoding. Then the driver takes at most so many bytes of a
# table's decoded changes, at about four of each byte of binlog, as narrow rows have it.
HASHED_ROWS_DECODED_BYTES_MAX: Final = 4 * HASHED_ROWS_BYTES_MAX
VERSIONED_DECODED_BYTES_MAX: Final = 4 * VERSIONED_BYTES_MAX
# A table that couldn't be written in any try has its files looked at for a damaged one: so many footers, and so many
# bytes of rows, some ten seconds of CPU.
DAMAGE_LOOK_FILES_MAX: Final = 2_000
DAMAGE_LOOK_BYTES_MAX: Final = 1024 * MIB

# --- rebuild --------------------------------------------------------------------------------------
# A rebuilt table on this computer's disk is compared by DuckDB up to this size: Spark takes a JVM's start and four
# reads. DuckDB puts on the disk what doesn't fit into QUERY_MEMORY_BYTES.
COMPARE_LOCAL_BYTES: Final = 1024 * MIB

# --- columns --------------------------------------------------------------------------------------
# The driver itself rewrites files of up to this size when an ALTER gives rows values, or drops columns. Two cores do
# some 50 MB a second, so this takes about as long as executors take to start. For more, a cluster's cores pay.
RESHAPE_CLUSTER_BYTES: Final = 1024 * MIB
# The same where Spark is one machine: it has the same cores, and takes 60 times as much of them. Even at a fifth of
# that pace (a far store) this takes half of COMMIT_SECONDS_MAX: within that, a file that waits for its commit is safe.
RESHAPE_LOCAL_BYTES: Final = 16 * 1024 * MIB
# A file counts as so many bytes at least: to open, write and sync one takes some ten milliseconds.
RESHAPE_FILE_BYTES: Final = MIB // 4

# A Spark job hangs (a store, a lock) when it takes this much longer than it is meant to loop. Airflow ends it, and the
# next try goes on where it stood. No known window or batch takes so long.
JOB_HANGS_SECONDS: Final = 86_400
# A private log (spark_jobs/merge/private/log.py) that is older than two such jobs belongs to nobody any more.
PRIVATE_LOG_SECONDS: Final = 2 * JOB_HANGS_SECONDS

# --- Spark's jobs ---------------------------------------------------------------------------------
# Releases and baselines are looked for so often while bronze stands still.
REFRESH_SECONDS: Final = 1.0
# While sources only prove that they are quiet, micro-batches move the cut so often.
QUIET_CUT_SECONDS: Final = 10.0
# More threads than this would wait for each other: Python code holds Python's lock.
DRIVER_THREADS_MAX: Final = 4
# Fewer files of a control table are left as they are. Every window appends a file to two or three of them.
CONTROL_PACKED_FILES_MIN: Final = 8
# A table is touched when the version that a cut names is older (spark_jobs/maintain_steps/retain_versions.py).
ANCHOR_HOURS: Final = 24
# Clocks of the store and of this machine may differ.
VACUUM_CLOCK_SECONDS: Final = 300
# Pause between two tries of a rewrite that lost.
MAINTAIN_PAUSE_SECONDS: Final = 2.0
# MERGE rewrites the files of a silver table up to this size. That takes fewer Spark jobs than deletion vectors (1.5 to
# 2.2 CPU seconds a MERGE instead of 2.5 to 3.3, on two cores), and leaves no small files behind.
REWRITE_BYTES_MAX: Final = 64 << 20
# Compiling each query's code costs more than running it over a small window. Above this many staged bytes generated
# code pays for itself.
CODEGEN_BYTES_MIN: Final = 64 << 20
# The same for rows that maintain rewrites: narrow rows that pack well are many in few bytes. Without generated code, an
# OPTIMIZE of ten million rows in 9 MB hadn't ended after 290 CPU seconds.
CODEGEN_ROWS_MIN: Final = 200_000
# The job itself tries a window so often when it fails by an error that may pass.
WINDOW_ATTEMPTS_MAX: Final = 3
MASK_KEY_BYTES_MIN = 16  # shorter keys can be guessed

# --- who waits for another job's end --------------------------------------------------------------
# Pause between two looks whether a running apply has ended.
LEASE_WISH_SECONDS: Final = 2.0
# Apply's loop looks so often whether somebody waits for its lease: a listing of an empty folder.
LEASE_WISHES_LOOK_SECONDS: Final = 5.0
# Whoever waits for a lease says so again after this.
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
# When a table's rows have changed again at so many look-ups in a row, the table waits for a snapshot.
ASKED_ATTEMPTS_MAX: Final = 20
# A source that gives no byte for so long doesn't answer: a lock on a table, or a dead network. All tables wait with it.
ASKED_ANSWER_SECONDS: Final = 15.0
