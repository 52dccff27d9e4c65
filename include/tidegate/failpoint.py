"""Named points at which a test can kill the process, to prove that nothing is lost or doubled there.

In:  TIDEGATE_FAILPOINT=name or name:n (the n-th time the point is reached, from 1).
Out: nothing, or SIGKILL to this very process. Without the variable a call costs one dict look-up.
"""

from __future__ import annotations

import os
import signal

_reached: dict[str, int] = {}


def failpoint(name: str) -> None:
    """Kill this process with SIGKILL when TIDEGATE_FAILPOINT names this point."""
    wanted = os.environ.get("TIDEGATE_FAILPOINT")
    if wanted is None:
        return
    point, _, count = wanted.partition(":")
    if point != name:
        return
    _reached[name] = _reached.get(name, 0) + 1
    if _reached[name] >= int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
