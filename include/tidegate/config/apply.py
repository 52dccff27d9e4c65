"""The section `apply` of a pipeline file: how bronze becomes silver.

In:  the section, as pydantic gets it.
Out: an Apply, frozen.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, field_validator

from tidegate.config.section import Section


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
