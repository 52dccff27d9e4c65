"""Every Delta table of a lake by every reader, row by row.

In:  a lake's folder, a Spark session.
Out: Finding for each table and reader; on a copy of the lake, the same after what people do to tables in Spark.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from tests.readers.canonical import Digest, difference, digest
from tests.support.readers import READERS
from tidegate.delta.log import DeltaLog
from tidegate.delta.table.state import TableState

SPARK: Final = "Spark"
_PRIVATE: Final = re.compile(r"tg-[0-9a-f]{32}")
_MERGED_ROWS: Final = 5
TABLES_MAX: Final = 40
_CANDIDATES: Final = 3  # times as many versions as are read: those that can't be read any more are left out
_GROUP_BYTES: Final = 64 << 20  # of Parquet
_GROUP_READINGS: Final = 16
_AT: Final = "which of a group"  # a column beside the tables' own
# What a reader refuses by itself, whoever wrote the table: (reader, words of its refusal) -> the table's feature. No
# table that tidegate makes has one of these; docs/how-to/readers.md names them.
LIMITS: Final[dict[tuple[str, str], str]] = {
    ("Polars", "['columnMapping'], which polars does not support"): "columnMapping",
    ("Polars", "['typeWidening'], which polars does not support"): "typeWidening",
    ("Polars", "['v2Checkpoint'], which polars does not support"): "v2Checkpoint",
    ("Polars", "['vacuumProtocolCheck'], which polars does not support"): "vacuumProtocolCheck",
    ("delta-rs", "Unsupported table features required: [TypeWidening]"): "typeWidening",
    ("delta-rs", "Unsupported table features required: [VacuumProtocolCheck]"): "vacuumProtocolCheck",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one table by one reader. outcome: equal, limit or different."""

    table: str
    when: str
    reader: str
    outcome: str
    rows: int
    detail: str = ""


class Reading(NamedTuple):
    """A table, a version of it (None: the newest), what is said of when, and what it must have (None: as Spark)."""

    path: Path
    when: str
    version: int | None = None
    wanted: Digest | None = None


class Lake:
    """Reads a lake's tables. versions_max: of a table, spread over those that its log has."""

    def __init__(self, folder: Path, spark: SparkSession, *, versions_max: int = 40) -> None:
        self.folder = folder
        self._spark = spark
        self._versions_max = versions_max

    def tables(self) -> list[Path]:
        """Folders with a Delta log; the private ones that Spark works in are no tables."""
        found = sorted(log.parent for log in self.folder.rglob("_delta_log") if log.is_dir())
        return [path for path in found if not _PRIVATE.search(str(path.relative_to(self.folder)))]

    def chosen(self, most: int) -> list[Path]:
        """So many tables, of each kind as many as of others: a kind has the same features, properties and types."""
        kinds: dict[Any, list[Path]] = {}
        for path in self.tables():
            kinds.setdefault(_kind(DeltaLog(str(path)).state()), []).append(path)
        turns = itertools.zip_longest(*kinds.values())
        return sorted([path for turn in turns for path in turn if path is not None][:most])

    def read(self, when: str, expected: dict[Path, Digest] | None = None) -> Iterator[Finding]:
        """Every table by every reader. expected: what they must have; else, what Spark finds."""
        expected = expected or {}
        yield from self._compared([Reading(path, when, None, expected.get(path)) for path in self.tables()])

    def digests(self) -> dict[Path, Digest]:
        """As delta-rs reads them."""
        return {path: digest(READERS["delta-rs"](str(path))) for path in self.tables()}

    def travel(self) -> Iterator[Finding]:
        """Every kept version by every reader; Spark's history must name each."""
        for path in self.tables():
            there = _versions(path)
            told = {row["version"] for row in self._sql(f"DESCRIBE HISTORY {_named(path)}")}
            missing = sorted(set(there) - told)
            outcome = "different" if missing else "equal"
            yield Finding(
                self._name(path), "history", SPARK, outcome, len(told), f"not told: {missing}" * bool(missing)
            )
            candidates = _readable(path, _spread(there, _CANDIDATES * self._versions_max))
            versions = _spread(candidates, self._versions_max)
            yield from self._compared([Reading(path, f"version {version}", version) for version in versions])

    def handled(self) -> Iterator[Finding]:
        """OPTIMIZE, VACUUM and a MERGE that changes no value; every reader must find what was there before."""
        before = self.digests()
        for path in self.tables():
            for statement in (f"OPTIMIZE {_named(path)}", f"VACUUM {_named(path)}", self._merge(path)):
                verb = statement.split(" ", 1)[0]
                try:
                    self._sql(statement)
                except Exception as error:  # noqa: BLE001 - it is a finding
                    yield Finding(self._name(path), verb, SPARK, "different", 0, _line(error))
        yield from self.read("OPTIMIZE, VACUUM and MERGE", before)

    def _merge(self, path: Path) -> str:
        state = DeltaLog(str(path)).state()
        alike = [
            f"t.{name} <=> s.{name}"
            for name, kind in ((_quoted(one["name"]), one["type"]) for one in state.schema["fields"])
            if not isinstance(kind, dict)
        ]
        only_appended = state.configuration.get("delta.appendOnly") == "true"
        change = "NOT MATCHED THEN INSERT *" if only_appended else "MATCHED THEN UPDATE SET *"
        source = f"(SELECT DISTINCT * FROM {_named(path)} LIMIT {_MERGED_ROWS})"
        return f"MERGE INTO {_named(path)} t USING {source} s ON {' AND '.join(alike)} WHEN {change}"

    def _compared(self, readings: Sequence[Reading]) -> Iterator[Finding]:
        for at_once in _groups(readings):
            for reading, rows in zip(at_once, self._by_spark(at_once), strict=True):
                yield from self._by_all(reading, rows)

    def _by_all(self, reading: Reading, by_spark: Callable[[], pa.Table]) -> Iterator[Finding]:
        wanted, first = reading.wanted, None
        for name in (SPARK, *READERS):
            try:
                rows = by_spark() if name == SPARK else READERS[name](str(reading.path), reading.version)
                found = digest(rows)
            except Exception as error:  # noqa: BLE001 - what a reader says of a table is what is looked for
                line = _line(error)
                limit = any(reader == name and words in line for reader, words in LIMITS)
                outcome = "limit" if limit else "different"
                yield Finding(self._name(reading.path), reading.when, name, outcome, 0, line)
                continue
            first = rows if first is None else first
            wanted = wanted or found
            if found == wanted:
                yield Finding(self._name(reading.path), reading.when, name, "equal", found.rows)
                continue
            detail = f"{found.rows} rows instead of {wanted.rows}"
            if found.columns != wanted.columns:
                detail = f"columns {found.columns} instead of {wanted.columns}"
            elif first is not rows:
                detail = difference(first, rows)
            yield Finding(self._name(reading.path), reading.when, name, "different", found.rows, detail)

    def _by_spark(self, readings: Sequence[Reading]) -> list[Callable[[], pa.Table]]:
        """Those with the same columns in one job: a plan and a job cost more than a small table's rows."""
        found: dict[int, Callable[[], pa.Table]] = {}
        alike: dict[str, list[tuple[int, DataFrame]]] = {}
        for at, reading in enumerate(readings):
            reader = self._spark.read.format("delta")
            if reading.version is not None:
                reader = reader.option("versionAsOf", reading.version)
            load = partial(reader.load, str(reading.path))
            try:
                frame = load()
                alike.setdefault(frame.schema.json(), []).append((at, frame))
            except Exception:  # noqa: BLE001 - raised again where it is a finding
                found[at] = partial(_alone, load)
        for frames in alike.values():
            found |= _collected(frames)
        return [found[at] for at in range(len(readings))]

    def _sql(self, statement: str) -> list[Any]:
        return self._spark.sql(statement).collect()

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.folder))


def check(
    folder: Path, spark: SparkSession, *, copy: Path | None = None, versions_max: int = 40, tables_max: int = TABLES_MAX
) -> list[Finding]:
    """All of it. copy: a folder that isn't there, for what changes tables; left out when None.

    tables_max: of how many tables versions are read, and statements run on a copy.
    """
    lake = Lake(folder, spark, versions_max=versions_max)
    found = list(lake.read("newest"))
    if copy is not None:
        for path in lake.chosen(tables_max):
            shutil.copytree(path, copy / path.relative_to(folder), dirs_exist_ok=True)
        there = Lake(copy, spark, versions_max=versions_max)
        found += [*there.travel(), *there.handled()]
    return found


def report(found: Sequence[Finding], say: Callable[[str], None] = print) -> int:
    """Say what came of it; how many findings are wrong."""
    for one in found:
        if one.outcome != "equal":
            say(f"{one.outcome.upper()} {one.table}, {one.when}, by {one.reader}: {one.detail}")
    names = {one.table for one in found}
    rows = sum(one.rows for one in found if one.outcome == "equal" and one.when == "newest" and one.reader == SPARK)
    wrong = sum(one.outcome == "different" for one in found)
    limits = sum(one.outcome == "limit" for one in found)
    handled = len({one.table for one in found if one.when != "newest"})
    versions = len({(one.table, one.when) for one in found if one.when.startswith("version ")})
    more = f", {handled} of them at {versions} versions and after statements" if handled else ""
    say(
        f"readers: {len(names)} tables, {rows} rows{more}, {len(found)} readings: {wrong} wrong,"
        f" {limits} that a reader can't"
    )
    return wrong


def _kind(state: TableState) -> Any:
    types = sorted({str(one["type"]) for one in state.schema["fields"]})
    return tuple(sorted(state.features)), tuple(sorted(state.configuration)), tuple(types)


def _groups(readings: Sequence[Reading]) -> Iterator[list[Reading]]:
    """What is read in one go: of so many bytes and readings."""
    group, size = list[Reading](), 0
    for reading in readings:
        there = sum(file.stat().st_size for file in reading.path.glob("**/*.parquet"))
        if group and (size + there > _GROUP_BYTES or len(group) == _GROUP_READINGS):
            yield group
            group, size = [], 0
        group.append(reading)
        size += there
    if group:
        yield group


def _collected(frames: Sequence[tuple[int, DataFrame]]) -> dict[int, Callable[[], pa.Table]]:
    """Each one's rows. When they can't be read together, each is read alone, for the error's sake."""
    apart = {at: partial(_alone, lambda frame=frame: frame) for at, frame in frames}
    if len(frames) == 1:
        return apart
    together = reduce(DataFrame.union, (frame.withColumn(_AT, lit(at)) for at, frame in frames))
    try:
        rows = together.toArrow()
    except Exception:  # noqa: BLE001 - of which of them it is, is found when they are read alone
        return apart
    return {at: partial(_taken, rows, at) for at, _ in frames}


def _taken(rows: pa.Table, at: int) -> pa.Table:
    return rows.filter(pc.equal(rows[_AT], at)).drop_columns(_AT)


def _alone(load: Callable[[], DataFrame]) -> pa.Table:
    return load().toArrow()


def _versions(path: Path) -> list[int]:
    """Those whose commits the log has."""
    return sorted(int(file.name[:20]) for file in (path / "_delta_log").glob("*.json") if file.name[:20].isdigit())


def _readable(path: Path, versions: Sequence[int]) -> list[int]:
    """Those that can be rebuilt, and of which no file was removed since."""
    log, found = DeltaLog(str(path)), list[int]()
    for version in versions:
        state = log.state_at(version)
        if state is not None and _has_files(path, state):
            found.append(version)
    return found


def _has_files(path: Path, state: TableState) -> bool:
    return all((path / file.local_path).exists() for file in state.files)


def _spread(versions: Sequence[int], most: int) -> list[int]:
    if len(versions) <= most:
        return list(versions)
    return sorted({versions[round(at * (len(versions) - 1) / (most - 1))] for at in range(most)})


def _named(path: Path) -> str:
    return f"delta.{_quoted(str(path))}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
