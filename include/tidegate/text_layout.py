"""Plain text, whole at any width: uncut columns, and paragraphs.

In:  rows of cells; a head and what is to be said under it.
Out: lines. A terminal, a pipe and a log get the same words; a line that is too long breaks between words. A name or a
     position never breaks, nor does a command or a statement to paste.
"""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Sequence
from typing import Final

_WIDTH_MIN: Final = 40
# Parts to paste, which never break: text between backticks; a command; a grant or a setting.
_PASTED: Final = re.compile(
    r"`[^`]+`|(?:\S*/)?tidegate [a-z][a-z-]*(?: [^\s;,()`]+){0,7}"
    r"|GRANT .+? TO \S+|SET (?:GLOBAL|PERSIST) \S+ = \S+"
)
_GLUE: Final = "\0"


def width() -> int:
    """Columns of the terminal, or of COLUMNS; 80 for a pipe."""
    return max(_WIDTH_MIN, shutil.get_terminal_size().columns)


def sentence(words: str) -> str:
    """The words with a large first letter and a dot."""
    return f"{words[:1].upper()}{words[1:]}."


def age_text(seconds: float | None) -> str:
    """How long something is ago, in the unit that people read at once; "-" when it isn't known."""
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.1f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def size_text(count: float) -> str:
    """Bytes, in the unit that people read at once."""
    if count >= 1e9:
        return f"{count / 1e9:,.1f} GB"
    if count >= 1e3:
        return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"
    return f"{count:.0f} bytes" if count >= 10 else f"{rate_text(count)} bytes"


def rate_text(value: float) -> str:
    """A rate per second: one decimal; of a small one two digits, never 0."""
    if value <= 0 or value >= 1:
        return f"{value:,.1f}" if value else "0"
    return f"{value:.{1 - math.floor(math.log10(value))}f}"


def counted(number: int, single: str, more: str) -> str:
    """The number, and the words that go with it."""
    return f"{number:,} {single if number == 1 else more}"


def columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """One line per row, columns as wide as their widest cell. right: columns that end together."""
    if not rows:
        return []
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(size) if at in right else cell.ljust(size)
            for at, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def paragraph(head: str, text: str, *, indent: str = "  ") -> list[str]:
    """The head on a line, the text below it, indented. Only for a command a line is too long."""
    folded = textwrap.wrap(
        _PASTED.sub(lambda pasted: pasted[0].replace(" ", _GLUE), " ".join(text.split())),
        width(),
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [head, *(line.replace(_GLUE, " ") for line in folded)]
