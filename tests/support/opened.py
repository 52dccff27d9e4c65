"""Which files of a lake were opened: what a reader reads again shows.

In:  nothing.
Out: the fixture `opened`, a list of paths in the lake, in order.
"""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.lake.files import LakeFiles


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    real = LakeFiles.open

    def noted(self: LakeFiles, path: str) -> Any:
        found.append(path)
        return real(self, path)

    monkeypatch.setattr(LakeFiles, "open", noted)
    return found
