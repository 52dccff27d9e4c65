"""Lines as changes with both sides: what a line doesn't tell isn't taken for NULL."""

from __future__ import annotations

import json

from tidegate.columnar.decoded import IMAGE_BEFORE
from tidegate.config import Csv, Protocol
from tidegate.ticdc.logged import logged_of
from tidegate.ticdc.pieces import Form
from tidegate.ticdc.rows import WantedColumns

NAMES = ("id", "a", "b")
FORM = Form(Protocol.CANAL_JSON, "UTC", all_rows=False, csv=Csv())


def line(kind: str, row: dict[str, str | None], old: dict[str, str | None] | None = None) -> bytes:
    said = {"isDdl": False, "type": kind, "old": old and [old], "data": [row], "_tidb": {"commitTs": 5}}
    return json.dumps(said, separators=(",", ":")).encode() + b"\r\n"


def test_an_updates_old_values_are_those_that_its_line_names() -> None:
    new = {"id": "1", "a": "x", "b": None}
    runs = [line("UPDATE", new, {"id": "1", "a": None, "b": "was"}) + line("UPDATE", new, {"b": "was"})]
    found = logged_of(runs, WantedColumns(FORM, NAMES, ["id"], whole_deletes=""))
    assert found.has_old.T.tolist() == [[True, True, True], [True, False, True]]
    assert [column.to_pylist() for column in found.old] == [["1", "1"], [None, None], ["was", "was"]]
    assert found.kind.tolist() == [IMAGE_BEFORE] * 2


def test_a_delete_that_tells_its_key_alone_has_no_other_columns() -> None:
    runs = [line("INSERT", {"id": "1", "a": "x", "b": None}) + line("DELETE", {"id": "1"})]
    found = logged_of(runs, WantedColumns(FORM, NAMES, ["id"], whole_deletes=""))
    assert found.has_new.T.tolist() == [[True, True, True], [True, False, False]]
