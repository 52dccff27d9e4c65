"""Connections to DuckDB take an extension only as its makers signed it.

In:  the Delta extension that is installed, with a byte changed.
Out: a connection to it is refused. (tests/conftest.py lets the suite's other connections load it unread.)
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tidegate.errors import LakeRefused
from tidegate.query import duck


def test_an_extension_that_is_not_as_it_was_signed_is_refused(
    settings_of_duckdb: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = bytearray(duck.extension_file("delta").read_bytes())
    data[len(data) // 2] ^= 1
    changed = tmp_path / "delta.duckdb_extension"
    changed.write_bytes(data)
    monkeypatch.setattr(duck, "extension_file", lambda _name: changed)
    monkeypatch.setattr(duck, "_OFFLINE", settings_of_duckdb)
    with pytest.raises(duckdb.Error, match="signature"):
        duck.connect(1 << 26)


@pytest.mark.parametrize("path", ["/lakes/a%20b/silver/d/t", "s3://b/50%/silver/d/t", "/lakes/a\\b/silver/d/t"])
@pytest.mark.parametrize("version", [7, None])
def test_a_path_that_duckdb_reads_as_another_is_refused(path: str, version: int | None) -> None:
    """It decodes a path: of lakes/a%20b it would give the rows of the lake lakes/a b."""
    with pytest.raises(LakeRefused, match="in it as another one; move the lake to a path without it"):
        duck.scan(path, version)
    assert duck.scan("/lakes/a b/silver/d/t", 7) == "delta_scan('/lakes/a b/silver/d/t', version = 7)"
