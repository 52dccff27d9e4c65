"""The units of bounds, and the longest times.

In:  nothing.
Out: MIB, HOUR_SECONDS, DAYS_MAX, SECONDS_MAX.
"""

from typing import Final

MIB: Final = 1 << 20
HOUR_SECONDS: Final = 3600
# Longest times in a pipeline file, some 1,000 and 31 years: what comes before year 1, or is too
# long for a wait, would fail in the middle of a job, or take the DAGs of all pipelines away.
DAYS_MAX: Final = 365_000
SECONDS_MAX: Final = 1_000_000_000
