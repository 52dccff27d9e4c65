"""Ask a person about a held table, and let the table go on by the answer.

In:  a pipeline file, one question: a table and a DDL statement, or its waiting XA transactions; or a source and
     transactions beyond its TiDB's knowledge (table_questions).
Out: for a DDL a `released` event in control/table_states with the name of the approver; for XA transactions rows of
     control/prewrites with the decision and its author; nothing when they keep it held, or when the question ended
     elsewhere.

While the question is open no process waits: Airflow keeps it, and shows it under Required Actions. The triggerer looks
whether it still waits for an answer (answer_trigger.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowSkipException, TaskAwaitingInput

from tidegate import pipelines
from tidegate.actions.parked import in_full, tables_of
from tidegate.errors import HoldChangedError
from tidegate.lake.people.questions import of_tidb
from tidegate.limits import ASKED_ALONE_TABLES_MAX
from tidegate_airflow.answer_trigger import ENDED, AnswerTrigger
from tidegate_airflow.connections import PLACE, lake_connection, source_connection

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidegate.actions.desk import Desk
    from tidegate.config import Pipeline
    from tidegate.lake.files import LakeFiles
    from tidegate.segments.prewrites import Prewrite
    from tidegate.standing.standing import Place, Standing

APPROVE: Final = "Approve"
COMMIT: Final = "Commit"
ROLL_BACK: Final = "Roll back"
KEEP: Final = "Keep holding"
_SHOWN_MAX: Final = 20

T = TypeVar("T")


class Question(TypedDict):
    """One question: ApproveOperator is mapped over these. table: a silver table, a source, or how
    many tables. about: the entries of OpenQuestions, ended by the answer. They tell a table's
    questions apart. branches: keys of the transactions; empty for a DDL.
    """

    table: str
    about: dict[str, int]
    subject: str
    body: str
    branches: list[str]


class ApproveOperator(HITLOperator):
    """Approve | Keep holding, for one table; of XA transactions Commit | Roll back | Keep holding."""

    template_fields: Sequence[str] = ()  # braces in a statement are no template

    def __init__(
        self, *, pipeline_file: str, table: str, about: dict[str, int], branches: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(options=[COMMIT, ROLL_BACK, KEEP] if branches else [APPROVE, KEEP], **kwargs)
        self.pipeline_file = pipeline_file
        self.table = table
        self.about = about
        self.branches = branches

    def execute(self, context: Context) -> None:
        """Ask. Airflow's own way would wait for a person only."""
        with suppress(TaskAwaitingInput):
            super().execute(context)
        lake = pipelines.load(Path(self.pipeline_file)).lake
        trigger = AnswerTrigger(
            ti_id=context["task_instance"].id,
            about=self.about,
            lake=lake.path,
            conn_id=lake.conn_id,
            storage=lake.storage_options,
        )
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Called with the answer. Does nothing if the table isn't held any more, or is held for another cause."""
        if ENDED in event.get("chosen_options", ()):
            raise AirflowSkipException(f"{self.table} doesn't wait for an answer any more")
        answer = super().execute_complete(context, event)
        chosen = answer["chosen_options"]
        if KEEP in chosen or not chosen:
            way = "prewrites` still decides" if self.branches else "release` still approves it"
            raise AirflowSkipException(f"{self.table} stays held: `tidegate {way}")
        who = (answer["responded_by_user"] or {}).get("name") or "an unknown user"
        pipeline = pipelines.load(Path(self.pipeline_file))
        lake = pipelines.open_lake(pipeline, lake_connection)
        from tidegate.actions.desk import Desk
        from tidegate.lake.people.audit import Author

        desk = Desk(pipeline, lake, source_connection, Author(who, PLACE))
        if self.branches:
            self._decide(desk, commit=COMMIT in chosen)
        else:
            self._approve(desk)
        return answer

    def _approve(self, desk: Desk) -> None:
        from tidegate.actions import holds
        from tidegate.lake.standing import held

        waiting = held.questions(desk.lake)
        for table, at_ts in self.about.items():
            standing = waiting.get(table)
            if standing is None or standing.place is None or standing.place.at_ts != at_ts:
                self.log.info("%s doesn't wait for this statement any more", table)
                continue
            try:
                self.log.info("%s", holds.release(desk, table, standing.since))
            except HoldChangedError as error:  # somebody else acted meanwhile
                self.log.info("%s", error)

    def _decide(self, desk: Desk, *, commit: bool) -> None:
        """Decide the transactions of the question, except those that were decided meanwhile."""
        from tidegate.lake.bronze import prewrites
        from tidegate.tables.actions_table import Act
        from tidegate.tables.prewrites_table import PrewriteState

        state, act = (PrewriteState.COMMITTED, Act.COMMIT) if commit else (PrewriteState.ROLLED_BACK, Act.ROLL_BACK)
        asked, who = set(self.branches), f"{desk.author.user} in {PLACE}"
        branches = [branch for branch in _parked(desk.pipeline, desk.lake, self.table) if in_full(branch) in asked]
        with desk.recorded(act, tables_of(desk.pipeline, *branches), ", ".join(map(in_full, branches))) as result:
            done = sum(prewrites.decide(desk.lake, branch, state, who) for branch in branches)
            result.line = f"{done} of {len(asked)} transactions are {state}; {self.table} goes on"
        self.log.info("%s", result.line)


def table_questions(pipeline_file: str, named: Sequence[str], asked: Mapping[str, int] | None = None) -> list[Question]:
    """A question for each waiting one of the tables; for every waiting one when none is named.
    asked: entries of open questions.
    """
    from tidegate.lake.bronze import prewrites
    from tidegate.lake.standing import held
    from tidegate.standing.causes import Cause

    pipeline, asked = pipelines.load(Path(pipeline_file)), asked or {}
    lake = pipelines.open_lake(pipeline, lake_connection)
    waiting, pumps = held.questions(lake), prewrites.parked_by_pumps(lake)
    questions: list[Question] = []
    ddls: list[tuple[Standing, Place]] = []
    for table in named or sorted([*waiting, *pumps]):
        unasked = [parked for parked in pumps.get(table, ()) if of_tidb(table, parked.start_ts) not in asked]
        if unasked:
            questions.append(_about_tidb(table, pipeline.pipeline, unasked))
        if table not in waiting or (at := waiting[table].place) is None or asked.get(table) == at.at_ts:
            continue
        if waiting[table].cause is not Cause.PARKED:
            ddls.append((waiting[table], at))
        elif branches := [branch for branch in _parked(pipeline, lake, table) if branch.answer_ts <= at.at_ts]:
            _add_xa(questions, _about_xa(waiting[table], at, branches))
    alone = len(ddls) if len(ddls) <= ASKED_ALONE_TABLES_MAX + 1 else ASKED_ALONE_TABLES_MAX
    questions += [_about_ddl(standing, at) for standing, at in ddls[:alone]]
    questions.sort(key=lambda question: question["table"])
    return questions + ([_about_many(ddls[alone:])] if ddls[alone:] else [])


def _add_xa(questions: list[Question], about_xa: Question) -> None:
    """A table whose transactions are all in another question waits for the answer to that one."""
    for question in questions:
        if set(about_xa["branches"]) <= set(question["branches"]):
            question["about"] |= about_xa["about"]
            return
    questions.append(about_xa)


def _parked(pipeline: Pipeline, lake: LakeFiles, table: str) -> list[Prewrite]:
    """Unanswered XA transactions with writes to a silver table; or those of a TiDB's source."""
    from tidegate.lake.bronze import prewrites
    from tidegate.tables.prewrites_table import PrewriteState

    def wrote(prewrite: Prewrite) -> bool:
        if prewrites.of_pump(prewrite):
            return prewrite.source == table
        return table in tables_of(pipeline, prewrite)

    unsettled = (prewrite for of_source in prewrites.unsettled(lake).values() for prewrite in of_source)
    return [prewrite for prewrite in unsettled if prewrite.state is PrewriteState.PARKED and wrote(prewrite)]


def _about_ddl(held: Standing, at: Place) -> Question:
    table, ddl = held.table, at.ddl.replace("```", "` ` `")
    body = (
        f"```sql\n{ddl}\n```\n\n"
        f"ran on `{at.source}`, table `{at.database}.{at.table}`, and ends at"
        f" `{at.file}:{at.pos}` of its binlog. The pipeline file says `ask` for this kind of"
        f" DDL, so silver of `{table}` waits at the state before it. Other tables go on.\n\n"
        f"- **{APPROVE}**: silver follows the statement and catches up from bronze.\n"
        f"- **{KEEP}**: the table stays held. `tidegate release {held.pipeline} {table}` approves it later.\n"
    )
    return Question(
        table=table, about={table: at.at_ts}, subject=f"{table}: may silver follow this DDL?", body=body, branches=[]
    )


def _about_many(waiting: Sequence[tuple[Standing, Place]]) -> Question:
    """One question about all tables beyond the first ones."""
    shown = _listed(waiting, lambda held: f"`{held[0].table}`: `{shorten(held[1].ddl.replace('`', ''), 200)}`")
    pipeline = waiting[0][0].pipeline
    body = (
        f"{shown}\n\nThe pipeline file says `ask` for these statements. `tidegate status {pipeline}` and the page"
        " show each table.\n\n"
        f"- **{APPROVE}**: silver follows all these statements, and catches up from bronze.\n"
        f"- **{KEEP}**: the tables stay held. `tidegate release {pipeline} TABLE` approves each by itself.\n"
    )
    name = f"{len(waiting)} more tables"
    about = {standing.table: at.at_ts for standing, at in waiting}
    return Question(table=name, about=about, subject=f"{name}: may silver follow their DDL?", body=body, branches=[])


def _listed(waiting: Sequence[T], line: Callable[[T], str]) -> str:
    """A list of the first ones, and the number of the others."""
    shown = "".join(f"- {line(item)}\n" for item in waiting[:_SHOWN_MAX])
    more = len(waiting) - _SHOWN_MAX
    return f"{shown}{f'- and {more} more' if more > 0 else ''}"


def _about_tidb(source: str, pipeline: str, parked: Sequence[Prewrite]) -> Question:
    from tidegate.commit_ts import time_text

    last = sorted(parked, key=lambda prewrite: prewrite.start_ts)
    unknown = "what its TiDB knows no more"
    shown = _listed(
        last,
        lambda prewrite: (
            f"`{prewrite.id}`, begun {time_text(prewrite.start_ts)}; wrote to {', '.join(prewrite.tables) or unknown}"
        ),
    )
    body = (
        f"{shown}\n\n"
        f"came to a Pump of `{source}` without an answer, and their TiDB can't tell any more what became of them: its"
        " garbage collection has passed them. All tables of this TiDB wait before the first of them. Look for their"
        " rows there.\n\n"
        f"- **{COMMIT}**: their rows are applied, as of when they came.\n"
        f"- **{ROLL_BACK}**: their rows are left out.\n"
        f"- **{KEEP}**: all goes on waiting; `tidegate prewrites {pipeline}` decides each by itself.\n\n"
        f"Then `tidegate verify {pipeline} --repair` compares their tables with TiDB's.\n"
    )
    subject = f"{source}: were these {len(last)} transactions of TiDB committed?"
    return Question(
        table=source,
        about={of_tidb(source, prewrite.start_ts): prewrite.start_ts for prewrite in last},
        subject=subject,
        body=body,
        branches=[in_full(prewrite) for prewrite in last],
    )


def _about_xa(held: Standing, at: Place, branches: Sequence[Prewrite]) -> Question:
    from tidegate.commit_ts import time_text

    table = held.table
    shown = _listed(
        branches,
        lambda branch: (
            f"`{branch.id}` of `{branch.source}`, prepared {time_text(branch.start_ts)};"
            f" wrote to {', '.join(branch.tables)}"
        ),
    )
    body = (
        f"{shown}\n\n"
        f"aren't prepared at `{at.source}` any more, and its log has no answer to them up to `{at.file}:{at.pos}`."
        f" Ask their transaction manager, or look for their rows at the source. Silver of `{table}` waits before them;"
        " other tables go on.\n\n"
        f"- **{COMMIT}**: their rows are applied, in every table that they wrote to.\n"
        f"- **{ROLL_BACK}**: their rows are left out.\n"
        f"- **{KEEP}**: the table stays held; `tidegate prewrites {held.pipeline}` decides each by itself.\n"
    )
    subject = f"{table}: were these {len(branches)} XA transactions committed?"
    keys = [in_full(branch) for branch in branches]
    return Question(table=table, about={table: at.at_ts}, subject=subject, body=body, branches=keys)
