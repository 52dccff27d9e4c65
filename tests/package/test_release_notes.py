"""A release has its version's tag, and a page of the changelog."""

from __future__ import annotations

import pytest
from tools.release_notes import UnfitTagError, main, notes

from tidegate import __version__

CODE = '__version__ = "1.2.0"\n'
CHANGELOG = """# Changelog

## [Unreleased]

- not yet

## [1.2.0] - 2026-11-30

### Added

- it

## [1.1.0] - 2026-11-01

- before
"""


def test_a_page_is_that_of_the_tag() -> None:
    assert notes("v1.2.0", CODE, CHANGELOG) == "### Added\n\n- it"
    assert notes("v1.1.0", CODE.replace("1.2", "1.1"), CHANGELOG) == "- before"


@pytest.mark.parametrize(
    ("tag", "code", "changelog", "why"),
    [
        ("v1.2.1", CODE, CHANGELOG, "the tag is v1.2.1, and the version is 1.2.0"),
        ("1.2.0", CODE, CHANGELOG, "the tag is 1.2.0, and the version is 1.2.0"),
        ("v1.2.0", "", CHANGELOG, "the version is nowhere"),
        ("v1.2.0", CODE, CHANGELOG.replace("[1.2.0]", "[1.3.0]"), "CHANGELOG.md has no page for 1.2.0"),
        ("v1.2.0", CODE, CHANGELOG.replace("### Added\n\n- it\n", ""), "CHANGELOG.md has no page for 1.2.0"),
    ],
)
def test_a_tag_of_another_version_or_without_a_page_is_refused(tag: str, code: str, changelog: str, why: str) -> None:
    with pytest.raises(UnfitTagError, match=why):
        notes(tag, code, changelog)


def test_this_version_can_be_released(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"v{__version__}"]) == 0
    assert "\n- " in capsys.readouterr().out
    assert main(["v0.0.0"]) == 1
