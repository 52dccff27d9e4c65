"""Rows of a binlog as mysql-replication (pymysqlreplication) decodes them, in a process of its own.

In:  per run one line of JSON on standard input: {"host", "port", "user", "password", "file", "rows"}.
Out: one line of JSON: {"rows": row changes read, "values": column values that were there}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

NAME = "mysql-replication"


def read(asked: dict[str, Any]) -> dict[str, int]:
    """The first rows of a file: it reads over a connection only."""
    stream = BinLogStreamReader(
        connection_settings={
            "host": asked["host"],
            "port": asked["port"],
            "user": asked["user"],
            "passwd": asked["password"],
        },
        server_id=987_654,
        log_file=asked["file"],
        log_pos=4,
        resume_stream=True,
        is_mariadb=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )
    rows = values = 0
    for event in stream:
        for row in event.rows:
            images = [row["values"]] if "values" in row else [row["before_values"], row["after_values"]]
            values += sum(value is not None for image in images for value in image.values())
        rows += len(event.rows)
        if rows >= asked["rows"]:
            break
    stream.close()
    return {"rows": rows, "values": values}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(read(json.loads(line))), flush=True)
