"""Versions whose columns have other names in silver, by tables.renames of a pipeline file.

In:  a version, silver's names by the source's in lower case.
Out: the version with them: `Column.silver` says them from then on. Pure.

Whoever reads or writes silver takes its names from such a version. Bronze knows none of them: a
rule may change, and its rows stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from tidegate.schema.model.columns import TableVersion
from tidegate.silver_names import silver_column

Names = Mapping[str, str]


def under_names(version: TableVersion, names: Names) -> TableVersion:
    """A version where two columns would have one name keeps the source's: its table is held."""
    plain = version.plain
    if not names or clash(plain, names):
        return plain
    columns = tuple(replace(c, alias=names[n]) if (n := c.name.lower()) in names else c for c in plain.columns)
    return replace(plain, columns=columns)


def clash(version: TableVersion, names: Names) -> str:
    """The name in silver that two columns of a version would have, in lower case; "" for none."""
    seen = set[str]()
    for name in (names.get(column.name.lower(), silver_column(column.name)).lower() for column in version.columns):
        if name in seen:
            return name
        seen.add(name)
    return ""


def to_text(names: Names) -> str:
    """The names as silver's own log keeps them; "" for none."""
    return json.dumps(dict(names), ensure_ascii=False, sort_keys=True) if names else ""


def from_text(text: str) -> Names:
    """The inverse."""
    names: dict[str, str] = json.loads(text) if text else {}
    return names
