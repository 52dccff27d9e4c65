"""All errors, and whether to retry or to stop.

Every exception that tidegate raises derives from TidegateError and exactly one of Terminal (a person or a config
change must help; a retry gives the same answer) and Transient (the same call may succeed later). A message is one
line: the fault, the place (source, file, position, table), the remedy.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from tidegate.remedy import REPORT, Needs, Remedy


class TidegateError(Exception):
    """Base of all. `where` is the place (source, file:position, table), `remedy` what a person does.

    str() gives `where: what; remedy` on one line. A Remedy has, too, the need of a table with this error.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str | Remedy = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    @property
    def needs(self) -> Needs:
        """The need of a table that meets this error."""
        return self.remedy.needs if isinstance(self.remedy, Remedy) else Needs.NOTHING

    @property
    def line(self) -> str:
        """The line of str(), without the table's needs, which depend on its source."""
        return self._with(self.remedy.text if isinstance(self.remedy, Remedy) else self.remedy)

    def __str__(self) -> str:
        return self._with(str(self.remedy))

    def _with(self, remedy: str) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        line = f"{head}; {remedy}" if remedy else head
        return " ".join(line.split())

    def __reduce__(self) -> tuple[object, ...]:
        # Spark workers and Airflow pickle exceptions; keyword-only arguments need a hand.
        return (_rebuild, (type(self), self.what, self.where, self.remedy))


def _rebuild(kind: type[TidegateError], what: str, where: str, remedy: str | Remedy) -> TidegateError:
    return kind(what, where=where, remedy=remedy)


def line_and_needs(error: BaseException) -> tuple[str, Needs]:
    """The facts in an exception about a table that meets it, and the table's need."""
    return (error.line, error.needs) if isinstance(error, TidegateError) else (str(error), Needs.NOTHING)


class Terminal(TidegateError):  # noqa: N818 - what to do, not what happened
    """Stop: the same call would fail in the same way."""


class Transient(TidegateError):  # noqa: N818
    """Retry: the same call may succeed later."""


class ConfigError(Terminal):
    """The pipeline file or a parameter is wrong; `where` has file, line and key."""


class NoConnectionError(ConfigError):
    """There is no connection of this id."""


class UsageError(Terminal):
    """The command line was called wrongly (exit code 2)."""


class SourceRefused(Terminal):
    """The source answers, but its settings, grants or our credentials don't allow capture."""


class SourceUnavailable(Transient):
    """The source can't be reached, or the connection broke."""


class SourceUnwilling(SourceUnavailable):
    """The source answers with an error that may pass by itself; when it is the same for minutes, a person must look."""


class SourceBehind(SourceUnavailable):
    """The source is a replica that hasn't applied the captured log yet."""


class PositionLost(Terminal):
    """The binlog at our position is purged, or the source isn't the server we knew."""


class StreamCorrupt(Terminal):
    """Bytes from the source contradict themselves: checksum, length, gap, overlap."""


class LogTorn(StreamCorrupt):
    """The server's log ends inside an event: a crash leaves it so, and a disk that lost bytes."""


class UnknownEvent(Terminal):
    """An event kind unknown to the decoder and not flagged ignorable."""


class ValueLogError(Terminal):
    """The value log can't be read or written."""


class ValueLogFull(Transient):
    """The value log's disk budget is used up; when bronze has what it holds, or there is room, capture goes on."""


class Fenced(Terminal):
    """Another writer owns this source, or bronze doesn't continue where this one is."""


class StrayValueLog(Fenced):
    """The value log of this machine doesn't follow bronze: capture went on elsewhere meanwhile."""


class LakeLost(Fenced):
    """This machine has captured the source before, or silver has it, and the lake lacks its data."""


class LakeUnavailable(Transient):
    """The lake can't be reached, or a commit lost a race and may be tried again."""


class CommitConflict(Transient):
    """Another commit changed the table since it was read; nothing of ours was written."""


class HoldChangedError(UsageError):
    """The table is held for something else than the person saw, or goes on already; nothing was done."""


class AlreadyDone(Terminal):
    """Somebody has begun this very action before; its outcome is in control/actions."""


class Overtaken(Transient):
    """Another application of this pipeline has started, or has written what this one was about to write."""


class SparkUnavailable(Transient):
    """Spark can't be started."""


class LeaseHeld(Transient):
    """Somebody else does this already, here or on another machine; the message says who, and since when."""


class LakeRefused(Terminal):
    """The lake's path isn't writable, or holds something else."""


class SilverDamaged(LakeRefused):
    """A file of silver is gone, or can't be read."""


class PastDamaged(SilverDamaged):
    """The same of a table with history or soft delete: a snapshot reads its rows, and its past is in that file."""


def may_pass(error: LakeRefused, where: str = "") -> LakeUnavailable:
    """A refusal by a lake that was written before: keys expire, disks become read-only, and are mended."""
    return LakeUnavailable(error.what, where=where or error.where, remedy=error.remedy)


class CommitOverwritten(Terminal):
    """A writer without arbitration overwrote a commit of tidegate's: its rows aren't in the table."""


class SilverUnlike(Terminal):
    """Silver's own log contradicts the control tables; the table's rows must be read again."""


class PastUnlike(SilverUnlike):
    """The same for a table with history or soft delete: a snapshot would read its rows, and lose its past."""


class SilverForeign(Terminal):
    """A table that tidegate didn't fill is in the place of silver's; a person has to move it away."""


class DeltaUnsupported(Terminal):
    """A Delta table has a feature that tidegate's own reader or writer of logs doesn't know exactly."""


class DDLError(Terminal):
    """A DDL statement that can't be understood; it holds the tables it names."""


class SchemaMismatch(Terminal):
    """A TABLE_MAP and schema_history disagree; holds that table."""


class RuleChanged(SchemaMismatch):
    """Silver was made by other rules than the pipeline file has now; holds that table."""


class UnsupportedValue(Terminal):
    """A column type or row image that can't be decoded without guessing; it holds its table."""


class DecodeError(Terminal):
    """Row bytes don't fit their TABLE_MAP; holds that table."""


class Unexpected(Terminal):
    """An unforeseen fault of tidegate; it holds the table whose rows or statement caused it."""


def unexpected(error: Exception) -> Unexpected:
    """The error for an unforeseen exception that concerns one table: its class, its text and its place."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    remedy = f"{REPORT}; once that is mended: `tidegate release`"
    return Unexpected(f"unexpected {type(error).__name__}: {error}{place}", remedy=remedy)


class CutNotYet(Transient):
    """No cut is published that is so new."""


class CutForgotten(Terminal):
    """A requested cut can't be read any more; `remedy` names the oldest readable one."""


class ChangesMissing(Terminal):
    """Changes that a reader of a changelog should get next aren't in it."""


class QueryRefused(Terminal):
    """A query over silver that the query engine refuses, or that names an incomplete table."""


class VerifyError(Terminal):
    """Verification can't be carried out (not: found a difference)."""


class SilverReadError(VerifyError):
    """A table's files, or its log, can't be read: it isn't compared, and others are."""


class HostLacks(Terminal):
    """This machine lacks a needed program or library; `remedy` names the command to install it."""


class HostRefused(Terminal):
    """The operating system refuses: a missing file, a missing right, a taken port."""


class DownloadFailed(Transient):
    """Something that is fetched once (jars, a server) could not be fetched."""


class ProcessFailed(Terminal):
    """A process that we started (a server, Airflow, spark-submit) ended or never answered; `where` is its log."""
