"""A table as ConnectorX reads it to Arrow columns, in a process of its own.

In:  per run one line of JSON on standard input: {"host", "port", "user", "password", "database", "table", "times"}.
Out: one line of JSON: {"rows": rows read, of all times, "values": column values that were there}.

program() makes it obtainable: the pinned package goes into a folder below .tidegate/bench by the user's own pip, so it
is no part of tidegate's environment, and Missing says why where it can't be had. pyarrow is tidegate's own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

NAME: Final = "ConnectorX 0.4.6"
_PACKAGE: Final = "connectorx==0.4.6"
_SECONDS: Final = 300.0


def program(cache: Path) -> list[str]:
    """The command that runs this file with the package. Fetched once. Raises Missing."""
    from benchmarks.figures import Missing
    from tidegate.local.ivy import locked

    folder = cache / _PACKAGE.replace("==", "-")
    with locked(cache / ".lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                found = Path(scratch) / "packages"
                command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
                command += ["--no-deps", "--only-binary", ":all:", "--target", str(found), _PACKAGE]
                try:
                    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
                except subprocess.TimeoutExpired:
                    raise Missing(f"{NAME}: not fetched within {_SECONDS:.0f} s") from None
                if done.returncode != 0:
                    words = (done.stderr.strip().splitlines() or ["pip said nothing"])[0][:200]
                    raise Missing(f"{NAME}: pip can't install it here: {words}")
                shutil.move(found, folder)
    return [*("env", f"PYTHONPATH={folder}"), sys.executable, str(Path(__file__).resolve())]


def read(asked: dict[str, Any]) -> dict[str, int]:
    """The whole table over one connection, as often as asked."""
    import connectorx

    url = f"mysql://{asked['user']}:{asked['password']}@{asked['host']}:{asked['port']}/{asked['database']}"
    rows = values = 0
    for _ in range(asked["times"]):
        found = connectorx.read_sql(url, f"SELECT * FROM {asked['table']}", return_type="arrow")
        rows += found.num_rows
        values += sum(len(column) - column.null_count for column in found.columns)
    return {"rows": rows, "values": values}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(read(json.loads(line))), flush=True)
