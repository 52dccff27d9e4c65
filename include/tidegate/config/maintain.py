"""The section `maintain` of a pipeline file: how the lake is kept small.

In:  the section, as pydantic gets it.
Out: a Maintain, frozen.
"""

from __future__ import annotations

from pydantic import Field

from tidegate.config.section import Section


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
    keep_changelog_days: int | None = Field(
        30,
        ge=1,
        description="Changes that were committed so many days ago leave the changelogs (tables.changelog), as whole files;"
        " null: never",
    )
    keep_records_days: int | None = Field(
        90,
        ge=1,
        description="Records of work leave control/ledger, latency, maintenance, table_states and verification (but for each"
        " table's last event and newest result), and control/snapshots what no one reads of a snapshot that is over, after so many days; null: never",
    )
