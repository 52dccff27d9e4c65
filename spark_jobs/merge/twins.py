"""Leave one row per key, if another writer has put a second row of a key into silver: MERGE updates both.

In:  a private log after the MERGE of a window's changes, and what the MERGE counted.
Out: one row of each of the window's keys, in the same commit. The positional writer needs none of it: it replaces
     every row of a key.

The MERGE is undone. Another one deletes all rows of such a key, and inserts the one row. It is still one statement, so
a change feed has each delete and the insert. In a window without a snapshot's rows such rows stay until `verify
--repair`: a count of its upserts would cost a Spark job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.merge.private.log import PrivateLog
from tidegate import tables
from tidegate.merge import silver_sql
from tidegate.merge.silver_sql import SilverShape
from tidegate.spark_sql import quote

if TYPE_CHECKING:
    from pyspark.sql import Row


def leave_one_of_each(private: PrivateLog, source: str, shape: SilverShape, counted: Row) -> None:
    """source: SELECT of the changes, one per key. counted: the row that MERGE returned."""
    ask = private.session.sql
    ((written,),) = ask(f"SELECT count(*) FROM ({source}) WHERE {quote(tables.OP)} <> {tables.OP_DELETE}").collect()
    if counted.num_updated_rows + counted.num_inserted_rows == written:
        return
    private.undo()
    ask(silver_sql.merge_twins(private.uri, source, shape))
