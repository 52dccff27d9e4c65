"""What every section has at hand.

In:  sizes, a scratch folder, the running server, the cache of downloads, a meter.
Out: Context.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cpu import Meter
from benchmarks.sizes import Sizes
from benchmarks.workloads import Workload
from tidegate.local.server import Server


@dataclass(slots=True)
class Context:
    """folder: scratch, removed at the end. cache: downloads, kept."""

    sizes: Sizes
    folder: Path
    cache: Path
    root: Path
    server: Server
    meter: Meter

    def log_of(self, workload: Workload) -> dict[str, Any]:
        """Where a peer finds a workload's binlog: the server, the account, the file's name."""
        server = self.server
        return {
            "host": server.host,
            "port": server.port,
            "user": server.user,
            "password": server.password,
            "file": workload.path.name,
        }
