"""Bounds of what the lake keeps: commits, leases, Delta logs, bronze, control tables.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# --- landing --------------------------------------------------------------------------------------
# Other writers of the same Delta table (maintenance) may win a race this often before we stop.
COMMIT_ATTEMPTS_MAX: Final = 8
# A commit that puts files in the place of others is made again after whoever came first, while those files are live.
EXCHANGE_ATTEMPTS_MAX: Final = 20
# From the writing of a data file to the commit that names it, tries included. A file that waits for longer may be
# deleted.
COMMIT_SECONDS_MAX: Final = 3600
# S3 copies an object of up to 5 GiB in one request.
COPY_OBJECT_BYTES_MAX: Final = 4096 * MIB
# Tries of a control table's commit: what stays true after another commit is committed again, within milliseconds.
CONTROL_COMMIT_ATTEMPTS_MAX: Final = 24

# --- stores of commits and leases -----------------------------------------------------------------
# A store that doesn't answer is asked again for so long, by its client; then the caller decides.
STORE_RETRY_SECONDS_MAX: Final = 20.0
# The same for a data file: a longer outage then passes without a second try of the window.
STORE_FILE_RETRY_SECONDS_MAX: Final = 180.0
# Pauses between both are up to this: a store that is back must be noticed before a lease is over.
STORE_PAUSE_SECONDS_MAX: Final = 2.0
# A file up to here is written to an object store by one request, from memory.
PUT_BYTES_MAX: Final = 32 * MIB
# What comes of a file with the request that opens it: as much as Arrow reads first of a Parquet
# file, for its footer.
STORE_TAIL_BYTES: Final = 64 << 10
# A name that is taken and isn't there: S3's 409 says so while another request for it is under way.
STORE_CREATE_ATTEMPTS_MAX: Final = 4
# Objects in a page of a listing: S3 and GCS give no more by one request.
STORE_PAGE_FILES: Final = 1000
# As an apply starts, a thread lists so many tables by such pages. Ten thousand quiet tables of 20 objects cost 250
# requests, so a batch apply that starts each minute makes 360,000 a day; a request for each table would be 14 million.
# A table whose log or data fill pages costs a request of its own. On Azure, which can't list from a name on, each table
# does. Not counted is a segment of any table (EVERY_TABLE: a statement that can't be read, or more than
# SEGMENT_TABLES_MAX tables): it costs the state of every log, some four requests for each table.
SILVER_LISTED_TABLES: Final = 256
# A lease that isn't renewed for so long is free: what a machine's death costs, three times what a renewal may wait.
LEASE_SECONDS_DEFAULT: Final = 30.0
# Whoever wants a lease looks this often; its release is seen that much later.
LEASE_POLL_SECONDS_MAX: Final = 1.0
# A request about a lease that takes longer is asked again; the term holds several.
LEASE_ANSWER_SECONDS_MAX: Final = 5.0
# The last entries of a lease stay, so that a reader finds what it has just listed.
LEASE_KEPT_FILES: Final = 6
# A process remembers so many of its requests for leases without an answer.
LEASE_UNHELD_ATTEMPTS_MAX: Final = 100

# --- Delta logs of silver tables, in the driver ---------------------------------------------------
# What the file lists of all tables may take together; the least recently used are read again when asked for.
LOG_STATES_BYTES_MAX: Final = 256 * MIB

# A table gets a checkpoint after so many commits. A new reader has to read the later ones one by one.
CHECKPOINT_COMMITS: Final = 50
# Rows of a checkpoint in Arrow at a time, and in a row group: some 50 MB of a wide table's statistics.
CHECKPOINT_BATCH_ROWS: Final = 1 << 16
# Objects that one look at a log removes at most, version by version, some 20 ms each in an object store; what is left
# over goes the next time. A look follows each checkpoint, so the log is cleaned faster than it grows.
LOG_CLEANUP_FILES_MAX: Final = 2_000
# Commits of an object store's log that are asked for at once: a table of which nothing is known yet may have dozens
# after its checkpoint, some 20 ms each.
LOG_READ_THREADS_MAX: Final = 16
# Delta itself writes a checkpoint, inside the commit, only when apply has written none for so many
# commits.
CHECKPOINT_INTERVAL_COMMITS: Final = 10_000

# --- bronze's upkeep ------------------------------------------------------------------------------
# Files that one packed file takes in: its commit has a line for each, which capture reads when it commits next.
BRONZE_RUN_FILES_MAX: Final = 4096
# Fewer small files are left to a later run, unless together they fill a file.
BRONZE_RUN_FILES_MIN: Final = 8
# Segments in a row group of a packed file. Whoever wants one of them reads the small columns of
# all.
BRONZE_GROUP_ROWS_MAX: Final = 1024
# Files of the last minutes are what apply and capture are at work on: they are left alone.
BRONZE_YOUNG_SECONDS: Final = 600
# Each capture commits up to four times a second. Whoever comes second reads one small commit and tries again.
BRONZE_COMMIT_ATTEMPTS_MAX: Final = 50
# A checkpoint takes 15 us for each file that is in bronze or left it lately, and a reader 100 us for each commit after
# it. With one commit between two checkpoints for so many files, writing checkpoints takes half a percent of a core.
BRONZE_CHECKPOINT_COMMIT_ROWS: Final = 100
# Files that bronze's log removed stay on disk for twice the longest apply, and at least this: a window may be planned
# with them.
BRONZE_REMOVED_SECONDS_MIN: Final = 48 * 3600

# --- logs and tables of a lake --------------------------------------------------------------------
# A lease's newest entry may be removed between listing and reading; then it is listed again.
LEASE_READ_ATTEMPTS_MAX: Final = 10
# Whoever lost a commit's name waits for this, doubled with each try, times a random factor.
COMMIT_BACKOFF_SECONDS: Final = 0.02
# A name that is said to be taken and isn't there is asked for again after this, doubled each time.
STORE_AGAIN_SECONDS: Final = 0.05
# A file of bronze that can't be written is tried again after this, doubled each time.
BRONZE_BACKOFF_SECONDS: Final = 0.05
# A rewrite of a control table that lost is tried again after this, doubled each time.
CONTROL_BACKOFF_SECONDS: Final = 0.1
# Beyond this many new commits the table's checkpoint is cheaper to read than each commit.
BRONZE_TAIL_COMMITS_MAX: Final = 500
# Nobody reads an old version of a control table, but a reader that has just opened one needs its files for a while. The
# log reaches further back: VACUUM asks it which files were live when that while began (delta/cleaning/vacuum.py).
CONTROL_REMOVED_KEPT_HOURS: Final = 2
# A file up to this size fits a block of the disk, compressed or not. Uncompressed it takes half the time to write and
# to read.
CONTROL_PLAIN_BYTES_MAX: Final = 2 << 10
# A window makes a few commits to a table, one per DDL at the most and one per packing.
LATENCY_COMMITS_MAX: Final = 32
# Commits that are read of a log after the published version. More are another writer's, and one of
# them is enough to tell.
OTHERS_COMMITS_MAX: Final = 50
# Footers that are read of files without statistics, some 20 ms each in an object store, to count the rows of another
# writer's OPTIMIZE. Beyond this nobody knows whether it kept all of them, and a line says so.
REWRITE_FILES_MAX: Final = 500
# Commits that are read after the record of a history. Packing makes a few a day, and the next window records it anew.
HISTORY_LOOKS_COMMITS_MAX: Final = 500
# Lines about other writers at a time: a nightly job may have changed each of 10,000 tables.
OTHERS_SAID_TABLES_MAX: Final = 20
# After a longer absence the log isn't read commit by commit: something will have happened.
NEWS_TAIL_COMMITS_MAX: Final = 1000
# Apply looks so seldom for what a snapshot's reader says. A look is one request, or two where nothing was ever read.
READER_LOOK_SECONDS: Final = 10.0
# After such news a quiet source's proof wakes apply at each look, for so long.
READER_NEWS_SECONDS: Final = 120.0

# --- copies of a lake -----------------------------------------------------------------------------
# Tables that are copied at a time. Each holds the names of its files, and those of its newest version once more.
COPY_TABLES_MAX: Final = 4
# Files of all these tables that are copied at a time. A store answers each by itself; a disk is busy with so many.
COPY_AT_ONCE_FILES_MAX: Final = 16
# Files of a table that are handed to those copiers at a time.
COPY_LISTED_FILES_MAX: Final = 256
# A file is read and sent in parts of this size. Each copier has one part, and those that are being sent, in memory.
COPY_PART_BYTES: Final = 8 * MIB
# Parts of a file that are under way to an object store.
COPY_UPLOAD_THREADS_MAX: Final = 2
# When files of a table are deleted while they are copied, its newest version is copied instead, up to so many times.
# VACUUM doesn't overtake a copy more often.
COPY_ATTEMPTS_MAX: Final = 5
# Control tables are looked at until nothing changes between two looks: windows pause longer than a look takes.
COPY_LOOKS_ATTEMPTS_MAX: Final = 50

# --- cuts -----------------------------------------------------------------------------------------
# Every cut of this time is kept: a reader may still be at any of them.
DENSE_CUTS_SECONDS: Final = 3600
# A pipeline's history takes in cuts that were published up to so long after their moment.
CUTS_LATE_SECONDS: Final = 86_400

# --- complete hours -------------------------------------------------------------------------------
# Tables with an asset of their own: Airflow keeps each, and makes an event of each for each hour.
COMPLETE_TABLES_MAX: Final = 1000
# After a gap as long as this (a month) the hours before it are left out: nobody waits for them any more.
COMPLETE_HOURS_MAX: Final = 31 * 24
# The newest events of an asset that are searched for one of ours: a person can make others.
COMPLETE_EVENTS_MAX: Final = 50
# The sensor looks so often: each event that it finds starts a task.
PROGRESS_LOOK_SECONDS: Final = 60.0
# After so many seconds of an hour a source's clock has surely reached it, too.
HOUR_PROVEN_SECONDS: Final = 2
# Length of an action's subject, and of its result or error, in control/actions; length of the person's name.
ACTION_DETAIL_CHARACTERS_MAX: Final = 2000
ACTION_USER_CHARACTERS_MAX: Final = 250

# --- the usage of capture and apply ---------------------------------------------------------------
# A row is of about a minute, and costs a commit of some 20 ms. With many sources it is of about USAGE_SOURCE_SECONDS
# for each source: all together append ten rows a minute.
USAGE_SECONDS: Final = 60.0
USAGE_SOURCE_SECONDS: Final = 6.0
# A shorter run of capture or apply appends nothing.
USAGE_LEAST_SECONDS: Final = 10.0
# A run's end waits so long for its last row: nothing depends on it.
USAGE_CLOSE_SECONDS: Final = 5.0
# Rows kept in memory while the lake takes none: a day's.
USAGE_PENDING_ROWS_MAX: Final = 1440
# More files than this are made one.
USAGE_FILES_MAX: Final = 128
# (older than, summed up to): an hour is shown by the minute, a day by 24 minutes, a week by 3 hours.
USAGE_SUMMED_SECONDS: Final = ((3 * 3600.0, 900.0), (2 * 86_400.0, 2 * 3600.0))
USAGE_KEPT_SECONDS: Final = 8 * 86_400.0
