"""A release's page of the changelog: `python tools/release_notes.py v0.3.0`.

In:  a tag; the version of include/tidegate/__init__.py, CHANGELOG.md.
Out: the page, for the release of that tag. Exit code 1 if the tag isn't the version's, or the
     changelog has no page for it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_VERSION: Final = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_PAGE: Final = re.compile(r"^## \[([^\]]+)\] - \d{4}-\d{2}-\d{2}\n(.*?)(?=^## \[|\Z)", re.MULTILINE | re.DOTALL)


class UnfitTagError(Exception):
    """The tag can't be released, with the reason."""


def notes(tag: str, code: str, changelog: str) -> str:
    """code: the text of tidegate/__init__.py. Raises UnfitTagError."""
    version = _VERSION.search(code)
    if version is None or tag != f"v{version[1]}":
        raise UnfitTagError(f"the tag is {tag}, and the version is {version[1] if version else 'nowhere'}")
    pages = {page[1]: page[2].strip() for page in _PAGE.finditer(changelog)}
    if not pages.get(version[1]):
        raise UnfitTagError(f"CHANGELOG.md has no page for {version[1]}")
    return pages[version[1]]


def main(argv: list[str]) -> int:
    (tag,) = argv
    code = (ROOT / "include" / "tidegate" / "__init__.py").read_text()
    try:
        sys.stdout.write(notes(tag, code, (ROOT / "CHANGELOG.md").read_text()) + "\n")
    except UnfitTagError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
