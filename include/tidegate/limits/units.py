"""The units of bounds.

In:  nothing.
Out: MIB, HOUR_SECONDS.
"""

from typing import Final

MIB: Final = 1 << 20
HOUR_SECONDS: Final = 3600
