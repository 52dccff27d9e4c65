"""Every bound of tidegate in one place, unit in its name, reason beside it.

A bound is how long is waited, how often something is tried, and how much is taken at most or at least. Sizes of formats
stand where the format is read.

In:  nothing.
Out: constants. What a user may tune is a field of tidegate.config, and takes its default from here.
"""

from typing import Final

MIB: Final = 1 << 20

# --- wire ---------------------------------------------------------------------------------------
# The protocol splits anything longer into packets of exactly this size (MySQL internals, "Packets").
PACKET_BYTES_MAX: Final = (1 << 24) - 1
# One recv_into asks for at most this much: large enough that the packet walk runs over many events.
RECEIVE_BYTES: Final = 4 * MIB
# A silent server is declared dead after this many missed heartbeats.
HEARTBEATS_MISSED_MAX: Final = 5
# ... and after no less than this: a busy server may be late with heartbeats that are asked for often.
SILENCE_SECONDS_MIN: Final = 10.0
# A question to the server (its clock, its settings) and a login are answered within this, or the network is gone.
ANSWER_SECONDS_MAX: Final = 30.0
# From the end of one capture run in Airflow to the next one's stream, when nothing else keeps its slot busy.
HAND_OVER_SECONDS: Final = 5.0
# Before a first start: what is in the binlog is committed within this, or commits are waiting for something.
SETTLE_SECONDS: Final = 30.0

# --- segments -----------------------------------------------------------------------------------
# A segment is cut at the first transaction end past the soft bound, and anywhere past the hard one:
# big enough to decode in one vectorised pass, small enough that a Spark task holds a few of them.
SEGMENT_BYTES_DEFAULT: Final = 8 * MIB
SEGMENT_BYTES_MAX: Final = 16 * MIB
# Names in one segment's `tables` column; past it the segment is cut so that the column stays prunable.
SEGMENT_TABLES_MAX: Final = 4096

# What is compressed in a segment is expanded and decoded in pieces of about this size, or one event when it is larger.
EXPANDED_PIECE_BYTES: Final = 16 * MIB
# What the compressed values of one column and segment (MariaDB) may grow to: far from where 32-bit offsets end.
INFLATED_BYTES_MAX: Final = 1024 * MIB
# Rows events that `tidegate decode` makes lines of at a time.
LINES_BYTES: Final = 2 * MIB
# An event of a binlog file: max_allowed_packet ends at 1 GiB, and an event adds its frame to what it bounds.
LOG_EVENT_BYTES_MAX: Final = 1024 * MIB + 16 * MIB

# --- landing ------------------------------------------------------------------------------------
LAND_SECONDS_DEFAULT: Final = 1.0
# What micro-batches wait for on average is half of this; each landing costs some 20 ms of CPU, and a file.
MICRO_BATCH_LAND_SECONDS: Final = 0.25
# Between two landings this much per live file of bronze: who opens it takes 5 KB and 25 us for each. Where nobody packs
# them, landings come less often: 90,000 files in a day, not 350,000.
BRONZE_FILE_LAND_SECONDS: Final = 20e-6
# What comes together after a pause lands together: a transaction's events arrive within this.
LAND_SECONDS_MIN: Final = 0.02
LAND_BYTES_DEFAULT: Final = 64 * MIB
# Segments between the reader and the lander; beyond this the reader waits.
QUEUE_BYTES_DEFAULT: Final = 128 * MIB
# A lake that makes the reader wait so long is slow or down: the lander then follows from the value log.
SLOW_LAKE_SECONDS_DEFAULT: Final = 1.0
# To return from there to memory the reader is held this long at most, and it is tried this often (Pump's slow chaser).
HOLD_SECONDS_DEFAULT: Final = 1.0
RETURN_SECONDS_DEFAULT: Final = 60.0
# A lake that can't be reached is asked again after 1, 2, 4 ... seconds, up to these.
LAKE_AGAIN_SECONDS_MAX: Final = 15.0
# Tables at whose logs an application is at one time, unless apply.parallel_tables is more: a look and a commit take a
# millisecond of CPU, and wait for the disk or the store for the rest of their time.
AT_ONCE_TABLES_MIN: Final = 8
# Other writers of the same Delta table (maintenance) may win a race this often before we stop.
COMMIT_ATTEMPTS_MAX: Final = 8
# A commit that puts files in the place of others goes behind whoever came first, for as long as its files are live.
EXCHANGE_ATTEMPTS_MAX: Final = 20
# From a data file's writing to the commit that names it, tries included: a file that waits for longer may be deleted.
COMMIT_SECONDS_MAX: Final = 3600
# Of control tables: what another commit leaves true is made again behind it, which takes milliseconds.
CONTROL_COMMIT_ATTEMPTS_MAX: Final = 24

# --- stores of commits and leases ----------------------------------------------------------------
# A store that doesn't answer is asked again for so long, by its client; then the caller decides.
STORE_RETRY_SECONDS_MAX: Final = 20.0
# ... with pauses up to this: one that is back must not be noticed when a lease is over.
STORE_PAUSE_SECONDS_MAX: Final = 2.0
# A file up to here is written to an object store by one request, from memory.
PUT_BYTES_MAX: Final = 32 * MIB
# A name that is taken and isn't there: S3's 409 says so while another request for it is under way.
STORE_CREATE_ATTEMPTS_MAX: Final = 4
# A lease that isn't renewed for so long is free: what a machine's death costs, three times what a renewal may wait.
LEASE_SECONDS_DEFAULT: Final = 30.0
# Who wants a lease looks this often: what its release is seen late by.
LEASE_POLL_SECONDS_MAX: Final = 1.0
# A request about a lease that takes longer is asked again; the term holds several.
LEASE_ANSWER_SECONDS_MAX: Final = 5.0
# Of a lease's entries the last ones stay: a reader between listing and reading finds what was listed.
LEASE_KEPT_FILES: Final = 6

# --- Delta logs of silver tables, in the driver ----------------------------------------------------
# What the file lists of all tables may take together; the least recently used are read again when asked for.
LOG_STATES_BYTES_MAX: Final = 256 * MIB
# A larger checkpoint is read by a Spark job.
LOG_CHECKPOINT_BYTES_MAX: Final = 16 * MIB

# A table gets a checkpoint after so many commits: what a reader that knows nothing of it has to read one by one.
CHECKPOINT_COMMITS: Final = 50
# Rows of a checkpoint in Arrow at a time, and in a row group: some 50 MB of a wide table's statistics.
CHECKPOINT_BATCH_ROWS: Final = 1 << 16
# Objects that one look at a log removes at most, version by version, some 20 ms each in an object store; what is left
# over goes the next time. A look follows each checkpoint, so the log is cleaned faster than it grows.
LOG_CLEANUP_FILES_MAX: Final = 2_000
# Commits of an object store's log that are asked for at once: a table of which nothing is known yet may have dozens
# behind its checkpoint, some 20 ms each.
LOG_READ_THREADS_MAX: Final = 16
# Delta itself writes one, inside the commit, only when apply has written none for so long.
CHECKPOINT_INTERVAL_COMMITS: Final = 10_000

# --- upkeep in apply ----------------------------------------------------------------------------
# What a table may save up of apply.upkeep_bytes: as much as one large file, so that a quiet day ends in no long window.
UPKEEP_SAVED_BYTES_MAX: Final = 256 * MIB
# Packing begins with no further table after a quarter of a second for each second that the window has taken, or this
# many seconds: the next window waits for it. Tables that every window writes come to be due in the same one.
UPKEEP_PER_WINDOW_SECONDS: Final = 0.25
UPKEEP_SECONDS_MIN: Final = 0.1

# --- maintain -----------------------------------------------------------------------------------
# A rewrite of silver that loses against apply or a person is tried this often, then left to the next run.
MAINTAIN_ATTEMPTS_MAX: Final = 3

# --- bronze's upkeep ------------------------------------------------------------------------------
# Files that one packed file takes in: its commit has a line for each, which capture reads when it commits next.
BRONZE_RUN_FILES_MAX: Final = 4096
# Fewer small files are left to a later run, unless together they fill a file.
BRONZE_RUN_FILES_MIN: Final = 8
# Segments in a row group of a packed file: who wants one of them reads the small columns of all.
BRONZE_GROUP_ROWS_MAX: Final = 1024
# Files of the last minutes are what apply and capture are at work on: they are left alone.
BRONZE_YOUNG_SECONDS: Final = 600
# Captures commit up to four times a second each; who comes second looks at one small commit and tries again.
BRONZE_COMMIT_ATTEMPTS_MAX: Final = 50
# A checkpoint takes 15 us for each file that is in bronze or left it lately, and a reader 100 us for each commit behind
# it: with a commit in between for so many of them, writing them takes half a percent of a core.
BRONZE_CHECKPOINT_COMMIT_ROWS: Final = 100
# What bronze's log removed stays on disk so long, for whoever planned with it: twice the longest apply, at least this.
BRONZE_REMOVED_SECONDS_MIN: Final = 48 * 3600

# --- decode in apply ------------------------------------------------------------------------------
# Windows that the driver decodes by itself. Where Spark is one machine its Python workers would take the same cores,
# after starting and loading Arrow; on a cluster a job is worth it sooner (it costs about 0.2 s).
DRIVER_DECODE_LOCAL_BYTES: Final = 512 * MIB
DRIVER_DECODE_CLUSTER_BYTES: Final = 16 * MIB
# A window of so many bytes may go by MERGE, or probe files in a job: Spark is begun before it is decoded.
SPARK_WINDOW_BYTES: Final = 8 * MIB
# Work that is worth another thread: less takes under a second, and one thread makes one file per table, not two.
DRIVER_DECODE_THREAD_BYTES: Final = 128 * MIB
# What a worker, or all the driver's threads together, hold of decoded rows before they write them out.
STAGE_BYTES: Final = 256 * MIB

# --- upsert -------------------------------------------------------------------------------------
# Key records in the driver's memory while the last change per key is found, over all tables of a window. 512 MiB of
# binlog of ordinary rows stay below it; tables that would need more go by MERGE, the largest first.
UPSERT_KEYS_BYTES_MAX: Final = 1024 * MIB
# Probing reads a silver file's key columns. Up to this many rows over all tables of a window the driver does it
# itself (about 0.3 s); above, one Spark job does it for all tables, in tasks of about this many rows.
PROBE_DRIVER_ROWS_MAX: Final = 4_000_000
PROBE_TASK_ROWS: Final = 2_000_000
# Changes of a table without a key that the driver counts by itself, in bytes of binlog; more go by MERGE.
HASHED_ROWS_BYTES_MAX: Final = 32 * MIB

# A Spark job that takes this much longer than it is meant to loop hangs (a store, a lock): Airflow ends it, and the
# next try goes on where it stood. Of a window, and of a batch, none is known that takes so long.
JOB_HANGS_SECONDS: Final = 86_400
# So is a private log (spark_jobs/merge/private/log.py) that is older than two such jobs nobody's any more.
PRIVATE_LOG_SECONDS: Final = 2 * JOB_HANGS_SECONDS

# --- value log ----------------------------------------------------------------------------------
VALUE_LOG_FILE_BYTES: Final = 512 * MIB
# Left free on the value log's disk: what else runs there (a server, Airflow's logs) must not die of a slow lake.
DISK_RESERVE_BYTES_DEFAULT: Final = 512 * MIB

# --- schema -------------------------------------------------------------------------------------
# Arrow and Spark decimals end at 38 digits; MySQL's go to 65, which become strings.
DECIMAL_DIGITS_MAX: Final = 38
# How often a baseline is read again because a DDL ran while it was being read.
BASELINE_ATTEMPTS_MAX: Final = 10

# --- commit_ts ----------------------------------------------------------------------------------
# How much later than the source's clock, as capture knows it, a transaction may say that it was written.
CLOCK_SLACK_SECONDS: Final = 2
# The source's clock is asked so often while its stream is busy.
CLOCK_ASKED_SECONDS: Final = 10.0
# A clock that gains more than this on this machine's monotonic one since it was asked last isn't believed for so long.
CLOCK_LEAP_SECONDS_MAX: Final = 300
CLOCK_DOUBT_SECONDS: Final = 600
# TiDB's TSO: physical milliseconds above 18 logical bits (pingcap/tidb oracle.ComposeTS).
LOGICAL_BITS: Final = 18

# A server's same answer stands when it was given ten times and for longer than this: until then it may be starting.
ANSWERS_KNOWN_SECONDS: Final = 180.0
# A receive ends after this at the latest, so that a stop and what is due are seen.
CAPTURE_POLL_SECONDS: Final = 0.25
# Progress is told so often: a person reads it.
PROGRESS_SECONDS: Final = 1.0
# A source that can't be reached at first is tried so often, with pauses of up to as many seconds.
START_ATTEMPTS_MAX: Final = 5
# Where the disk has no room for the value log, the reader waits so long for the lander to land one more batch.
DISK_LOOK_SECONDS: Final = 10.0
# `tidegate status` and Airflow's page wait so long for each source; one that doesn't answer is said.
STANDING_ANSWER_SECONDS: Final = 3
# How fast the source writes is taken over this long.
LAKE_RATE_SECONDS: Final = 60.0
# A lake that is behind is told in the log so often.
BEHIND_TOLD_SECONDS: Final = 60.0
# What the source will purge soon is told in the log so often.
RETENTION_TOLD_SECONDS: Final = 600.0
# A clock that isn't believed is told in the log so often.
CLOCK_TOLD_SECONDS: Final = 60.0
# What the source would purge is asked for so often.
CLOCK_LOOK_SECONDS: Final = 60.0
# Bytes that were captured are asked for once more; one receive of them waits so long, then the stop is looked at.
CONTINUITY_RECEIVE_SECONDS: Final = 1.0
# How far back is looked for where the server's history parts from ours; beyond that the message says "at least".
CONTINUITY_SEGMENTS_MAX: Final = 64
# A person waits for `tidegate accept`; it looks further back than capture does.
ACCEPTANCE_SEGMENTS_MAX: Final = 1000
# `tidegate check` waits so long for a source: it is asked many questions.
CHECK_ANSWER_SECONDS: Final = 30
# A source's clock that differs more from this machine's is said by `tidegate check`.
CLOCK_SKEW_SECONDS_MAX: Final = 1.0
# The clocks' difference is taken from the quickest of so many answers.
CLOCK_ATTEMPTS_MAX: Final = 5
# Before a first start: prepared transactions end by themselves within this, or are said.
PREPARED_WAIT_SECONDS: Final = 10.0
# ... and are looked for so often.
PREPARED_LOOK_SECONDS: Final = 0.2
# Whether what is in the binlog is committed is looked for so often.
SETTLED_POLL_SECONDS: Final = 0.1
# A server that sends as it commits wakes us for each packet. After a receive that brought little, this pause lets more
# come together: a quarter less CPU for transactions of one row, and latency doesn't notice.
GATHER_SECONDS: Final = 0.0005
# A record's head in the value log. Names of 4,096 tables of 2 x 64 characters, escaped, stay far below.
RECORD_HEAD_BYTES_MAX: Final = 64 << 20

# --- logs and tables of a lake ----------------------------------------------------------------------
# A lease's newest entry may be removed between listing and reading; then it is listed again.
LEASE_READ_ATTEMPTS_MAX: Final = 10
# Who lost a commit's name waits for this, doubled with each try and spread.
COMMIT_BACKOFF_SECONDS: Final = 0.02
# A name that is said to be taken and isn't there is asked for again after this, doubled each time.
STORE_AGAIN_SECONDS: Final = 0.05
# A file of bronze that can't be written is tried again after this, doubled each time.
BRONZE_BACKOFF_SECONDS: Final = 0.05
# A rewrite of a control table that lost is tried again after this, doubled each time.
CONTROL_BACKOFF_SECONDS: Final = 0.1
# Beyond this many new commits the table's checkpoint is cheaper to read than each commit.
BRONZE_TAIL_COMMITS_MAX: Final = 500
# Nobody reads an old version of a control table; a reader that has just opened one needs its files for a while. The
# log reaches further back, since what was live when that while began is asked of it (delta/vacuum.py).
CONTROL_REMOVED_KEPT_HOURS: Final = 2
# Up to this a file fits a block of the disk either way, and takes half the time to write and to read unpacked.
CONTROL_PLAIN_BYTES_MAX: Final = 2 << 10
# A window makes a few commits to a table, one per DDL at the most and one per packing.
LATENCY_COMMITS_MAX: Final = 32
# After a longer absence the log isn't read commit by commit: something will have happened.
NEWS_TAIL_COMMITS_MAX: Final = 1000

# --- commands ---------------------------------------------------------------------------------------
# `tidegate latency` waits so long for its last marker to become visible.
MARKER_WAIT_SECONDS: Final = 120.0
# Of a library's own message in the one line that an error is told in.
MESSAGE_CHARACTERS_MAX: Final = 500
# `tidegate status` sums up markers of the last minutes.
LATENCY_SUMMED_SECONDS: Final = 300
# A statement of verify hashes so many rows: one value of 50 bytes a row, below a max_allowed_packet of 16 MiB.
VERIFY_CHUNK_ROWS_DEFAULT: Final = 50_000
# Tables are read one after the other until they have so many rows; then a cut is waited for, for all of them.
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
# Of a MySQL without GTIDs these rows are read under a shared lock, which is waited for this long.
VERIFY_LOCK_SECONDS: Final = 1
# More keys than this are no repair: the whole table is copied again. A repair that is refused is tried so often.
REPAIR_ROWS_MAX: Final = 10_000
REPAIR_ATTEMPTS_MAX: Final = 3
# A table whose definition changes while it is compared, a view as the log changes its file: begun again so often.
VERIFY_TABLE_ATTEMPTS_MAX: Final = 3
VERIFY_VIEW_ATTEMPTS_MAX: Final = 10
# Verify looks so often for a cut that holds everything.
VERIFY_POLL_SECONDS: Final = 0.5

# --- Airflow's tasks --------------------------------------------------------------------------------
# A line of progress in a task's log, so often.
REPORT_SECONDS: Final = 10.0
# A lake that can't be read is looked at again, ever more slowly up to this.
WATCH_PAUSE_SECONDS_MAX: Final = 60.0
# A week of tries a minute apart; Airflow wants a number.
TASK_ATTEMPTS_MAX: Final = 10_000
# What is neither Terminal nor Transient may be a fault of the machine: it is tried so often.
FAULT_ATTEMPTS_MAX: Final = 3
# Between two tries of a task at most.
TASK_PAUSE_SECONDS_MAX: Final = 60

# --- Spark's jobs -----------------------------------------------------------------------------------
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

# --- changelogs, queries: rows in memory before they are a file; how often a reader looks; DuckDB's memory ----
CHANGELOG_FILE_BYTES: Final = 64 * MIB
TAIL_POLL_SECONDS: Final = 0.5
QUERY_MEMORY_BYTES: Final = 2048 * MIB

# --- snapshots --------------------------------------------------------------------------------------
# A chunk fits a worker's memory several times over; its statement ends before anybody waits for what it holds back.
SNAPSHOT_CHUNK_ROWS_DEFAULT: Final = 100_000
SNAPSHOT_CHUNK_BYTES_DEFAULT: Final = 16 * MIB
SNAPSHOT_STATEMENT_SECONDS: Final = 2.0
# Below it what a chunk costs by itself (a row group, a line of the log) is more than its rows.
SNAPSHOT_CHUNK_BYTES_MIN: Final = 64 << 10
SNAPSHOT_THREADS_DEFAULT: Final = 4
# A wave's chunks stay in memory until they are landed; the log is applied again from its low mark.
SNAPSHOT_WAVE_BYTES_DEFAULT: Final = 256 * MIB
SNAPSHOT_WAVE_SECONDS_DEFAULT: Final = 10.0
# control/snapshots and a busy source are looked at again after this.
SNAPSHOT_LOOK_SECONDS: Final = 0.5
# The server is asked for the columns of each table of a wave.
SNAPSHOT_WAVE_TABLES_MAX: Final = 200
# Who waits for the lock on tables without a key keeps new writers waiting behind it: no longer than this, then again.
SNAPSHOT_LOCK_SECONDS: Final = 0.2
SNAPSHOT_LOCK_AGAIN_SECONDS: Final = 10.0
# Such a table comes in one result: what fills so many bytes is landed meanwhile, and the server waits so long for it.
SNAPSHOT_LAND_BYTES: Final = 64 * MIB
SNAPSHOT_SEND_SECONDS: Final = 600
# A table whose statements fail in so many waves, one after the other, is given up with the server's words.
SNAPSHOT_TABLE_ATTEMPTS_MAX: Final = 3
# ... and one of whose waves apply has taken none, with the reason of the last that it refused.
SNAPSHOT_WAVE_ATTEMPTS_MAX: Final = 10
# A table that is held again after its snapshot, or whose snapshot failed, is begun again by itself after this; four
# times as long after each further one within a day, up to the bound: a large table must not be read all day in vain.
SNAPSHOT_AGAIN_SECONDS: Final = 60.0
SNAPSHOT_AGAIN_SECONDS_MAX: Final = 6 * 3600.0
# A running reader looks so often for tables that have come to wait.
SNAPSHOT_WAITING_SECONDS: Final = 3.0
# A reader that has left a table open for so long without a word is taken for gone, and another one is woken.
SNAPSHOT_SILENT_SECONDS: Final = 60.0
# ... again after as long, then twice as long each time that nothing came of it, up to this.
SNAPSHOT_WAKE_SECONDS_MAX: Final = 900.0

# --- TiDB -------------------------------------------------------------------------------------------
# Answers that are remembered by start_ts, so that a prewrite that is sent once more is known: 100 MB; an older copy is
# known by resolved_ts.
TIDB_ANSWERED_COMMITS_MAX: Final = 500_000
# Requests of TiDB that wait at one time, each on a thread; and how much they hold.
PUMP_THREADS: Final = 256
PUMP_WAITING_BYTES_MAX: Final = 256 * MIB
# TiDB gives a write up after 15 seconds (binlog.write-timeout) and tries again.
PUMP_WAIT_SECONDS_MAX: Final = 30.0
# A transaction's binlog has as many bytes as what it writes: TiDB's own bound is txn-total-size-limit, 1 GiB at most
# for tables with a binlog; its framing comes on top.
PUMP_PAYLOAD_BYTES_DEFAULT: Final = 1024 * MIB + 16 * MIB
# A quiet Pump writes a timestamp of its own so often, as TiDB's does.
PUMP_FAKE_SECONDS_DEFAULT: Final = 3.0
# By TiDB's timestamps, not by a clock: a prewrite without an answer is asked for after this.
PUMP_ORPHAN_SECONDS_DEFAULT: Final = 600.0
# TiDB's status port is asked for so many orphans in one look, and looked at this often.
PUMP_ORPHANS_ROWS_MAX: Final = 256
PUMP_ORPHAN_LOOK_SECONDS: Final = 1.0
# After what may pass, such as a full disk, a Pump serves again; TiDB gives a write up after 15 seconds.
PUMP_RESTART_SECONDS: Final = 1.0

# --- prepared transactions ----------------------------------------------------------------------------
# A transaction manager that restarts answers what it had prepared within minutes.
ORPHAN_TIMEOUT_SECONDS_DEFAULT: Final = 600.0
PREPARED_ASKED_SECONDS: Final = 60.0  # a run asks so soon what is prepared, then once in orphan_timeout
BRANCH_SEEN_SECONDS: Final = 1.0  # XA COMMIT is logged some milliseconds before its rows are seen
