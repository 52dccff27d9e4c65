"""Recorded lakes whose control tables had all other columns once: nobody who reads one of them is passed over.

Each column of the aged tables has another name, and each number another sign, so who reads a file by itself finds no
column, and who believes an old file's statistics looks at the wrong ones.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import typer.testing

from tests.lakes.archive import Recorded, applied, files_in, recorded, said_by, silver_of, states_of
from tidegate import tables
from tidegate.cli.main import app as command_line
from tidegate.delta.log import Change
from tidegate.lake import control
from tidegate.lake.figures import status
from tidegate.lake.files import LakeFiles
from tidegate.lake.format import migrations
from tidegate.lake.format.migrations import Migration
from tidegate.lake.format.version import format_of
from tidegate.lake.schema_history import schema_rows

CASES = recorded()
AGED = [table for table in tables.ALL if table.path.startswith("control/") and table is not tables.FORMAT]


def _turned(rows: pa.Table, table: tables.Table, *, back: bool) -> pa.Table:
    """To the names and signs of the aged layout, or back."""
    columns = []
    for column in table.schema:
        cells = rows[f"aged_{column.name}" if back else column.name]
        columns.append(pc.negate(cells) if column.type == pa.int64() else cells)
    return pa.table(columns, names=[column.name if back else f"aged_{column.name}" for column in table.schema])


def _aged(table: tables.Table) -> tables.Table:
    fields = [column.with_name(f"aged_{column.name}") for column in table.schema]
    return replace(table, schema=pa.schema(fields))


def _migration(table: tables.Table) -> Migration:
    names = frozenset(_aged(table).schema.names)
    return Migration(1, table.path, "names and signs", names, lambda rows: _turned(rows, table, back=True))


def _age(lake: LakeFiles) -> None:
    """File by file, with the application transactions."""
    for table in AGED:
        state = lake.log(table.path).state()
        if not state.created:
            continue
        parts = [control.rows_of(lake, table, state, files=[file]) for file in state.files]
        lake.delete_folder(table.path)
        made = LakeFiles(lake.root)
        control.append(made, _aged(table), [], ("aged", 1))  # some have marks and no rows
        for part in parts:
            control.append(made, _aged(table), _turned(part, table, back=False).to_pylist())
        made.log(table.path).update(lambda _, marks=state.transactions: Change([], "WRITE", dict(marks)))
    lake.delete_folder(tables.FORMAT.path)


def _opened(case: Recorded, place: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, LakeFiles]:
    file, lake = case.unpack(place)
    _age(lake)
    monkeypatch.setattr(migrations, "MIGRATIONS", tuple(_migration(table) for table in AGED))
    return file, LakeFiles(lake.root)


def _goes_on(case: Recorded, file: Path, lake: LakeFiles) -> None:
    for path, rows in case.later(lake).items():  # of the recording, which isn't the aged one's release
        control.append(lake, next(table for table in AGED if table.path == path), rows.to_pylist())
    app = applied(file, lake)
    assert states_of(app) == said_by(case.expected["release"], case.expected["states"])
    assert silver_of(lake) == case.expected["silver"]
    assert format_of(lake).is_ours


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_a_lake_of_another_layout_is_read_and_goes_on_by_apply_alone(
    case: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, lake = _opened(case, tmp_path, monkeypatch)
    _goes_on(case, file, lake)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.folder.name)
def test_a_lake_of_another_layout_is_read_as_it_is_and_upgraded(
    case: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = LakeFiles(case.unpack(_folder(tmp_path / "plain"))[1].root)
    rows = {table.path: _sorted(control.read(plain, table)) for table in AGED}
    sources = sorted({row["source"] for row in control.read(plain, tables.SCHEMA_HISTORY).to_pylist()})
    history = schema_rows.needed_rows(plain, sources, lambda *_: 0)
    file, lake = _opened(case, _folder(tmp_path / "aged"), monkeypatch)
    before = files_in(Path(lake.root))
    assert {table.path: _sorted(control.read(lake, table)) for table in AGED} == rows
    aged = schema_rows.needed_rows(lake, sources, lambda *_: 0)
    assert {name: _in_order(of.rows) for name, of in aged.items()} == {
        name: _in_order(of.rows) for name, of in history.items()
    }
    assert {row.table: str(row.state) for row in status.table_statuses(lake)} == case.expected["status"]
    assert "names and signs" in _run("lake", "upgrade", str(file), "--dry-run")
    assert files_in(Path(lake.root)) == before
    _run("lake", "upgrade", str(file))
    assert {table.path: _sorted(control.read(LakeFiles(lake.root), table)) for table in AGED} == rows
    _goes_on(case, file, LakeFiles(lake.root))


def _folder(place: Path) -> Path:
    place.mkdir()
    return place


def _sorted(rows: pa.Table) -> list[str]:
    return sorted(str(row) for row in rows.to_pylist())


def _in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def _run(*arguments: str) -> str:
    done = typer.testing.CliRunner().invoke(command_line, [*arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output
