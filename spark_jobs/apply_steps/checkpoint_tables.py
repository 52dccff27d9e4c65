"""The Delta logs of the tables just written get their checkpoints, beside the next windows.

In:  a window's Delta versions; the control tables this application has appended to.
Out: due checkpoints are begun (spark_jobs/window/checkpoints.py). Nothing waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.window.application import Application
from tidegate.tables import silver_path


def checkpoint_tables(app: Application, versions: Mapping[str, int]) -> None:
    """Note the newest version of each table's log."""
    for name, version in versions.items():
        if version >= 0:
            app.checkpoints.note(silver_path(*app.names.pair(name)), version)
    for path, version in app.control.versions.items():
        app.checkpoints.note(path, version)
