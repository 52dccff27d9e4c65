"""A source of kind ticdc: what a TiCDC changefeed writes to a storage path.

In:  the source, as pydantic gets it.
Out: a TicdcSource, frozen. The files don't show the changefeed's own settings for them, so the pipeline file repeats
     these settings.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from tidegate.config.connection_names import ConnId
from tidegate.config.section import Section
from tidegate.config.source_keys.any_source import AnySourceSection, Flavour
from tidegate.config.source_keys.source_traits import SourceTraits, lower_both
from tidegate.config.store_options import StoreOptions
from tidegate.limits import SECONDS_MAX, TICDC_LOOK_SECONDS_DEFAULT


class Protocol(StrEnum):
    CANAL_JSON = "canal-json"
    CSV = "csv"


class BinaryEncoding(StrEnum):
    BASE64 = "base64"
    HEX = "hex"


class Csv(Section):
    """The changefeed's sink.csv; include-commit-ts must be true there."""

    delimiter: str = Field(",", description="sink.csv.delimiter, one character", min_length=1, max_length=1)
    quote: str = Field('"', description="sink.csv.quote, one character", min_length=1, max_length=1)
    null: str = Field("\\N", description="sink.csv.null", min_length=1)
    binary_encoding: BinaryEncoding = Field(
        BinaryEncoding.BASE64, description="sink.csv.binary-encoding-method: base64 or hex"
    )
    old_value: bool = Field(False, description="sink.csv.output-old-value")
    handle_key: bool = Field(False, description="sink.csv.output-handle-key")

    @model_validator(mode="before")
    @classmethod
    def _null_is_a_key(cls, said: Any) -> Any:
        """YAML takes a key `null` without quotes for no text."""
        return (
            {"null" if key is None else key: value for key, value in said.items()} if isinstance(said, dict) else said
        )


class TicdcSource(AnySourceSection):
    """A storage path that a TiCDC changefeed writes to."""

    flavour: Literal[Flavour.TICDC] = Field(description="ticdc")
    path: str = Field(
        description="The changefeed's sink URI without its parameters: a folder, or s3://, gs://, abfss:// and a prefix",
        min_length=1,
    )
    conn_id: ConnId | None = Field(None, description="Airflow connection. Its extra holds the keys of the store")
    sql_conn_id: ConnId | None = Field(
        None,
        description="Airflow connection of the SQL port of the changefeed's TiDB, for existing rows and verification."
        " Empty: tables that had rows are held, and `tidegate verify` reports all tables as unverified",
        min_length=1,
    )
    storage_options: StoreOptions = Field(default_factory=dict, description="Options of the store, without secrets")
    protocol: Protocol = Field(
        description="Protocol of the changefeed: canal-json (with enable-tidb-extension=true), or csv"
    )
    time_zone: str = Field(
        description="Time zone of the TiCDC servers (their --tz): UTC, or a name. The files hold TIMESTAMPs in this"
        " zone"
    )
    csv: Csv = Field(default_factory=Csv)
    all_rows: bool = Field(
        False,
        description="true: the tables that the changefeed found were empty when it began, so the files hold all their"
        " rows. false: a snapshot reads these tables, or they are held without sql_conn_id",
    )
    look_seconds: float = Field(
        TICDC_LOOK_SECONDS_DEFAULT, gt=0, le=SECONDS_MAX, description="How often capture looks for a new checkpoint"
    )
    expiration_days: int = Field(
        0, ge=0, description="The changefeed's file-expiration-days. 0: it removes no file. Required if it isn't 0"
    )

    @property
    def traits(self) -> SourceTraits:
        return SourceTraits(
            log=f"path {self.path.rstrip('/')}", sql_conn_id=self.sql_conn_id, replica_conn_id=None,
            watched_conn_id=None, cluster=None, pushed_seconds=None,
            paths=("path",), files=(), in_silver=lower_both, has_positions=False, bounds_timestamps=False, shows_past=True,
            leaves_out_tables=False, logs_own_tables=False, changefeed=True, leaves_out_generated=False,
            erases_rows=False, reader="tidegate.changefeed.opened", heartbeats_prove=False,
        )  # fmt: skip

    @field_validator("time_zone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (OSError, ValueError, KeyError) as error:  # a KeyError: no such zone
            raise ValueError(f"time zone {name!r} isn't known") from error
        return name

    @model_validator(mode="after")
    def _quote_and_delimiter(self) -> Self:
        if self.csv.quote == self.csv.delimiter:
            raise ValueError("csv.quote and csv.delimiter are the same")
        return self
