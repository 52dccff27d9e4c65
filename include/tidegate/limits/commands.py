"""Bounds of commands, queries and Airflow's tasks.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# --- commands -------------------------------------------------------------------------------------
# `tidegate latency` waits so long for its last marker to become visible.
MARKER_WAIT_SECONDS: Final = 120.0
# A library's message is cut to this length: an error is one line.
MESSAGE_CHARACTERS_MAX: Final = 500
# `tidegate status` sums up markers of the last minutes.
LATENCY_SUMMED_SECONDS: Final = 300
# `tidegate schema log` cuts a statement to this length; --json has all of it.
STATEMENT_SHOWN_CHARACTERS_MAX: Final = 400

# --- Airflow's tasks ------------------------------------------------------------------------------
# A line of progress in a task's log, so often.
REPORT_SECONDS: Final = 10.0
# A lake that can't be read is looked at again, ever more slowly up to this.
WATCH_PAUSE_SECONDS_MAX: Final = 60.0
# Whether the open questions still wait for an answer. All of a lake share one look.
ANSWER_LOOK_SECONDS: Final = 10.0
# Questions of one run about one table each. The other tables of the run are one question together: each question is a
# task and a trigger, and thousands of tables may wait for one statement.
ASKED_ALONE_TABLES_MAX: Final = 9
# Looks of all triggers at one time. A pipeline has three watchers, and each may hang for as long as a store takes to
# answer.
WATCH_THREADS: Final = 64
# A refused capture task ends no sooner: the next run begins at once. That of a pipeline's only source doesn't wait.
CAPTURE_REFUSED_SECONDS: Final = 60.0
# `tidegate capture` of several sources looks so often whether one of its processes has ended.
CAPTURE_LOOK_SECONDS: Final = 0.5
# A refused Pump tries again so often within that time: TiDB may be waiting for it.
PUMP_REFUSED_AGAIN_SECONDS: Final = 2.0
# A week of tries a minute apart; Airflow wants a number.
TASK_ATTEMPTS_MAX: Final = 10_000
# An error that is neither Terminal nor Transient may be a fault of the machine: the task is tried
# so often.
FAULT_ATTEMPTS_MAX: Final = 3
# The longest pause between two tries of a task.
TASK_PAUSE_SECONDS_MAX: Final = 60

# --- changelogs, queries --------------------------------------------------------------------------
# Rows of one changelog in memory, as JSON, before they become a file, which has a tenth of these bytes or less.
CHANGELOG_FILE_BYTES: Final = 64 * MIB
# Rows of all changelogs of a window in memory: a lake may keep those of many tables.
CHANGELOG_PENDING_BYTES: Final = 256 * MIB
# Images of one table, and of all, that wait to be written as JSON together.
CHANGELOG_TABLE_JOINED_BYTES: Final = 1 * MIB
CHANGELOG_JOINED_BYTES: Final = 32 * MIB
# A row group of a changelog. A reader holds one of each file that overlaps its place.
CHANGELOG_GROUP_BYTES: Final = 8 * MIB
# Changelogs' files of fewer bytes are packed, to about this much.
CHANGELOG_PACKED_BYTES: Final = 16 * MIB
TAIL_POLL_SECONDS: Final = 0.5
QUERY_MEMORY_BYTES: Final = 2048 * MIB

# --- alerts ---------------------------------------------------------------------------------------
# A pipeline is looked at so often for alerts; a look costs what one of the page does.
ALERT_LOOK_SECONDS: Final = 30.0
# An alert is over when its cause has been away for this long. With less, every blink would send two
# messages.
ALERT_OVER_SECONDS: Final = 120.0
# Tables of one alert that are remembered by name in Airflow's database; more are counted.
ALERT_KEPT_TABLES_MAX: Final = 1000
# Tables, or sources, that a message names for one alert; the others are counted.
ALERT_NAMED_TABLES_MAX: Final = 10
# Length of a message: Slack takes 40,000 characters. Alerts that waited for a notifier come as one
# message.
ALERT_TEXT_CHARACTERS_MAX: Final = 16_000
# A webhook has this long to answer.
ALERT_SEND_SECONDS: Final = 30.0
# A notifier that takes longer is ended and tried again: other alerts wait behind it.
ALERT_NOTIFIER_SECONDS_MAX: Final = 300

# A look that takes longer is one at a lake that can't be read: its mount hangs, perhaps for ever.
ALERT_VIEW_SECONDS_MAX: Final = 300.0
# A disk, or a folder of this machine, answers within this, or is said not to answer.
DISK_ANSWER_SECONDS: Final = 5.0
# A disk with less room is nearly full, however small it is: capture leaves half of it free, and Spark needs the rest.
DISK_LOW_BYTES: Final = 1024 * MIB
# Tables that an overdue hour waits for, as they are named; the others are counted.
HOUR_NAMED_TABLES_MAX: Final = 5

# --- lineage --------------------------------------------------------------------------------------
# Tables that one run names in OpenLineage; the others are counted. Columns are named while the event has room.
LINEAGE_TABLES_MAX: Final = 100
LINEAGE_CHARACTERS_MAX: Final = 2_000_000
# Tables of the sources that are named for one table of silver.
LINEAGE_SHARDS_TABLES_MAX: Final = 10
# Rows and bytes of a run are summed up for so many commits of a table. With more, none are given: each commit is a file
# to read.
LINEAGE_COMMITS_MAX: Final = 50

# `tidegate up` asks Airflow for its parts' health, which Airflow itself takes from heartbeats of the last 30 s.
UP_LOOK_SECONDS: Final = 30
# A part of Airflow is named as ailing when it hasn't answered for so long. On a machine that slept, or is busy, parts
# are late by a minute.
UP_AILING_SECONDS: Final = 120.0
