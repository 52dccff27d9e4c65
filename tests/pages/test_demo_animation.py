"""The animated picture of the demo: a small, whole SVG without scripts, secrets and other hosts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from tools.demo_animation import COLUMNS, PATH, ROWS, kept_lines, screens, svg

ROOT = Path(__file__).resolve().parents[2]
PRINTED = """\
tidegate: MariaDB starts
tidegate: Airflow runs at http://127.0.0.1:1: login admin, password s3cret
    0 s  capture begins
   18 s  capture begins
   32 s  the shop is open: 95 transactions; bronze 0.8 s behind
┏━━━━━┓
┃ a   ┃
┡━━━━━┩
│ b<c │
└─────┘
silver equals the source, compared in 8.4 s.

Next: docs/tutorial.md
more
"""


def test_a_screen_comes_after_the_other_and_a_table_as_a_whole() -> None:
    lines = kept_lines(PRINTED)
    assert lines[0] == "$ make demo"
    assert "s3cret" not in str(lines)
    assert sum("capture begins" in line for line in lines) == 1
    assert lines[-1].startswith("silver equals")
    made = screens(lines)
    assert len(made) == len(lines) - 4
    assert made[-1].lines == tuple(lines)
    drawn = svg(made)
    texts = [element.text for element in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert "│ b<c │" in texts
    assert "prefers-reduced-motion" in drawn


def test_the_picture_in_the_readme_is_small_and_asks_nobody() -> None:
    readme = (ROOT / "README.md").read_text()
    pictures = [ROOT / name for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", readme)]
    assert PATH in pictures
    assert sum(path.stat().st_size for path in pictures) < 1_000_000
    drawn = PATH.read_text(encoding="utf-8")
    ET.fromstring(drawn)
    assert "<script" not in drawn
    assert set(re.findall(r"https?://[^\"' <)]+", drawn)) == {"http://www.w3.org/2000/svg"}
    assert "password" not in drawn
    rows = re.findall(r"<g .*?</g>", drawn)
    assert all(row.count("<text") <= ROWS for row in rows)
    assert all(len(text) <= COLUMNS * 6 for text in re.findall(r"<text[^>]*>([^<]*)<", drawn))
