"""A script's text as statements.

In:  the text, as a person wrote it or a dump tool did, with `DELIMITER x` lines as the mysql client has them.
Out: (line, statement), one after the other. The next one is read only when it is asked for: a SET sql_mode before it
     may change what a backslash means.

It takes linear time: a quote or comment without an end takes the rest of the text at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

# What the client skips before a statement; DELIMITER may stand after it.
# An atomic group: CPython before 3.11.5 goes on at a wrong place after a possessive one with a look ahead (gh-106052).
_BLANK: Final = re.compile(r"(?>(?:\s++|--(?=\s|$)[^\n]*+|\#[^\n]*+)*)")
_DELIMITER: Final = re.compile(r"delimiter[ \t]++(\S++)[^\n]*+", re.IGNORECASE)
_SPACE: Final = re.compile(r"\s*+")
# {0}: characters inside quotes; {1}: the delimiter; {2}: its first character. A quote or comment is one piece, so a
# delimiter in it ends nothing. One without an end takes the rest.
_PIECES: Final = r"""
      (?P<end>{1})
    | [^'"`/#\-\\{2}]++
    | '(?:{0}|'')*+(?:'|\\?\Z)
    | "(?:{3}|"")*+(?:"|\\?\Z)
    | `[^`]*+(?:`|\Z)
    | /\*.*?(?:\*/|\Z)
    | --(?=\s|$)[^\n]*+
    | \#[^\n]*+
    | .
"""


def _pieces(delimiter: str, *, plain: bool) -> re.Pattern[str]:
    inside = (r"[^']++", r'[^"]++') if plain else (r"[^'\\]++|\\.", r'[^"\\]++|\\.')
    first = re.escape(delimiter[0])
    text = _PIECES.format(inside[0], re.escape(delimiter), first, inside[1])
    return re.compile(text, re.DOTALL | re.VERBOSE)


def statements(text: str, *, plain: Callable[[], bool] = lambda: False) -> Iterator[tuple[int, str]]:
    """(line from 1, statement) of a script. plain: whether NO_BACKSLASH_ESCAPES is on by now."""
    patterns = {False: _pieces(";", plain=False), True: _pieces(";", plain=True)}
    at, counted, line, size = 0, 0, 1, len(text)
    while at < size:
        blank = _BLANK.match(text, at)
        command = _DELIMITER.match(text, blank.end()) if blank else None
        if command is not None:
            patterns = {way: _pieces(command[1], plain=way) for way in patterns}
            at = command.end()
            continue
        space = _SPACE.match(text, at)
        start = space.end() if space else at
        end, at = _end(text, at, patterns[plain()])
        body = text[start:end].rstrip()
        if body:
            line += text.count("\n", counted, start)
            counted = start
            yield line, body


def _end(text: str, at: int, pieces: re.Pattern[str]) -> tuple[int, int]:
    """(where the statement ends, where the next one may start)."""
    for piece in pieces.finditer(text, at):
        if piece.lastgroup == "end":
            return piece.start(), piece.end()
    return len(text), len(text)
