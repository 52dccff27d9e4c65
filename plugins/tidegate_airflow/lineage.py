"""Lineage by Airflow's OpenLineage provider: the sources' tables to bronze, both to silver, and verdicts on silver.

In:  the end of a task; the pipeline, its lake.
Out: OperatorLineage: inputs, outputs, columns, rows and bytes. None without the provider, or where
     it is switched off.

Datasets have the names of OpenLineage's specification: mysql://host:port with database.table, and a
lake's files by their store and path.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from tidegate import pipelines
from tidegate.errors import TidegateError
from tidegate_airflow.connections import connection_info, lake_connection

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset

    from tidegate.config import Pipeline
    from tidegate.lake.cuts.lineage import AppliedTables, WrittenTable
    from tidegate.verify.report import Report

    Lineage: TypeAlias = OperatorLineage[Any, Any]

log = logging.getLogger(__name__)


def is_on() -> bool:
    """Whether the provider is installed and has a place to send events to; False if its settings can't be read."""
    if find_spec("airflow.providers.openlineage") is None:
        return False
    try:
        from airflow.providers.openlineage.conf import is_disabled

        return not is_disabled()
    except Exception as error:  # noqa: BLE001 - whatever it raises is none of the run's
        # Without the error's text: it quotes the transport, which may hold a key.
        log.warning("no lineage: OpenLineage's settings can't be read (%s)", type(error).__name__)
        return False


def cut_before(pipeline: Pipeline) -> int | None:
    """The newest cut, with which a run begins; None if lineage is off, or the lake can't be read."""
    from tidegate.lake.figures.status import cut_ts

    if is_on():
        with suppress(TidegateError, OSError):  # the run itself reports the lake's errors
            return cut_ts(pipelines.open_lake(pipeline, lake_connection))
    return None


def made(make: Callable[[], Lineage]) -> Lineage | None:
    """The lineage; None after any error: the run's work is done, and a missing lineage must not
    fail it.
    """
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - of the provider's classes, too
        log.warning("no lineage of this run: %s: %s", type(error).__name__, error)
        return None


def of_capture(pipeline: Pipeline, source: str, size: int | None) -> Lineage:
    """The tables of a source, which capture reads into bronze. size: bytes captured by the run; None: not known.
    Raises LakeUnavailable, LakeRefused.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet

    from tidegate.lake.cuts.lineage import captured_tables
    from tidegate.tables import SEGMENTS

    known, more = captured_tables(pipeline, pipelines.open_lake(pipeline, lake_connection), source)
    places = LineageDatasets(pipeline)
    inputs = [
        places.source(
            places.table(source, *version.physical.pair), [(column.name, column.type) for column in version.columns]
        )
        for version in known
    ]
    written: dict[str, Any] = {}
    if size is not None:
        written["outputStatistics"] = OutputStatisticsOutputDatasetFacet(size=size)
    bronze = OutputDataset(*places.file(SEGMENTS.path), outputFacets=written)
    return OperatorLineage(inputs=inputs, outputs=[bronze], run_facets=_named_of(source, len(known), more))


def of_apply(pipeline: Pipeline, after_ts: int) -> Lineage:
    """Tables of silver changed since a cut. Raises LakeUnavailable, LakeRefused."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    from tidegate.lake.cuts.lineage import applied_since

    applied = applied_since(pipeline, pipelines.open_lake(pipeline, lake_connection), after_ts)
    places = LineageDatasets(pipeline)
    inputs = [places.bronze(applied)]
    named = set[tuple[str, str]]()
    for table in applied.tables:
        for version in table.sources:
            name = places.table(version.source, *version.physical.pair)
            if name not in named:
                named.add(name)
                inputs.append(places.source(name, [(column.name, column.type) for column in version.columns]))
    outputs = [places.silver(table) for table in applied.tables]
    return OperatorLineage(inputs=inputs, outputs=outputs, run_facets=_counted(applied))


def of_verify(pipeline: Pipeline, report: Report) -> Lineage:
    """The verdict on each table, as assertions."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.generated.data_quality_assertions_dataset import (
        Assertion,
        DataQualityAssertionsDatasetFacet,
    )

    from tidegate.limits import LINEAGE_TABLES_MAX
    from tidegate.tables import silver_path
    from tidegate.verify.report import Outcome

    places, verdicts, paths = LineageDatasets(pipeline), dict[str, list[Assertion]](), dict[str, str]()
    # Different tables come first: of thousands of tables only some are named.
    for result in sorted(report.tables, key=lambda result: result.outcome is Outcome.EQUAL):
        if not result.outcome.is_verdict:
            continue
        paths.setdefault(result.silver, silver_path(*pipeline.tables.logical(*result.pair)[:2]))
        if result.silver in verdicts or len(verdicts) < LINEAGE_TABLES_MAX:
            verdicts.setdefault(result.silver, []).append(
                Assertion(
                    assertion="equal_to_source",
                    success=result.outcome is Outcome.EQUAL,
                    name=f"{result.source}: {result.table}",
                    description=f"{result.different} rows differ, {result.unsettled} keys are unsettled",
                    expected=str(result.source_rows),
                    actual=str(result.silver_rows),
                )
            )
    inputs: list[Any] = []
    for name, assertions in verdicts.items():
        namespace, path = places.file(paths[name])
        facet = DataQualityAssertionsDatasetFacet(assertions=assertions)
        inputs.append(InputDataset(namespace, path, inputFacets={"dataQualityAssertions": facet}))
    return OperatorLineage(inputs=inputs)


class LineageDatasets:
    """Names of datasets, and datasets by these names."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._namespaces: dict[str, str] = {}

    def table(self, source: str, database: str, table: str) -> tuple[str, str]:
        """(namespace, name) of a table at a source."""
        if source not in self._namespaces:
            self._namespaces[source] = _namespace(self._pipeline, source)
        return self._namespaces[source], f"{database}.{table}"

    def file(self, path: str) -> tuple[str, str]:
        """(namespace, name) of a table of the lake."""
        address = urlsplit(f"{self._pipeline.lake.path}/{path}")
        return (
            (f"{address.scheme}://{address.netloc}", address.path.lstrip("/"))
            if address.scheme
            else (
                "file",
                address.path,
            )
        )

    def bronze(self, applied: AppliedTables) -> InputDataset:
        """The log, with the rows and bytes taken from it."""
        from openlineage.client.event_v2 import InputDataset
        from openlineage.client.generated.input_statistics_input_dataset import InputStatisticsInputDatasetFacet

        from tidegate.tables import SEGMENTS

        facet = InputStatisticsInputDatasetFacet(rowCount=applied.rows, size=applied.bytes)
        return InputDataset(*self.file(SEGMENTS.path), inputFacets={"inputStatistics": facet})

    def source(self, name: tuple[str, str], columns: list[tuple[str, str]]) -> InputDataset:
        """A table at a source."""
        from openlineage.client.event_v2 import InputDataset

        return InputDataset(*name, facets={"schema": _schema(columns)})

    def silver(self, table: WrittenTable) -> OutputDataset:
        """A table of silver, with the columns behind each of its columns."""
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet
        from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet

        facets: dict[str, Any] = {"version": DatasetVersionDatasetFacet(datasetVersion=str(table.version))}
        if table.columns:
            facets |= {"schema": _schema(table.columns), "columnLineage": self._columns(table)}
        written: dict[str, Any] = {}
        if table.rows is not None:
            written["outputStatistics"] = OutputStatisticsOutputDatasetFacet(rowCount=table.rows, size=table.bytes)
        return OutputDataset(*self.file(table.path), facets=facets, outputFacets=written)

    def _columns(self, table: WrittenTable) -> Any:
        from openlineage.client.generated.column_lineage_dataset import (
            ColumnLineageDatasetFacet,
            Fields,
            InputField,
            Transformation,
        )

        fields: dict[str, Fields] = {}
        has = {name for name, _ in table.columns}
        for version in table.sources:
            place = self.table(version.source, *version.physical.pair)
            for column in version.columns:
                if column.silver in has:
                    masked = column.silver in table.masked
                    how = Transformation("DIRECT", "TRANSFORMATION" if masked else "IDENTITY", masking=masked)
                    of = fields.setdefault(column.silver, Fields(inputFields=[]))
                    of.inputFields.append(InputField(*place, field=column.name, transformations=[how]))
        return ColumnLineageDatasetFacet(fields=fields)


def _namespace(pipeline: Pipeline, source: str) -> str:
    """A source without a server to connect to, such as a changefeed without a TiDB, gets the
    pipeline's own.
    """
    entry = pipeline.sources.get(source)
    conn_id = None if entry is None else entry.traits.sql_conn_id
    try:
        info = connection_info(conn_id) if conn_id else None
    except TidegateError:
        info = None
    return f"tidegate://{pipeline.pipeline}/{source}" if info is None else f"mysql://{info.endpoint}"


def _schema(columns: Any) -> Any:
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields

    return SchemaDatasetFacet(fields=[SchemaDatasetFacetFields(name=name, type=kind) for name, kind in columns])


def _named_of(source: str, named: int, more: int) -> dict[str, Any]:
    """How many of the source's tables are named."""
    import attr
    from openlineage.client.generated.base import RunFacet

    @attr.define
    class TidegateRunFacet(RunFacet):
        source: str
        tablesKept: int  # noqa: N815 - OpenLineage's way
        tablesNamed: int  # noqa: N815

    return {"tidegate": TidegateRunFacet(source, named + more, named)}


def _counted(applied: AppliedTables) -> dict[str, Any]:
    """How much of the run is named."""
    import attr
    from openlineage.client.generated.base import RunFacet

    @attr.define
    class TidegateRunFacet(RunFacet):
        cutTs: str  # noqa: N815 - OpenLineage's way; as text, since JSON's numbers end below it
        tablesChanged: int  # noqa: N815
        tablesNamed: int  # noqa: N815

    named = len(applied.tables)
    return {"tidegate": TidegateRunFacet(str(applied.cut_ts), named + applied.more, named)}
