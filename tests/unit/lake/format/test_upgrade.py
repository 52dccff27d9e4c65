"""A lake of an older layout is read, written and upgraded as if it had always been as tables/ says."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.kit.s3 import S3
from tests.lakes.archive import files_in
from tests.support.forks import exit_code, forks
from tests.support.readers import READERS
from tidegate import __version__, tables
from tidegate.delta.log import Change
from tidegate.errors import LakeRefused
from tidegate.lake import control
from tidegate.lake.bronze.log import BronzeLog
from tidegate.lake.bronze.table import Bronze
from tidegate.lake.control.lake_upgrade import plan, upgrade
from tidegate.lake.control.upgrade import BEGUN, record, upgrade_table
from tidegate.lake.control.upkeep import compact, drop_files, rewrite
from tidegate.lake.files import LakeFiles
from tidegate.lake.format import migrations
from tidegate.lake.format.migrations import Migration, newest_format
from tidegate.lake.format.version import BEGUN_ID, format_of
from tidegate.lake.schema_history.schema_rows import table_rows
from tidegate.schema.model.columns import TableVersion

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LATENCY, JUDGED = tables.LATENCY, tables.JUDGEMENTS
# Two layouts ago: milliseconds under another name, and the cut negative; one ago: the cut is called so.
OLDEST = replace(
    LATENCY,
    schema=pa.schema(
        [
            pa.field("written_us", pa.int64(), nullable=False),
            pa.field("visible_us", pa.int64(), nullable=False),
            pa.field("ms", pa.float64(), nullable=False),
            pa.field("minus_cut", pa.int64(), nullable=False),
        ]
    ),
)
ADDED = pa.field("judged_from", pa.string(), nullable=True)


def _cut_is_positive(rows: pa.Table) -> pa.Table:
    at = rows.schema.get_field_index("minus_cut")
    return rows.set_column(at, "the_cut", pc.negate(rows["minus_cut"]))


def _seconds(rows: pa.Table) -> pa.Table:
    return pa.table(
        {
            "written_us": rows["written_us"],
            "visible_us": rows["visible_us"],
            "seconds": pc.divide(rows["ms"], 1000.0),
            "cut_ts": rows["the_cut"],
        }
    )


CHAIN = (
    Migration(1, LATENCY.path, "the cut is positive", frozenset(OLDEST.schema.names), _cut_is_positive),
    Migration(2, LATENCY.path, "seconds", frozenset(("written_us", "visible_us", "ms", "the_cut")), _seconds),
)


def _old(number: int) -> dict[str, Any]:
    return {"written_us": number, "visible_us": number + 5, "ms": number * 500.0, "minus_cut": -number}


def _new(number: int) -> dict[str, Any]:
    return {"written_us": number, "visible_us": number + 5, "seconds": number / 2, "cut_ts": number}


def _judged(number: int) -> dict[str, Any]:
    row = {"source": "s", "file": "f", "pos": number, "commit_ts": number, "tables": [], "reason": "", "judged_by": "a"}
    return row | {"judged_at": NOW}


def _lake(folder: Path, *, files: int = 3) -> LakeFiles:
    """As a release wrote it before there was a format."""
    lake = LakeFiles(str(folder))
    for number in range(1, files + 1):
        control.append(lake, OLDEST, [_old(10 * number), _old(10 * number + 1)], ("app", number))
    control.append(lake, JUDGED, [_judged(1)])
    lake.delete_folder(tables.FORMAT.path)
    return LakeFiles(str(folder))


def _rows(lake: LakeFiles, **wanted: Any) -> list[dict[str, Any]]:
    return sorted(control.read(lake, LATENCY, **wanted).to_pylist(), key=lambda row: sorted(row.items()))


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The release that follows; until it is called it is today's."""
    return lambda: monkeypatch.setattr(migrations, "MIGRATIONS", CHAIN)


WHOLE = [_new(number) for number in (10, 11, 20, 21, 30, 31)]


def test_an_older_table_is_read_with_columns_filters_and_orders_of_the_new_one(
    tmp_path: Path, newer: Callable[[], None]
) -> None:
    lake = _lake(tmp_path)
    with pytest.raises(LakeRefused, match="it has minus_cut, ms, too"):
        control.read(lake, LATENCY)
    newer()
    before = files_in(tmp_path)
    assert _rows(lake) == WHOLE
    assert _rows(lake, columns=["cut_ts"]) == [{"cut_ts": number} for number in (10, 11, 20, 21, 30, 31)]
    # The old file's statistics would say otherwise of each of these.
    assert _rows(lake, filters=[("cut_ts", ">=", 21)]) == WHOLE[3:]
    assert _rows(lake, columns=["seconds"], filters=[("cut_ts", "in", [10, 30])]) == [{"seconds": 5}, {"seconds": 15}]
    last = control.newest(lake, LATENCY, by=["visible_us"], order=["cut_ts"], columns=["cut_ts"])
    assert sorted(last["cut_ts"].to_pylist()) == [10, 11, 20, 21, 30, 31]
    assert sum(piece.num_rows for piece in control.pieces(lake, LATENCY, filters=[("seconds", "<", 6.0)])) == 2
    assert files_in(tmp_path) == before, "a reader writes nothing"
    assert not format_of(lake).is_ours


@pytest.mark.parametrize("way", ["append", "claim", "append under a mark", "upgrade", "table"])
def test_a_writer_upgrades_an_older_table_in_its_own_commit(
    way: str, tmp_path: Path, newer: Callable[[], None]
) -> None:
    lake = _lake(tmp_path)
    newer()
    log = lake.log(LATENCY.path)
    before = log.state()
    more = list[dict[str, Any]]()
    if way.startswith("append"):
        more = [_new(40)]
        control.append(lake, LATENCY, more, ("app", 4) if way.endswith("mark") else None)
    elif way == "claim":
        assert control.ControlTables(lake).claim(LATENCY, "claim") == 1
    elif way == "upgrade":
        assert upgrade(lake)
    else:
        assert upgrade_table(lake, LATENCY) == "migration 1: the cut is positive; migration 2: seconds"
        assert upgrade_table(lake, LATENCY) == ""
    after = log.state()
    assert after.version == before.version + 1
    assert (after.table_id, after.configuration) == (before.table_id, before.configuration)
    assert after.transactions["app"] == (4 if way.endswith("mark") else 3)
    assert _rows(LakeFiles(str(tmp_path))) == [*WHOLE, *more]
    assert _rows(lake, filters=[("cut_ts", ">=", 21)]) == [*WHOLE[3:], *more], "its statistics are of the new columns"
    for read in READERS.values():
        assert sorted(read(lake.uri(LATENCY.path))["cut_ts"].to_pylist()) == [row["cut_ts"] for row in [*WHOLE, *more]]
    found = format_of(lake)
    assert (found.version, found.release, found.is_ours) == (3, __version__, way == "upgrade")


def test_upkeep_of_an_older_table_upgrades_it_first(tmp_path: Path, newer: Callable[[], None]) -> None:
    uses: list[Callable[[LakeFiles], object]] = [
        lambda lake: compact(lake, LATENCY, files_min=2),
        lambda lake: rewrite(lake, LATENCY, lambda rows: rows.filter(pc.greater(rows["cut_ts"], 20))),
        lambda lake: drop_files(lake, LATENCY, "cut_ts", 20),
    ]
    lakes = [_lake(tmp_path / str(number)) for number in range(len(uses))]
    newer()
    kept = []
    for lake, use in zip(lakes, uses, strict=True):
        use(lake)
        kept.append(_rows(lake))
        assert "cut_ts" in lake.log(LATENCY.path).state().metadata["schemaString"]
    # All old files became one: none of it is as a whole below the bound.
    assert kept == [WHOLE, WHOLE[3:], WHOLE]


def test_a_nullable_column_is_null_to_readers_and_comes_with_the_next_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path)
    wider = replace(JUDGED, schema=JUDGED.schema.append(ADDED))
    monkeypatch.setattr(migrations, "MIGRATIONS", (Migration(1, JUDGED.path, "who was asked"),))
    before = lake.log(JUDGED.path).state()
    assert control.read(lake, wider).to_pylist() == [{**_judged(1), "judged_from": None}]
    assert control.read(lake, wider, filters=[("judged_from", "==", "b")]).num_rows == 0
    assert lake.log(JUDGED.path).state().version == before.version
    control.append(lake, wider, [{**_judged(2), "judged_from": "b"}])
    after = lake.log(JUDGED.path).state()
    assert (after.version, after.table_id) == (before.version + 1, before.table_id)
    assert set(before.live) <= set(after.live), "no file is written anew"
    found = control.read(LakeFiles(lake.root), wider, columns=["pos", "judged_from"]).sort_by("pos").to_pylist()
    assert found == [{"pos": 1, "judged_from": None}, {"pos": 2, "judged_from": "b"}]
    assert control.read(lake, wider, filters=[("judged_from", "==", "b")])["pos"].to_pylist() == [2]
    assert format_of(lake).version == 2
    with pytest.raises(LakeRefused, match=r"it has judged_from, too; a newer tidegate or another writer"):
        control.append(lake, JUDGED, [_judged(3)])


def test_a_new_lake_says_its_format_once_and_an_older_one_is_not_taken_for_new(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path / "new"))
    assert format_of(lake).version == 0
    for number in (1, 2):
        control.append(lake, JUDGED, [_judged(number)])
        control.append(lake, LATENCY, [_new(number)])
    said = control.read(lake, tables.FORMAT).to_pylist()
    assert [(row["version"], row["event"], row["release"]) for row in said] == [(newest_format(), "made", __version__)]
    assert format_of(lake).is_ours
    assert not upgrade(lake)
    older = _lake(tmp_path / "older")
    control.append(older, tables.SUBSCRIPTIONS, [])
    control.append(older, tables.LEDGER, [], ("app", 1))
    assert not format_of(older).is_ours, "tables that an upgrade hasn't looked at are there"


def test_a_newer_lake_is_refused_by_name_by_whoever_opens_it(
    tmp_path: Path, newer: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path)
    newer()
    monkeypatch.setattr("tidegate.lake.control.upgrade.__version__", "9.8.7")
    record(lake, BEGUN, "to a later format")
    monkeypatch.setattr(migrations, "MIGRATIONS", ())
    uses: list[Callable[[LakeFiles], object]] = [
        lambda opened: control.read(opened, JUDGED),
        lambda opened: control.version(opened, JUDGED),
        lambda opened: control.append(opened, JUDGED, [_judged(2)]),
        lambda opened: opened.log(tables.SEGMENTS.path),
        lambda opened: opened.log("silver/a/b"),
        BronzeLog.load,
        lambda opened: Bronze(opened, "s").last_segments(),
        upgrade,
        plan,
    ]
    said = (
        rf"format 3, written by tidegate 9\.8\.7; this is tidegate {__version__}.*install tidegate 9\.8\.7 or a newer"
    )
    for use in uses:
        with pytest.raises(LakeRefused, match=said):
            use(LakeFiles(str(tmp_path)))
    with pytest.raises(LakeRefused, match=said):
        control.append(lake, tables.LEDGER, [], ("app", 1))  # one that was opened before, at a new table


def test_an_upgrade_says_what_it_will_do(tmp_path: Path, newer: Callable[[], None]) -> None:
    lake = _lake(tmp_path)
    newer()
    told = {one.path: (one.what, one.rows) for one in plan(lake)}
    assert told == {
        LATENCY.path: ("migration 1: the cut is positive; migration 2: seconds", 6),
        JUDGED.path: ("", 0),
    }
    lines: list[str] = []
    assert upgrade(lake, lines.append)
    assert lines[0].startswith(f"{LATENCY.path}: migration 1")
    assert not upgrade(lake, lines.append)
    events = control.read(lake, tables.FORMAT).sort_by("recorded_at").to_pylist()
    assert [(row["version"], row["event"]) for row in events] == [(3, "begun"), (3, "done")]
    assert events[-1]["what"] == f"from format 0: {LATENCY.path}"


def _upgrades(root: str, point: str = "") -> None:
    migrations.MIGRATIONS = CHAIN
    if point:
        os.environ["TIDEGATE_FAILPOINT"] = point
    upgrade(LakeFiles(root))


POINTS = ("format_after_begun", "format_after_table", "format_before_done")
COMMITS = tuple(f"delta_{when}_commit:{number}" for number in (1, 2, 3) for when in ("before", "after"))


@pytest.mark.parametrize("point", [*POINTS, *COMMITS])
def test_an_upgrade_that_is_killed_anywhere_goes_on(point: str, tmp_path: Path, newer: Callable[[], None]) -> None:
    lake = _lake(tmp_path)
    assert exit_code(_upgrades, lake.root, point) == -SIGKILL
    newer()
    assert _rows(LakeFiles(lake.root)) == WHOLE, "a reader needs no upgrade"
    upgrade(LakeFiles(lake.root))
    assert _rows(LakeFiles(lake.root)) == WHOLE
    assert lake.log(LATENCY.path).state().transactions["app"] == 3
    events = sorted(row["event"] for row in control.read(lake, tables.FORMAT).to_pylist())
    assert events == ["begun", "done"]
    assert not upgrade(LakeFiles(lake.root))


def test_two_upgraders_at_once_upgrade_each_table_once(tmp_path: Path, newer: Callable[[], None]) -> None:
    lake = _lake(tmp_path, files=6)
    started = lake.log(LATENCY.path).state().version
    both = [forks.Process(target=_upgrades, args=(lake.root,)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(120)
    assert [one.exitcode for one in both] == [0, 0]
    newer()
    assert lake.log(LATENCY.path).state().version == started + 1
    assert len(_rows(lake)) == 12
    assert sorted(row["event"] for row in control.read(lake, tables.FORMAT).to_pylist()) == ["begun", "done"]


def test_an_append_that_comes_first_is_upgraded_with_the_rest(
    tmp_path: Path, newer: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever of an older release is at work until the commit: nothing of his is lost."""
    lake = _lake(tmp_path)
    newer()
    log, other = lake.log(LATENCY.path), LakeFiles(lake.root)
    other.check_known()  # it is opened before
    commit, late = log.commit, [40]

    def beaten(*arguments: Any, **named: Any) -> Any:
        if late:
            number = late.pop()
            monkeypatch.setattr(migrations, "MIGRATIONS", ())
            control.append(other, OLDEST, [_old(number)])
            monkeypatch.setattr(migrations, "MIGRATIONS", CHAIN)
        return commit(*arguments, **named)

    monkeypatch.setattr(log, "commit", beaten)
    upgrade(lake)
    assert _rows(lake) == [*WHOLE, _new(40)]
    monkeypatch.setattr(migrations, "MIGRATIONS", ())
    with pytest.raises(LakeRefused, match="a newer tidegate or another writer has added it"):
        control.append(other, OLDEST, [_old(50)])


def test_who_knows_no_newer_format_may_not_record_an_older_one(tmp_path: Path) -> None:
    lake = _lake(tmp_path)
    lake.log(tables.FORMAT.path).update(lambda _: None)
    record(lake, BEGUN, "")
    lake.log(tables.FORMAT.path).update(lambda _: Change([], "WRITE", {BEGUN_ID: 7}))
    with pytest.raises(LakeRefused, match="format 7"):
        record(lake, "done", "")


def test_versions_of_a_table_are_read_from_files_that_lack_a_newer_column(tmp_path: Path) -> None:
    lake = LakeFiles(str(tmp_path))
    version = TableVersion("s", "d", "t", 1, 5, "f", 4, "create", "", (), (), "utf8mb4")
    without = pa.schema([field for field in tables.SCHEMA_HISTORY.schema if field.name != "origin"])
    row = {name: value for name, value in version.to_row().items() if name != "origin"}
    control.append(lake, replace(tables.SCHEMA_HISTORY, schema=without), [row])
    (found,) = table_rows(lake, "d", "t")
    assert found == dict.fromkeys(tables.SCHEMA_HISTORY.schema.names) | row
    control.append(lake, tables.SCHEMA_HISTORY, [replace(version, version=2).to_row()])
    assert [row["version"] for row in table_rows(lake, "d", "t")] == [1, 2]


def test_a_lake_in_an_object_store_is_made_and_upgraded_like_a_local_one(s3: S3, newer: Callable[[], None]) -> None:
    root = s3.folder()
    lake = LakeFiles(root, s3.options)
    assert format_of(lake).told == "no control tables yet"
    control.append(lake, JUDGED, [_judged(1)])
    control.append(lake, OLDEST, [_old(10)])
    assert (format_of(lake).is_ours, format_of(lake).version) == (True, newest_format())
    lake.delete_folder(tables.FORMAT.path)
    older = LakeFiles(root, s3.options)
    control.append(older, tables.LEDGER, [], ("app", 1))
    assert (format_of(older).is_there, format_of(older).version) == (True, 0)
    newer()
    assert _rows(older) == [_new(10)]
    assert upgrade(LakeFiles(root, s3.options))
    assert _rows(LakeFiles(root, s3.options)) == [_new(10)]
    assert format_of(LakeFiles(root, s3.options)).is_ours
