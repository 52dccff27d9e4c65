"""A lake that carries answers as one that doesn't, and opens only files that came since."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.files import LakeFiles


def publish(lake: LakeFiles, cut_ts: int, *names: str) -> None:
    row = {"delta_version": cut_ts, "applied_ts": cut_ts, "state": "active", "published_at": datetime.now(UTC)}
    control.append(lake, tables.CUTS, [{**row, "cut_ts": cut_ts, "table": name} for name in names])


def answer(lake: LakeFiles) -> dict[str, int]:
    columns = ["table", "delta_version"]
    rows = control.newest(lake, tables.CUTS, by=["table"], order=["cut_ts", "published_at"], columns=columns)
    return dict(zip(rows["table"].to_pylist(), rows["delta_version"].to_pylist(), strict=True))


def test_only_new_files_are_opened_until_one_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carrying, other = LakeFiles(str(tmp_path)), LakeFiles(str(tmp_path))
    carrying.carry()
    assert answer(carrying) == {}
    for cut_ts in range(1, 6):
        publish(other, cut_ts, "a.a", f"a.b{cut_ts}")
    assert answer(carrying) == answer(other)
    opened = list[str]()
    real = LakeFiles.open
    monkeypatch.setattr(LakeFiles, "open", lambda lake, path: opened.append(path) or real(lake, path))
    assert answer(carrying)["a.a"] == 5
    assert opened == []
    publish(other, 9, "a.a")
    assert answer(carrying) == {"a.a": 9, **{f"a.b{cut_ts}": cut_ts for cut_ts in range(1, 6)}}
    assert len(opened) == 1
    state = control.current(other, tables.CUTS)
    assert state is not None
    control.pack(other, tables.CUTS, state, smaller_bytes=1 << 30)
    assert answer(carrying) == answer(other)


def test_rows_above_a_bound_are_read_once_whatever_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    carrying, other = LakeFiles(str(tmp_path)), LakeFiles(str(tmp_path))
    carrying.carry()
    for cut_ts in range(1, 8):
        publish(other, cut_ts, "", f"a.b{cut_ts}")
    opened = list[str]()
    real = LakeFiles.open
    monkeypatch.setattr(LakeFiles, "open", lambda lake, path: opened.append(path) or real(lake, path))

    def above(bound: int) -> list[int]:
        filters, columns = [("table", "=", "")], ["cut_ts"]
        rows = control.read_above(carrying, tables.CUTS, ("cut_ts", bound), columns=columns, filters=filters)
        as_read = control.read(other, tables.CUTS, columns=columns, filters=[*filters, ("cut_ts", ">", bound)])
        assert sorted(rows["cut_ts"].to_pylist()) == sorted(as_read["cut_ts"].to_pylist())
        return sorted(rows["cut_ts"].to_pylist())

    assert above(5) == [6, 7]
    assert len(opened) == 2 * 2, "each lake opens two files, by the statistics in the log"
    opened.clear()
    assert above(3) == [4, 5, 6, 7]
    assert len(opened) == 2 + 4, "the one that carries opens two more"
    opened.clear()
    assert above(6) == [7]
    assert len(opened) == 1, "and then none"
    state = control.current(other, tables.CUTS)
    assert state is not None
    control.pack(other, tables.CUTS, state, smaller_bytes=1 << 30)
    assert above(4) == [5, 6, 7]
