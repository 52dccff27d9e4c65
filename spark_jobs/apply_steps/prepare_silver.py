"""Silver is made for the new tables that go by position: decode writes rows straight into its folder.

In:  the plans of window.tables.
Out: a commit for each table that isn't there; MERGE makes its tables itself.
"""

from __future__ import annotations

from spark_jobs.session.failures import raise_failures
from spark_jobs.window.application import Application
from spark_jobs.window.standing.standings import hold_for_error, take_along
from spark_jobs.window.window import TableWindow, Window
from tidegate.errors import Terminal
from tidegate.lake.silver_tables import create_silver
from tidegate.tables import silver_path


def prepare_silver(app: Application, window: Window) -> None:
    """Make what is missing, side by side. A table for which that can't be done is held."""

    def make(entry: TableWindow) -> None:
        assert entry.plan.creates is not None, "asked of those that miss it"
        create_silver(app.lake.log(silver_path(entry.database, entry.table)), entry.plan.creates)

    missing = [entry for entry in window.tables.values() if entry.plan.creates is not None]
    made = {entry.name: app.pool.submit(make, entry) for entry in missing}
    failures: dict[str, BaseException] = {}
    for name, done in made.items():
        error = done.exception()
        if isinstance(error, Terminal):
            hold_for_error(app, window, name, error)
            take_along(app, window, [name])
        elif error is not None:
            failures[name] = error
    raise_failures(failures)
