"""Few rows of a window in one file with those of small files: equal to a dictionary, few files, nothing left behind."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.positional import writer as positional_writer
from tests.support.readers import READERS
from tests.support.seeds import many, share
from tests.support.upsert_table import DEL, PATH, UP, Table
from tidegate.delta.log import Change
from tidegate.delta.table.live_file import LiveFile
from tidegate.errors import LakeRefused
from tidegate.lake.files import LakeFiles
from tidegate.upsert import few_rows
from tidegate.upsert.few_rows import SMALL_FILE_BYTES
from tidegate.upsert.files import data_file

pytestmark = pytest.mark.small_files("joined")
Changes = list[tuple[int, int, str]]


def held(table: Table, reader: str = "DuckDB") -> dict[int, str]:
    rows = READERS[reader](table.app.lake.uri(PATH)).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["note"] for row in rows}


def parquet(folder: Path) -> set[str]:
    return {path.name for path in (folder / PATH).glob("*.parquet")}


@pytest.mark.parametrize("case", share(range(many(6, 200))))
def test_random_windows_are_equal_and_small_files_stay_few(tmp_path: Path, case: int) -> None:
    chance = random.Random(case)
    table = Table.create(None, tmp_path)
    table.write([(UP, number, f"first {number}") for number in range(3000)])
    for window in range(40):
        size = 2000 if chance.random() < 0.05 else chance.randint(1, 12)
        numbers = [chance.choice((0, 2900, 3000)) + chance.randrange(120) for _ in range(size)]
        changes: Changes = [(chance.choice((UP, UP, DEL)), number, f"{window} {'x' * 30}") for number in numbers]
        table.write(changes, few=chance.random() < 0.9)
    files = table.snapshot().files
    small = [file.size for file in files if file.size <= SMALL_FILE_BYTES]
    assert len(small) < 20, "without few_rows there were one for each of 40 windows"
    for reader in READERS:
        assert held(table, reader) == table.model, reader


def test_windows_of_new_rows_alone_only_add_files(tmp_path: Path) -> None:
    table = Table.create(None, tmp_path)
    live = set[str]()
    for window in range(6):
        table.write([(UP, 20 * window + i, chance(window, i)) for i in range(20)], few=True)
        before, live = live, {file.path for file in table.snapshot().files}
        assert before < live, "a stream that reads silver would stop at a file that goes"
    assert held(table) == table.model
    table.write([(UP, 1, "again")], few=True)
    assert len(table.snapshot().files) == 1, "a row that dies takes them along"
    assert held(table) == table.model


def test_windows_fill_a_file_and_begin_another(tmp_path: Path) -> None:
    table = Table.create(None, tmp_path)
    for window in range(60):
        again = [(UP, 20 * window - 1, f"{window}")] if window else []
        table.write([*again, *((UP, 20 * window + i, chance(window, i)) for i in range(20))], few=True)
        joined = [file for file in table.snapshot().files if file.size <= SMALL_FILE_BYTES]
        assert sum(file.size for file in joined) <= 2 * SMALL_FILE_BYTES
    assert len(table.snapshot().files) < 8
    assert held(table) == table.model


def chance(window: int, number: int) -> str:
    """A text that doesn't pack."""
    return random.Random(1000 * window + number).randbytes(20).hex()


def test_a_file_whose_rows_all_die_goes(tmp_path: Path) -> None:
    table = Table.create(None, tmp_path)
    table.write([(UP, 1, "a"), (UP, 2, "b")], few=True)
    table.write([(DEL, 1, ""), (DEL, 2, ""), (DEL, 3, "")], few=True)
    assert not table.snapshot().files
    table.write([(DEL, 1, "")], few=True)
    assert held(table) == table.model == {}


def test_a_delete_in_a_large_file_rewrites_no_small_one(tmp_path: Path) -> None:
    table = Table.create(None, tmp_path)
    table.write([(UP, number, chance(1, number)) for number in range(3000)])
    table.write([(UP, 5000, "small")], few=True)
    small = min(table.snapshot().files, key=lambda file: file.size)
    table.write([(DEL, 7, "")], few=True)
    assert small.path in {file.path for file in table.snapshot().files}
    assert held(table) == table.model


def test_a_folder_that_takes_no_file_is_this_tables_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table.create(None, tmp_path)
    table.write([(UP, 1, "a")], few=True)
    before = table.snapshot().version

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(data_file, "write", refused)
    _, outcome, _ = table.tried([(UP, 2, "b")], few=True)
    assert isinstance(outcome, LakeRefused)
    assert "no file can be made" in outcome.line
    assert table.snapshot().version == before


def test_a_small_file_that_is_gone_is_named(tmp_path: Path) -> None:
    table = Table.create(None, tmp_path)
    table.write([(UP, 1, "a")], few=True)
    table.write([(UP, number, chance(2, number)) for number in range(3000, 6000)])
    (gone,) = [file for file in table.snapshot().files if file.size <= SMALL_FILE_BYTES]
    (tmp_path / PATH / gone.local_path).unlink()
    before, files = table.snapshot().version, parquet(tmp_path)
    _, outcome, _ = table.tried([(UP, 3005, "b")], few=True)  # of no key in it: probing never opens it
    assert isinstance(outcome, LakeRefused)
    assert gone.local_path in outcome.line
    assert (table.snapshot().version, parquet(tmp_path)) == (before, files)


def test_a_conflict_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table.create(None, tmp_path)
    table.write([(UP, 1, "a"), (UP, 2, "b")], few=True)
    write, written = few_rows.write, list[int]()

    def late(*args: object) -> object:
        made = write(*args)  # type: ignore[arg-type]
        written.append(len(made))
        if len(written) == 1:
            log = table.app.lake.log(PATH)
            log.commit(log.state(), Change([], "NOTE", {"another writer": 1}))
        return made

    monkeypatch.setattr(few_rows, "write", late)
    monkeypatch.setattr(positional_writer, "CONFLICT_WAIT", 0.01)
    table.write([(UP, 2, "c")], few=True)
    assert written == [1, 1]
    assert held(table) == table.model
    log_text = "".join(path.read_text() for path in (tmp_path / PATH / "_delta_log").glob("*.json"))
    assert all(name in log_text for name in parquet(tmp_path))


def test_a_small_file_that_unpacks_to_much_is_left_as_it_is(tmp_path: Path) -> None:
    """Rows alike are packed a thousandfold: each window would have them all in memory, and write them again."""
    table = Table.create(None, tmp_path)
    table.write([(UP, number, "y" * 100_000) for number in range(50)])
    (large,) = table.snapshot().files
    assert large.size <= SMALL_FILE_BYTES
    table.write([(UP, 100, "small")], few=True)
    table.write([(UP, 101, "small"), (DEL, 7, "")], few=True)
    table.write([(DEL, 8, "")], few=True)
    same = next(file for file in table.snapshot().files if file.path == large.path)
    assert same.live_rows == 48
    assert len(table.snapshot().files) == 2
    assert held(table) == table.model


def test_staged_files_that_another_try_takes_are_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most rows of each are replaced, so they are written anew; between two of them the store is away for a moment."""
    table = Table.create(None, tmp_path)
    monkeypatch.setattr(data_file, "FILE_BYTES", 4096)
    monkeypatch.setattr(positional_writer, "CONFLICT_WAIT", 0.01)
    read, reads = positional_writer.live_rows, list[str]()

    def late(lake: LakeFiles, path: str, file: LiveFile, *more: Any) -> Iterator[pa.Table]:
        reads.append(file.path)
        if len(reads) == 3:
            log = table.app.lake.log(PATH)
            log.commit(log.state(), Change([], "NOTE", {"another writer": 1}))
            raise LakeRefused("a data file can't be read", where=file.path)
        return read(lake, path, file, *more)

    monkeypatch.setattr(positional_writer, "live_rows", late)
    table.write([(UP, number, f"{number} {turn}") for turn in range(3) for number in range(200)])
    assert len(reads) > 4, "some before it, and all of them again"
    assert held(table) == table.model
