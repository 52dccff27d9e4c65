"""A maintain job's view of its lake, and the reports of its steps.

In:  a pipeline and its lake.
Out: Maintenance (one run) and SilverTable (one table in it); a printed line and a row of control/maintenance per step.

Maintain is never the only writer: apply commits to the same tables, and so do people. A step that loses a race
therefore gives way: it tries again a few times, then leaves the table for the next run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import SparkSession

from spark_jobs.merge.private.log import private_log
from spark_jobs.session.spark import fit_to_size
from tidegate import tables
from tidegate.config import Maintain, Pipeline
from tidegate.delta.log import DeltaLog
from tidegate.delta.object_names import LOG
from tidegate.delta.table.state import TableState
from tidegate.errors import CommitConflict, TidegateError
from tidegate.lake import control
from tidegate.lake.files import LakeFiles
from tidegate.limits import CODEGEN_BYTES_MIN, CODEGEN_ROWS_MIN, MAINTAIN_ATTEMPTS_MAX, MAINTAIN_PAUSE_SECONDS
from tidegate.spark_sql import table_at

DONE, GAVE_WAY, LEFT = "done", "gave way", "left"
# A killed run loses at most this many fresh versions for control/cuts. Its successor makes others.
_CUTS_PENDING_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Size:
    """Live files of a silver table.

    small: files below half of what maintain writes. unclustered_bytes: of files that no clustering has written.
    dead: rows that deletion vectors take away; rows includes them.
    """

    files: int
    bytes: int
    small: int
    small_bytes: int
    unclustered_bytes: int
    rows: int
    dead: int


@dataclass(slots=True)
class SilverTable:
    """One silver table. pair: its database and table. versions: the Delta versions that kept cuts need, ascending.

    gone: dropped in every one of them. newest: the row of control/cuts that the newest cut resolves to.
    """

    name: str
    pair: tuple[str, str]
    versions: list[int]
    gone: bool = False
    newest: dict[str, Any] | None = None

    @property
    def path(self) -> str:
        """Relative to the lake."""
        return tables.silver_path(*self.pair)


@dataclass(slots=True)
class Maintenance:
    """One run of maintain."""

    spark: SparkSession
    pipeline: Pipeline
    lake: LakeFiles
    report: Callable[[str], None]
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    dry_run: bool = False
    check: Callable[[], None] = lambda: None  # raises when another maintain of the pipeline has begun
    rows: list[dict[str, Any]] = field(default_factory=list)
    cuts: list[dict[str, Any]] = field(default_factory=list)  # rows for control/cuts
    troubles: list[str] = field(default_factory=list)  # a line for each failure

    @property
    def settings(self) -> Maintain:
        return self.pipeline.maintain

    def sql_name(self, table: SilverTable) -> str:
        """The table in a SQL statement."""
        return table_at(self.lake.spark_uri(table.path))

    def files(self, table: SilverTable) -> TableState:
        """Its live files as the log has them, without a Spark job."""
        return self.log(table).state()

    def written(self, table: SilverTable) -> dict[str, float]:
        """Every file in its folder, logs left out: path within it -> when it was written, Unix seconds."""
        base = self.lake.local(table.path)
        infos = self.lake.listed(table.path, recursive=True)
        paths = {info.path[len(base) :].lstrip("/"): info for info in infos if info.is_file}
        return {
            path: info.mtime.timestamp()
            for path, info in paths.items()
            if info.mtime is not None and LOG not in path.split("/") and not path.rsplit("/", 1)[-1].startswith(".")
        }

    def log(self, table: SilverTable) -> DeltaLog:
        return self.lake.log(table.path)

    def size(self, table: SilverTable) -> Size:
        """Live files, rows and deleted rows, from the log alone."""
        files = self.files(table).files
        small = [file.size for file in files if file.size < self.settings.file_bytes // 2]
        return Size(
            files=len(files),
            bytes=sum(file.size for file in files),
            small=len(small),
            small_bytes=sum(small),
            unclustered_bytes=sum(file.size for file in files if not file.action.get("clusteringProvider")),
            rows=sum(file.rows or 0 for file in files),
            dead=sum(file.deletion_vector.cardinality for file in files if file.deletion_vector),
        )

    def rewrite(self, table: SilverTable, statement: Callable[[str], str], size: Size) -> bool:
        """Run a statement that rewrites files; False when other writers changed those files every time.

        statement: given the table as SQL names it. size: of the table.
        """
        large = size.bytes >= CODEGEN_BYTES_MIN or size.rows >= CODEGEN_ROWS_MIN
        fit_to_size(self.spark, large=large)
        try:
            return giving_way(lambda: self._rewrite(table, statement))
        finally:
            fit_to_size(self.spark, large=False)

    def _rewrite(self, table: SilverTable, statement: Callable[[str], str]) -> None:
        with private_log(self.lake, self.spark, table.path) as private:
            self.spark.sql(statement(private.target)).collect()
            private.exchange()

    def note(self, name: str, step: str, outcome: str, seconds: float, detail: str, *sizes: Size) -> None:
        """Print one line, and note one row for control/maintenance. sizes: before and after a change."""
        before, after = (sizes[0], sizes[-1]) if sizes else (Size(*[0] * 7), Size(*[0] * 7))
        self.add(name, step, outcome, seconds, detail, (before.files, after.files, before.bytes, after.bytes))

    def add(
        self, name: str, step: str, outcome: str, seconds: float, detail: str, sizes: tuple[int, int, int, int]
    ) -> None:
        """As note. sizes: files before and after, bytes before and after."""
        what = f"{sizes[0]} -> {sizes[1]} files, {sizes[2]} -> {sizes[3]} bytes: " if any(sizes) else ""
        self.report(f"{name}: {step}: {outcome}: {what}{detail} ({seconds:.1f} s)")
        names = ("files_before", "files_after", "bytes_before", "bytes_after")
        row = {"table": name, "step": step, "outcome": outcome, "seconds": seconds, "detail": detail}
        self.rows.append({"at": datetime.now(UTC), **row, **dict(zip(names, sizes, strict=True))})

    def trouble(self, name: str, step: str, error: Exception) -> None:
        """A step failed for one table: the others go on, and the run is red at its end."""
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]  # of Spark's pages
        what, detail = (error.what, str(error)) if isinstance(error, TidegateError) else (line, line)
        self.troubles.append(f"{name}: {what}")
        self.note(name, step, LEFT, 0.0, detail)

    def name_version(self, row: dict[str, Any]) -> None:
        """Queue a row for control/cuts. Many are appended in one commit: one commit for each would
        cost quadratic time.
        """
        self.cuts.append(row)
        if len(self.cuts) >= _CUTS_PENDING_MAX:
            self.record_cuts()

    def record_cuts(self) -> None:
        """Append the queued rows to control/cuts."""
        if self.cuts:
            control.append(self.lake, tables.CUTS, self.cuts)
            self.cuts = []

    def record(self) -> None:
        """Append the run's rows to control/maintenance."""
        if self.rows and not self.dry_run:
            control.append(self.lake, tables.MAINTENANCE, self.rows)
            self.rows.clear()


def giving_way(action: Callable[[], object]) -> bool:
    """Try a commit a few times. False if another writer was quicker each time."""
    for attempt in range(1, MAINTAIN_ATTEMPTS_MAX + 1):
        try:
            action()
        except CommitConflict:
            if attempt < MAINTAIN_ATTEMPTS_MAX:
                time.sleep(MAINTAIN_PAUSE_SECONDS * attempt)
        else:
            return True
    return False
