"""The modes of silver. A mode decides which rows of the source's past a table has.

In:  a table's keys in the pipeline file's section `tables`, or the columns of its silver.
Out: a Past (form.py), the answers of its mode.

A mode is a file here, and an entry of PASTS. Other rooms ask the object. tests/style/test_silver_modes.py
lists the few files that name a mode, and allows no others.
docs/inside/extend.md tells how to add one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from tidegate.errors import SchemaMismatch
from tidegate.merge.past.current import NO_PAST
from tidegate.merge.past.form import Past
from tidegate.merge.past.history import HISTORY
from tidegate.merge.past.soft_delete import SOFT_DELETE
from tidegate.schema.model.columns import TableVersion

__all__ = ["HISTORY", "NO_PAST", "PASTS", "SOFT_DELETE", "Past", "check_modes", "past_named", "past_of"]

PASTS: Final[dict[str, Past]] = {past.word: past for past in (SOFT_DELETE, HISTORY)}


def past_of(columns: Collection[str]) -> Past:
    """The mode of a table with these columns."""
    return next((past for past in PASTS.values() if past.mark in columns), NO_PAST)


def past_named(words: Sequence[str]) -> Past:
    """The mode of a table with these keys. A table with two keys is held (check_modes)."""
    return PASTS[words[0]] if words else NO_PAST


def check_modes(words: Sequence[str], name: str, versions: Sequence[TableVersion]) -> None:
    """Raise SchemaMismatch for a logical table with two modes, or with an unfit one. words: its keys of modes."""
    if len(words) > 1:
        why = f"{' and '.join(f'tables.{word}' for word in sorted(words))} both keep its deleted rows"
        raise SchemaMismatch(why, where=name, remedy="take it out of one of them")
    past_named(words).check(versions)
