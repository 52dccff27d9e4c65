"""Whether silver agrees with control/: a table's own log against its newest row of control/cuts.

In:  the record of control (Said), the state of the log (Shown).
Out: Answer: it goes on, or the fault and the commit_ts from which silver's own transaction lets it
     go on.

Pure. A table's log is ours under three conditions: it has the published id and version; it has the
newest commit_ts that we had recorded then; and no RESTORE comes after our newest commit, since
RESTORE takes rows back and keeps application transactions. Others' changes of silver (OPTIMIZE,
VACUUM, DELETE, UPDATE, MERGE) make the log longer, and keep its id and our records. But a commit
that says it changed no row, and has other rows in its files, was made by a broken writer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from tidegate.tables import State

NO_SILVER: Final = -1
# Tables in these states aren't checked: their silver doesn't count, or nobody continues it as it
# is.
AT_REST: Final = (State.HELD, State.LEFT, State.DROPPED)
# Tables in these states may go on from a lower position. A table that a snapshot fills can't: no
# window has the rows that it lacks.
CATCHES_UP: Final = (State.ACTIVE, State.RELEASED)


# The remedy for rows of another writer: neither a snapshot nor a TRUNCATE at the source may remove them.
MOVE_AWAY: Final = "move that table away, or leave this one out (tables.exclude); then `tidegate release` it"


class Unlike(StrEnum):
    """The fault of silver. Its text is for logs and tests; nothing is decided by the text."""

    GONE = "gone"  # there is no such table any more
    OLDER = "older"  # its log lacks what was published
    REPLACED = "replaced"  # another table lies in its place
    RESTORED = "restored"  # somebody took rows back
    CLEANED = "cleaned"  # somebody may have: its log lacks the commits since
    FOREIGN = "foreign"  # a table that tidegate didn't fill lies in the place of ours
    UNEVEN = "uneven"  # another writer rewrote files, said that no row changed, and the number of rows did


class Repacked(NamedTuple):
    """Another writer's commit that says it changed no row (`dataChange: false`, as OPTIMIZE has it).

    operation, engine: as the commit calls them; may be empty. before, after: live rows in the files that it removed,
    and in those that it added; None: nobody knows.
    """

    version: int
    operation: str
    engine: str
    before: int | None
    after: int | None

    @property
    def is_known(self) -> bool:
        """Whether both numbers are known."""
        return self.before is not None and self.after is not None

    @property
    def is_even(self) -> bool:
        """Whether it certainly has as many rows as before."""
        return self.is_known and self.before == self.after

    def words(self) -> str:
        """The commit, for people."""
        return f"version {self.version} ({self.operation or 'a commit'} by {self.engine or 'an unknown writer'})"


@dataclass(frozen=True, slots=True)
class Said:
    """The record of a table in control/cuts. version: NO_SILVER without silver.

    table_id: of its log; "" where an older release wrote the row. own_ts: the newest commit_ts that a commit of ours
    had recorded in it; 0 for none: then it never had a row of ours. published_ms: when it was said, by our clock; 0 for
    not known.
    """

    version: int = NO_SILVER
    table_id: str = ""
    own_ts: int = 0
    published_ms: int = field(default=0, compare=False)

    @property
    def never_filled(self) -> bool:
        """Whether silver certainly never had a row of ours."""
        return self.version == NO_SILVER or (bool(self.table_id) and not self.own_ts)


@dataclass(frozen=True, slots=True)
class Shown:
    """The present state of a table's log. version: NO_SILVER without a table.

    own_ts: as Said has it. applied_ts: the end of our committed rows; 0 for never. has_rows: False when it certainly
    has none. restored: whether a RESTORE came after our newest commit. cleaned: the log was cleaned up and can't tell.
    born: whether its first commit gave it its id, so nobody put another table into our log. rewrite: the first rewrite
    by another writer, after our newest commit, that has other rows; else one of which nobody knows.
    """

    version: int = NO_SILVER
    table_id: str = ""
    own_ts: int = 0
    applied_ts: int = 0
    has_rows: bool = False
    restored: bool = False
    cleaned: bool = False
    born: bool = False
    rewrite: Repacked | None = None

    @property
    def said(self) -> Said:
        """The record that control gets from now on."""
        return Said(self.version, self.table_id, self.own_ts)


@dataclass(frozen=True, slots=True)
class Answer:
    """unlike: the fault; None: the table goes on. applied_ts: silver certainly has all rows up to it, by its own
    transaction; 0: nothing is certain. rewrite: the commit of UNEVEN.
    """

    unlike: Unlike | None = None
    applied_ts: int = 0
    rewrite: Repacked | None = None


GOES_ON: Final = Answer()


def is_same_log(said: Said, shown: Shown) -> bool:
    """Whether it is the log that control recorded, perhaps with newer commits after said.version."""
    same = said.table_id in ("", shown.table_id)
    return same and said.version != NO_SILVER and shown.version >= said.version and shown.own_ts >= said.own_ts


def answer(said: Said | None, shown: Shown) -> Answer:
    """Compare the record with the log. said: None if control never named the table, or if nothing
    of it counts any more.
    """
    if said is None or said.never_filled:
        ours = bool(shown.own_ts) or (said is not None and bool(said.table_id) and said.table_id == shown.table_id)
        foreign = shown.version != NO_SILVER and shown.has_rows and not ours
        return Answer(Unlike.FOREIGN) if foreign else GOES_ON
    if shown.version == NO_SILVER:
        return Answer(Unlike.GONE)
    if said.table_id not in ("", shown.table_id):
        if shown.has_rows and not shown.own_ts:  # a snapshot would take them away
            return Answer(Unlike.FOREIGN)
        proven = shown.born and not shown.restored and not shown.cleaned
        return Answer(Unlike.REPLACED, shown.applied_ts if proven else 0)
    if shown.restored:
        return Answer(Unlike.RESTORED)
    if shown.cleaned:
        return Answer(Unlike.CLEANED)
    if not is_same_log(said, shown):
        return Answer(Unlike.OLDER, shown.applied_ts)
    if shown.rewrite is not None and shown.rewrite.is_known and not shown.rewrite.is_even:
        return Answer(Unlike.UNEVEN, rewrite=shown.rewrite)
    return GOES_ON


def catches_up(silver_has: Answer, at_ts: int) -> str:
    """The reason of a table that goes on from at_ts, for people."""
    if silver_has.applied_ts:
        return f"by its own log it has all up to {at_ts}: it catches up from bronze"
    return "bronze has all of its rows: it is made anew from bronze"


def told(name: str, verdict: Answer, said: Said | None) -> str:
    """The fault, for people."""
    version = said.version if said is not None else NO_SILVER
    match verdict.unlike:
        case Unlike.GONE:
            what = f"its silver is gone: version {version} of it was published, and there is no table any more"
        case Unlike.OLDER:
            what = f"its silver is older than what was published (version {version}): the log lacks commits"
        case Unlike.REPLACED:
            what = "another table lies in the place of its silver"
        case Unlike.RESTORED:
            what = "somebody took its silver back to an older version (RESTORE)"
        case Unlike.CLEANED:
            what = (
                f"the log of its silver lacks commits after the published version {version},"
                " and nobody can say whether one of them took rows back (RESTORE)"
            )
        case Unlike.FOREIGN:
            what = "silver has a table of this name already, with rows that tidegate didn't write"
        case Unlike.UNEVEN:
            assert verdict.rewrite is not None, "its verdict has the commit"
            at = verdict.rewrite
            what = (
                f"{at.words()} of its silver says that it changed no row, and put files with {at.after} rows in the"
                f" place of files with {at.before}"
            )
        case None:
            raise AssertionError("asked of a fault alone")
    return f"{name}: {what}"
