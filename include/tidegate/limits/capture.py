"""Bounds of capture: segments, the value log, landing in bronze.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# --- wire -----------------------------------------------------------------------------------------
# From the end of one capture run in Airflow to the next one's stream, when nothing else keeps its slot busy.
HAND_OVER_SECONDS: Final = 5.0

# --- segments -------------------------------------------------------------------------------------
# A segment is cut at the first transaction end past the soft bound, and anywhere past the hard one:
# big enough to decode in one vectorised pass, small enough that a Spark task holds a few of them.
SEGMENT_BYTES_DEFAULT: Final = 8 * MIB
SEGMENT_BYTES_MAX: Final = 16 * MIB

# --- landing --------------------------------------------------------------------------------------
LAND_SECONDS_DEFAULT: Final = 1.0
# A micro-batch waits for half of this on average. Each landing costs some 20 ms of CPU, and a file.
MICRO_BATCH_LAND_SECONDS: Final = 0.25
# Two landings are this far apart for each live file of bronze: whoever opens bronze takes 5 KB and 25 us a file. Where
# nobody packs the files, landings so come less often: 90,000 files in a day, not 350,000.
BRONZE_FILE_LAND_SECONDS: Final = 20e-6
# The events of a transaction arrive within this. So what comes together after a pause lands
# together.
LAND_SECONDS_MIN: Final = 0.02
LAND_BYTES_DEFAULT: Final = 64 * MIB
# Segments that wait between the reader and the lander. Beyond this the reader waits.
QUEUE_BYTES_DEFAULT: Final = 128 * MIB
# A lake that makes the reader wait so long is slow or down: the lander then follows from the value log.
SLOW_LAKE_SECONDS_DEFAULT: Final = 1.0
# To go back from the value log to memory the reader is held for HOLD_SECONDS at most, and a try is made every
# RETURN_SECONDS (as the slow chaser of TiDB's Pump does).
HOLD_SECONDS_DEFAULT: Final = 1.0
RETURN_SECONDS_DEFAULT: Final = 60.0
# A lake that can't be reached is asked again after 1, 2, 4 ... seconds, up to these.
LAKE_AGAIN_SECONDS_MAX: Final = 15.0

# --- value log ------------------------------------------------------------------------------------
VALUE_LOG_FILE_BYTES: Final = 512 * MIB
# A file is deleted as a whole. Without this bound a quiet source would fill one in days, and an erased person's rows
# would stay as long.
VALUE_LOG_FILE_SECONDS: Final = 600.0
# After a file is old enough two more segments come, and the first of them lands, before it is
# deleted.
VALUE_LOG_GONE_SECONDS: Final = 60.0
# A payload as large as this is written without a copy. A smaller one is copied, which costs less than a write of its
# own.
VALUE_LOG_DIRECT_BYTES_MIN: Final = 1 * MIB
# Left free on the value log's disk: what else runs there (a server, Airflow's logs) must not die of a slow lake.
DISK_RESERVE_BYTES_DEFAULT: Final = 512 * MIB

# --- a run ----------------------------------------------------------------------------------------
# A new connection has surely had two heartbeats, which prove a quiet source, within so many periods.
PROOF_HEARTBEATS_MAX: Final = 4
# A run that only proves a quiet source has this long to find its place before it listens.
PROOF_START_SECONDS: Final = 10.0
# A receive ends after this at the latest, so that a stop or a due heartbeat is seen.
CAPTURE_POLL_SECONDS: Final = 0.25
# Progress is told so often: a person reads it.
PROGRESS_SECONDS: Final = 1.0
# A source that can't be reached at first is tried so often, with pauses of up to as many seconds.
START_ATTEMPTS_MAX: Final = 5
# Where the disk has no room for the value log, the reader waits so long for the lander to land one more batch.
DISK_LOOK_SECONDS: Final = 10.0
# The source's pace is measured over this long.
LAKE_RATE_SECONDS: Final = 60.0
# A lake that is behind is told in the log so often.
BEHIND_TOLD_SECONDS: Final = 60.0
# What the source will purge soon is told in the log so often.
RETENTION_TOLD_SECONDS: Final = 600.0
# A server that sends as it commits wakes capture for each packet. After a receive that brought little, this pause lets
# more come together. Transactions of one row then cost a quarter less CPU, and latency doesn't change.
GATHER_SECONDS: Final = 0.0005
# A record's head in the value log. Names of 4,096 tables of 2 x 64 characters, escaped, stay far below.
RECORD_HEAD_BYTES_MAX: Final = 64 << 20
# A value log that was moved aside is kept for this long: nobody looks at it later.
VALUE_LOG_LEFT_DAYS: Final = 14
