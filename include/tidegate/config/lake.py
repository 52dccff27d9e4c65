"""The section `lake` of a pipeline file: where the Delta tables lie.

In:  the section, as pydantic gets it.
Out: a Lake, frozen.
"""

from __future__ import annotations

from pydantic import Field

from tidegate.config.connection_names import ConnId
from tidegate.config.section import Section
from tidegate.config.store_options import StoreOptions


class Lake(Section):
    """Where the Delta tables lie."""

    path: str = Field(description="A local path, or s3://, abfss://, gs:// with a bucket and a prefix", min_length=1)
    conn_id: ConnId | None = Field(None, description="Airflow connection. Its extra holds the keys of the store")
    storage_options: StoreOptions = Field(
        default_factory=dict,
        description="Options without secrets, by the names of delta-rs. tidegate translates them for Spark",
    )
