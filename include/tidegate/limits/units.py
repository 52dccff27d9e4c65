"""What bounds are counted in.

In:  nothing.
Out: MIB.
"""

from typing import Final

MIB: Final = 1 << 20
