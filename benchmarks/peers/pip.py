"""Python peers: packages that the user's own pip puts into a folder below .tidegate/bench.

In:  a pinned package.
Out: the folder, for PYTHONPATH: the package is no part of tidegate's environment. Missing says why it can't be had.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.figures import Missing
from tidegate.local.ivy import locked

_SECONDS: Final = 300.0


def folder_of(name: str, package: str, cache: Path, *, needs: bool = False) -> Path:
    """Fetched once. package: "NAME==VERSION"; needs: with what it depends on, where our environment lacks that or has
    another version of it. Raises Missing, which begins with `name`.
    """
    folder = cache / package.replace("==", "-")
    with locked(cache / ".lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                fresh = Path(scratch) / "packages"
                command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
                command += [*(() if needs else ("--no-deps",)), "--only-binary", ":all:", "--target", str(fresh)]
                try:
                    done = subprocess.run(
                        [*command, package], capture_output=True, text=True, check=False, timeout=_SECONDS
                    )
                except subprocess.TimeoutExpired:
                    raise Missing(f"{name}: not fetched within {_SECONDS:.0f} s") from None
                if done.returncode != 0:
                    words = (done.stderr.strip().splitlines() or ["pip said nothing"])[0][:200]
                    raise Missing(f"{name}: pip can't install it here: {words}")
                shutil.move(fresh, folder)
    return folder


def program(file: str, folder: Path) -> list[str]:
    """The command that runs a peer's own file with the package."""
    return [*("env", f"PYTHONPATH={folder}"), sys.executable, str(Path(file).resolve())]
