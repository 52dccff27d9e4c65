"""The archive of Spark's classes is made beside what starts at once, and not at all by what ends before."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.seeds import LONG
from tests.support.servers import ROOT
from tidegate.local.class_archive import ensure, made_beside
from tidegate.spark_settings import class_archive


@pytest.fixture
def other_root(tmp_path: Path) -> Path:
    """A home with our jars and code, and no archive."""
    (tmp_path / ".tidegate").mkdir()
    for name in ("spark_jobs", "include", ".tidegate/jars"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def made(root: Path) -> list[str]:
    return sorted(path.name for path in (root / ".tidegate").iterdir())


def until(seconds: float, *names: str, root: Path) -> None:
    end = time.monotonic() + seconds
    while not set(names) <= set(made(root)):
        assert time.monotonic() < end, made(root)
        time.sleep(0.05)


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_it_is_begun_while_others_go_on_and_taken_back_when_they_end_first(other_root: Path) -> None:
    with made_beside(other_root):
        assert set(made(other_root)) <= {"jars", "spark.lock"}, "nobody waits for it"
        until(300, "spark.lock", root=other_root)
        time.sleep(2)  # Spark is starting
    assert set(made(other_root)) <= {"jars", "spark.lock"}


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="it takes a Spark of its own; `make jars` makes one in the same way")
def test_it_is_made_while_others_go_on(other_root: Path) -> None:
    with made_beside(other_root):
        until(500, "spark.jsa", "spark.made", root=other_root)
    assert class_archive(other_root).stat().st_size > 50_000_000


@pytest.mark.spark
def test_it_is_made_once() -> None:
    assert ensure(ROOT)
    there = class_archive(ROOT).stat()
    assert there.st_size > 50_000_000
    assert ensure(ROOT)
    assert class_archive(ROOT).stat() == there
