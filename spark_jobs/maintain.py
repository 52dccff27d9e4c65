"""Maintain: silver and bronze in few files; old files, cuts and log entries removed, kept cuts readable.

In:  --pipeline FILE; an object store's keys in TIDEGATE_STORAGE_OPTIONS (JSON).
Out: the same rows in other files; bronze without segments that nothing needs; control/cuts without forgotten cuts;
     control/maintenance. Exit codes as apply's.

Any step may be killed and done again. A table whose step fails doesn't stop the others; the run is red at the end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from spark_jobs.maintain_steps.cluster_files import cluster_files
from spark_jobs.maintain_steps.compact_bronze import compact_bronze
from spark_jobs.maintain_steps.compact_control import compact_control
from spark_jobs.maintain_steps.expire_log import expire_log
from spark_jobs.maintain_steps.forget_cuts import forget_cuts
from spark_jobs.maintain_steps.forget_records import forget_records
from spark_jobs.maintain_steps.keep_changelogs import keep_changelogs
from spark_jobs.maintain_steps.purge_deleted_rows import purge_deleted_rows
from spark_jobs.maintain_steps.remove_old_segments import remove_old_segments
from spark_jobs.maintain_steps.remove_orphan_chunks import remove_orphan_chunks
from spark_jobs.maintain_steps.retain_versions import retain_versions
from spark_jobs.maintain_steps.vacuum_bronze import vacuum_bronze
from spark_jobs.maintain_steps.vacuum_files import vacuum_files
from spark_jobs.maintenance import Maintenance, SilverTable
from spark_jobs.session.job import configured, failed, lake_of, parser_of, sole
from spark_jobs.session.job_log import begin, tell
from spark_jobs.session.spark import application_session, maintenance_session
from tidegate import tables
from tidegate.errors import ConfigError, LakeUnavailable, TidegateError
from tidegate.home import EXIT_OK
from tidegate.lake import control
from tidegate.lake.bronze.log import BronzeFiles
from tidegate.lake.cuts.kept_cuts import needed
from tidegate.lake.files import LakeFiles
from tidegate.table_names import splits
from tidegate.text_layout import counted

BEFORE: Final[tuple[Callable[[Maintenance], None], ...]] = (forget_cuts,)
# For each silver table, in this order: what clustering and purging leave behind is removed by a later run's VACUUM.
STEPS: Final[tuple[Callable[[Maintenance, SilverTable], None], ...]] = (
    retain_versions,
    cluster_files,
    purge_deleted_rows,
    vacuum_files,
    expire_log,
)
# Old segments go first. Otherwise files would be packed, and then removed.
BRONZE: Final[tuple[Callable[[Maintenance], None], ...]] = (
    remove_old_segments,
    remove_orphan_chunks,
    compact_bronze,
    vacuum_bronze,
)
AFTER: Final[tuple[Callable[[Maintenance], None], ...]] = (forget_records, keep_changelogs, compact_control)


def run(job: Maintenance, only: str | None = None) -> int:
    """Maintain every silver table, and bronze; or one table alone. Returns how many.

    Raises LakeUnavailable when a table's step failed; Overtaken when another maintain has begun.
    """
    for step in BEFORE:
        step(job)
    chosen = silver_tables(job, only)
    for table in chosen:
        job.check()
        _maintain(job, table)
    job.record_cuts()
    for step in (*(() if only else BRONZE), *AFTER):
        job.check()
        try:
            step(job)
        except TidegateError as error:
            job.trouble(tables.SEGMENTS.path if step in BRONZE else "control", step.__name__, error)
    job.record()
    if job.troubles:
        raise LakeUnavailable(
            f"{counted(len(job.troubles), 'step', 'steps')} of maintain failed, the first for {job.troubles[0]}",
            where=job.pipeline.pipeline,
            remedy="the lines above and control/maintenance have a row for each; what failed is tried by the next run",
        )
    return len(chosen)


def _maintain(job: Maintenance, table: SilverTable) -> None:
    """A failed step ends the steps of this table. The other tables go on."""
    at = "look"
    try:
        # Dropped before every kept cut, and no file is left: its log still has the smallest and largest values.
        steps = (expire_log,) if table.gone and not job.written(table) else STEPS
        for step in steps:
            at = step.__name__
            step(job, table)
    except Exception as error:  # noqa: BLE001 - Spark's and Delta's own, too
        job.trouble(table.name, at, error)


def silver_tables(job: Maintenance, only: str | None) -> list[SilverTable]:
    """Every table of a kept cut with silver, by name. Raises ConfigError when `only` isn't one."""
    kept = needed(control.read(job.lake, tables.CUTS))
    pairs = _pairs(job)
    chosen = []
    for name, of in sorted(kept.items()):
        if only in (None, "", name):
            pair = pairs.get(name) or splits(name)[0]
            chosen.append(SilverTable(name, pair, of.versions, of.gone, of.newest))
    if only and not chosen:
        raise ConfigError(
            f"silver has no table {only}",
            where=job.pipeline.pipeline,
            remedy=f"name one of these: {', '.join(sorted(kept)) or 'none is there yet'}",
        )
    return chosen


def _pairs(job: Maintenance) -> dict[str, tuple[str, str]]:
    """Logical name -> database and table: a name may hold more than one dot."""
    pair = ["database", "table"]
    history = control.newest(job.lake, tables.SCHEMA_HISTORY, by=pair, columns=pair)
    physical = [(row["database"], row["table"]) for row in history.to_pylist() if row["table"]]
    logical = {job.pipeline.tables.logical(*name)[:2] for name in physical}
    return {f"{database}.{table}": (database, table) for database, table in logical}


def _is_empty(lake: LakeFiles) -> bool:
    """Whether nothing was ever captured or applied."""
    return control.load(lake, tables.CUTS) is None and not BronzeFiles(lake.log(tables.SEGMENTS.path)).by_source()


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = parser_of("maintain", "Keep silver small and quick to read.")
    parser.add_argument("--table", help="one table, database.table; all when left out")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Entry of spark-submit."""
    arguments = _arguments(argv)
    begin()
    try:
        pipeline = configured(arguments.pipeline, "maintain", arguments.set)
        lake = lake_of(pipeline)
        with sole(lake, pipeline.pipeline, "maintain") as lease:
            if _is_empty(lake):
                makers = f"{pipeline.pipeline}__capture and {pipeline.pipeline}__apply"
                tell(f"nothing to maintain: {lake.root} has no bronze and no silver yet; {makers} make them")
                return EXIT_OK
            spark = application_session(f"tidegate maintain {pipeline.pipeline}", lake.spark_options)
            session = maintenance_session(spark, pipeline.maintain.file_bytes)
            job = Maintenance(session, pipeline, lake, tell, datetime.now(UTC), arguments.dry_run, lease.check)
            looked_at = counted(run(job, arguments.table), "table of silver", "tables of silver")
            tell(f"dry run: {looked_at} looked at, nothing changed" if job.dry_run else f"maintained {looked_at}")
            spark.stop()
    except TidegateError as error:
        return failed(error)
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
