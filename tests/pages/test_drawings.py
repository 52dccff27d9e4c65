"""Each mermaid drawing of the pages is drawn by mermaid itself, and its words can be read in a page's width.

In:  Chromium; mermaid by npm, or its mermaid.min.js in MERMAID. Without them the test is skipped, and says which is
     missing, unless TIDEGATE_REQUIRE_BROWSER is set.
Out: a picture of each drawing in SCREENSHOTS, if that is set.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import pytest
from selenium.webdriver.common.by import By
from tools import mermaid_script as mermaid

from tests.dags.browser import browser

pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore")]

ROOT: Final = Path(__file__).resolve().parents[2]
_BLOCK: Final = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A code host shows a page about 830 pixels wide, and makes what is wider smaller: letters of 16 pixels become 12.
_WIDTH_MAX: Final = 1100
_DRAW: Final = """
const [text, answer] = arguments;
mermaid.initialize({startOnLoad: false});
mermaid.render('drawing', text).then(
    drawn => { document.body.innerHTML = drawn.svg; answer(['', drawn.svg.match(/viewBox="([^"]*)"/)[1]]); },
    error => answer([String(error), '']))
"""


def drawings() -> dict[str, str]:
    """Text of each drawing by its page."""
    drawn: dict[str, str] = {}
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("docs/**/*.md")]):
        for number, text in enumerate(_BLOCK.findall(page.read_text())):
            drawn[f"{page.relative_to(ROOT)}-{number}"] = text
    return drawn


def mermaid_script() -> Path:
    """The file; skips the test where it can't be had."""
    file = mermaid.script()
    if file is None:
        assert not os.environ.get("TIDEGATE_REQUIRE_BROWSER"), "no mermaid: install npm, or name its file in MERMAID"
        pytest.skip("no npm here, or it doesn't give mermaid: name its mermaid.min.js in MERMAID")
    return file


def test_each_drawing_is_drawn_and_can_be_read(tmp_path: Path) -> None:
    blank = tmp_path / "blank.html"
    script, wrong = mermaid_script().resolve().as_uri(), []
    blank.write_text(f"<!doctype html><meta charset=utf-8><body><script src='{script}'></script></body>")
    screenshots = Path(os.environ["SCREENSHOTS"]) if os.environ.get("SCREENSHOTS") else None
    with browser() as chromium:
        chromium.get(blank.as_uri())
        for name, text in drawings().items():
            error, box = chromium.execute_async_script(_DRAW, text)
            if error:
                wrong.append(f"{name}: {error}")
                continue
            width = float(box.split()[2])
            if width > _WIDTH_MAX:
                wrong.append(f"{name}: {width:.0f} pixels wide, too small to read in a page")
            if screenshots is not None:
                file = screenshots / f"{name.replace('/', '-')}.png"
                chromium.find_element(By.CSS_SELECTOR, "svg").screenshot(str(file))
    assert not wrong, "\n".join(wrong)
