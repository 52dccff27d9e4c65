"""The section `apply` of a pipeline file: how bronze becomes silver.

In:  the section, as pydantic gets it.
Out: an Apply, frozen.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, field_validator

from tidegate.config.connection_names import ConnId
from tidegate.config.section import Section
from tidegate.config.store_options import SparkSettings
from tidegate.limits import SECONDS_MAX


class ApplyMode(StrEnum):
    BATCH = "batch"
    MICRO_BATCH = "micro_batch"


class Writer(StrEnum):
    MERGE = "merge"
    POSITIONAL = "positional"
    AUTO = "auto"


class Apply(Section):
    """How bronze becomes silver."""

    mode: ApplyMode = Field(
        ApplyMode.BATCH, description="batch: one run per bronze event; micro_batch: a loop for run_for_seconds"
    )
    run_for_seconds: int = Field(
        3600,
        ge=5,
        le=SECONDS_MAX,
        description="micro_batch: how long one Spark application loops before Airflow starts the next",
    )
    poll_seconds: float = Field(
        0.1, ge=0.05, le=60, description="micro_batch: how often the application looks at bronze"
    )
    idle_seconds: int = Field(
        900,
        ge=1,
        le=SECONDS_MAX,
        description="micro_batch: the application ends after this long without changes. The next change starts one",
    )
    quiet_seconds: int = Field(
        300,
        ge=5,
        le=SECONDS_MAX,
        description="How often apply starts, to move the cut, while a source only proves that it is quiet",
    )
    stalled_seconds: int | None = Field(
        900,
        ge=60,
        le=SECONDS_MAX,
        description="With several sources: the cut goes on without a source whose captured log is this far behind"
        " another one. Its tables get the state released in control/table_states, and catch up when the"
        " source continues. null: the cut waits for the slowest source",
    )
    parallel_tables: int = Field(2, ge=1, le=256, description="How many silver tables are written at the same time")
    window_bytes: int = Field(512 << 20, ge=1 << 20, description="Most bronze bytes in one window")
    driver_decode_bytes: int | None = Field(
        None,
        ge=0,
        description="The Spark driver decodes windows of up to this many bronze bytes. Spark's workers decode larger"
        " ones. null: 512 MiB if Spark is one machine, 16 MiB on a cluster",
    )
    writer: Writer = Field(
        Writer.AUTO,
        description="How rows get into silver. merge: Delta's MERGE. positional: find keys, replace rows by position"
        " (tables that it can't write go by MERGE). auto: the cheaper one per table and window",
    )
    upkeep_bytes: int = Field(
        32 << 20,
        ge=0,
        description="Most bytes of a silver table that apply packs per window, against small files and deleted rows."
        " Unused bytes are saved for later windows. 0: never",
    )
    key_index_bytes: int = Field(
        512 << 20,
        ge=0,
        description="Memory of the Spark driver for indexes of keys, about 13 bytes per row for a key of one integer"
        " and 17 for any other. Files that windows look through again and again get an index. 0: none",
    )
    spark_conn_id: ConnId = Field("spark_default", description="Airflow Spark connection that submits the job")
    spark_conf: SparkSettings = Field(
        default_factory=dict, description="Extra Spark settings, without secrets. They win over tidegate's own"
    )
    zero_dates: Literal["null", "error"] = Field(
        "null",
        description="Zero and impossible dates ('0000-00-00', '2024-02-31'). null: they become NULL, and are counted."
        " error: they hold the table. In a key they always hold it",
    )
    unlogged_columns: Literal["stop", "null"] = Field(
        "stop",
        description="A nullable column appears without its DDL in the log (binlog_row_metadata=FULL names it). stop:"
        " hold the table until `tidegate schema refresh` has asked the server for its default. null: older"
        " rows get NULL",
    )
    driver_memory: str = Field("1g", description="Memory of the Spark driver", pattern=r"^\d+[mg]$")

    @field_validator("zero_dates", "unlogged_columns", mode="before")
    @classmethod
    def _null_is_a_word(cls, value: object) -> object:
        return "null" if value is None else value  # YAML's null, written without quotes
