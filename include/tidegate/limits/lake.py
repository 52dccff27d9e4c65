"""Bounds of what the lake keeps: commits, leases, Delta logs, bronze, control tables.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# --- landing --------------------------------------------------------------------------------------
# Other writers of the same Delta table (maintenance) may win a race this often before we stop.
COMMIT_ATTEMPTS_MAX: Final = 8
# A commit that puts files in the place of others goes after whoever came first, for as long as its files are live.
EXCHANGE_ATTEMPTS_MAX: Final = 20
# From a data file's writing to the commit that names it, tries included: a file that waits for longer may be deleted.
COMMIT_SECONDS_MAX: Final = 3600
# Of control tables: what another commit leaves true is made again after it, which takes milliseconds.
CONTROL_COMMIT_ATTEMPTS_MAX: Final = 24

# --- stores of commits and leases -----------------------------------------------------------------
# A store that doesn't answer is asked again for so long, by its client; then the caller decides.
STORE_RETRY_SECONDS_MAX: Final = 20.0
# A data file's: a longer outage passes without a window that is tried again.
STORE_FILE_RETRY_SECONDS_MAX: Final = 180.0
# Both with pauses up to this: one that is back must not be noticed when a lease is over.
STORE_PAUSE_SECONDS_MAX: Final = 2.0
# A file up to here is written to an object store by one request, from memory.
PUT_BYTES_MAX: Final = 32 * MIB
# A name that is taken and isn't there: S3's 409 says so while another request for it is under way.
STORE_CREATE_ATTEMPTS_MAX: Final = 4
# Objects in a page of a listing: S3 and GCS give no more by one request.
STORE_PAGE_FILES: Final = 1000
# Tables that one thread asks about by such pages as an apply starts. Ten thousand quiet ones of 20 objects cost 250
# requests, so a batch apply that starts each minute makes 360,000 a day; with one each it made 14 million. A table
# whose log or data fill pages costs one of its own. Azure can't list from a name on: there each costs one.
# A segment of any table (EVERY_TABLE: a statement that can't be read, or more than SEGMENT_TABLES_MAX tables) isn't in
# it: it costs the state of every log, some four requests for each table.
SILVER_LISTED_TABLES: Final = 256
# A lease that isn't renewed for so long is free: what a machine's death costs, three times what a renewal may wait.
LEASE_SECONDS_DEFAULT: Final = 30.0
# Who wants a lease looks this often: what its release is seen late by.
LEASE_POLL_SECONDS_MAX: Final = 1.0
# A request about a lease that takes longer is asked again; the term holds several.
LEASE_ANSWER_SECONDS_MAX: Final = 5.0
# Of a lease's entries the last ones stay: a reader between listing and reading finds what was listed.
LEASE_KEPT_FILES: Final = 6
# A process knows so many of its attempts for leases whose answer got lost.
LEASE_UNHELD_ATTEMPTS_MAX: Final = 100

# --- Delta logs of silver tables, in the driver ---------------------------------------------------
# What the file lists of all tables may take together; the least recently used are read again when asked for.
LOG_STATES_BYTES_MAX: Final = 256 * MIB

# A table gets a checkpoint after so many commits: what a reader that knows nothing of it has to read one by one.
CHECKPOINT_COMMITS: Final = 50
# Rows of a checkpoint in Arrow at a time, and in a row group: some 50 MB of a wide table's statistics.
CHECKPOINT_BATCH_ROWS: Final = 1 << 16
# Objects that one look at a log removes at most, version by version, some 20 ms each in an object store; what is left
# over goes the next time. A look follows each checkpoint, so the log is cleaned faster than it grows.
LOG_CLEANUP_FILES_MAX: Final = 2_000
# Commits of an object store's log that are asked for at once: a table of which nothing is known yet may have dozens
# after its checkpoint, some 20 ms each.
LOG_READ_THREADS_MAX: Final = 16
# Delta itself writes one, inside the commit, only when apply has written none for so long.
CHECKPOINT_INTERVAL_COMMITS: Final = 10_000

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
# A checkpoint takes 15 us for each file that is in bronze or left it lately, and a reader 100 us for each commit after
# it: with a commit in between for so many of them, writing them takes half a percent of a core.
BRONZE_CHECKPOINT_COMMIT_ROWS: Final = 100
# What bronze's log removed stays on disk so long, for whoever planned with it: twice the longest apply, at least this.
BRONZE_REMOVED_SECONDS_MIN: Final = 48 * 3600

# --- logs and tables of a lake --------------------------------------------------------------------
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
# log reaches further back, since what was live when that while began is asked of it (delta/cleaning/vacuum.py).
CONTROL_REMOVED_KEPT_HOURS: Final = 2
# Up to this a file fits a block of the disk either way, and takes half the time to write and to read unpacked.
CONTROL_PLAIN_BYTES_MAX: Final = 2 << 10
# A window makes a few commits to a table, one per DDL at the most and one per packing.
LATENCY_COMMITS_MAX: Final = 32
# Of a log after what was published: more are another writer's, and one of them is enough to tell.
OTHERS_COMMITS_MAX: Final = 50
# Lines of a log about them at a time: a nightly job may have changed each of 10,000 tables.
OTHERS_SAID_TABLES_MAX: Final = 20
# After a longer absence the log isn't read commit by commit: something will have happened.
NEWS_TAIL_COMMITS_MAX: Final = 1000
# What a snapshot's reader says is looked for so seldom: by one request, and by two where nothing was ever read.
READER_LOOK_SECONDS: Final = 10.0
# For so long after it a quiet source's proof wakes apply, each time it is looked for.
READER_NEWS_SECONDS: Final = 120.0

# --- copies of a lake -----------------------------------------------------------------------------
# Tables that are copied at a time: each holds the names of its files, and once its newest version's.
COPY_TABLES_MAX: Final = 4
# Files that are copied at a time, of all of these tables: a store answers each for itself, a disk has enough of it.
COPY_AT_ONCE_FILES_MAX: Final = 16
# Files of a table that are handed to those copiers at a time.
COPY_LISTED_FILES_MAX: Final = 256
# A file is read and sent in parts of this size; each copier has this one, and those under way, in memory.
COPY_PART_BYTES: Final = 8 * MIB
# Parts of a file that are under way to an object store.
COPY_UPLOAD_THREADS_MAX: Final = 2
# A table whose files go while they are copied is copied at its then newest version. VACUUM isn't so quick so often.
COPY_ATTEMPTS_MAX: Final = 5
# Control tables are looked at until nothing changes between two looks: windows pause longer than a look takes.
COPY_LOOKS_ATTEMPTS_MAX: Final = 50

# --- cuts -----------------------------------------------------------------------------------------
# Every cut of this time is kept: a reader may still be at any of them.
DENSE_CUTS_SECONDS: Final = 3600
# What the history of a pipeline takes in: cuts that were published up to so long after the moment that they are of.
CUTS_LATE_SECONDS: Final = 86_400

# --- complete hours -------------------------------------------------------------------------------
# Tables with an asset of their own: Airflow keeps each, and makes an event of each for each hour.
COMPLETE_TABLES_MAX: Final = 1000
# After a gap as long as this (a month) the hours before it are left out: nobody waits for them any more.
COMPLETE_HOURS_MAX: Final = 31 * 24
# So many events of their record are looked through for one of ours: a person can make others.
COMPLETE_EVENTS_MAX: Final = 50
# Each event that it finds starts a task.
PROGRESS_LOOK_SECONDS: Final = 60.0
# So far into an hour a source's clock is in it, too, as far as clocks agree.
HOUR_PROVEN_SECONDS: Final = 2
# Of the subject, and of the result or the error, of a person's action, in control/actions; of the person's name.
ACTION_DETAIL_CHARACTERS_MAX: Final = 2000
ACTION_USER_CHARACTERS_MAX: Final = 250

# --- the usage of capture and apply ---------------------------------------------------------------
# A row is about a minute, and costs a commit of some 20 ms. With many sources it is about so much for each of them: all
# together append ten a minute.
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
