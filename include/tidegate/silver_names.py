"""Names of silver's columns: the source's own, but for what Delta or Spark can't take.

In:  the name of a column at the source.
Out: its name in silver, never one for two.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from tidegate.tables import SYSTEM_PREFIX


@lru_cache(maxsize=1 << 16)
def silver_column(name: str) -> str:
    """The name in silver of a source's column: its own, but for what Delta or Spark refuses, or takes for its own.

    An odd character becomes ~hex~, so two names never become one: what Delta refuses, the tilde, the first letter of a
    system column's prefix, and capitals beyond Armenian, of whose small letters Spark and the servers disagree.
    """
    lead = 1 if name[: len(SYSTEM_PREFIX)].lower() == SYSTEM_PREFIX else 0
    if not lead and _PLAIN_COLUMN(name):
        return name
    return "".join(f"~{ord(c):x}~" if at < lead or _is_odd(c) else c for at, c in enumerate(name))


def _is_odd(character: str) -> bool:
    if character.isascii():
        return character in _ODD or ord(character) < ord(" ") or character == "\x7f"
    return ord(character) > _ARMENIAN_CAPITALS_END and character.lower() != character


_ODD: Final = frozenset(" ,;{}()=`~")
_ARMENIAN_CAPITALS_END: Final = 0x556
_PLAIN_COLUMN: Final = re.compile(r"[0-9A-Za-z_$\u00a0-\u052f]*").fullmatch
