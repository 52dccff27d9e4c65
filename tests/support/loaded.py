"""Import it, and what processes that are forked from here run is in memory: modules that commands and jobs import late,
and compiled code. Each child would load them again, for 1 to 3 CPU seconds.

In:  nothing.
Out: nothing; still one thread, as a fork would lose others.
"""

from __future__ import annotations

import threading

import tidegate.mysql.capturing.reader  # noqa: F401
from tidegate.binlog.warm import warm
from tidegate.upsert.warm import warm as warm_upsert

warm()
warm_upsert()
assert threading.active_count() == 1, "a fork would lose threads"
