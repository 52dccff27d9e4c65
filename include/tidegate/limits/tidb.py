"""Bounds of TiDB and its Pump.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# Answers are remembered by start_ts, so that a prewrite that is sent once more is known: 100 MB. An older copy is known
# by resolved_ts.
TIDB_ANSWERED_COMMITS_MAX: Final = 500_000
# TIDB_DECODE_ROWS rows are Python values before they become a batch: some hundred MB of wide rows. Compiled code reads
# rows in pieces of TIDB_PIECE_BYTES, whose columns take TIDB_PIECE_CELLS_BYTES at 8 bytes a cell. A larger piece is one
# row. (A NULL has no byte in an inserted row, and 8 in a column.) Besides, the places of a whole transaction's rows
# take 88 bytes a row: TiDB's own txn-total-size-limit bounds that.
TIDB_DECODE_ROWS: Final = 50_000
TIDB_PIECE_BYTES: Final = 8 * MIB
TIDB_PIECE_CELLS_BYTES: Final = 32 * MIB
# Apply keeps so many bytes of the segments that it has read: a window reads those of the one before once more.
TIDB_KEPT_BYTES_MAX: Final = 100 * MIB
# Requests of TiDB that wait at one time, each on a thread; and how much they hold.
PUMP_THREADS: Final = 256
PUMP_WAITING_BYTES_MAX: Final = 256 * MIB
# Bytes of all requests that wait for their place or their answer. One request of any size may come on top, so that
# small ones don't keep a large transaction out. (gRPC itself has a request whole before anybody is asked.)
PUMP_HELD_BYTES_MAX: Final = 1024 * MIB
# TiDB gives a write up after 15 seconds (binlog.write-timeout) and tries again.
PUMP_WAIT_SECONDS_MAX: Final = 30.0
# A transaction's binlog is as large as what it writes, and its framing. TiDB's own bound is txn-total-size-limit, with
# a binlog 1 GiB at most.
PUMP_PAYLOAD_BYTES_DEFAULT: Final = 1024 * MIB + 16 * MIB
# TiKV takes no longer keys (storage.max-key-size, 8 KiB). The key of each prewrite without an answer is in memory.
PUMP_KEY_BYTES_MAX: Final = 64 << 10
# A timestamp of TiDB's that is further ahead than this isn't PD's: PD and what reads it keep time, by NTP to a second.
TIMESTAMP_AHEAD_SECONDS_MAX: Final = 600
# A quiet Pump writes a timestamp of its own so often, as TiDB's does.
PUMP_FAKE_SECONDS_DEFAULT: Final = 3.0
# A Pump that wasn't heard of for this long may not run at all: one run hands over to the next
# sooner.
PUMP_UNHEARD_SECONDS: Final = 120.0
# By TiDB's timestamps, not by a clock: a prewrite without an answer is asked for after this, and once more after this
# again. Each is far above what TiDB waits in a commit (40 s for a lock's answer, 15 s for a Pump's), and both together
# are below what its garbage collection keeps (tidb_gc_life_time, 600 s).
PUMP_ORPHAN_SECONDS_DEFAULT: Final = 240.0
# Taken for a TiDB that doesn't say its tidb_gc_life_time: TiDB's default.
TIDB_GC_LIFE_SECONDS: Final = 600.0
# TiDB's status port is asked for so many orphans in one look, and looked at this often.
PUMP_ORPHANS_ROWS_MAX: Final = 256
PUMP_ORPHAN_LOOK_SECONDS: Final = 1.0
# Drainers that pull at one time, each on a thread of those above; and how often one looks whether bronze has more.
PUMP_PULL_THREADS: Final = 8
PUMP_PULL_SECONDS: Final = 0.5
# What a person decided of an orphan that TiDB can't tell of is looked for in the lake this often.
PUMP_WORD_SECONDS: Final = 5.0
# A Pump serves again so soon after an error that may pass, such as a full disk: TiDB gives a write up after 15 seconds.
PUMP_RESTART_SECONDS: Final = 1.0
# A Pump's record in PD is written anew so often, as TiDB's does (heartbeat-interval); and PD is given so long to answer
# (its etcd dial timeout).
PUMP_HEARTBEAT_SECONDS: Final = 2.0
PUMP_PD_SECONDS: Final = 5.0
# A PD that doesn't answer is asked again after 2, 4, 8 .. seconds, up to this.
PUMP_PD_WAIT_SECONDS_MAX: Final = 30.0
# A record of another address whose heartbeat stands still for five of them is of a Pump that is gone.
PUMP_SILENT_SECONDS: Final = 10.0
# A Pump that ends waits so long for PD to hear of it: TiDB waits too.
PUMP_LAST_WORD_SECONDS: Final = 3.0
# `tidegate pump --ask` gives up on a Pump whose record stands still for this: twice what it leaves PD alone for.
PUMP_ASKED_SECONDS: Final = 60.0
# A Pump writes its record every two seconds. Whoever asks something of it writes in between, at the first or the second
# try.
PUMP_ASK_TRIES_MAX: Final = 10
