"""The section `maintain` of a pipeline file: how the lake is kept small.

In:  the section, as pydantic gets it.
Out: a Maintain, frozen.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field, field_validator

from tidegate.config.section import Section
from tidegate.limits import DAYS_MAX

# Airflow's own, beside cron's.
_PRESETS: Final = frozenset(
    {"", "@once", "@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly"}
)


class Maintain(Section):
    """How silver, bronze and the control tables are kept small and quick to read."""

    schedule: str = Field(
        "@daily", description="When <name>__maintain runs: a preset or a cron expression. Empty: only by hand"
    )
    keep_cuts_hours: int = Field(
        168,
        ge=1,
        le=8760,
        description="How long published cuts stay readable. VACUUM keeps all their files",
    )
    thin_cuts_seconds: int = Field(
        60, ge=1, le=86400, description="Of cuts older than an hour, one is kept per span of this length"
    )
    cluster_share: float = Field(
        0.2, ge=0, le=1, description="A table is clustered again when more than this share of its bytes isn't clustered"
    )
    purge_share: float = Field(
        0.2, ge=0, le=1, description="A table is rewritten when deletion vectors cover more than this share of its rows"
    )
    purge_days: int | None = Field(
        None,
        ge=1,
        le=DAYS_MAX,
        description="A file with deleted rows is rewritten without them this many days after it was written, however"
        " few they are. Deleted and replaced values so leave silver for good (docs/runbooks/erase-a-person.md). null: by purge_share alone",
    )
    file_bytes: int = Field(256 << 20, ge=1 << 20, description="Size of the files that clustering and packing write")
    bronze_bytes: int = Field(
        16 << 30, ge=0, description="Most bytes of bronze's small files that one run packs into larger ones. 0: never"
    )
    keep_bronze_days: int | None = Field(
        30,
        ge=1,
        le=DAYS_MAX,
        description="Segments leave bronze this many days after capture, once every table has them in silver. null:"
        " never, so `tidegate rebuild` can go back to the beginning",
    )
    keep_changelog_days: int | None = Field(
        30,
        ge=1,
        le=DAYS_MAX,
        description="Changes leave the changelogs (tables.changelog) this many days after their commit, as whole"
        " files. null: never",
    )
    keep_records_days: int | None = Field(
        90,
        ge=1,
        le=DAYS_MAX,
        description="Old records leave control/ledger, latency, maintenance, actions, table_states and verification after"
        " this many days, except each table's last event and newest result. Unneeded records of finished"
        " snapshots leave control/snapshots. null: never",
    )

    @field_validator("schedule")
    @classmethod
    def _is_a_schedule(cls, text: str) -> str:
        """Airflow would schedule no DAG of dags/maintain.py, of no pipeline."""
        if text in _PRESETS:
            return text
        from croniter import croniter  # Airflow's reader; a tenth of a second

        try:
            croniter(text).get_next()  # raises, too, for a day that never comes
        except (ValueError, KeyError) as error:
            raise ValueError(f"{text!r} is no preset and no cron expression: {error}") from error
        return text
