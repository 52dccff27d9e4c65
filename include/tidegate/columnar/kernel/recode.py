"""Text of single-byte character sets as UTF-8, a column at a time.

In:  the addresses of 32-bit offsets, of the bytes they point into, of a table
     (schema/model/charset_text.py, utf8_table).
Out: new offsets and bytes. It must hold: the offsets come from the kernel, so they lie inside the
     bytes; the output has room for three bytes for each byte, and for one more.
"""

from __future__ import annotations

from tidegate.columnar.kernel.memory import FAST, I, load8, load32, store32
from tidegate.compiled import compiled


@compiled(I(I, I, I, I, I, I), **FAST)
def recode(offsets: int, rows: int, source: int, table: int, made: int, out: int) -> int:
    """Write UTF-8 to `out`, offsets to `made`. Returns the bytes written; -1 - n if the byte at n
    is no character.
    """
    to = out
    store32(made, 0)
    at = load32(offsets)
    for row in range(rows):
        end = load32(offsets + 4 * row + 4)
        while at < end:
            packed = load32(table + 4 * load8(source + at))
            if packed == 0:
                return -1 - at
            store32(to, packed)
            to += packed >> 24
            at += 1
        store32(made + 4 * row + 4, to - out)
    return to - out
