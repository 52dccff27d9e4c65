"""The bounds of formats and compiled code: a change makes the kernels compile anew.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# The protocol splits anything longer into packets of exactly this size (MySQL internals, "Packets").
PACKET_BYTES_MAX: Final = (1 << 24) - 1
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
# Arrow and Spark decimals end at 38 digits; MySQL's go to 65, which become strings.
DECIMAL_DIGITS_MAX: Final = 38
# TiDB's TSO: physical milliseconds above 18 logical bits (pingcap/tidb oracle.ComposeTS).
LOGICAL_BITS: Final = 18
