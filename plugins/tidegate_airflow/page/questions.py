"""The way to a question under Airflow's Required Actions: only a DAG that isn't paused asks it.

In:  a PipelineView; whether Airflow has its DAG <pipeline>__approve, and whether that is paused.
Out: HTML.
"""

from __future__ import annotations

from enum import StrEnum
from html import escape
from typing import TYPE_CHECKING, Final

from tidegate.standing.causes import ASK_A_PERSON
from tidegate.tables.prewrites_table import PrewriteState

if TYPE_CHECKING:
    from tidegate.lake.figures.status import TableStatus
    from tidegate.pipelines import PipelineView

APPROVE: Final = "approve"


class DagState(StrEnum):
    """The state of a DAG of the pipeline."""

    RUNS = "runs"
    PAUSED = "paused"
    MISSING = "missing"  # Airflow hasn't read its file yet


def is_asked(view: PipelineView, name: str = "") -> bool:
    """Whether something waits for an answer in Airflow. name: whether this table does."""
    if not view.pipeline.asks or view.standing is None:
        return False
    tables = [table for table in view.standing.tables if name in ("", table.table)]
    parked = not name and any(prewrite.state is PrewriteState.PARKED for prewrite in view.prewrites)
    return parked or any(map(_asks, tables))


def _asks(table: TableStatus) -> bool:
    return table.cause in ASK_A_PERSON


def way_to_answer(view: PipelineView, asker: DagState | None, root: str) -> str:
    """A sentence with a link. asker: None if nothing is asked. root: the way to Airflow's own pages."""
    if asker is None:
        return ""
    dag = f"{escape(view.pipeline.pipeline)}__{APPROVE}"
    match asker:
        case DagState.RUNS:
            where = f"{root}dags/{dag}/required_actions?response_received=false"
            return f"The question is under <a href='{where}' target='_top'>Required Actions of {dag}</a>."
        case DagState.PAUSED:
            return (
                f"<span class='bad'><a href='{root}dags/{dag}' target='_top'>{dag}</a> is paused, so Required Actions"
                " doesn't have the question. Unpause it; it then asks within seconds.</span>"
            )
        case DagState.MISSING:
            return f"Airflow hasn't read <code>{dag}</code> yet. It asks under Required Actions once it is there."
