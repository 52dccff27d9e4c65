"""The pipeline file: one YAML file per pipeline, checked by pydantic, errors with line and key.

In:  include/pipelines/<name>.yaml
Out: a Pipeline, frozen; every field has a default where one makes sense and a description, which is
     also what the Airflow trigger form and the README show.

Secrets never stand here: a source names an Airflow connection, and so does a lake that needs keys.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator

from tidegate import limits
from tidegate.config_capture import Capture, Section
from tidegate.config_ddl import Ddl
from tidegate.errors import ConfigError
from tidegate.table_patterns import OWN_DATABASES, compile_pattern, matches, matches_database, shadowed


class Flavour(StrEnum):
    MYSQL = "mysql"
    MARIADB = "mariadb"


class DumpMode(StrEnum):
    GTID = "gtid"
    POSITION = "position"


class Start(StrEnum):
    NOW = "now"
    EARLIEST = "earliest"


class ApplyMode(StrEnum):
    BATCH = "batch"
    MICRO_BATCH = "micro_batch"


class Writer(StrEnum):
    MERGE = "merge"
    POSITIONAL = "positional"
    AUTO = "auto"


Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]


class Source(Section):
    """A server whose binlog is captured."""

    conn_id: str = Field(
        description="Airflow connection with host, port, login, password; TLS in its extra", min_length=1
    )
    flavour: Flavour = Field(description="mysql or mariadb")
    dump: DumpMode = Field(DumpMode.GTID, description="Ask for the stream by GTID, or by file and position")
    start: Start = Field(
        Start.NOW,
        description="Where the first capture starts: now (tables that hold rows wait for a snapshot), or the earliest binlog",
    )
    semi_sync: bool = Field(
        False,
        description="Take part in semi-synchronous replication: a commit that waits is acknowledged when it is on our disk."
        " Have another semi-sync replica too: while capture restarts, or is down, it replies",
    )
    server_id: int | None = Field(
        None, ge=1, le=0xFFFFFFFF, description="Replica id shown to the server; derived from the names when empty"
    )


class Route(Section):
    """Many physical tables into one logical table."""

    match: str = Field(description="database.table pattern of the physical tables")
    to: str = Field(description="database.table of the logical table", pattern=r"^[^.]+\.[^.]+$")


class Tables(Section):
    """Which tables are kept, by patterns `database.table`: each half a regular expression that must match
    the whole name, or `*` for everything. Between them is the first dot that isn't escaped, bracketed or repeated.
    """

    include: tuple[str, ...] = Field(description="Patterns of tables to keep", min_length=1)
    exclude: tuple[str, ...] = Field((), description="Patterns of tables to leave out; wins over include")
    soft_delete: tuple[str, ...] = Field(
        (),
        description="Patterns of silver tables that keep deleted rows, marked by _tg_deleted, as DELETE, TRUNCATE and DROP"
        " TABLE found them; needs whole rows in the log (binlog_row_image FULL or FULL_NODUP)",
    )
    routes: tuple[Route, ...] = Field(
        (), description="Shards into one table, told apart by _tg_source, _tg_database, _tg_table"
    )

    @field_validator("include", "exclude", "soft_delete")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            compile_pattern(pattern)
        return patterns

    @property
    def patterns(self) -> tuple[str, ...]:
        """All that are matched with names of the source."""
        return (*self.include, *self.exclude, *(route.match for route in self.routes))

    def keeps(self, database: str, table: str) -> bool:
        """Whether a physical table is in this pipeline. "" is none: so schema_history names a database's own row."""
        if not table:
            return False
        return not matches(self.exclude, database, table) and matches(self.include, database, table)

    def keeps_database(self, database: str) -> bool:
        """Whether tables of a database may be in this pipeline; the server's own never are."""
        if database.lower() in OWN_DATABASES:
            return False
        if any(matches_database(pattern, database, whole=True) for pattern in self.exclude):
            return False
        return any(matches_database(pattern, database) for pattern in self.include)

    def keeps_deleted(self, database: str, table: str) -> bool:
        """Whether silver keeps the deleted rows of a logical table."""
        return matches(self.soft_delete, database, table)

    def shadows(self, database: str, table: str) -> bool:
        """Whether it has the name of a table that an online schema change fills to replace a kept one."""
        if matches(self.exclude, database, table):
            return False
        return any(self.keeps(database, name) for name in shadowed(table))

    def logical(self, database: str, table: str) -> tuple[str, str, bool]:
        """(database, table, routed) of the logical table that a physical one flows into."""
        for route in self.routes:
            if matches((route.match,), database, table):
                to_database, to_table = route.to.split(".", 1)
                return to_database, to_table, True
        return database, table, False


class Lake(Section):
    """Where the Delta tables lie."""

    path: str = Field(description="A local path, or s3://, abfss://, gs:// with a bucket and a prefix", min_length=1)
    conn_id: str | None = Field(None, description="Airflow connection whose extra holds the store's keys")
    storage_options: dict[str, str] = Field(
        default_factory=dict, description="Options without secrets, given to delta-rs and, translated, to Spark"
    )


class Apply(Section):
    """How bronze becomes silver."""

    mode: ApplyMode = Field(
        ApplyMode.BATCH, description="batch: one run per bronze event; micro_batch: a loop for run_for_seconds"
    )
    run_for_seconds: int = Field(
        3600, ge=5, description="micro_batch: how long one Spark application loops before Airflow starts the next"
    )
    poll_seconds: float = Field(0.1, ge=0.05, le=60, description="micro_batch: how often bronze is looked at")
    idle_seconds: int = Field(
        900,
        ge=1,
        description="micro_batch: no changes for this long ends the application; the next change starts one",
    )
    quiet_seconds: int = Field(
        300,
        ge=5,
        description="While a source only proves that it is quiet, apply is started this seldom, to move the cut",
    )
    stalled_seconds: int | None = Field(
        900,
        ge=60,
        description="Of several sources: one that is captured so much less far than another is left behind. The cut goes"
        " on without it, its tables are named as released in control/table_states, and catch up once it goes on; null: the"
        " cut waits for the slowest source",
    )
    parallel_tables: int = Field(2, ge=1, le=256, description="Silver tables written at the same time")
    window_bytes: int = Field(512 << 20, ge=1 << 20, description="Most bronze bytes that one window takes")
    driver_decode_bytes: int | None = Field(
        None,
        ge=0,
        description="Windows of up to this many bronze bytes are decoded in the Spark driver, larger ones by Spark's"
        " workers; null: 512 MiB where Spark is one machine, 16 MiB on a cluster",
    )
    writer: Writer = Field(
        Writer.AUTO,
        description="How rows get into silver: merge (Delta's MERGE), positional (keys are probed, rows replaced by their"
        " positions; tables that it can't serve go by MERGE all the same), or auto: per table and window what costs less",
    )
    upkeep_bytes: int = Field(
        32 << 20,
        ge=0,
        description="Most bytes of a silver table that apply packs per window, so that small files and deleted rows don't"
        " pile up; what isn't used is saved up; 0: never",
    )
    spark_conn_id: str = Field("spark_default", description="Airflow Spark connection the job is submitted with")
    spark_conf: dict[str, str] = Field(
        default_factory=dict, description="Extra Spark settings; win over tidegate's own"
    )
    zero_dates: Literal["null", "error"] = Field(
        "null",
        description="Zero and impossible dates ('0000-00-00', '2024-02-31'): null, and counted; or error, which holds the"
        " table (in a key they always do)",
    )
    unlogged_columns: Literal["stop", "null"] = Field(
        "stop",
        description="A nullable column that came without its DDL in the log (binlog_row_metadata=FULL names it): stop holds"
        " the table until `tidegate schema refresh` has asked the server for its default; null: older rows get NULL in it",
    )
    driver_memory: str = Field("1g", description="Memory of the Spark driver", pattern=r"^\d+[mg]$")

    @field_validator("zero_dates", "unlogged_columns", mode="before")
    @classmethod
    def _null_is_a_word(cls, value: object) -> object:
        return "null" if value is None else value  # YAML's null, written without quotes


class Maintain(Section):
    """How silver, bronze and the control tables are kept small and quick to read."""

    schedule: str = Field(
        "@daily", description="When <name>__maintain runs: a preset or a cron expression; empty: by hand only"
    )
    keep_cuts_hours: int = Field(
        168,
        ge=1,
        le=8760,
        description="Published cuts are readable for this long: VACUUM removes nothing that they name",
    )
    thin_cuts_seconds: int = Field(
        60, ge=1, le=86400, description="Of cuts older than an hour one is kept for each span of this length"
    )
    cluster_share: float = Field(
        0.2, ge=0, le=1, description="A table is clustered again when more than this share of its bytes isn't"
    )
    purge_share: float = Field(
        0.2, ge=0, le=1, description="A table is rewritten when more than this share of its rows is deleted by vector"
    )
    file_bytes: int = Field(256 << 20, ge=1 << 20, description="Size of the files that clustering and packing write")
    bronze_bytes: int = Field(
        16 << 30, ge=0, description="Most bytes of bronze's small files that one run packs into larger ones; 0: never"
    )
    keep_bronze_days: int | None = Field(
        30,
        ge=1,
        description="What was captured so many days ago leaves bronze once it is in silver of every table; null: never,"
        " so that `tidegate rebuild` can go back to the beginning",
    )
    keep_records_days: int | None = Field(
        90,
        ge=1,
        description="Records of work leave control/ledger, latency, maintenance and table_states (but for each table's"
        " last event) after so many days; null: never",
    )


class Pipeline(Section):
    """A pipeline file."""

    pipeline: Name = Field(description="Name: DAG ids are <name>__capture, <name>__apply and so on")
    lake: Lake
    sources: dict[Name, Source] = Field(min_length=1)
    tables: Tables
    capture: Capture = Field(default_factory=Capture)
    apply: Apply = Field(default_factory=Apply)
    ddl: Ddl = Field(default_factory=Ddl)
    maintain: Maintain = Field(default_factory=Maintain)

    @property
    def land_seconds(self) -> float:
        """How often capture lands what it has: as the file says, or as the mode of apply needs."""
        if self.capture.land_seconds is not None:
            return self.capture.land_seconds
        quick = self.apply.mode is ApplyMode.MICRO_BATCH
        return limits.MICRO_BATCH_LAND_SECONDS if quick else limits.LAND_SECONDS_DEFAULT


def load(path: Path) -> Pipeline:
    """Read a pipeline file.

    Raises ConfigError whose `where` is file:line and whose text names the key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"can't read the pipeline file: {error.strerror}",
            where=str(path),
            remedy="give a file under include/pipelines",
        ) from error
    return parse(text, where=str(path))


def parse(text: str, *, where: str) -> Pipeline:
    """Check the text of a pipeline file; `where` names it in errors."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        raise ConfigError(
            f"not valid YAML: {getattr(error, 'problem', error)}", where=place, remedy="mend the file"
        ) from error
    if not isinstance(data, dict):
        raise ConfigError("a pipeline file is a mapping", where=f"{where}:1", remedy="start it with `pipeline: <name>`")
    try:
        return Pipeline.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        keys = [str(key) for key in first["loc"] if key != "[key]"]
        line = _line_of(node, keys)
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        what = "unknown key" if first["type"] == "extra_forbidden" else first["msg"][0].lower() + first["msg"][1:]
        raise ConfigError(
            f"{'.'.join(keys) or 'file'}: {what}{more}", where=f"{where}:{line}", remedy=_hint(first["type"], keys)
        ) from error


def _line_of(node: Any, keys: list[str]) -> int:
    """Line (from 1) of the deepest key that exists in the YAML tree."""
    line = 1
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == key), None)
            if found is None:
                return line
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and key.isdigit() and int(key) < len(node.value):
            node = node.value[int(key)]
            line = node.start_mark.line + 1
    return line


def _hint(kind: str, keys: list[str]) -> str:
    if kind != "extra_forbidden":
        return "mend this value"
    owner: type[BaseModel] = Pipeline
    for key in keys[:-1]:
        annotation = owner.model_fields[key].annotation if key in owner.model_fields else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            owner = annotation
        elif key == "sources":
            owner = Source
    return f"known keys here: {', '.join(owner.model_fields)}"
