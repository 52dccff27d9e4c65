"""Data files in silver's folders that no commit will name.

In:  window.abandoned, which steps fill as they take a table out of the window or give it up.
Out: the files are deleted, once it is certain.
"""

from __future__ import annotations

from spark_jobs.window.application import Application
from spark_jobs.window.window import Window


def remove_abandoned(app: Application, window: Window) -> None:
    """Delete data files that no commit will name: best effort, VACUUM takes what stays."""
    for staged in window.abandoned:
        for path in staged.files:
            try:
                app.lake.filesystem.delete_file(app.lake.local(path))
            except OSError:
                continue
    window.abandoned.clear()
