"""mermaid's own script, which draws the pages' drawings in a browser: fetched by npm once, kept in .tidegate/mermaid.

In:  npm; or the file's place in MERMAID.
Out: the place of mermaid.min.js on stdout; nothing where it can't be had, and a line on stderr.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

VERSION: Final = "11.17.2"
_FOLDER: Final = Path(__file__).resolve().parents[1] / ".tidegate" / "mermaid" / VERSION
_SCRIPT: Final = "package/dist/mermaid.min.js"


def script() -> Path | None:
    """The file; None without npm, or where npm can't get it."""
    if os.environ.get("MERMAID"):
        return Path(os.environ["MERMAID"])
    file = _FOLDER / _SCRIPT
    if not file.exists() and (npm := shutil.which("npm")):
        _FOLDER.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", "--silent", "--pack-destination", str(_FOLDER), f"mermaid@{VERSION}"]
        subprocess.run(command, check=False, timeout=300, capture_output=True)
        for packed in _FOLDER.glob("*.tgz"):
            with tarfile.open(packed) as opened:
                data = opened.extractfile(_SCRIPT)
                assert data is not None
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data.read())
    return file if file.exists() else None


if __name__ == "__main__":
    place = script()
    print(place or "")
    if place is None:
        print("no mermaid by npm: a reader's browser asks another host for the drawings", file=sys.stderr)
