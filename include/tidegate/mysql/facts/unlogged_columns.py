"""Tables with generated columns of silver missing in the log: all their values, or those of other sessions.

In:  a pipeline, the tables of a source.
Out: those whose values apply asks for, and those held by an update; why a table with a column of each session is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tidegate.config import Computed, Pipeline
from tidegate.mysql.facts.server_facts import SourceFacts
from tidegate.schema.follow.session_values import computed_by_whoever_reads, of_each_session
from tidegate.schema.model.columns import Generated, TableVersion
from tidegate.schema.model.server import ServerVersion
from tidegate.watermark_table import WATERMARK_DATABASE

_TEMPORARY: Final = "CREATE TEMPORARY TABLES"
_LOGS_GENERATED: Final = 110405  # the newest MariaDB that is known to log generated columns in updates and deletes


def logs_generated(server: ServerVersion) -> bool:
    """Whether updates and deletes in the log have the values of generated columns."""
    return not (server.mariadb and server.number > _LOGS_GENERATED)


def computing_grant(facts: SourceFacts) -> str:
    """The statement, but for the account, that lets apply ask for rows in a temporary table; "" where it may."""
    if logs_generated(ServerVersion.of(facts.version)) or facts.holds(_TEMPORARY, WATERMARK_DATABASE):
        return ""
    return f"GRANT {_TEMPORARY} ON {WATERMARK_DATABASE}.*"


def needed_to_compute(facts: SourceFacts) -> str:
    grant = computing_grant(facts)
    return f"; tables whose rows change all the time need {grant} TO {facts.account}" if grant else ""


def unlogged_columns(
    pipeline: Pipeline, versions: Iterable[TableVersion]
) -> tuple[list[TableVersion], list[TableVersion]]:
    """(tables whose values apply asks for, tables that an update holds).

    Apply asks for a table with a key, if silver keeps no earlier rows of it. The values must be the same in all
    sessions.
    """
    asked, held = list[TableVersion](), list[TableVersion]()
    tables = pipeline.tables
    for version in versions:
        name = tables.logical(version.database, version.table)[:2]
        kept = tables.columns_of(*name)
        computed = [
            column
            for column in version.columns
            if column.generated is not Generated.NO and kept.take(column.name, of_key=column.id in version.key)
        ]
        if not computed:
            continue
        asks = pipeline.ddl.unlogged_generated is Computed.ASK and bool(version.key)
        earlier = tables.keeps_past(*name) or tables.keeps_changelog(*name)
        (asked if asks and not earlier and not of_each_session(version, computed) else held).append(version)
    return asked, held


def of_no_one_value(pipeline: Pipeline, version: TableVersion) -> str:
    """Why a virtual column of silver has no value to keep; "" without such a column."""
    tables = pipeline.tables
    kept = tables.columns_of(*tables.logical(version.database, version.table)[:2])
    return computed_by_whoever_reads(version, kept, pipeline.ddl.session_values)
