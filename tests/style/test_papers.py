"""README, ARCHITECTURE and CHANGELOG say what is so.

In:  the papers at the root.
Out: each statement in them that can be checked and isn't true.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from tests.kit.mysql9 import MySQL9
from tidegate.local.mariadb import MariaDB

ROOT = Path(__file__).resolve().parents[2]
NAMED_FILE = re.compile(r"`([\w.-]+(?:/[\w.<>*-]+)*/?)`")
SUFFIXES = (".py", ".yaml", ".md", ".toml", ".txt", ".in", ".sql")


def test_architecture_names_only_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    missing = []
    for name in NAMED_FILE.findall(text):
        looks_like_file = ("/" in name and not name.startswith(("bronze", "silver", "control"))) or name.endswith(
            SUFFIXES
        )
        if not looks_like_file or "<" in name or name.startswith(".tidegate"):
            continue
        places = (ROOT, ROOT / "include" / "tidegate", ROOT / "plugins" / "tidegate_airflow", ROOT / "include")
        if not any(any(place.glob(name.rstrip("/"))) for place in places):
            missing.append(name)
    assert not missing, missing


def test_changelog_has_an_unreleased_section() -> None:
    assert re.search(r"^## \[Unreleased\]$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_readme_lists_every_pipeline_key_as_the_model_has_it() -> None:
    subprocess.run([sys.executable, "tools/pipeline_keys.py", "--check", "README.md"], cwd=ROOT, check=True)


def test_readme_asks_for_the_grants_that_the_tests_run_with() -> None:
    text = (ROOT / "README.md").read_text()
    for grant in (*MariaDB.grants, *MySQL9.grants):
        assert f"GRANT {grant} TO" in text


def test_compose_file_uses_only_what_is_there() -> None:
    compose = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (ROOT / "docker" / source).exists(), f"{name}: {source}"
    copied = re.findall(r"^COPY (.*) \S+$", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE)
    assert all((ROOT / path).exists() for line in copied for path in line.split())


def test_readme_opens_with_demo_and_test() -> None:
    first = re.search(r"```\w*\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert first is not None
    assert [line.split("#")[0].strip() for line in first[1].strip().splitlines()] == ["make demo", "make test"]
