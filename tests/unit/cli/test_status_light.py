"""`tidegate status` imports no compiler and no pandas: they cost it more than all that it reads."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from tidegate import tables
from tidegate.lake import control
from tidegate.lake.files import LakeFiles

_PROGRAM = """
import sys
sys.argv = ["tidegate", "status", sys.argv[1]]
from tidegate.cli.main import run
try:
    run()
finally:
    print("imported:", *sorted({"numba", "llvmlite", "pandas", "duckdb"}.intersection(sys.modules)))
"""


def test_status_imports_no_compiler_and_no_pandas(tmp_path: Path) -> None:
    lake, file = LakeFiles(str(tmp_path / "lake")), tmp_path / "p.yaml"
    file.write_text(
        f"pipeline: p\nlake: {{path: {lake.root}}}\nsources: {{main: {{conn_id: away, flavour: mariadb}}}}\n"
        "tables: {include: ['d.*']}\n"
    )
    cut = {"cut_ts": 100, "delta_version": -1, "applied_ts": 100, "state": "active", "published_at": datetime.now(UTC)}
    control.append(lake, tables.CUTS, [cut | {"table": name} for name in ("", "d.t")])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(file)],
        env=os.environ | {"AIRFLOW_CONN_AWAY": "mysql://u:p@127.0.0.1:1/"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "connection refused" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "imported:"
