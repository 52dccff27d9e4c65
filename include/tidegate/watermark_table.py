"""The name of the table at a source in which the reader of a snapshot marks where a wave of chunks begins and ends.

In:  nothing. Config reads it, and Airflow parses config every few seconds: nothing heavy is imported here.
Out: names. The table is captured whatever the pipeline file includes; it has a row per pipeline and source.
"""

from __future__ import annotations

from typing import Final

WATERMARK_DATABASE: Final = "tidegate"
WATERMARK_TABLE: Final = "watermark"
WATERMARK: Final = f"{WATERMARK_DATABASE}.{WATERMARK_TABLE}"
