"""Put a held table's DDL before a person, and let the table go on when they approve it.

In:  a pipeline file, one question: the table, the statement and its place (table_questions).
Out: a `released` event in control/table_states that names who approved; nothing when they didn't.

While the question is open no process waits: Airflow keeps it, and shows it under Required Actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowSkipException

from tidegate import pipelines
from tidegate_airflow.connections import lake_connection

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.lake.files import LakeFiles
    from tidegate.lake.held import Place, TableState

APPROVE: Final = "Approve"
KEEP: Final = "Keep holding"


class Question(TypedDict):
    """What ApproveOperator is mapped over. at_ts: commit_ts of the statement; it tells a table's questions apart."""

    table: str
    at_ts: int
    subject: str
    body: str


class ApproveOperator(HITLOperator):
    """Approve | Keep holding, for one table."""

    template_fields: Sequence[str] = ()  # a statement may hold braces, and they are no template

    def __init__(self, *, pipeline_file: str, table: str, at_ts: int, **kwargs: Any) -> None:
        super().__init__(options=[APPROVE, KEEP], **kwargs)
        self.pipeline_file = pipeline_file
        self.table = table
        self.at_ts = at_ts

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Called with the answer. A table that isn't held any more, or for another statement, is left alone."""
        from tidegate.lake import held

        answer = super().execute_complete(context, event)
        if APPROVE not in answer["chosen_options"]:
            raise AirflowSkipException(f"{self.table} stays held: `tidegate release` still approves it")
        lake = lake_of(self.pipeline_file)
        waiting = held.questions(lake).get(self.table)
        if waiting is None or waiting.place is None or waiting.place.at_ts != self.at_ts:
            self.log.info("%s doesn't wait for this statement any more", self.table)
            return answer
        user = answer["responded_by_user"] or {}
        held.release(lake, waiting, reason=f"approved in Airflow by {user.get('name') or 'an unknown user'}")
        self.log.info("%s goes on with the next window", self.table)
        return answer


def table_questions(pipeline_file: str, named: Sequence[str]) -> list[Question]:
    """A question for each of the tables that waits; for every one that does when none is named."""
    from tidegate.lake import held

    waiting = held.questions(lake_of(pipeline_file))
    return [
        _question(waiting[table], at)
        for table in named or sorted(waiting)
        if table in waiting and (at := waiting[table].place)
    ]


def lake_of(pipeline_file: str) -> LakeFiles:
    """The pipeline's lake with its connection's secrets. Raises ConfigError."""
    return pipelines.open_lake(pipelines.load(Path(pipeline_file)), lake_connection)


def _question(held: TableState, at: Place) -> Question:
    table, ddl = held.table, at.ddl.replace("```", "` ` `")
    body = (
        f"```sql\n{ddl}\n```\n\n"
        f"ran on `{at.source}`, table `{at.database}.{at.table}`, and ends at"
        f" `{at.file}:{at.pos}` of its binlog. The pipeline file says `ask` for this kind of"
        f" DDL, so silver of `{table}` waits at the state before it. Other tables go on.\n\n"
        f"- **{APPROVE}**: silver follows the statement and catches up from bronze.\n"
        f"- **{KEEP}**: the table stays held. `tidegate release {held.pipeline} {table}` approves it later.\n"
    )
    return Question(table=table, at_ts=at.at_ts, subject=f"{table}: may silver follow this DDL?", body=body)
