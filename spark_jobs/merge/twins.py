"""One row per key where another writer has put a second row of a key into silver: MERGE writes both alike.

In:  a private log behind the MERGE of a window's changes, and what the MERGE counted.
Out: one row of each of the window's keys, in the same commit. The positional writer needs none of it: it replaces
     every row of a key.

A window of changes alone leaves such rows to the repair that verification asks for: to count its upserts costs a job.
In a table with a change data feed they stay, and verify goes on naming it: one commit can't tell the feed of several
statements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.merge.private.log import PrivateLog
from tidegate import tables
from tidegate.merge.silver_sql import SilverShape
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    from pyspark.sql import Row


def leave_one_of_each(private: PrivateLog, source: str, shape: SilverShape, counted: Row) -> None:
    """source: SELECT of the changes, one per key. counted: the row that MERGE returned."""
    if private.state.configuration.get("delta.enableChangeDataFeed", "").lower() == "true":
        return
    ask = private.session.sql
    upserts = f"SELECT * FROM ({source}) WHERE {quote(tables.OP)} <> {tables.OP_DELETE}"
    ((written,),) = ask(f"SELECT count(*) FROM ({upserts})").collect()
    if counted.num_updated_rows + counted.num_inserted_rows == written:
        return
    keys = ", ".join(map(quote, shape.key))
    merged = f"{private.target} VERSION AS OF {private.version}"
    twins = f"SELECT {keys} FROM {merged} JOIN ({upserts}) USING ({keys}) GROUP BY {keys} HAVING count(*) > 1"
    same = " AND ".join(f"t.{quote(name)} = s.{quote(name)}" for name in shape.key)
    ask(f"MERGE INTO {private.target} t USING ({twins}) s ON {same} WHEN MATCHED THEN DELETE")
    rank = f"row_number() OVER (PARTITION BY {keys} ORDER BY {quote(tables.COMMIT_TS)}) AS _tg_rank"
    rows = f"SELECT t.*, {rank} FROM {merged} t LEFT SEMI JOIN ({twins}) USING ({keys})"
    ask(f"INSERT INTO {private.target} BY NAME SELECT * EXCEPT (_tg_rank) FROM ({rows}) WHERE _tg_rank = 1")
