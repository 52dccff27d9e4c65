"""What a commit, a new table and a checkpoint cost without the JVM, beside Spark's own.

In:  sizes. Commits name files that don't exist: no row is read or written by ours.
Out: rows that only the report shows: commits, tables and checkpoints per CPU second of this process (Spark's: of its
     JVM, too), and the memory that many new tables' states take.

`python -m benchmarks.commit tables FOLDER COUNT` is the process of its own in which new tables are made.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.cpu import Meter
from benchmarks.figures import Missing, Row, in_turns
from benchmarks.sizes import Sizes
from tidegate.delta.checkpoints import write as checkpoint_write
from tidegate.delta.checkpoints.checkpoint import newest
from tidegate.delta.cleaning.log_cleanup import clean_up
from tidegate.delta.log import Change, DeltaLog
from tidegate.delta.logs import DeltaLogs
from tidegate.delta.table.actions import add, metadata, moved, now_ms, protocol
from tidegate.delta.table.state import TableState
from tidegate.limits import CHECKPOINT_COMMITS

ROOT: Final = Path(__file__).resolve().parents[1]
_COLUMNS: Final = 10
_SCHEMA: Final = {
    "type": "struct",
    "fields": [
        {"name": f"column_{number}", "type": "long", "nullable": True, "metadata": {}} for number in range(_COLUMNS)
    ],
}
_FEATURES: Final = ("deletionVectors", "appendOnly", "invariants", "domainMetadata")
_SMALL_FILES: Final = 20
_SPARK_COMMITS: Final = 5  # of one run
_SPARK_WARM: Final = 10
_SPARK_WARM_CHECKPOINTS: Final = 5


def measure(sizes: Sizes, meter: Meter) -> list[Row]:
    """All rows. What needs Spark's jars or moto is left out by name where they can't be had."""
    with tempfile.TemporaryDirectory(prefix="tidegate-commit-") as text:
        folder = Path(text)
        rows = [*_tables(folder / "tables", sizes), _s3(sizes, meter)]
        with warm_session() as spark:
            rows.insert(0, _local(folder, sizes, meter, spark))
            rows.append(_checkpoint_small(folder / "small", sizes, meter, spark))
            rows.append(_checkpoint_large(folder / "large", sizes, meter, spark))
    return rows


# --- commits ------------------------------------------------------------------------------------------


def _local(folder: Path, sizes: Sizes, meter: Meter, spark: Any) -> Row:
    log = made(str(folder / "ours"), _SMALL_FILES)
    theirs = str(folder / "theirs")
    one = spark.range(1).coalesce(1)
    one.write.format("delta").save(theirs)

    def append() -> None:
        for _ in range(_SPARK_COMMITS):
            one.write.format("delta").mode("append").save(theirs)

    for _ in range(_SPARK_WARM // _SPARK_COMMITS):
        append()
    ours_, theirs_ = in_turns(
        sizes.runs,
        lambda: sizes.commits / meter.run_here(lambda: commit(log, sizes.commits)).cpu_seconds,
        lambda: _SPARK_COMMITS / meter.run(append).cpu_seconds,
    )
    return Row(
        "commit_local",
        f"commits that replace one of {_SMALL_FILES} files and record a transaction, local disk",
        "commits per CPU second",
        ours_,
        theirs_,
        peer="Spark appending one row (its data file included)",
        note="not the same work: ours names a file that nobody wrote, Spark plans a query and writes one",
    )


def _s3(sizes: Sizes, meter: Meter) -> Row:
    row = Row("commit_s3", "the same on S3 (moto, whose own CPU isn't counted)", "commits per CPU second")
    try:
        from tests.kit.s3 import moto
    except ImportError as error:
        row.why_missing = str(error)
        return row
    with moto() as s3:
        log = made(s3.folder() + "/table", _SMALL_FILES, s3.options)
        commit(log, sizes.commits // 10)
        row.ours = in_turns(
            sizes.runs, lambda: sizes.commits / meter.run_here(lambda: commit(log, sizes.commits)).cpu_seconds
        )[0]
    return row


def made(place: str, files: int, options: dict[str, str] | None = None) -> DeltaLog:
    """A table with so many files."""
    log = DeltaLog(place, options)
    created = Change([protocol(_FEATURES), metadata(_SCHEMA, {})], "CREATE TABLE")
    log.commit(log.state(), created)
    log.update(lambda _: Change([add(_file(number), data_change=True) for number in range(files)], "WRITE"))
    return log


def commit(log: DeltaLog, count: int) -> None:
    """So many commits, as apply makes them: the newest state, one file gone and one come, a transaction version."""

    def replaced(state: TableState) -> Change:
        number = state.version + 1
        actions = moved([state.files[0]], [_file(number * 1000)], data_change=True)
        return Change(actions, "WRITE", {"bench": number})

    for _ in range(count):
        log.update(replaced)


def _file(number: int) -> dict[str, Any]:
    """An `add` action's body with statistics of every column."""
    bounds = {f"column_{column}": number * column for column in range(_COLUMNS)}
    statistics = {"numRecords": 1000, "minValues": bounds, "maxValues": bounds, "nullCount": bounds}
    return {
        "path": f"part-{number:012d}-7a1f3c52-0e0e-4a6b-9a3c-2d6f6a1f9b11.parquet",
        "partitionValues": {},
        "size": 100_000 + number,
        "modificationTime": 1_700_000_000_000 + number,
        "stats": json.dumps(statistics, separators=(",", ":")),
    }


# --- new tables ---------------------------------------------------------------------------------------


def _tables(folder: Path, sizes: Sizes) -> list[Row]:
    figures: list[dict[str, float]] = []
    for run in range(sizes.runs_apply):
        argv = [sys.executable, "-m", "benchmarks.commit", "tables", str(folder / str(run)), str(sizes.new_tables)]
        done = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=ROOT)
        figures.append(json.loads(done.stdout))
        shutil.rmtree(folder / str(run))
    what = f"{sizes.new_tables} new tables with one commit each, local disk"
    return [
        Row(
            "commit_tables",
            what,
            "tables per CPU second",
            [sizes.new_tables / one["cpu_seconds"] for one in figures],
            note="looking whether it is there, CREATE, then a first commit of one file; a process of its own",
        ),
        Row(
            "commit_tables_memory",
            f"memory of {what}",
            "kB a table",
            [one["bytes"] / sizes.new_tables / 1000 for one in figures],
            note="resident memory of that process, less what it had before the first",
        ),
    ]


def make_tables(folder: Path, count: int) -> dict[str, float]:
    """Make so many tables, hold all their states; what that took."""
    logs = DeltaLogs(states_bytes=1 << 40)
    made(str(folder / "warm"), 1)
    before, started = _resident_bytes(), time.process_time()
    for number in range(count):
        log = logs.of(str(folder / f"table_{number:05d}"))
        log.commit(log.state(), Change([protocol(_FEATURES), metadata(_SCHEMA, {})], "CREATE TABLE"))
        log.update(lambda _: Change([add(_file(1), data_change=True)], "WRITE", {"bench": 1}))
    return {"cpu_seconds": time.process_time() - started, "bytes": _resident_bytes() - before}


def _resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


# --- checkpoints --------------------------------------------------------------------------------------


def _checkpoint_small(folder: Path, sizes: Sizes, meter: Meter, spark: Any) -> Row:
    return _checkpoints(
        _Beside(folder, _SMALL_FILES, CHECKPOINT_COMMITS, spark),
        Row(
            "checkpoint_small",
            f"checkpoints of a table of {_SMALL_FILES} files, {CHECKPOINT_COMMITS} commits after the last one",
            "checkpoints per CPU second",
        ),
        sizes,
        meter,
    )


def _checkpoint_large(folder: Path, sizes: Sizes, meter: Meter, spark: Any) -> Row:
    return _checkpoints(
        _Beside(folder, sizes.checkpoint_files, 1, spark),
        Row(
            "checkpoint_large",
            f"checkpoints of a table of {sizes.checkpoint_files} files, one commit after the last one",
            "checkpoints per CPU second",
        ),
        sizes,
        meter,
    )


def _checkpoints(beside: _Beside, row: Row, sizes: Sizes, meter: Meter) -> Row:
    beside.ours()
    for _ in range(_SPARK_WARM_CHECKPOINTS):
        beside.theirs()
    row.ours, row.theirs = in_turns(
        sizes.runs,
        lambda: 1 / meter.run_here(beside.next_ours()).cpu_seconds,
        lambda: 1 / meter.run(beside.next_theirs()).cpu_seconds,
    )
    beside.check()
    row.peer = "Delta's own in Spark, its state held since the last one"
    row.note = "the same commits in two logs; each looks what of its log is old; both checkpoints say the same"
    return row


class _Beside:
    """Two logs with the same commits; ours checkpoints one, Delta in Spark the other."""

    def __init__(self, folder: Path, files: int, commits: int, spark: Any) -> None:
        self._commits, self._spark, self._copy = commits, spark, folder / "theirs"
        self._log = made(str(folder / "ours"), files)
        shutil.copytree(folder / "ours", self._copy)

    def next_ours(self) -> Any:
        """What to time, after the next commits."""
        commit(self._log, self._commits)
        return self.ours

    def next_theirs(self) -> Any:
        """The same commits in the copy, read by Spark before the time counts."""
        ours, theirs = Path(self._log.place) / "_delta_log", self._copy / "_delta_log"
        for path in ours.glob("*.json"):
            if not (theirs / path.name).exists():
                shutil.copy2(path, theirs / path.name)
        self._delta_log().update(False, *2 * [self._spark._jvm.scala.Option.empty()])
        return self.theirs

    def ours(self) -> None:
        state = self._log.state()
        checkpoint_write.write(self._log.store, state.version, now_ms=now_ms(), files=len(state.files))
        clean_up(self._log.store, state.configuration, state.features, now_ms=now_ms())

    def theirs(self) -> None:
        self._delta_log().checkpoint()

    def check(self) -> None:
        """Both say the same."""
        said = [newest(DeltaLog(place).store) for place in (self._log.place, str(self._copy))]
        assert said[0] is not None
        assert said[1] is not None
        assert said[0][0] == said[1][0]
        found = [sorted(json.dumps(one, sort_keys=True) for one in actions) for _, actions in filter(None, said)]
        assert found[0] == found[1]

    def _delta_log(self) -> Any:
        session = self._spark._jsparkSession
        return self._spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, str(self._copy))


@contextmanager
def warm_session() -> Iterator[Any]:
    """A session with tidegate's own settings."""
    try:
        from tests.kit.spark import session
    except ImportError as error:
        raise Missing(str(error)) from error
    with session() as made_:
        yield made_


if __name__ == "__main__":
    _, what, place, number = sys.argv
    assert what == "tables"
    print(json.dumps(make_tables(Path(place), int(number))))
