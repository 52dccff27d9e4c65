"""A statement over many rows has compiled code, however few bytes they take on the disk."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_jobs import maintenance
from spark_jobs.maintenance import Maintenance, SilverTable, Size
from tidegate.lake.files import LakeFiles
from tidegate.limits import CODEGEN_BYTES_MIN, CODEGEN_ROWS_MIN


def size(of_bytes: int, rows: int) -> Size:
    return Size(files=2, bytes=of_bytes, small=0, small_bytes=0, unclustered_bytes=0, rows=rows, dead=0)


@pytest.mark.parametrize(
    ("table", "compiled"),
    [
        (size(CODEGEN_BYTES_MIN - 1, CODEGEN_ROWS_MIN - 1), "false"),
        (size(CODEGEN_BYTES_MIN, 1), "true"),
        (size(1 << 20, CODEGEN_ROWS_MIN), "true"),
    ],
)
def test_code_is_compiled_for_many_bytes_or_many_rows(
    table: Size, compiled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, str] = {}
    spark = cast("Any", SimpleNamespace(conf=SimpleNamespace(set=settings.__setitem__)))
    seen: list[str] = []
    monkeypatch.setattr(
        maintenance.Maintenance, "_rewrite", lambda *_: seen.append(settings["spark.sql.codegen.wholeStage"])
    )
    job = Maintenance(spark, cast("Any", None), LakeFiles("/nowhere"), lambda _: None)
    assert job.rewrite(SilverTable("d.t", ("d", "t"), []), "OPTIMIZE {}".format, table)
    assert seen == [compiled]
    assert settings["spark.sql.codegen.wholeStage"] == "false", "for the small statements that follow"
