"""A table as ConnectorX reads it to Arrow columns, in a process of its own.

In:  per run one line of JSON on standard input: {"host", "port", "user", "password", "database", "table", "times"}.
Out: one line of JSON: {"rows": rows read, of all times, "values": column values that were there}.

program() makes it obtainable: pip.py fetches the pinned package. pyarrow is tidegate's own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

NAME: Final = "ConnectorX 0.4.6"
_PACKAGE: Final = "connectorx==0.4.6"


def program(cache: Path) -> list[str]:
    """The command that runs this file with the package. Raises Missing."""
    from benchmarks.peers import pip

    return pip.program(__file__, pip.folder_of(NAME, _PACKAGE, cache))


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
