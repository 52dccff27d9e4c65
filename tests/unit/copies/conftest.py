"""A lake with some tables, for the tests of its copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.copies.lakes import FakeLake


@pytest.fixture
def lake(tmp_path: Path) -> FakeLake:
    made = FakeLake(tmp_path / "lake")
    made.fill()
    return made
