"""The section `ddl` of a pipeline file: what silver does with each kind of DDL.

In:  apply | ask | ignore | stop per kind.
Out: a Ddl; what can't be right is refused.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from tidegate.config.section import Section


class Policy(StrEnum):
    """The reaction of silver to a DDL of some kind. See Ddl."""

    APPLY = "apply"  # silver follows
    ASK = "ask"  # the table waits until a person has approved the statement
    IGNORE = "ignore"  # silver stays as it is, and later changes go on into it
    STOP = "stop"  # the table waits until the policy is changed


class Cascades(StrEnum):
    """The treatment of a table that foreign keys change without row events."""

    FOLLOW = "follow"  # its changes are computed from the parent's rows; if that isn't certain, the table is held
    HOLD = "hold"  # it waits, by name
    WARN = "warn"  # it goes on, with a warning: silver keeps the rows that the cascade deleted or changed


class Computed(StrEnum):
    """The treatment of a generated column that a MariaDB doesn't log in updates."""

    ASK = "ask"  # apply asks the source for the values, by the rows' keys
    HOLD = "hold"  # its table waits, by name


class SessionValues(StrEnum):
    """The treatment of a virtual column with another value in each session's time zone or language."""

    HOLD = "hold"  # its table waits, by name
    LOGGED = "logged"  # silver has the writer's value; a snapshot computes it in UTC


class Effects(StrEnum):
    """The tables that a statement counts for, if it is logged in the place of rows."""

    ALL = "all"  # also what triggers, functions and foreign keys may change for it
    NAMED = "named"  # what its text says


def _not_ignored(value: object) -> object:
    """Refuse `ignore` for kinds after which rows no longer fit silver's columns or key."""
    if value == Policy.IGNORE:
        raise ValueError("ignore can't be right here: later rows have the table's new columns; use apply, ask or stop")
    return value


_Followed = Annotated[Policy, BeforeValidator(_not_ignored)]


class Ddl(Section):
    """The reaction of silver to each kind of DDL. One statement may be of several kinds: the strictest counts."""

    add_column: _Followed = Field(
        Policy.APPLY, description="ADD COLUMN. Older rows get the value that the server gave them"
    )
    drop_column: _Followed = Field(Policy.APPLY, description="DROP COLUMN. Silver drops the values too")
    rename_column: _Followed = Field(Policy.APPLY, description="CHANGE and RENAME COLUMN. Values stay")
    change_type: _Followed = Field(
        Policy.APPLY,
        description="Another type or character set. The table is held if the server may have rewritten values",
    )
    change_key: _Followed = Field(Policy.APPLY, description="Another primary key, or the first or last one")
    rename_table: _Followed = Field(
        Policy.APPLY,
        description="RENAME TABLE, for the old name and the new one. One approval covers all tables of the statement",
    )
    truncate: Policy = Field(
        Policy.APPLY, description="TRUNCATE. ignore: silver keeps the rows, and new ones join them"
    )
    drop_table: Policy = Field(
        Policy.APPLY,
        description="DROP TABLE and DATABASE. ignore: silver keeps the rows until a table of that name comes",
    )
    drop_partition: Policy = Field(
        Policy.APPLY,
        description="DROP and TRUNCATE PARTITION. ignore: silver keeps the rows, and new ones join them. A later DROP"
        " or EXCHANGE of a partition that would hold the kept rows affects them too",
    )
    move_partition: _Followed = Field(
        Policy.APPLY,
        description="EXCHANGE and CONVERT PARTITION, for both tables. One approval covers both",
    )

    unlogged_cascades: Cascades = Field(
        Cascades.FOLLOW,
        description="A table with ON DELETE or ON UPDATE CASCADE or SET NULL, on a server that doesn't log these"
        " changes (MariaDB, MySQL before 9.6). follow: compute them from the parent's rows, and hold the"
        " table if the result isn't certain. hold: hold the table. warn: let silver differ",
    )

    unlogged_generated: Computed = Field(
        Computed.ASK,
        description="A generated column that a MariaDB logs in inserts alone (11.8). ask: apply asks the source for"
        " the changed rows' values, by their keys; the driver gets the login of conn_id. hold: hold the table",
    )

    session_values: SessionValues = Field(
        SessionValues.HOLD,
        description="A VIRTUAL column with another value in each session's time zone or language, such as"
        " DATE(created_at) of a TIMESTAMP. hold: hold the table. logged: take the writer's value from the log; a"
        " snapshot and verify compute it in UTC and English, so choose it where all writers do so, too",
    )

    statement_effects: Effects = Field(
        Effects.ALL,
        description="Which tables wait after a statement in the log (a session with binlog_format STATEMENT). all:"
        " also the tables that its triggers, functions and foreign keys may change: in the databases that"
        " MySQL names, or anywhere in MariaDB. named: only the tables in its text, for sources without"
        " triggers, functions and foreign keys that change others",
    )

    @property
    def asks(self) -> bool:
        """Whether any kind waits for a person."""
        return any(policy is Policy.ASK for _, policy in self)
