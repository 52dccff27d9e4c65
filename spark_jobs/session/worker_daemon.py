"""Python worker daemon that has the compiled kernels in memory before it forks workers.

In:  spark.python.daemon.module names this module.
Out: workers that start decoding at once; compiling or loading the kernels in each of them would cost
     more than most windows (10 CPU seconds cold, 0.7 with a warm cache, 0.0 this way).
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
