"""A control table that changes has a number, and every layout that ever had one is read.

layouts.json has the columns of each format. TIDEGATE_WRITE_LAYOUTS=1 adds those of a new one; what is there stays.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tidegate import tables
from tidegate.delta.table.arrow_types import delta_schema
from tidegate.delta.table.state import TableState
from tidegate.lake.format.layout import layout_of
from tidegate.lake.format.migrations import MIGRATIONS, newest_format

FILE = Path(__file__).with_name("layouts.json")
CONTROL = {table.path: table for table in tables.ALL if table.path.startswith("control/")}
Layouts = dict[str, dict[str, list[dict[str, Any]]]]


def _now() -> dict[str, list[dict[str, Any]]]:
    """Path -> columns, without what is said of them."""
    return {
        path: [{**column, "metadata": {}} for column in delta_schema(table.schema)["fields"]]
        for path, table in sorted(CONTROL.items())
    }


def _layouts() -> Layouts:
    found: Layouts = json.loads(FILE.read_text()) if FILE.exists() else {}
    if os.environ.get("TIDEGATE_WRITE_LAYOUTS") and str(newest_format()) not in found:
        found[str(newest_format())] = _now()
        tables_of = (f' "{name}": {{\n{_lines(of)}\n }}' for name, of in found.items())
        FILE.write_text("{\n" + ",\n".join(tables_of) + "\n}\n")
    return found


def _lines(of: dict[str, list[dict[str, Any]]]) -> str:
    return ",\n".join(f'  "{path}": {json.dumps(columns)}' for path, columns in of.items())


def test_no_control_table_changes_without_a_number() -> None:
    found = _layouts().get(str(newest_format()))
    assert found is not None, "write down the new layout (above)"
    assert found == _now(), "add a line to MIGRATIONS (include/tidegate/lake/format/__init__.py says how)"


@pytest.mark.parametrize("version", sorted(_layouts()))
def test_each_layout_that_a_release_wrote_becomes_todays(version: str) -> None:
    for path, columns in _layouts()[version].items():
        text = json.dumps({"type": "struct", "fields": columns})
        layout = layout_of(TableState(path, 1, metadata={"schemaString": text}), CONTROL[path])
        assert not layout.differs, (version, path)
        rows = layout.upgraded(layout.stored.empty_table(), CONTROL[path].schema)
        assert rows.schema.equals(CONTROL[path].schema), (version, path)
        assert layout.is_current or version != str(newest_format())


def test_migrations_are_in_order_and_change_the_columns_that_they_are_recognised_by() -> None:
    numbers = [step.number for step in MIGRATIONS]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, len(set(numbers)) + 1))
    for step in MIGRATIONS:
        assert step.path in CONTROL
        assert bool(step.old) == (step.convert is not None), step
        assert step.old != set(CONTROL[step.path].schema.names), step
