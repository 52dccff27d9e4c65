"""Add complete hours to the partitions of the pipeline's assets.

In:  the lake; Airflow's own record of the hours that were added.
Out: asset events, one per hour with its partition key, and one of the record; Airflow stores them
     when the task succeeds. Nothing else is written.

The record is an asset of its own. Its newest event by this task names the newest hour of each
asset. Airflow stores it in one transaction with the other events. A kill at any moment loses no
hour, and adds no hour twice. (The other assets' own events can't be read back while a run that they
started waits in Airflow's queue: Airflow 3.3 fails on its missing start_date.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowRuntimeError, AirflowSkipException, ErrorType

from tidegate import pipelines
from tidegate.errors import ConfigError
from tidegate.lake.figures.complete_hours import ALL_TABLES, hour_of, partition_key
from tidegate.limits import COMPLETE_EVENTS_MAX, COMPLETE_HOURS_MAX, COMPLETE_TABLES_MAX
from tidegate_airflow.assets import added_hours_asset, complete_asset, verified_asset
from tidegate_airflow.connections import lake_connection

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.execution_time.comms import AssetEventResult

    from tidegate.config import Pipeline

# In `extra` of the record: asset's name -> its newest hour as a partition key.
ADDED: Final = "hours"


class CompleteOperator(BaseOperator):
    """One run adds all hours that are complete now."""

    def __init__(self, *, pipeline_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline_file = pipeline_file

    def execute(self, context: Context) -> None:
        """Raises LakeUnavailable, LakeRefused, ConfigError; AirflowSkipException when there is nothing to add."""
        from tidegate.lake.figures.complete_hours import read_complete_hours, read_verified_hours

        pipeline = pipelines.load(Path(self.pipeline_file))
        lake = pipelines.open_lake(pipeline, lake_connection)
        part, owned = pipeline.completeness, {asset.name: asset for asset in assets_of(pipeline)}
        complete = read_complete_hours(lake, part.tables, part.include)
        self._check_count(pipeline, len(complete) - 1 - len(part.tables))
        hours = {complete_asset(pipeline, name).name: hour for name, hour in complete.items()}
        if part.verified:
            verified = read_verified_hours(lake, part.tables, part.include)
            hours |= {verified_asset(pipeline, name).name: hour for name, hour in verified.items()}
        self._name_those_without({name: hour for name, hour in hours.items() if name in owned})
        record = added_hours_asset(pipeline)
        added = _added(context["inlet_events"][record].ascending(False).limit(COMPLETE_EVENTS_MAX))
        missing = {name: missing_hours(hour, added.get(name)) for name, hour in hours.items()}
        events: Any = context["outlet_events"]
        missing = {
            name: further for name, further in missing.items() if further and (name in owned or _is_known(events, name))
        }
        if not missing:
            raise AirflowSkipException("no further hour is complete")
        outlets: dict[str, Any] = {name: owned.get(name) or Asset.ref(name=name) for name in missing}
        for name, further in missing.items():
            keys = [partition_key(hour) for hour in further]
            events[outlets[name]].add_partitions(keys)
            self.log.info("%s: %s", name, keys[0] if len(keys) == 1 else f"{keys[0]} to {keys[-1]}")
        newest = added | {name: further.stop for name, further in missing.items()}
        named_hours: dict[str, Any] = {name: partition_key(hour - 1) for name, hour in newest.items()}
        events[record].extra = {ADDED: named_hours}
        # Leave out outlets without a new hour: Airflow would make an event for them, too.
        self.outlets = [*outlets.values(), record]

    def _check_count(self, pipeline: Pipeline, matched: int) -> None:
        """Raises ConfigError for too many tables: Airflow is asked for each asset by its name."""
        if matched > COMPLETE_TABLES_MAX:
            raise ConfigError(
                f"completeness.include matches {matched:,} tables, and {COMPLETE_TABLES_MAX:,} may have hours",
                where=self.pipeline_file,
                remedy=f"write narrower patterns: DAGs of {pipeline.pipeline} wait for few of them",
            )

    def _name_those_without(self, hours: Mapping[str, int]) -> None:
        """Log the tables without a further hour: a name may be misspelled, or the table has no
        change yet, waits, or lacks rows.
        """
        without = sorted(name for name, hour in hours.items() if not hour)
        if without:
            what = "no further hour of %s: the table, or its source, waits; or it lacks rows, or isn't in silver"
            self.log.warning(what, ", ".join(without))


def _is_known(events: Any, name: str) -> bool:
    """Whether a DAG names an asset: of others Airflow keeps no events. Raises AirflowRuntimeError."""
    try:
        events.for_asset(name=name)
    except AirflowRuntimeError as error:
        if error.error.error is not ErrorType.ASSET_NOT_FOUND:
            raise
        return False
    return True


def assets_of(pipeline: Pipeline) -> list[Asset]:
    """The assets that the pipeline file names. The task also adds to those of completeness.include that DAGs name."""
    part = pipeline.completeness
    complete = [complete_asset(pipeline, name) for name in (ALL_TABLES, *part.tables)]
    verified = [verified_asset(pipeline, name) for name in part.tables] if part.verified else []
    return [*complete, *verified, added_hours_asset(pipeline)]


def missing_hours(complete: int, added: int | None) -> range:
    """The hours to add. complete, added: numbers of hours, as hours_before counts them. A new asset begins with the
    newest hour only.
    """
    first = complete - 1 if added is None else added
    return range(max(first, complete - COMPLETE_HOURS_MAX, 0), complete)


def _added(record: Iterable[AssetEventResult]) -> dict[str, int]:
    """The newest hour of each asset by name, as hours_before counts hours. record: the newest event
    first. Events made by a person don't count.
    """
    for event in record:
        try:
            named: dict[str, Any] = (event.extra or {})[ADDED]  # type: ignore[assignment]
            return {name: hour_of(key) + 1 for name, key in named.items()}
        except (KeyError, AttributeError, TypeError, ValueError):
            continue
    return {}
