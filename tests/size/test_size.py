"""A full database in small: `make size` for as large a one as one likes; and that its comparison would find a row."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.road import Road
from tests.size.compare import compared
from tests.size.tables import DATABASE, Size, fill
from tests.soak.witness import Wrong
from tests.support.seeds import many, seed
from tests.support.servers import ROOT
from tidegate.local.server import Server


@pytest.mark.server
def test_the_comparison_names_the_table_that_silver_lacks_rows_of(mariadb: Server, tmp_path: Path) -> None:
    try:
        fill(mariadb, Size(rows=300, bag=30, small=2))
        assert mariadb.query(f"SELECT COUNT(*), MAX(id) > 1000000 FROM {DATABASE}.big") == [(300, 1)]
        lake = Road(mariadb, tmp_path, include=f"{DATABASE}.*").lake
        with pytest.raises(
            Wrong, match=r"4 tables differ by plain SELECT: .*bag: .30, '\d{10,}'. at the source, None in silver"
        ):
            compared(mariadb, Path(lake.root))
    finally:
        mariadb.query(f"DROP DATABASE {DATABASE}")


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.long
def test_a_full_database_is_equal_after_kills_and_ddl_and_what_is_planted_is_mended() -> None:
    sizes = ["--rows", str(many(20_000, 300_000)), "--bag", str(many(3_000, 50_000)), "--small", str(many(12, 50))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.size", *sizes, "--bytes-per-second", "100000", "--seed", str(seed())],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=many(1400, 3600),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(
        r"size: [\d,]+ rows in \d+ tables equal .*; 60 differences found .*; 0 wrong", done.stdout.splitlines()[-1]
    )
