"""Why a table waits, and the ends of the wait: one row per cause.

In:  nothing; this is data.
Out: Cause, and ENDS: for each cause whether a snapshot, emptying the table, a person, a pause or a partner ends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from tidegate.errors import PastUnlike, RuleChanged, SchemaMismatch, SilverUnlike, StreamCorrupt, UnknownEvent
from tidegate.schema.ddl.reader import DdlNotRead


class Cause(StrEnum):
    """table_states.cause: why a held table waits."""

    NEEDS_ROWS = "needs_rows"  # its rows can't be known from the log alone
    UNLOGGED = "unlogged"  # it changes without row events
    DDL_STOPS = "ddl_stops"  # the pipeline file stops its DDL
    DDL_ASKS = "ddl_asks"  # ... or asks a person
    DDL_NOT_READ = "ddl_not_read"  # a statement couldn't be followed: later ones must not be replayed before it
    MISMATCH = "mismatch"  # the log and schema_history disagree about its columns
    EVENT_NOT_READ = "event_not_read"  # an event couldn't be read
    WRITE_FAILED = "write_failed"  # it couldn't be written, `times` in a row
    WAITS_WITH = "waits_with"  # rows move between it and `partner`, which waits
    PARKED = "parked"  # it has rows of a prepared transaction that nobody ever answered
    SAME_NAME = "same_name"  # two tables of the source have its name
    FAULT = "fault"  # anything else; `fault` is the exception's class


# A person's answer ends them, which Airflow asks for if the pipeline file says `ask`.
ASK_A_PERSON: Final = (Cause.DDL_ASKS, Cause.PARKED)


class Emptying(StrEnum):
    """Whether TRUNCATE, DROP, CREATE or a rename away at the source ends a wait."""

    ENDS = "ends"
    WHERE_NOTHING_IS_KEPT = "where nothing is kept"  # not where deleted rows stay in silver: those count
    NEVER = "never"


class Word(StrEnum):
    """The word of a person that ends a wait."""

    NONE = "none"
    RELEASE = "release"
    APPROVE = "approve"
    JUDGE = "judge"
    DECIDE = "decide"


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of a wait.

    snapshot: a snapshot by itself; the fault's own needs may ask for one, too. emptied: whether emptying the table at
    the source does. word: a person's. pause: it is tried again by itself. partner: it goes on with another table.
    source: a change at the source, after which only rows are missing.
    """

    snapshot: bool = False
    emptied: Emptying = Emptying.WHERE_NOTHING_IS_KEPT
    word: Word = Word.RELEASE
    pause: bool = False
    partner: bool = False
    source: bool = False

    @property
    def is_gate(self) -> bool:
        """Whether the pipeline file holds it: a person alone lets it pass."""
        return self.emptied is Emptying.NEVER


ENDS: Final[Mapping[Cause, Ends]] = MappingProxyType(
    {
        # The missing rows are in no log: after a release the table would lack them.
        Cause.NEEDS_ROWS: Ends(snapshot=True, emptied=Emptying.ENDS, word=Word.NONE),
        Cause.UNLOGGED: Ends(emptied=Emptying.ENDS, source=True),
        # A gate that says stop or ask is passed by a person alone.
        Cause.DDL_STOPS: Ends(emptied=Emptying.NEVER),
        Cause.DDL_ASKS: Ends(emptied=Emptying.NEVER, word=Word.APPROVE),
        Cause.DDL_NOT_READ: Ends(word=Word.JUDGE),
        Cause.MISMATCH: Ends(),
        Cause.EVENT_NOT_READ: Ends(word=Word.JUDGE),
        Cause.WRITE_FAILED: Ends(pause=True),
        Cause.WAITS_WITH: Ends(partner=True),
        Cause.PARKED: Ends(word=Word.DECIDE),
        Cause.SAME_NAME: Ends(),
        Cause.FAULT: Ends(),
    }
)

_OF_CLASS: Final[Mapping[str, Cause]] = MappingProxyType(
    {
        SilverUnlike.__name__: Cause.NEEDS_ROWS,
        PastUnlike.__name__: Cause.NEEDS_ROWS,
        SchemaMismatch.__name__: Cause.MISMATCH,
        RuleChanged.__name__: Cause.MISMATCH,
        DdlNotRead.__name__: Cause.DDL_NOT_READ,
        UnknownEvent.__name__: Cause.EVENT_NOT_READ,
        StreamCorrupt.__name__: Cause.EVENT_NOT_READ,
    }
)


def cause_of(fault: str) -> Cause:
    """The cause of a table that met an exception. fault: the name of its class."""
    return _OF_CLASS.get(fault, Cause.FAULT)
