"""Bounds of reading a TiCDC changefeed's files.

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# Capture looks at the path so often: a changefeed writes its checkpoint as often.
TICDC_LOOK_SECONDS_DEFAULT: Final = 2.0
# The path may have a newer checkpoint than TiCDC's owner kept: of the owner's last ticks before it died.
TICDC_FALL_SECONDS_MAX: Final = 60
TICDC_FALL_ATTEMPTS_MAX: Final = 2
# Falls of a checkpoint are counted over this time: two changefeeds that write by turns make one
# every few seconds.
TICDC_FALLS_SECONDS: Final = 3600.0
# An answer of a store takes some 20 ms.
TICDC_LOOKS_THREADS: Final = 8
# S3 and GCS give so many names a list, Azure more.
TICDC_LIST_FILES_MAX: Final = 1000
# A look with fewer lists for each thread makes them one after the other: each thread makes a list too many.
TICDC_THREAD_LISTS_MIN: Final = 4
# Lists of a store cost some 5 dollars a million: `tidegate check` warns of a path that asks for more than this a day.
TICDC_DAY_LISTS_MAX: Final = 1_000_000
# So many bytes of each folder's next lines are held, so that their order over all folders is known. With many folders
# it is less.
TICDC_CHUNK_BYTES: Final = 4 * MIB
TICDC_CHUNK_BYTES_MIN: Final = MIB // 16
TICDC_CHUNKS_BYTES_MAX: Final = 256 * MIB
# All lines of one commit_ts are one segment. A record of the value log, and Arrow's offsets, hold no more than this.
TICDC_COMMIT_BYTES_MAX: Final = 1024 * MIB
# Most lines are shorter: where a file begins is found by reading this much.
TICDC_FIRST_LINE_BYTES: Final = MIB // 64
