"""Bounds of reading a TiCDC changefeed's files.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# As often as a changefeed writes its checkpoint.
TICDC_LOOK_SECONDS_DEFAULT: Final = 2.0
# The path may know a checkpoint that TiCDC's owner had no time to keep: of its last ticks, once when it dies.
TICDC_FALL_SECONDS_MAX: Final = 60
TICDC_FALL_ATTEMPTS_MAX: Final = 2
# So many in this time: two changefeeds that write by turns make a fall every few seconds.
TICDC_FALLS_SECONDS: Final = 3600.0
# An answer of a store takes some 20 ms.
TICDC_LOOKS_THREADS: Final = 8
# S3 and GCS give so many names a list, Azure more.
TICDC_LIST_FILES_MAX: Final = 1000
# A look whose lists are fewer for each thread asks for them one after the other: each thread reads a list too far.
TICDC_THREAD_LISTS_MIN: Final = 4
# Lists of a store cost some 5 dollars a million: `tidegate check` warns of a path that asks for more than this a day.
TICDC_DAY_LISTS_MAX: Final = 1_000_000
# Of each folder's next lines so much is held, that their order over all folders is known; less, where there are many.
TICDC_CHUNK_BYTES: Final = 4 * MIB
TICDC_CHUNK_BYTES_MIN: Final = MIB // 16
TICDC_CHUNKS_BYTES_MAX: Final = 256 * MIB
# Lines of one commit_ts are one segment: more than this a value log's record, and Arrow's offsets, don't hold.
TICDC_COMMIT_BYTES_MAX: Final = 1024 * MIB
# Most lines are shorter: where a file begins is found by reading this much.
TICDC_FIRST_LINE_BYTES: Final = MIB // 64
