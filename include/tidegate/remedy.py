"""The remedy of an error, and the needs of the error's table before it can go on.

In:  nothing; these are values.
Out: Remedy, a part of errors; Needs, by which apply decides. A remedy's text is for people, and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NoReturn, Self

# A fault of tidegate's own. There is no public address: each copy of tidegate came from some place with issues.
ISSUES: Final = "as an issue where you got tidegate"
REPORT: Final = f"report it {ISSUES}, with this line"
# The end of a remedy, where a source's history can't be gone on with.
NEW_LAKE: Final = (
    "`tidegate accept PIPELINE SOURCE` shows which tables would wait if capture went on; or begin a new lake"
    " (docs/production.md)"
)
# Of a lake that is empty where another one was.
PUT_BACK: Final = "look whether its disk is mounted and lake.path is right, or restore a backup"
# Of bronze/segments without all of its files. An older copy of the whole table is refused: silver is ahead of it.
BRONZE_BACK: Final = "put its missing files back from a copy, or restore a whole backup; or begin a new lake path"
_BY_ITSELF: Final = "a snapshot reads it anew, by itself unless snapshot.mode is manual (tidegate snapshot start)"
_OR_OUT: Final = "at the source and load it again; or leave it out (tables.exclude)"
_JUDGED: Final = (
    "if it changed nothing, `tidegate schema judge` makes that unnecessary; so does a TRUNCATE or a new CREATE TABLE"
)


class Needs(StrEnum):
    """The rows or columns that a table and the log lack. A table that needs rows is snapshotted by itself."""

    NOTHING = "nothing"
    ROWS = "rows"  # a snapshot, or TRUNCATE, or DROP and CREATE
    COLUMNS = "columns"  # and rows: TRUNCATE says nothing of columns
    JUDGEMENT = "judgement"  # rows, unless a person judges that the place changed nothing

    @property
    def rows(self) -> bool:
        """Whether its rows must be read anew."""
        return self is not Needs.NOTHING

    def words(self) -> str:
        """For people, in an error's line. standing/shown.py has those of a held table."""
        return _WORDS[self]


_WORDS: Final = {
    Needs.NOTHING: "",
    Needs.ROWS: f"{_BY_ITSELF}; or TRUNCATE it, or DROP and CREATE it, {_OR_OUT}",
    Needs.COLUMNS: f"{_BY_ITSELF}; or DROP and CREATE it {_OR_OUT}",
    Needs.JUDGEMENT: f"{_BY_ITSELF}; {_JUDGED}",
}


@dataclass(frozen=True, slots=True)
class Remedy:
    """text: the first thing to do; needs: the table's needs besides.

    It doesn't format: in another text the value would be lost, and a table would wait for ever.
    """

    text: str = ""
    needs: Needs = Needs.NOTHING

    def __str__(self) -> str:
        return "; ".join(part for part in (self.text, self.needs.words()) if part)

    def __format__(self, spec: str) -> NoReturn:
        raise TypeError("a remedy inside a text decides nothing: use after() or then()")

    def after(self, text: str) -> Self:
        """The same, with something to do before it."""
        return replace(self, text="; ".join(part for part in (text, self.text) if part))

    def then(self, text: str) -> Self:
        """The same, with more to do after it."""
        return replace(self, text="; ".join(part for part in (self.text, text) if part))


REFILL: Final = Remedy(needs=Needs.ROWS)
# Of a file of silver. RESTORE takes rows back, and what came since is in no window any more.
DAMAGED: Final = REFILL.after("put that file back from a copy and `tidegate release` it (not by Delta's RESTORE)")
RECREATE: Final = Remedy(needs=Needs.COLUMNS)
JUDGE: Final = Remedy(needs=Needs.JUDGEMENT)
