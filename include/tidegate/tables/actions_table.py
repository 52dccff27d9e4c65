"""The control table of people's actions, a part of tables/.

In:  nothing; this is data.
Out: its Arrow schema, and the words of its columns.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

from tidegate.tables.form import Table, field


class Act(StrEnum):
    """actions.action."""

    RELEASE = "release"  # a held table goes on
    APPROVE = "approve"  # silver follows the statement that the pipeline file asks about
    REFRESH = "refresh"  # the server was asked for a table's columns
    JUDGE = "judge"  # the effect of a statement or event that tidegate couldn't follow
    COMMIT = "commit"  # rows of transactions without an answer are applied
    ROLL_BACK = "roll back"  # ... are left out
    SNAPSHOT = "snapshot"  # rows are to be read by SELECT
    RESTART = "restart"  # ... from the beginning again
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    ACCEPT = "accept"  # a source's lost log
    ERASE = "erase"  # a person's rows leave the lake
    WRITE = "write"  # another writer changed rows of silver: user is its engine, place `silver`


class ActionOutcome(StrEnum):
    """actions.outcome."""

    BEGUN = "begun"  # written before anything is done; alone: whoever did it was killed, and it may be done
    DONE = "done"
    REFUSED = "refused"  # nothing was changed: the call is wrong, or comes too late
    FAILED = "failed"  # it met an error, after which some of it may be done


ACTIONS: Final = Table(
    path="control/actions",
    doc="What people did by commands and in Airflow: a row before it is done, and one with its outcome.",
    key=("id", "recorded_at"),
    schema=pa.schema(
        [
            field("id", pa.string(), "32 hex digits; both rows of an action have the same"),
            field("pipeline", pa.string(), "pipeline"),
            field("action", pa.string(), f"{' | '.join(Act)}"),
            field("tables", pa.list_(pa.string()), "logical tables, database.table; accept: []"),
            field(
                "subject",
                pa.string(),
                "the statement, place, transaction or source; erase: a hash; '' where there is none",
            ),
            field("user", pa.string(), "name of the user"),
            field("place", pa.string(), "command line (the operating system's user) | Airflow (Airflow's) | silver"),
            field("outcome", pa.string(), f"{' | '.join(ActionOutcome)}"),
            field("detail", pa.string(), "one line: the result, or the error; '' of a row before it is done"),
            field("recorded_at", pa.timestamp("us", tz="UTC"), "when; the last row per id counts"),
        ]
    ),
)
