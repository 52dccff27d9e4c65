"""The units of bounds.

In:  nothing.
Out: MIB.
"""

from typing import Final

MIB: Final = 1 << 20
