"""Tables with history at a time before the kept cuts, after the beginning of their known history.

In:  a lake, a commit_ts older than its kept cuts.
Out: a Cut: the newest one, with the tables of a long enough history, at their newest versions; a reason for each other
     table. merge/past/as_of.py makes these tables as they were then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidegate import tables
from tidegate.commit_ts import time_text
from tidegate.errors import CutForgotten, DeltaUnsupported, LakeRefused
from tidegate.lake.cuts.published import Cut, CutTable, cut_at
from tidegate.lake.files import LakeFiles
from tidegate.lake.silver.as_published import said_of_all, shown_by
from tidegate.lake.silver.known_history import history_name, known_history
from tidegate.merge.past import past_of
from tidegate.standing.silver import Said, answer


@dataclass(frozen=True, slots=True)
class _Reached:
    """table: at its newest version, with its history from since_ts on; None: nobody knows. has_versions: whether it
    keeps a history at all. why: it can't be read.
    """

    table: CutTable
    since_ts: int | None = None
    has_versions: bool = True
    why: str = ""

    def why_not(self, at: int) -> str:
        """Why it doesn't tell its rows at a commit_ts; "" where it does."""
        if self.why:
            return self.why
        if not self.has_versions:
            return "no cut so old is kept, and it keeps no history"
        if self.since_ts is None:
            return (
                "nobody knows from when on its history tells all: two windows with changes of it record that, or"
                " `tidegate rebuild --swap`, but not where tables.history_by_window leaves versions out"
            )
        since = f"{self.since_ts} ({time_text(self.since_ts)})"
        return "" if self.since_ts <= at else f"its history tells all from {since} on, and no older cut is kept"


def histories_at(lake: LakeFiles, pipeline: str, at: int, forgotten: CutForgotten) -> Cut:
    """forgotten: the error for this time, raised where no table's history reaches back so far, with the reasons.

    Raises CutForgotten, LakeUnavailable.
    """
    newest, said = cut_at(lake, pipeline), said_of_all(lake)
    looks = {name: _look(lake, pipeline, table, said.get(name)) for name, table in newest.tables.items()}
    reasons = {name: why for name, look in looks.items() if (why := look.why_not(at))}
    reached = {name: look.table for name, look in looks.items() if name not in reasons}
    if not reached:
        late = [f"{name}: {why}" for name, why in reasons.items() if looks[name].has_versions]
        raise CutForgotten(
            forgotten.what, where=forgotten.where, remedy="; ".join([*late, str(forgotten.remedy)])
        ) from forgotten
    gone = dict.fromkeys(newest.dropped, "the source has it no more")
    missing: Mapping[str, str] = dict(sorted({**newest.missing, **gone, **reasons}.items()))
    return replace(newest, tables=reached, missing=missing, dropped=frozenset[str]())


def _look(lake: LakeFiles, pipeline: str, table: CutTable, said: Said | None) -> _Reached:
    """Silver's own word, if its log is the published one."""
    try:
        log = lake.log(table.path)
        state = log.state()
        if not past_of([field["name"] for field in state.schema["fields"]]).versions:
            return _Reached(table, has_versions=False)
        app_id = tables.app_id(pipeline, table.name)
        if said is None or answer(said, shown_by(lake, log, state, app_id, said)).unlike is not None:
            return _Reached(table, why="its silver isn't the one that was published; apply finds that out")
        known = known_history(log, state, history_name(pipeline, table.name))
    except (LakeRefused, DeltaUnsupported) as error:
        return _Reached(table, why=str(error))
    since_ts = known.since_ts if known is not None and known.since_ts else None
    return _Reached(replace(table, version=state.version), since_ts)
