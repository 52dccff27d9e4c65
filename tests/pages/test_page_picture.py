"""The picture of the page in docs/ can be drawn anew by its script, whatever the page has become."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dags.docs_picture import draw

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore")]


def test_the_script_draws_the_page_in_the_size_of_the_docs(tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    draw(picture)
    data, drawn = picture.read_bytes(), Path("docs/images/page.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert data[16:24] == drawn[16:24], "width and height"
