"""Bounds of the computed effects of foreign keys (include/tidegate/cascades).

In:  nothing.
Out: constants, unit last in the name, reason beside it.
"""

from typing import Final

from tidegate.limits.units import MIB

# Whole rows of children that a window holds in memory: those it finds in silver, and its own changes of them.
CASCADE_BYTES_MAX: Final = 256 * MIB
# Logged changes of children, or of their parents' keys, that a window follows: about 1 KB and 10 us each.
CASCADE_LOGGED_ROWS_MAX: Final = 300_000
# Rows that foreign keys change in a window; beyond it a snapshot of the table costs less.
CASCADE_MADE_ROWS_MAX: Final = 300_000
# Silver is searched so often for the children that a level of cascades reaches: a server follows 15 levels.
CASCADE_ATTEMPTS_MAX: Final = 40
