"""A recorded lake: what a folder of tests/lakes holds, written by record.py and opened by test_lakes.py.

In:  a lake at two moments; a case's folder.
Out: lake.tar.gz, later.tar.gz, pipeline.yaml, expected.json; the lake again, in another place.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.apply import run
from spark_jobs.session.background import BackgroundSession
from spark_jobs.window.application import Application
from tests.kit.spark import no_spark
from tests.support.readers import by_polars
from tidegate import config, tables
from tidegate.lake.bronze.index import BronzeIndex
from tidegate.lake.files import LakeFiles
from tidegate.lake.format import typed_causes
from tidegate.standing.standing import Standing

LAKES: Final = Path(__file__).resolve().parent
LAKE: Final = "LAKE"  # in pipeline.yaml, for the lake's path
_BRONZE: Final = "bronze"
_FILTER: Final[dict[str, Any]] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # CPython before 3.11.4
_ROWS: Final = "rows"  # in later.tar.gz: rows for control tables, table by table
_LEASES: Final = "control/leases"


def applied(file: Path, lake: LakeFiles) -> Application:
    """apply, without Spark, until nothing is left to do."""
    app = Application(BackgroundSession(no_spark), config.load(file), lake, BronzeIndex(lake))
    run(app, report=lambda _: None)
    return app


def states_of(app: Application) -> dict[str, list[str]]:
    """Table -> state, and what is known beside it, in short."""
    return {name: [str(state.state), _beside(state)] for name, state in sorted(app.states.items())}


def _beside(standing: Standing) -> str:
    cause = standing.cause or ""
    known = (str(standing.approved_ts or ""), "unread" * (standing.unread and not cause))
    return " ".join(filter(None, (cause, standing.partner, str(standing.times or ""), standing.source, *known)))


def said_by(release: str, states: dict[str, list[str]]) -> dict[str, list[str]]:
    """What a release said of its states, as this one says it: the first ones had words for it."""
    if release != "0.1.0":
        return states
    typed = {name: (state, typed_causes.typed(state, error, "")) for name, (state, error) in states.items()}
    parts = ("cause", "partner", "times", "source")
    return {
        name: [state, " ".join(str(cells[part]) for part in parts if cells.get(part))]
        for name, (state, cells) in typed.items()
    }


def silver_of(lake: LakeFiles) -> dict[str, Any]:
    """Path of each silver table -> its columns, and its rows as sorted texts, tidegate's own columns with them."""
    found = {}
    for log in sorted((Path(lake.root) / "silver").glob("*/*/_delta_log")):
        rows = by_polars(str(log.parent))
        names = sorted(rows.column_names)
        texts = sorted([[_text(row[name]) for name in names] for row in rows.to_pylist()], key=repr)
        found[str(log.parent.relative_to(lake.root))] = {"columns": names, "rows": texts}
    return found


def _text(value: object) -> str | None:
    return None if value is None else value.hex() if isinstance(value, bytes) else str(value)


def packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    """An archive of these: the same for the same files."""
    sink = io.BytesIO()
    with gzip.GzipFile(fileobj=sink, mode="wb", mtime=0) as packs, tarfile.open(fileobj=packs, mode="w") as archive:
        for name, data in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return sink.getvalue()


def files_in(root: Path, under: str = "") -> list[tuple[str, bytes]]:
    """All files of a lake but leases, by their paths in it."""
    files = [path for path in (root / under).rglob("*") if path.is_file()]
    named = [(str(path.relative_to(root)), path) for path in files]
    return [(name, path.read_bytes()) for name, path in named if not name.startswith(_LEASES)]


def rows_packed(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    return sink.getvalue()


@dataclass(frozen=True, slots=True)
class Recorded:
    """One case."""

    folder: Path

    @property
    def expected(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "expected.json").read_text())
        return found

    def unpack(self, place: Path) -> tuple[Path, LakeFiles]:
        """The lake as it was at first, in a folder of its own, and the pipeline file that names it."""
        lake = LakeFiles(str(place / "lake"))
        file = place / "pipeline.yaml"
        file.write_text((self.folder / "pipeline.yaml").read_text().replace(LAKE, lake.root))
        with tarfile.open(self.folder / "lake.tar.gz") as archive:
            archive.extractall(lake.root, **_FILTER)
        return file, lake

    def later(self, lake: LakeFiles) -> dict[str, pa.Table]:
        """Lay later bronze over the lake; returns rows that others than apply had appended to control tables by then,
        in the layout of the recording: path -> rows.
        """
        rows = {}
        with tarfile.open(self.folder / "later.tar.gz") as archive:
            for member in archive.getmembers():
                if member.name.startswith(f"{_ROWS}/"):
                    data = archive.extractfile(member)
                    assert data is not None, member.name
                    path = member.name.removeprefix(f"{_ROWS}/").removesuffix(".parquet")
                    rows[path] = pq.read_table(io.BytesIO(data.read()))
                else:
                    archive.extract(member, lake.root, **_FILTER)
        return rows


def recorded() -> list[Recorded]:
    """Every case."""
    return [Recorded(file.parent) for file in sorted(LAKES.glob("*/expected.json"))]


def later_of(lake: LakeFiles, before: dict[str, int]) -> list[tuple[str, bytes]]:
    """Bronze, and the rows behind the first `before` ones of control tables that others than apply write."""
    found = files_in(Path(lake.root), _BRONZE)
    for path, rows in control_rows(lake).items():
        if more := rows.num_rows - before.get(path, 0):
            found.append((f"{_ROWS}/{path}.parquet", rows_packed(rows.slice(before.get(path, 0), more))))
    return found


def control_rows(lake: LakeFiles) -> dict[str, pa.Table]:
    """Rows of control tables in the order of their commits, which wrote a file each and removed none yet."""
    found = {}
    for table in (tables.SCHEMA_HISTORY, tables.SNAPSHOTS, tables.TABLE_STATES, tables.JUDGEMENTS):
        state = lake.log(table.path).state()
        files = sorted(state.files, key=lambda file: Path(lake.root, table.path, file.local_path).stat().st_mtime_ns)
        parts = [pq.read_table(Path(lake.root, table.path, file.local_path), partitioning=None) for file in files]
        if parts:
            found[table.path] = pa.concat_tables(parts, promote_options="default")
    return found
