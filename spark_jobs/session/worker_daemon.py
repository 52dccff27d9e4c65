"""Python worker daemon that has the compiled kernels in memory before it forks workers.

In:  spark.python.daemon.module names this module.
Out: workers that start to decode at once. To compile the kernels takes 10 CPU seconds, to load them from the cache 0.7,
     more than most windows; a fork takes none.
"""

from __future__ import annotations

import pyarrow.parquet
from pyspark import daemon

from tidegate.binlog.warm import warm
from tidegate.upsert.warm import warm as warm_upsert

if __name__ == "__main__":
    assert pyarrow.parquet is not None  # imported for its side effect: forked workers share it
    warm()
    warm_upsert()
    daemon.manager()
