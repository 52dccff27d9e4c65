"""A lake in an object store as a folder of this disk, for readers that know no store.

In:  a lake; a folder, that of an earlier look perhaps.
Out: the folder: each log before the files that it names, so that every table is whole whoever writes meanwhile.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.fs as pafs

from tidegate.lake.files import LakeFiles


def mirror(lake: LakeFiles, folder: Path) -> None:
    """Bring what is new. Only hints change under their names: each other object is made once."""
    root = lake.local("")
    found = lake.filesystem.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
    names = [info.path.removeprefix(root).lstrip("/") for info in found if info.type == pafs.FileType.File]
    # Of a log its newest commit last: what is listed is whole. Hints are left out, readers do without.
    logs = sorted(name for name in names if "/_delta_log/" in name and not name.endswith("_last_checkpoint"))
    rest = [name for name in names if "/_delta_log/" not in name]
    for name in (*logs, *rest):
        target = folder / name
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with lake.filesystem.open_input_stream(f"{root}/{name}") as source:
                data = source.read()
        except FileNotFoundError:
            continue  # of a private log, which goes when its work is done
        target.write_bytes(data)
