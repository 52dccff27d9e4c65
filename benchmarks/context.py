"""What every section has at hand.

In:  sizes, a scratch folder, the running server, the cache of downloads, a meter.
Out: Context.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.cpu import Meter
from benchmarks.sizes import Sizes
from tidegate.demo.server import Server


@dataclass(slots=True)
class Context:
    """folder: scratch, removed at the end. cache: downloads, kept."""

    sizes: Sizes
    folder: Path
    cache: Path
    root: Path
    server: Server
    meter: Meter
