"""How fast engines read a table that has been under random upserts, beside the same table after Delta's OPTIMIZE.

In:  rows, minutes. One MariaDB with a table of narrow rows, capture and apply as processes of their own; a hundred
     upserts a second, each of a random key, ten in a transaction; then one run of maintain.
Out: CPU of a query by each engine: of the table as apply leaves it, as maintain leaves it, and optimized by Spark; its
     files; what packing and maintain cost beside apply.

The queries' results must be equal in all three, and the table's content that of the source.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from benchmarks import engines, timed_apply
from benchmarks.bench_quiet import NAME, ROOT, Bench, running
from benchmarks.cpu import TICK_SECONDS, Meter
from benchmarks.engines import Engine
from benchmarks.figures import Row
from benchmarks.large_table import TABLE, fill
from benchmarks.micro_batch import COMMAND
from benchmarks.readers import content
from benchmarks.sizes import Sizes
from tidegate import tables
from tidegate.delta.log import DeltaLog

_A_TICK: Final = 10
_TICK_SECONDS: Final = 0.1
_NEW_SHARE: Final = 0.01  # of the keys: some upserts insert
_CAUGHT_UP_SECONDS: Final = 3.0
_WAIT_SECONDS_MAX: Final = 900.0
_LOOKUPS: Final = 5
_TURNS: Final = 4
_MAINTAINS_A_DAY: Final = 1  # maintain.schedule's default
_APPLY: Final = (
    "from pathlib import Path; from tidegate import spark_settings as s; "
    "s.application = lambda job: Path('{file}'); " + COMMAND
)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """CPU seconds of capture, apply with its packing, that packing, and one run of maintain; seconds; upserts."""

    capture: float
    apply: float
    packing: float
    maintain: float
    seconds: float
    upserts: int

    @property
    def packing_share(self) -> float:
        """Of the CPU that apply takes for all else."""
        return self.packing / (self.apply - self.packing)

    @property
    def share(self) -> float:
        """With maintain's, which a day of upserts pays."""
        a_day = self.maintain * _MAINTAINS_A_DAY * self.seconds / 86400
        return (self.packing + a_day) / (self.apply - self.packing)


@dataclass(frozen=True, slots=True)
class Files:
    """A table's files: how many, with vectors, bytes, rows that are dead, codecs of columns by how many files."""

    count: int
    with_vectors: int
    bytes: int
    dead: int
    rows: int
    codecs: dict[str, int]

    @classmethod
    def of(cls, table: Path) -> Files:
        files = DeltaLog(str(table)).state().files
        vectors = [file.deletion_vector for file in files if file.deletion_vector is not None]
        codecs: Counter[str] = Counter()
        for file in files:
            group = pq.read_metadata(table / file.path).row_group(0)
            codecs["+".join(sorted({group.column(at).compression for at in range(group.num_columns)}))] += 1
        dead = sum(vector.cardinality for vector in vectors)
        size, rows = sum(file.size for file in files), sum(file.rows or 0 for file in files)
        return cls(len(files), len(vectors), size, dead, rows, dict(codecs))


def measure(sizes: Sizes, meter: Meter) -> list[Row]:
    """Rows per engine and query, and for upkeep's share."""
    with tempfile.TemporaryDirectory() as folder:
        upkeep = grow(Path(folder), sizes.upserted_rows, sizes.upserted_minutes)
        return [*_upkeep_rows(upkeep, sizes), *read(Path(folder), meter)]


def grow(folder: Path, rows: int, minutes: float) -> Upkeep:
    """In the folder: `applied`, the table as apply leaves it; `maintained`, the same after a run of maintain."""
    with running(folder) as bench:
        packing = folder / "packing"
        bench.environment[timed_apply.FILE_ENV] = str(packing)
        fill(bench, rows)
        bench.apply_command = _APPLY.format(file=ROOT / "benchmarks" / "timed_apply.py")
        bench.start_caught_up("", _CAUGHT_UP_SECONDS, _WAIT_SECONDS_MAX)
        time.sleep(_CAUGHT_UP_SECONDS)
        bench.visible_at(int(time.time() * 1000), _WAIT_SECONDS_MAX)
        before, packed, started = _cpu(bench), float(packing.read_text()), time.monotonic()
        upserts = _upsert(bench, rows, 60 * minutes)
        bench.visible_at(int(time.time() * 1000) + 1)
        spent, seconds = _cpu(bench), time.monotonic() - started
        bench.stop_apply()
        silver = folder / "lake" / tables.silver_path(NAME, TABLE)
        shutil.copytree(silver, folder / "applied")
        _check(bench, silver)
        maintain = _maintain(bench)
        shutil.copytree(silver, folder / "maintained")
    return Upkeep(
        spent["capture"] - before["capture"],
        spent["apply"] - before["apply"],
        float(packing.read_text()) - packed,
        maintain,
        seconds,
        upserts,
    )


def _cpu(bench: Bench) -> dict[str, float]:
    assert bench.apply is not None
    return {"capture": sum(bench.capture.cpu().values()), "apply": sum(bench.apply.cpu().values())}


def _upsert(bench: Bench, rows: int, seconds: float) -> int:
    """At a steady rate; how many."""
    last, done = round(rows * (1 + _NEW_SHARE)), 0
    with bench.server.connect(NAME) as connection, connection.cursor() as cursor:
        started = due = time.monotonic()
        while time.monotonic() < started + seconds:
            keys = [random.randint(1, last) for _ in range(_A_TICK)]
            values = ", ".join(f"({key}, 0, 'row {key}')" for key in keys)
            cursor.execute(f"INSERT INTO {TABLE} VALUES {values} ON DUPLICATE KEY UPDATE n = n + 1")
            connection.commit()
            done, due = done + _A_TICK, due + _TICK_SECONDS
            if done % 1000 == 0:
                bench.check_alive()
            time.sleep(max(0.0, due - time.monotonic()))
    return done


def _check(bench: Bench, silver: Path) -> None:
    sums = "count(*), sum(id), sum(n), sum(length(t))"
    source = [int(value) for value in bench.server.query(f"SELECT {sums} FROM {NAME}.{TABLE}")[0]]
    found = [int(value) for value in engines.Duck()(silver, f"SELECT {sums} FROM t")[0]]
    assert source == found, f"silver has {found}, the source {source}"


def _maintain(bench: Bench) -> float:
    """One run; its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", COMMAND, "maintain", str(bench.file)]
    done = subprocess.run(command, env=bench.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def read(folder: Path, meter: Meter) -> list[Row]:
    """Rows of every engine and query: of the table as applied and as maintained, beside the optimized one."""
    optimized = folder / "optimized"
    rows: list[Row] = []
    with engines.engines(ROOT) as by_name:
        if not optimized.exists():
            shutil.copytree(folder / "applied", optimized)
            spark = by_name["Spark"]
            assert isinstance(spark, engines.Spark)
            spark.optimize(optimized)
        copies = {name: folder / name for name in ("applied", "maintained", "optimized")}
        assert len({content(copy) for copy in copies.values()}) == 1, "the three copies hold other rows"
        for engine, run in by_name.items():
            for query, statements in _queries(copies["applied"]).items():
                rows += _read(meter, engine, run, query, statements, copies)
    files = "; ".join(f"{name} {asdict(Files.of(copy))}" for name, copy in copies.items())
    for row in rows:
        row.note = f"{row.note}; {files}" if row is rows[0] else row.note
    return rows


def _queries(table: Path) -> dict[str, list[str]]:
    """Statements by name. The keys are the same for all."""
    last = engines.Duck()(table, "SELECT max(id) FROM t")[0][0]
    keys = random.Random(7)
    sums = "count(*) AS c, sum(id) AS i, sum(CAST(n AS BIGINT)) AS n"
    everything = f"SELECT {sums}, sum(length(t)) AS t, max({tables.COMMIT_TS}) AS at FROM t"
    tenth = f"SELECT {sums} FROM t WHERE id BETWEEN {last // 3} AND {last // 3 + last // 10}"
    lookups = [f"SELECT id, n, t FROM t WHERE id = {keys.randint(1, last)}" for _ in range(_LOOKUPS)]
    return {"all columns of all rows": [everything], "sums over a tenth of the keys": [tenth], "a row by key": lookups}


def _read(
    meter: Meter, engine: str, run: Engine, query: str, statements: list[str], copies: dict[str, Path]
) -> Iterator[Row]:
    def turn(copy: Path) -> list[object]:
        return [sorted(run(copy, sql)) for sql in statements]

    wanted = turn(copies["applied"])
    cpu: dict[str, list[float]] = {name: [] for name in copies}
    wall: dict[str, list[float]] = {name: [] for name in copies}
    for number in range(_TURNS + 1):
        for name, copy in copies.items():
            found: list[object] = []
            timed = meter.run if engine == "Spark" else meter.run_here  # Spark's JVM is another process
            took = timed(lambda copy=copy, found=found: found.extend(turn(copy)))  # type: ignore[misc]
            assert found == wanted, f"{engine}: {query}: {name} gives other rows"
            if number:  # the first turn warms
                cpu[name].append(max(took.cpu_seconds, TICK_SECONDS / 100) / len(statements))
                wall[name].append(took.wall_seconds / len(statements))
    for name in ("applied", "maintained"):
        told = f"{engine}: {query}, table as {name}"
        row = Row(f"upserted_{engine}_{query}_{name}".lower().replace(" ", "_"), told, "CPU seconds")
        row.ours, row.theirs, row.peer = cpu[name], cpu["optimized"], "the same after OPTIMIZE"
        times = {copy: round(statistics.median(wall[copy]), 4) for copy in (name, "optimized")}
        row.note = f"seconds {times}, best ratio of CPU {min(cpu[name]) / min(cpu['optimized']):.2f}"
        yield row


def _upkeep_rows(upkeep: Upkeep, sizes: Sizes) -> list[Row]:
    title = f"upserts for {sizes.upserted_minutes:g} minutes into {sizes.upserted_rows:,} rows"
    packing = Row("upserted_packing", f"{title}: packing beside the rest of apply", "share of CPU")
    packing.ours, packing.note = [upkeep.packing_share], str(asdict(upkeep))
    whole = Row("upserted_upkeep", f"{title}: packing and a day's maintain beside apply", "share of CPU")
    whole.ours = [upkeep.share]
    return [packing, whole]


def main() -> None:
    """ROWS MINUTES FOLDER: a folder that is kept, and read again if it is there."""
    rows, minutes, folder = int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    if not (folder / "maintained").exists():
        folder.mkdir(parents=True)
        print(json.dumps(asdict(grow(folder, rows, minutes))), flush=True)
    for row in read(folder, Meter()):
        ours, theirs = statistics.median(row.ours), statistics.median(row.theirs)
        print(f"{row.title}: {ours:.4f} {theirs:.4f} {row.ratio:.2f}; {row.note}", flush=True)


if __name__ == "__main__":
    main()
