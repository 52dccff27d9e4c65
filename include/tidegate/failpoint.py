"""Named points at which a test can kill or stop the process, to show that nothing is lost, doubled or published late.

In:  TIDEGATE_FAILPOINT=name or name:n (the n-th time the point is reached, from 1); /sleep after it.
Out: nothing, or SIGKILL to this very process; with /sleep SIGSTOP, once, as of a machine that stands still for a while.
     Without the variable a call costs one dict look-up.
"""

from __future__ import annotations

import os
import signal

_reached: dict[str, int] = {}


def failpoint(name: str) -> None:
    """Kill or stop this process when TIDEGATE_FAILPOINT names this point."""
    wanted = os.environ.get("TIDEGATE_FAILPOINT")
    if wanted is None:
        return
    place, _, sleeps = wanted.partition("/")
    point, _, count = place.partition(":")
    if point != name:
        return
    reached = _reached[name] = _reached.get(name, 0) + 1
    if sleeps and reached == int(count or 1):
        os.kill(os.getpid(), signal.SIGSTOP)
    elif not sleeps and reached >= int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
