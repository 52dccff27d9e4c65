"""`make site` makes a site of docs/, and fails where a link, a heading or the list of pages is wrong.

In:  mkdocs.yml, docs/, tools/site_hooks.py; the list of pages in docs/README.md.
Out: a site with every page, read as on a code host; mkdocs' own words about each fault.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "mkdocs", "build", "--strict"]
PARTS = ["Home", "Tutorial", "How-to", "Reference", "Explanation"]
PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
# What is no paragraph on a code host: a list, a block of code or a table, or a link that wasn't made.
RAW = re.compile(r"(?:^|\n) *(?:- |\d+\. |```|\|)|\]\(")
CODE = re.compile(r"<code>.*?</code>", re.DOTALL)


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "TIDEGATE_SITE_CODE"}
    return subprocess.run(
        [*COMMAND, "--site-dir", str(site)],
        cwd=root,
        env=environment | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    script = tmp_path_factory.mktemp("script") / "mermaid.js"
    script.write_text("// draws")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MERMAID", str(script))
        done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_every_page_in_four_parts(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    made = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert {page for page in pages if page.name != "README"} <= made
    tabs = re.findall(r'class="md-tabs__link">\s*([^<]*?)\s*<', (site / "index.html").read_text())
    assert tabs == PARTS


def test_a_page_with_a_drawing_has_its_script_in_the_site(site: Path) -> None:
    drawn = 0
    for path in site.rglob("*.html"):
        text = path.read_text()
        places = re.findall(r'<script src="([^"]*mermaid[^"]*)">', text)
        assert len(places) == ('class="mermaid"' in text), path
        drawn += len(places)
        assert all((path.parent / place).read_text() == "// draws" for place in places)
    assert drawn > 10


def test_every_list_table_and_link_of_a_page_is_one_in_the_site(site: Path) -> None:
    for path in sorted(site.rglob("*.html")):
        for paragraph in PARAGRAPH.findall(path.read_text()):
            assert not RAW.search(CODE.sub("", paragraph)), f"{path.relative_to(site)}: {paragraph[:200]}"


def test_the_site_asks_no_other_host_for_its_scripts_and_styles(site: Path) -> None:
    for path in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?:[^\" >]*)", path.read_text())
        assert not loaded, path


def test_a_broken_link_a_wrong_heading_and_a_page_outside_of_the_list_fail(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("docs", "benchmarks/README.md", "tools/site_hooks.py", "mkdocs.yml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, root / name)
    for page in ROOT.glob("*.md"):
        shutil.copy(page, root)
    with (root / "docs" / "query.md").open("a") as opened:
        opened.write("\n[a](nowhere.md) [b](operate.md#nowhere)\n")
    (root / "docs" / "alone.md").write_text("# Alone\n")
    done = build(root, tmp_path / "site")
    assert done.returncode != 0
    words = done.stdout + done.stderr
    assert re.search(r"'nowhere\.md'.*not found", words), words
    assert "'operate.md#nowhere'" in words, words
    assert "alone.md" in words, words
