"""Draws docs/images/page.png: the page of a pipeline behind its source, as the page's test sees it.

In:  Chromium and its driver (apt packages chromium, chromium-driver); the file to write, if another.
Out: the picture. After a change of the page: `.venv/bin/python -m tests.dags.docs_picture`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from tests.dags.browser import browser, see
from tests.dags.page_looks import resize
from tests.dags.page_server import served
from tests.dags.test_page_in_browser import behind
from tests.support.pipeline_views import NOW

ROOT: Final = Path(__file__).resolve().parents[2]
_WIDTH: Final = 1385
_HEIGHT: Final = 1868


def draw(picture: Path) -> None:
    """Write the picture, light. Raises AssertionError where the page doesn't come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: NOW)
        patch.setattr("tidegate_airflow.page.patient.disks", lambda *_: {})  # not those of this machine
        with served(patch, {"shop": behind()}) as url, browser() as chromium:
            see(chromium, f"{url}/dags/shop__apply", ["The road", "Maintenance"])
            chromium.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            resize(chromium, _WIDTH, _HEIGHT)
            chromium.save_screenshot(str(picture))


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images" / "page.png")
