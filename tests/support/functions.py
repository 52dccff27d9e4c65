"""Distributions with functions for tables.computed, in pip's form.

In:  a folder, Python text, a version.
Out: Distributions: installed() puts one on the path; all go at the end.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path

from tidegate.computed import row_functions


@dataclass(slots=True)
class Distributions:
    """They lie in a folder of their own. A new installation counts at once."""

    folder: Path

    def install(self, distribution: str, version: str, module: str, text: str, points: str) -> None:
        """points: lines `name = module:function`."""
        self.remove(distribution)
        (self.folder / f"{module}.py").write_text(text)
        info = self.folder / f"{distribution}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[{row_functions.GROUP}]\n{points}\n")
        if str(self.folder) not in sys.path:
            sys.path.insert(0, str(self.folder))
        self.forget(module)

    def remove(self, distribution: str) -> None:
        for info in self.folder.glob(f"{distribution}-*.dist-info"):
            for file in info.iterdir():
                file.unlink()
            info.rmdir()
        self.forget("")

    @staticmethod
    def look_again() -> None:
        """New files count, and loaded modules stay, as in a long run."""
        importlib.invalidate_caches()

    @staticmethod
    def forget(module: str) -> None:
        """The next call loads it anew."""
        sys.modules.pop(module, None)
        importlib.invalidate_caches()
        row_functions.forget()

    def close(self) -> None:
        if str(self.folder) in sys.path:
            sys.path.remove(str(self.folder))
        row_functions.forget()
