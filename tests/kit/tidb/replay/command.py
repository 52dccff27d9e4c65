"""`python -m tests.kit.tidb.replay DIR`: a recorded stream of TiDB binlogs, replayed into tables.

In:  a folder with binlog.bin and ddl_jobs.jsonl (recording.py), or several.
Out: JSON on stdout, one object per folder: {"resolved_ts", "transactions", "rows", "unanswered", "unknown": why, by
     table whose rows nobody can tell, "tables": {"db.table": {...}}}; with --check what differs from the recorded
     tables instead. Exit code 1 when something differs, a table's rows aren't known, or prewrites have no answer.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.errors import StreamCorrupt, UsageError
from tidegate.home import EXIT_ERROR

if TYPE_CHECKING:
    from tests.kit.tidb.replay.recording import Recording

_IF_DISCARDED = "tables_if_discarded"


def tidb_replay(
    folders: Annotated[list[Path], typer.Argument(help="Folders of recorded streams", metavar="DIR...")],
    at: Annotated[int | None, typer.Option(help="Tables as of this TSO. Default: everything resolved")] = None,
    discard_orphans: Annotated[
        bool, typer.Option("--discard-orphans", help="Treat unanswered prewrites as rolled back")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare with the recorded tables, with and without orphans, and with checkpoints"
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write each table to DB.TABLE.json in this folder instead of stdout")
    ] = None,
) -> None:
    """Replay recorded TiDB binlogs; print the tables as JSON."""
    from tests.kit.tidb.replay.recording import Recording
    from tests.kit.tidb.replay.stream import RecordedStream

    if check and (at is not None or discard_orphans or out):
        raise UsageError("--check looks at all that is recorded", remedy="leave out --at, --discard-orphans and --out")
    failed = False
    for folder in folders:
        recording = Recording(folder)
        if check:
            report = {"case": folder.name} | checked(folder, recording)
            failed = failed or bool(report["differences"])
            print(json.dumps(report, ensure_ascii=False))
            continue
        replayed = RecordedStream(recording, discard=discard_orphans).at(at)
        tables = {f"{table['db']}.{table['table']}": table for table in replayed.tables}
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            for name, table in tables.items():
                (out / f"{name.replace('/', '%2F')}.json").write_text(json.dumps(table, ensure_ascii=False))
        failed = failed or bool(replayed.unanswered or replayed.unknown)
        said: dict[str, Any] = {
            "resolved_ts": replayed.resolved_ts,
            "transactions": replayed.transactions,
            "rows": replayed.rows,
            "unanswered": list(replayed.unanswered),
            "unknown": replayed.unknown,
            "tables": sorted(tables) if out is not None else tables,
        }
        print(json.dumps(said | ({"case": folder.name} if len(folders) > 1 else {}), ensure_ascii=False))
    raise typer.Exit(EXIT_ERROR if failed else 0)


def checked(folder: Path, recording: Recording) -> dict[str, Any]:
    """{"tables": how many were compared, "differences": one line each}."""
    from tests.kit.tidb.replay.stream import RecordedStream

    stream = RecordedStream(recording)
    wanted = [("tables", None), *((checkpoint.folder, checkpoint.tso) for checkpoint in recording.checkpoints)]
    differences: list[str] = []
    count = 0
    for name, tso in wanted:
        replay = stream.at(tso)
        replayed = {(table["db"], table["table"]): table for table in replay.tables}
        expected = recorded_tables(folder / name)
        count += len(expected)
        differences += [f"{name}/{table}: it can't be told: {why}" for table, why in sorted(replay.unknown.items())]
        recorded = {(table["db"], table["table"]): table for table in expected}
        differences += _compared(
            name, replayed, {key: of for key, of in recorded.items() if ".".join(key) not in replay.unknown}
        )
    if (folder / _IF_DISCARDED).is_dir():
        # Recorded by doing the same in a database of its own: _tidb_rowid counts otherwise there.
        replayed = {
            ("", table["table"]): _without_rowid(table) for table in RecordedStream(recording, discard=True).at().tables
        }
        expected = recorded_tables(folder / _IF_DISCARDED)
        count += len(expected)
        differences += _compared(
            _IF_DISCARDED, replayed, {("", table["table"]): _without_rowid(table) for table in expected}
        )
    return {"tables": count, "differences": differences}


def recorded_tables(folder: Path) -> list[dict[str, Any]]:
    """DB.TABLE.json, or the same with .gz. Raises UsageError, StreamCorrupt."""
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", remedy="--check compares with what was recorded of the tables")
    recorded = []
    for path in sorted(folder.glob("*.json*")):
        data = path.read_bytes()
        try:
            table = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
            recorded.append({key: table[key] for key in ("db", "table", "columns", "rows")} | table)
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
            what = f"it isn't the JSON of a table: {error!r}"
            raise StreamCorrupt(what, where=str(path), remedy="copy it again") from None
    return recorded


def _compared(
    name: str, replayed: dict[tuple[str, str], dict[str, Any]], expected: dict[tuple[str, str], dict[str, Any]]
) -> list[str]:
    from tests.kit.tidb.replay.stream import differences

    lines = []
    for key in sorted(replayed.keys() | expected.keys()):
        said = (
            "it wasn't recorded"
            if key not in expected
            else "it isn't there"
            if key not in replayed
            else differences(replayed[key], expected[key])
        )
        if said:
            lines.append(f"{name}/{'.'.join(part for part in key if part)}: {said}")
    return lines


def _without_rowid(table: dict[str, Any]) -> dict[str, Any]:
    if not any(column.get("hidden") for column in table["columns"]):
        return table
    rows = sorted((row[:-1] for row in table["rows"]), key=lambda row: [(cell is None, cell or "") for cell in row])
    return table | {"columns": table["columns"][:-1], "rows": rows}
