"""Create silver tables for the positional writer before decode, because decode writes rows into
their folders.

In:  the plans of the window's tables.
Out: a commit for each missing table; MERGE makes its tables itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.session.failures import raise_failures
from spark_jobs.window.application import Application
from spark_jobs.window.plan import TablePlan
from spark_jobs.window.standing.standings import hold_tied
from spark_jobs.window.window import TableWindow, Window
from tidegate.errors import Terminal
from tidegate.lake.silver.silver_tables import create_silver
from tidegate.merge.silver_sql import SilverShape
from tidegate.tables import silver_path


def prepare_silver(app: Application, window: Window, plans: Mapping[str, TablePlan]) -> None:
    """Make the missing tables, side by side. A table is held if its making fails."""

    def make(entry: TableWindow, shape: SilverShape) -> None:
        create_silver(app.lake.log(silver_path(entry.database, entry.table)), shape)

    missing = [(entry, shape) for name, entry in window.tables.items() if (shape := plans[name].creates) is not None]
    made = {entry.name: app.pool.submit(make, entry, shape) for entry, shape in missing}
    failures: dict[str, BaseException] = {}
    for name, done in made.items():
        error = done.exception()
        if isinstance(error, Terminal):
            hold_tied(app, window, name, error)
        elif error is not None:
            failures[name] = error
    raise_failures(failures)
