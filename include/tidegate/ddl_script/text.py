"""A script's text as statements.

In:  the text, as a person wrote it or a dump tool did, with `DELIMITER x` lines as the mysql client has them.
Out: (line, statement), one after the other; the next one is looked for only when it is asked for, because a SET
     sql_mode in between may change what a backslash means.

Each character is looked at a fixed number of times: what never ends (a quote, a comment) goes on to the end at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

# What may stand before a statement without being part of it for the client: it is where DELIMITER is looked for.
_BLANK: Final = re.compile(r"(?:\s++|--(?=\s|$)[^\n]*+|\#[^\n]*+)*+")
_DELIMITER: Final = re.compile(r"delimiter[ \t]++(\S++)[^\n]*+", re.IGNORECASE)
_SPACE: Final = re.compile(r"\s*+")
# {0}: characters inside of quotes; {1}: the delimiter; {2}: its first character. A quote or comment is one piece, so
# that a delimiter in it ends nothing; one that never ends is the rest.
_PIECES: Final = r"""
      (?P<end>{1})
    | [^'"`/#\-\\{2}]++
    | '(?:{0}|'')*+(?:'|\\?\Z)
    | "(?:{3}|"")*+(?:"|\\?\Z)
    | `[^`]*+(?:`|\Z)
    | /\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)
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
