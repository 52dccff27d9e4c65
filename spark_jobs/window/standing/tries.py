"""A window's tries: a passing failure is tried again, a table's own lasting failure holds it.

In:  the errors of the steps, one per try.
Out: tables held as not written, and how often in a row; released by themselves after a pause, which
     doubles each time; else the error itself, once no further try can help.

Some errors come from a table's own values, and every try in this process would meet them. Such a
table is held at once, since all other tables wait for a try. Other failures are counted per table,
and all tables that reach the bound are held together: the others wait for three tries and no more.
If a damaged file of silver is the cause, no pause mends it: the table waits for that file, or to be
made anew.
A failure of the passing kind (failures.py) never holds a table: the application ends, and the next
one tries again.
"""

from __future__ import annotations

import logging
import time
import traceback
from datetime import UTC, datetime

from spark_jobs.session.failures import OWN_FAULTS, TablesFailed, TableWriteError, first_line, passes
from spark_jobs.window.application import Application
from spark_jobs.window.standing.standings import note, refused_by
from tidegate import tables
from tidegate.delta.stores.store import room_remedy
from tidegate.errors import LakeUnavailable, SilverDamaged, Terminal, TidegateError, Unexpected, unexpected
from tidegate.limits import WINDOW_ATTEMPTS_MAX
from tidegate.standing.events import NotWritten, PauseOver
from tidegate.tables import State
from tidegate.upsert.files.damaged import first_damaged

log = logging.getLogger(__name__)


class Tries:
    """How often a window's tables failed in a row, and how often the window itself did."""

    def __init__(self, app: Application, cut_ts: int) -> None:
        self._app = app
        self._cut_ts = cut_ts
        self._count = 0
        self._tables: dict[str, int] = {}

    def note(self, error: Exception) -> None:
        """Take in a try's error; returns when there is to be another one, else raises."""
        if isinstance(error, Terminal):
            raise error
        self._app.check_claim()
        self._app.background.check()
        self._count += 1
        log.warning("window %d: try %d of %d: %s", self._cut_ts, self._count, WINDOW_ATTEMPTS_MAX, error)
        self._app.reload()  # memory may have what this try didn't write to the lake
        if not isinstance(error, TablesFailed):
            if self._count >= WINDOW_ATTEMPTS_MAX:
                raise self._last(error) from error
        else:
            self._tables = {name: self._tables.get(name, 0) + 1 for name in error.failures}
            certain = [name for name, failure in error.failures.items() if isinstance(failure, OWN_FAULTS)]
            if certain:
                self._hold(certain, error)
                if not self._tables:
                    return  # no other table has failed: no need to wait
            spent = [name for name, count in self._tables.items() if count >= WINDOW_ATTEMPTS_MAX]
            if spent:
                self._hold([name for name in spent if not passes(error.failures[name], self._app.lake)], error)
            if self._count >= WINDOW_ATTEMPTS_MAX and (name := next(iter(self._tables), None)):
                raise self._last(error.failures[name], name)
        time.sleep(max(self._count, 1))

    def _hold(self, names: list[str], error: TablesFailed) -> None:
        """Hold these tables. The window is tried again without them."""
        if not names:
            return
        for name in names:
            failure = error.failures[name]
            line = unexpected(failure).what if isinstance(failure, OWN_FAULTS) else first_line(failure)
            damaged = _damaged(self._app, name)
            note(self._app, name, NotWritten(line) if damaged is None else refused_by(self._app, name, damaged))
        self._app.record_states({})
        self._tables = {name: count for name, count in self._tables.items() if name not in names}
        self._count = 0

    def _last(self, error: BaseException, table: str = "") -> Exception:
        """The error to raise for an error that each try has met."""
        if isinstance(error, TidegateError):
            return error
        where = table or self._app.lake.root
        if passes(error, self._app.lake) or isinstance(error, OSError):
            remedy = room_remedy(error) or "check the lake's store, its disk and Spark"
            return LakeUnavailable(first_line(error), where=where, remedy=remedy)
        if table:
            return TableWriteError(table, error)
        traceback.print_exception(error)
        what = f"unexpected {type(error).__name__}: {first_line(error)}"
        return Unexpected(what, where=f"window up to {self._cut_ts}", remedy="report it, with the lines above")


def _damaged(app: Application, name: str) -> SilverDamaged | None:
    """A damaged file of a table's silver, if that is why it couldn't be written: no pause mends it."""
    silver = app.positions.silver(name)
    if silver is None:
        return None
    try:
        return first_damaged(app.lake, tables.silver_path(*app.names.pair(name)), silver)
    except (TidegateError, OSError):  # nobody knows: it is tried again
        return None


def release_after_a_pause(app: Application) -> None:
    """Let tables go on that couldn't be written, after their pause: the cause may have passed."""
    now = datetime.now(UTC)
    for name, standing in app.states.of(State.HELD):
        if standing.times:  # of ten thousand held tables few wait for a pause
            note(app, name, PauseOver(now))
    app.record_states({})
