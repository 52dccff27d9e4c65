"""Indexes of keys for files of a few rows, as large files have them.

In:  a test's monkeypatch.
Out: a file has an index as soon as it was looked through so often, for any number of keys.
"""

from __future__ import annotations

import pytest

from tidegate.upsert.keys import key_indexes


def of_small_files(monkeypatch: pytest.MonkeyPatch, after_times: int = 1) -> None:
    monkeypatch.setattr(key_indexes, "KEY_INDEX_FILE_ROWS_MIN", 1)
    monkeypatch.setattr(key_indexes, "KEY_INDEX_LOOKUP_ROWS", 0)
    monkeypatch.setattr(key_indexes, "KEY_INDEX_READ_ROWS_MIN", after_times)
