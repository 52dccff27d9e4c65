"""Bounds of MySQL and MariaDB as a source: its socket, its clock, its answers, its prepared transactions.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# --- wire -----------------------------------------------------------------------------------------
# One recv_into asks for at most this much: large enough that the packet walk runs over many events.
RECEIVE_BYTES: Final = 4 * MIB
# A server sends a result in pieces of some 16 KiB. To wake up for each piece costs as much as its rows. After a small
# piece of a large result, the next ones are left to gather in the socket.
GATHER_BYTES: Final = 512 << 10
GATHER_FROM_BYTES: Final = 256 << 10
GATHER_SECONDS: Final = 1e-3
# A silent server is declared dead after this many missed heartbeats.
HEARTBEATS_MISSED_MAX: Final = 5
# ... and after no less than this: a busy server may be late with heartbeats that are asked for often.
SILENCE_SECONDS_MIN: Final = 10.0
# A question to the server (its clock, its settings) and a login are answered within this, or the network is gone.
ANSWER_SECONDS_MAX: Final = 30.0
# Before a first start: all that is in the binlog is committed within this, or commits wait for something.
SETTLE_SECONDS: Final = 30.0

# --- schema ---------------------------------------------------------------------------------------
# How often a baseline is read again because a DDL ran while it was being read.
BASELINE_ATTEMPTS_MAX: Final = 10
# information_schema is asked for so many tables at once: MariaDB opens each, in 1 to 10 ms, before it answers. It makes
# 1000 names and more a subquery (in_predicate_conversion_threshold), and then opens every table of the database.
CATALOG_TABLES_MAX: Final = 900
# Up to so many tables are asked for by name when a schema is read. For more, their whole databases are read.
SCHEMA_NAMED_TABLES_MAX: Final = 1000

# --- a cloud's server -----------------------------------------------------------------------------
# A person is told to keep binlog files so long: the most that RDS for MySQL takes.
BINLOG_KEPT_HOURS: Final = 168

# --- clocks, answers, first starts ----------------------------------------------------------------
# How much later than the source's clock, as capture knows it, a transaction may say that it was written.
CLOCK_SLACK_SECONDS: Final = 2
# The source's clock is asked so often while its stream is busy.
CLOCK_ASKED_SECONDS: Final = 10.0
# A source's clock isn't believed for CLOCK_DOUBT_SECONDS when, since the last look, it gained more than this on this
# machine's monotonic clock.
CLOCK_LEAP_SECONDS_MAX: Final = 300
CLOCK_DOUBT_SECONDS: Final = 600
# A server's refusal counts when it was given ten times and for longer than this. Until then the server may be starting.
ANSWERS_KNOWN_SECONDS: Final = 180.0
# `tidegate status` and Airflow's page wait so long for each source, and name one that doesn't answer.
STANDING_ANSWER_SECONDS: Final = 3
# ... and for the names of its tables: 2 to 5 seconds for 100,000 on a MariaDB.
TABLES_ANSWER_SECONDS: Final = 15
# With more tables nobody looks for one that isn't in silver yet, and a MariaDB takes 1 ms to list each.
SHOWN_TABLES_MAX: Final = 5000
# Airflow's page reads a pipeline once in this time, however many people look. It waits for its sources for
# PAGE_ASK_SECONDS; a slower source is shown with its last answer.
PAGE_LOOK_SECONDS: Final = 2.0
PAGE_ASK_SECONDS: Final = 0.5
# It waits PAGE_LAKE_SECONDS for a lake, and then shows the lake's last answer. It says so once this is PAGE_OLD_SECONDS
# old: a slow store may always take longer. A first look, and one after a while, reads more. Who acts waits for the end.
PAGE_LAKE_SECONDS: Final = 3.0
PAGE_OLD_SECONDS: Final = 30.0
PAGE_FIRST_SECONDS: Final = 10.0
PAGE_ACT_SECONDS: Final = 30.0
# Of a lake without an answer so many questions wait at the same time, each in a thread; further ones aren't asked. And
# so many actions of people.
PAGE_HUNG_THREADS_MAX: Final = 16
# The page of all pipelines asks so many lakes at the same time.
PAGE_VIEW_THREADS_MAX: Final = 16
# The newest changes of columns that a pipeline's page shows.
PAGE_CHANGED_ROWS_MAX: Final = 5
# When a browser's first page takes longer, it is told that the page comes.
PAGE_OPENING_SECONDS: Final = 0.4
# Size of a form that a person sends from the page.
PAGE_FORM_BYTES_MAX: Final = 65_536
# One look in this time also asks a source for its tables and its binlog files, which are long lists on some servers.
SELDOM_ASKED_SECONDS: Final = 60.0
# The page warns of a source that purges uncaptured binlog within this.
PURGE_SOON_SECONDS: Final = 24 * 3600.0
# Capture's own words on this machine, of a purge or its lake, are shown while they are at most this old.
CAPTURE_KNOWN_SECONDS: Final = 60.0
# `tidegate metrics` looks at so many pipelines at the same time: each waits for its store and its sources.
METRICS_PIPELINES_MAX: Final = 16
# A scrape waits so long for looks, within the 10 s that Prometheus waits: a silent store keeps a look for much longer.
METRICS_LOOK_SECONDS: Final = 4.0
# A pipeline is called behind from this lag on.
BEHIND_SECONDS: Final = 60.0
# Capture or apply is called silent when its lease wasn't renewed for this long; it renews every ten seconds.
WORK_SILENT_SECONDS: Final = 60.0
# Work that ended by itself, while something waits for it, begins again within this (Airflow's scheduler, Spark's
# start).
WORK_BEGINS_SECONDS: Final = 120.0
# The log says so often that a clock isn't believed.
CLOCK_TOLD_SECONDS: Final = 60.0
# The source is asked so often what it would purge.
CLOCK_LOOK_SECONDS: Final = 60.0
# Capture looks so often whether its host was fenced off and another host of the source promoted.
FENCE_LOOK_SECONDS: Final = 30.0
# One receive, of captured bytes that are asked for once more, waits so long; then a stop is seen.
CONTINUITY_RECEIVE_SECONDS: Final = 1.0
# The place where the server's history parts from ours is looked for so far back. Beyond that the message says "at
# least".
CONTINUITY_SEGMENTS_MAX: Final = 64
# A captured transaction is read again from another server, which may send so much up to the transaction's end.
OTHER_HISTORY_BYTES_MAX: Final = 256 * MIB
# A person waits for `tidegate accept`; it looks further back than capture does.
ACCEPTANCE_SEGMENTS_MAX: Final = 1000
# `tidegate check` waits so long for a source: it is asked many questions.
CHECK_ANSWER_SECONDS: Final = 30
# `tidegate check` names a source's clock that differs more from this machine's.
CLOCK_SKEW_SECONDS_MAX: Final = 1.0
# The clocks' difference is taken from the quickest of so many answers.
CLOCK_ATTEMPTS_MAX: Final = 5
# Before a first start: prepared transactions end by themselves within this, or are named.
PREPARED_WAIT_SECONDS: Final = 60.0
# ... and are looked for so often.
PREPARED_LOOK_SECONDS: Final = 0.2
# Pause between two looks whether all that is in the binlog is committed.
SETTLED_POLL_SECONDS: Final = 0.1

# --- prepared transactions ------------------------------------------------------------------------
# A transaction manager that restarts answers what it had prepared within minutes.
ORPHAN_TIMEOUT_SECONDS_DEFAULT: Final = 600.0
PREPARED_ASKED_SECONDS: Final = 60.0  # a run asks so soon what is prepared, then once in orphan_timeout
BRANCH_SEEN_SECONDS: Final = 1.0  # XA COMMIT is logged some milliseconds before its rows are seen
