"""Where a lake's files have a text.

In:  a folder, a text.
Out: the first folders below it with such a file.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq


def places_of(folder: Path, text: str) -> set[str]:
    """First folders below the lake with a file that has this text: in Parquet's values or statistics, or as is."""
    places = set()
    for path in (path for path in folder.rglob("*") if path.is_file()):
        if path.suffix == ".parquet":
            file = pq.ParquetFile(path)
            held_text = text in str(file.read().to_pylist()) or text in str(file.metadata.to_dict())
        else:
            held_text = text.encode() in path.read_bytes()
        if held_text:
            places.add(path.relative_to(folder).parts[0])
    return places
